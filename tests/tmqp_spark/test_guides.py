"""The pages about Spark: every piece of code on them that can run is run."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner
from google.protobuf.timestamp_pb2 import Timestamp

from tests.project import ROOT
from tests.tmqp_spark import killing
from tests.tmqp_spark.commands import kept
from tests.tmqp_spark.pages import blocks
from tmqp_spark.cli import cli
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LOOK_S: Final = 0.05


def run_all(
    page: str,
    broker: Broker,
    tmp_path: Path,
    instead: Mapping[str, str] | None = None,
    **names: Any,
) -> dict[str, Any]:
    """Run the blocks of a page one after the other; the names that they have made.

    :param instead: what stands on the page, and what is meant here.
    """
    space: dict[str, Any] = {"ADDRESS": broker.url, "CHECKPOINT": str(tmp_path / "checkpoint")}
    space.update(names)
    for name, code in blocks(page, "python").items():
        run_block(f"{page}.md: {name}", placed(code, instead or {}), space)
    return space


def run_block(name: str, code: str, space: dict[str, Any]) -> None:
    """Run a block of our own pages."""
    exec(compile(code, name, "exec"), space)  # noqa: S102


def placed(text: str, instead: Mapping[str, str]) -> str:
    """A block with our addresses and folders."""
    for there, here in instead.items():
        text = text.replace(there, here)
    return text


@contextmanager
def started_again(broker: Broker, folder: Path) -> Iterator[None]:
    """Start the broker again whenever it is killed; its process' number stands in the folder."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            if not broker.running:
                broker.kill()
                broker.start()
                (folder / "broker").write_text(str(broker.pid))

    (folder / "broker").write_text(str(broker.pid))
    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_reference(spark: SparkSession, own_broker: Broker, tmp_path: Path) -> None:
    own_broker.push("orders", 7, [b"%d" % number for number in range(100)])
    own_broker.create("dead", 1)
    own_broker.create("results", 1)
    source = spark.readStream.format("tmqp").options(url=own_broker.url, subscribe="orders")
    rows = source.option("startingOffsets", "earliest").schema("value string").load()
    batch = spark.createDataFrame([("one",), ("two",)], "value string")
    instead = {
        "tmq://broker:2622": own_broker.url,
        '"checkpoints/': f'"{tmp_path}/checkpoints/',
        '.start("archive")': f'.start("{tmp_path}/archive")',
        "captures/*.json": f"{ROOT}/tests/data/captures/*.json",
    }
    try:
        space = run_all("../spark", own_broker, tmp_path, instead, rows=rows, batch=batch)
        for query in spark.streams.active:
            query.processAllAvailable()
        assert space["orders"].count() == 100
        assert space["frames"].where("type = 'QUEUE_MESSAGE'").count() > 100
        assert spark.read.parquet(f"{tmp_path}/archive").count() == 100
        written = sorted(message.payload for message in kept(own_broker, "results", 1))
        assert written == sorted([b"one", b"two", *(b'{"value":"%d"}' % n for n in range(100))])
        for statement in placed(blocks("../spark", "sql")["tables"], instead).strip().split(";\n"):
            spark.sql(statement)
        assert spark.table("orders").count() == 101, "what was there, and what was inserted"
    finally:
        for query in spark.streams.active:
            query.stop()
        spark.sql("DROP VIEW IF EXISTS orders")
        spark.sql("DROP TABLE IF EXISTS orders_table")
        spark.sql("DROP TABLE IF EXISTS out_table")


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_dashboard_table_in_ten_minutes(
    spark: SparkSession, own_broker: Broker, tmp_path: Path
) -> None:
    space = run_all("spark", own_broker, tmp_path)
    expected = [("pizza", 667), ("soup", 334)]
    rows = space["dishes"].collect()
    assert [(row["dish"], row["orders"]) for row in rows] == expected
    table = spark.table("dashboard").orderBy("dish").collect()
    assert [(row["dish"], row["count"]) for row in table] == expected


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_same_without_a_line_of_code(
    spark: SparkSession, own_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_broker.push("orders", 7, [b"%d" % number for number in range(500)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMQP_ADDRESS", own_broker.url)
    for line in blocks("spark", "shell")["commands"].splitlines():
        done = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
        assert done.exit_code == 0, f"{line}: {done.output}"
    assert (tmp_path / "orders.svg").exists()
    assert len(kept(own_broker, "orders-copy", 7)) == 500


@pytest.mark.long
@pytest.mark.timeout(400)
def test_recipes(spark: SparkSession, own_broker: Broker, tmp_path: Path) -> None:
    times = [Timestamp(seconds=number, nanos=7).SerializeToString() for number in range(50)]
    own_broker.push("times", 1, times)
    space = run_all("spark_recipes", own_broker, tmp_path, spark=spark)
    queues = {number: kept(own_broker, "by-key", number) for number in range(1, 5)}
    orders = [
        (number, json.loads(message.payload)) for number in queues for message in queues[number]
    ]
    assert sorted(order["amount"] for _, order in orders) == list(range(200))
    assert len({(order["key"], number) for number, order in orders}) == 10, "a key has one queue"
    everything = [json.loads(message.payload)["amount"] for message in kept(own_broker, "all", 1)]
    assert sorted(everything) == list(range(200))
    large = [json.loads(message.payload)["amount"] for message in kept(own_broker, "large", 1)]
    assert sorted(large) == list(range(100, 200))
    found = [(row["seconds"], row["nanos"]) for row in space["times"].orderBy("seq").collect()]
    assert found == [(number, 7) for number in range(50)]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_write_that_is_repeated_outlives_the_broker_and_counts_once(
    spark: SparkSession, own_broker: Broker, tmp_path: Path
) -> None:
    """The broker dies with what is staged; the next attempt loses the answer to its commit."""
    own_broker.push("by-key", 1, [b"%d" % number for number in range(500)])
    own_broker.create("orders-copy", 1)
    killing.register(spark)
    folder = tmp_path / "query"
    folder.mkdir()
    killing.arm(folder, "broker", "staged")
    killing.arm(folder, "itself", "after the commit")
    format_of = 'frame.write.format("tmqp{}")'
    deadly = f"{format_of.format('_killing')}.option('kills', {str(folder)!r})"
    code = placed(blocks("spark_recipes", "python")["repeated"], {format_of.format(""): deadly})
    space = {
        "ADDRESS": own_broker.url,
        "CHECKPOINT": str(tmp_path / "checkpoint"),
        "spark": spark,
    }
    with started_again(own_broker, folder):
        run_block("spark_recipes.md: repeated", code, space)
    assert killing.armed(folder) == []
    assert killing.books(own_broker.url, "orders-copy") == (500, 0, 499)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_exactly_once_and_a_query_that_moved(
    spark: SparkSession, own_broker: Broker, tmp_path: Path
) -> None:
    own_broker.push("orders", 7, [b"%d" % number for number in range(500)])
    run_all("spark_exactly_once", own_broker, tmp_path, spark=spark)
    copied = sorted(int(message.payload) for message in kept(own_broker, "orders-copy", 7))
    assert copied == list(range(500))
    moved = run_all("spark_kafka", own_broker, tmp_path, spark=spark)["orders"]
    assert moved.columns == ["key", "value", "topic", "offset", "timestamp"]
    query = moved.writeStream.format("memory").queryName("moved").trigger(availableNow=True).start()
    query.awaitTermination()
    assert spark.table("moved").select("offset").distinct().count() == 500
