"""A run: Spark, both brokers, the workloads in turn, the samples.

Theory of operation.  One Spark with both connectors runs all of it, beside both brokers, on all
cores; who is not measured only waits.  Each workload is run by every contender once a round, a
round begins one contender later than the one before, the first rounds warm up and do not count, and
the figure is the median of the others.  After each write the rows are counted.

Time is that of the whole write or read, planning included.  A stream's is what Spark reports of
its micro-batches but the first, in which processes start, which a query pays once.  Processor time
is Spark's (JVM and Python workers, those that have ended too) and the broker's, of all of it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from tmqp_bench.broker.processes import StartError
from tmqp_bench.spark.contenders import (
    PARTS,
    Contender,
    Kafka,
    Tmqp,
    running_kafka,
    session,
    start_tmqp,
)
from tmqp_bench.spark.jars import (
    BROKER_VERSION,
    CONNECTOR_VERSION,
    JarsMissingError,
    broker_jars,
    connector_jars,
)

__all__ = [
    "WORKLOADS",
    "Figures",
    "SparkPlan",
    "SparkResults",
    "WrongCountError",
    "compare_connectors",
]

#: What is done, and what it is called.
WORKLOADS: Final = {
    "read-values": "batch read, values",
    "read-columns": "batch read, six columns",
    "stream-read": "streaming read, six columns",
    "write": "batch write",
    "stream-write": "streaming write",
}
_WARM_UP: Final = 3
_MICRO_BATCHES: Final = 5
_FILL: Final = "filled"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class SparkPlan:
    """What to measure: rows by payload size, rounds; ``jars`` is where the peer's are kept."""

    rows: dict[int, int]
    workloads: tuple[str, ...]
    rounds: int
    build: str
    peers: bool
    jars: Path
    warm_up: int = _WARM_UP


@dataclass
class Figures:
    """One workload of one contender: rows a second, nanoseconds of processor time a row."""

    rates: list[float] = field(default_factory=list)
    spark_ns: list[float] = field(default_factory=list)
    broker_ns: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Rows a second, the median."""
        return median(self.rates)

    @property
    def cpu_ns(self) -> float:
        """Spark's and the broker's processor time for a row, the medians."""
        return median(self.spark_ns) + median(self.broker_ns)


@dataclass
class SparkResults:
    """Figures by (workload, payload, contender); what is missing and why; versions."""

    plan: SparkPlan
    figures: dict[tuple[str, int, str], Figures] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


class WrongCountError(Exception):
    """Another number of rows came than there are: that is no figure."""


def compare_connectors(plan: SparkPlan, progress: Callable[[str], None]) -> SparkResults:
    """Measure what the plan says.

    :param progress: called with a short text as the measurements go by.
    :raises StartError: when Spark or our own server does not come up.
    """
    results = SparkResults(plan)
    jars: list[Path] = []
    brokers: list[Path] = []
    if plan.peers:
        progress("fetching Kafka and Spark's connector")
        try:
            jars, brokers = connector_jars(plan.jars), broker_jars(plan.jars)
        except JarsMissingError as error:
            results.missing["Kafka"] = str(error)
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="tmqp-bench-spark-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        progress("starting Spark and the brokers")
        places = [folder / name for name in ("spark", "tmqp", "kafka")]
        for place in places:
            place.mkdir()
        spark = session(plan.build, jars, places[0])
        stack.callback(spark.stop)
        server = stack.enter_context(start_tmqp(plan.build, places[1]))
        contenders: list[Contender] = [
            Tmqp(spark, server, "exactly_once", "tmqp"),
            Tmqp(spark, server, "at_least_once", "tmqp, at least once"),
        ]
        if brokers:
            try:
                kafka = stack.enter_context(running_kafka(brokers, places[2]))
                contenders.append(Kafka(spark, kafka))
            except StartError as error:
                results.missing["Kafka"] = str(error)
        results.versions = _versions(kafka="Kafka" in [each.title for each in contenders])
        for size, rows in plan.rows.items():
            _Measuring(spark, results, folder, size, rows).run(contenders, progress)
    progress("")
    return results


def _versions(*, kafka: bool) -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in ("pyspark", "pyarrow")}
    if kafka:
        found |= {"Kafka": BROKER_VERSION, "spark-sql-kafka": CONNECTOR_VERSION}
    return found


class _Measuring:
    """All workloads with one size of payload."""

    def __init__(
        self, spark: Any, results: SparkResults, folder: Path, size: int, rows: int
    ) -> None:
        self._spark = spark
        self._results = results
        self._folder = folder
        self._size = size
        self._rows = rows
        self._number = 0
        self._jvm: int = spark.sparkContext._gateway.proc.pid

    def run(self, contenders: Sequence[Contender], progress: Callable[[str], None]) -> None:
        """Measure all workloads of the plan, contender by contender."""
        plan = self._results.plan
        readers = [each for each in contenders if each.title != "tmqp, at least once"]
        self._prepare(readers, progress)
        for workload in plan.workloads:
            able = list(contenders if "write" in workload else readers)
            for number in range(plan.warm_up + plan.rounds):
                first = number % len(able)
                for contender in able[first:] + able[:first]:
                    progress(f"{workload}, {self._size} B: {contender.title}, {number + 1}")
                    sample = self._one(workload, contender)
                    if number >= plan.warm_up:
                        self._note(workload, contender, sample)
        for contender in readers:
            contender.drop(f"{_FILL}-{self._size}")

    def _prepare(self, readers: Sequence[Contender], progress: Callable[[str], None]) -> None:
        for contender in readers:
            progress(f"filling {contender.title}")
            place = f"{_FILL}-{self._size}"
            contender.fill(self._made("cast(id as string) as key"), place)
            self._count(contender, place)
        # What streams write is read from files, so many of them a micro-batch.
        files = self._made().repartition(PARTS * _MICRO_BATCHES)
        files.write.parquet(str(self._files), compression="none")

    @property
    def _files(self) -> Path:
        return self._folder / f"rows-{self._size}"

    def _made(self, *more: str) -> Any:
        value = f"cast(rpad(cast(id as string), {self._size}, 'x') as binary) as value"
        return self._spark.range(0, self._rows, 1, PARTS).selectExpr(value, *more)

    def _count(self, contender: Contender, place: str) -> None:
        found = contender.batch(place, columns=False).count()
        if found != self._rows:
            raise WrongCountError(f"{contender.title} keeps {found:,} of {self._rows:,} rows")

    def _note(
        self, workload: str, contender: Contender, sample: tuple[float, float, float]
    ) -> None:
        key = workload, self._size, contender.title
        figures = self._results.figures.setdefault(key, Figures())
        seconds, spark_s, broker_s = sample
        figures.rates.append(self._rows / seconds)
        figures.spark_ns.append(spark_s / self._rows * 1e9)
        figures.broker_ns.append(broker_s / self._rows * 1e9)

    def _one(self, workload: str, contender: Contender) -> tuple[float, float, float]:
        """Seconds that it took; seconds of processor time of Spark, and of the broker."""
        self._number += 1
        place = f"written-{self._number}"
        work: Callable[[], float] = {
            "read-values": lambda: self._read(contender, columns=False),
            "read-columns": lambda: self._read(contender, columns=True),
            "stream-read": lambda: self._stream_read(contender),
            "write": lambda: self._timed(lambda: contender.write(self._made(), place)),
            "stream-write": lambda: self._stream_write(contender, place),
        }[workload]
        spark_s, broker_s = self._spark_s(), contender.server.cpu_s()
        seconds = work()
        spark_s, broker_s = self._spark_s() - spark_s, contender.server.cpu_s() - broker_s
        if "write" in workload:
            self._count(contender, place)
            contender.drop(place)
        return seconds, spark_s, broker_s

    def _timed(self, work: Callable[[], None]) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def _read(self, contender: Contender, *, columns: bool) -> float:
        def work() -> None:
            frame = contender.batch(f"{_FILL}-{self._size}", columns=columns)
            frame.write.format("noop").mode("overwrite").save()

        return self._timed(work)

    def _stream_read(self, contender: Contender) -> float:
        frame = contender.stream(f"{_FILL}-{self._size}", self._rows // _MICRO_BATCHES)
        return self._query(frame.writeStream.format("noop"))

    def _stream_write(self, contender: Contender, place: str) -> float:
        reader = self._spark.readStream.schema("value binary")
        frame = reader.option("maxFilesPerTrigger", PARTS).parquet(str(self._files))
        return self._query(contender.writer(frame, place))

    def _query(self, writer: Any) -> float:
        """Run a query over all there is; seconds, had all its micro-batches been like the later."""
        checkpoint = self._folder / f"checkpoint-{self._number}"
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = query.start()
        query.awaitTermination()
        rounds = [each for each in query.recentProgress if each["numInputRows"]]
        rows = sum([each["numInputRows"] for each in rounds])
        if rows != self._rows or len(rounds) < _MICRO_BATCHES:
            raise WrongCountError(f"{rows:,} of {self._rows:,} rows in {len(rounds)} micro-batches")
        took = sum([each["durationMs"]["triggerExecution"] for each in rounds[1:]]) / 1_000
        share = sum([each["numInputRows"] for each in rounds[1:]]) / rows
        return float(took / share)

    def _spark_s(self) -> float:
        """Processor time of the JVM and all below it, those that it has waited for too."""
        parents: dict[int, int] = {}
        used: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    parents[int(entry.name)] = int(fields[1])
                    used[int(entry.name)] = sum([int(each) for each in fields[11:15]])
        found = [self._jvm]
        for pid in found:
            found.extend([child for child, parent in parents.items() if parent == pid])
        return sum([used.get(pid, 0) for pid in found]) / _TICKS
