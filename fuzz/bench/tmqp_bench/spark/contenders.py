"""The two ways to the same rows: a durable queue of ours, and a topic of Kafka's.

Each reads and writes with what Spark calls a format, and with its defaults.  Both keep the same
messages in as many parts as Spark has task slots: queues of a channel, partitions of a topic.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from tmqp_bench.broker.processes import ServerProcess, StartError, free_port
from tmqp_bench.codec import PLACES, ROOT
from tmqp_bench.spark.kafka import start_kafka
from tmqp_client import sync

__all__ = ["PARTS", "Contender", "Kafka", "Tmqp", "running_kafka", "session", "start_tmqp"]

#: Task slots of Spark, queues of a channel, partitions of a topic.
PARTS: Final = 2
_ALL: Final = (
    "message_id string, value binary, channel string, queue int, seq long, timestamp timestamp"
)
_MEMORY: Final = "2g"


def session(build: str, jars: Sequence[Path], folder: Path) -> Any:
    """A Spark of this process in which both formats are there.

    :raises StartError: when Spark does not come up.
    """
    place = ROOT / PLACES[build]
    if not (place / "tmqp_spark").is_dir():
        raise StartError(f"nothing is in {PLACES[build]}: make compiled")
    os.environ["PYTHONPATH"] = str(place)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if shutil.which("java") is None:
        raise StartError("there is no java on the path: apt-get install openjdk-17-jre-headless")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - it may be missing

    builder: Any = SparkSession.builder
    settings = {
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.memory": _MEMORY,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # As tmqp_spark.session() sets them; they say nothing to what is written in Java.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.appName("tmqp-bench").master(f"local[{PARTS},3]").getOrCreate()


class Contender(Protocol):
    """What the suite asks of either."""

    title: str
    server: ServerProcess

    def batch(self, place: str, *, columns: bool) -> Any:
        """All of a place, as a DataFrame: values, or all six columns."""

    def stream(self, place: str, most: int) -> Any:
        """The same as a stream, so many rows in a micro-batch."""

    def fill(self, frame: Any, place: str) -> None:
        """Write keys and values, to be read again."""

    def write(self, frame: Any, place: str) -> None:
        """Write values."""

    def writer(self, frame: Any, place: str) -> Any:
        """The same as a stream."""

    def drop(self, place: str) -> None:
        """Forget a place."""


class Tmqp:
    """Durable queues.

    :param guarantee: of the sink.
    """

    def __init__(self, spark: Any, server: ServerProcess, guarantee: str, title: str) -> None:
        self.title = title
        self.server = server
        self._spark = spark
        self._guarantee = guarantee
        self._url = f"tmq://127.0.0.1:{server.port}"

    def batch(self, place: str, *, columns: bool) -> Any:
        """All of a channel's queues."""
        return self._source(self._spark.read, place, columns=columns).load()

    def stream(self, place: str, most: int) -> Any:
        """The same, from the beginning."""
        reader = self._source(self._spark.readStream, place, columns=True)
        reader = reader.option("startingOffsets", "earliest")
        return reader.option("maxOffsetsPerTrigger", most).load()

    def _source(self, reader: Any, place: str, *, columns: bool) -> Any:
        reader = reader.format("tmqp").option("url", self._url).option("subscribe", place)
        return reader.schema(_ALL if columns else "value binary")

    def fill(self, frame: Any, place: str) -> None:
        """Write keys and values."""
        self._save(self._placed(frame, "key as message_id", "value"), place)

    def write(self, frame: Any, place: str) -> None:
        """Write values, each task's to a queue of its own."""
        self._save(self._placed(frame, "value"), place)

    def writer(self, frame: Any, place: str) -> Any:
        """The same as a stream."""
        return self._sink(self._placed(frame, "value").writeStream, place)

    def _placed(self, frame: Any, *columns: str) -> Any:
        return frame.selectExpr(*columns, f"spark_partition_id() % {PARTS} + 1 as queue")

    def _sink(self, writer: Any, place: str) -> Any:
        writer = writer.format("tmqp").option("url", self._url).option("channel", place)
        return writer.option("createQueue", True).option("guarantee", self._guarantee)

    def _save(self, frame: Any, place: str) -> None:
        self._sink(frame.write, place).mode("append").save()

    def drop(self, place: str) -> None:
        """Remove the channel with its queues."""
        with sync.connect(self._url, name="bench") as client:
            client.remove_channel(place)


class Kafka:
    """Topics."""

    title = "Kafka"

    def __init__(self, spark: Any, server: ServerProcess) -> None:
        self.server = server
        self._spark = spark
        self._address = f"127.0.0.1:{server.port}"

    def batch(self, place: str, *, columns: bool) -> Any:
        """All of a topic."""
        return self._chosen(self._source(self._spark.read, place).load(), columns=columns)

    def stream(self, place: str, most: int) -> Any:
        """The same, from the beginning."""
        reader = self._source(self._spark.readStream, place).option("startingOffsets", "earliest")
        return self._chosen(reader.option("maxOffsetsPerTrigger", most).load(), columns=True)

    def _source(self, reader: Any, place: str) -> Any:
        reader = reader.format("kafka").option("kafka.bootstrap.servers", self._address)
        return reader.option("subscribe", place)

    def _chosen(self, frame: Any, *, columns: bool) -> Any:
        if columns:
            return frame.select("key", "value", "topic", "partition", "offset", "timestamp")
        return frame.select("value")

    def fill(self, frame: Any, place: str) -> None:
        """Write keys and values."""
        self._save(frame.select("key", "value"), place)

    def write(self, frame: Any, place: str) -> None:
        """Write values; the producer spreads them."""
        self._save(frame.select("value"), place)

    def writer(self, frame: Any, place: str) -> Any:
        """The same as a stream."""
        return self._sink(frame.select("value").writeStream, place)

    def _sink(self, writer: Any, place: str) -> Any:
        writer = writer.format("kafka").option("kafka.bootstrap.servers", self._address)
        return writer.option("topic", place)

    def _save(self, frame: Any, place: str) -> None:
        self._sink(frame.write, place).save()

    def drop(self, place: str) -> None:
        """Remove the topic, by the client that is in the JVM."""
        jvm = self._spark.sparkContext._jvm
        settings = jvm.java.util.Properties()
        settings.setProperty("bootstrap.servers", self._address)
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            admin.deleteTopics(jvm.java.util.Collections.singletonList(place)).all().get()
        finally:
            admin.close()


@contextlib.contextmanager
def start_tmqp(build: str, folder: Path) -> Iterator[ServerProcess]:
    """A server with a data directory, free to use all cores, as Kafka's is."""
    port = free_port()
    command = [sys.executable, "-m", "tmqp_server", "-l", f"tmq://127.0.0.1:{port}"]
    command += ["--log-level", "error", "--data", str(folder / "data")]
    environment = {"PYTHONPATH": str(ROOT / PLACES[build])}
    server = ServerProcess(command, port, None, folder / "log", environment)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def running_kafka(jars: Sequence[Path], folder: Path) -> Iterator[ServerProcess]:
    """A Kafka broker, ended afterwards."""
    server = start_kafka(jars, folder, PARTS)
    try:
        yield server
    finally:
        server.stop()
