"""Streaming queries of Spark that read from a group of brokers, and write to it, while leaders are
killed: none is started again.  What was confirmed is in the files of the first, each message once,
and in the queues of the others: of the second at least once, of the third exactly once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import pytest

from tests.interop.etcd.groups import MOST_S, Group, OrderedLedger, create, produce
from tests.interop.etcd.interop_group import group
from tests.tmqp_spark.conftest import quick_settings, spark_environment
from tmqp_spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["group"]

pytestmark = [pytest.mark.interop, pytest.mark.cold, pytest.mark.timeout(300)]

_PRODUCERS: Final = 4
_KILLS: Final = 2
_ATTEMPTS: Final = 5
#: How many confirmed messages there must be before a leader is killed, and after it.
_SOME: Final = 200
_LOOK_S: Final = 0.05


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    spark_environment()
    found = session("group", "local[2,3]", quick_settings(tmp_path_factory.mktemp("spark")))
    yield found
    found.stop()


class Queries:
    """Three queries over one queue of the group: into files, and into two others of its queues."""

    def __init__(self, spark: SparkSession, group: Group, folder: Path) -> None:
        self._spark = spark
        self._connection = {"url": ",".join(group.addresses)}
        self._folder = folder
        #: How often a micro-batch had to be written again, to be there once.
        self.repeated = 0
        self._started = [self._to_files(), self._to_queue(), self._once_to_queue()]
        self._runs = [query.runId for query in self._started]

    def _read(self, name: str) -> DataFrame:
        reader = self._spark.readStream.format("tmqp").options(**self._connection)
        reader = reader.options(subscribe="c/1", group=name, startingOffsets="earliest")
        return reader.schema("seq long, value string").load()

    def _to_files(self) -> StreamingQuery:
        writer = self._read("files").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(self._folder / "files.checkpoint"))
        return writer.start(str(self._folder / "files"))

    def _to_queue(self) -> StreamingQuery:
        writer = self._read("copies").select("value").writeStream.format("tmqp")
        writer = writer.options(**self._connection, channel="copy", queue=1, createQueue=True)
        writer = writer.option("guarantee", "at_least_once")
        return writer.option("checkpointLocation", str(self._folder / "copies.checkpoint")).start()

    def _once_to_queue(self) -> StreamingQuery:
        """What was staged is gone with its leader: the micro-batch is then computed again."""

        def write(frame: DataFrame, number: int) -> None:
            writer = frame.select("value").write.format("tmqp").mode("append")
            writer = writer.options(**self._connection, channel="once", queue=1, createQueue=True)
            writer = writer.options(txnAppId="once", txnVersion=number)
            for left in reversed(range(_ATTEMPTS)):
                try:
                    writer.save()
                except Exception:  # of several kinds, from Python and from the JVM
                    if not left:
                        raise
                    self.repeated += 1
                else:
                    return

        writer = self._read("once").writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", str(self._folder / "once.checkpoint")).start()

    def in_files(self) -> list[tuple[int, int]]:
        """Sequence and number of each message that the first query has written."""
        found = self._spark.read.parquet(str(self._folder / "files")).collect()
        return [(row["seq"], int(row["value"])) for row in found]

    def in_queue(self, channel: str) -> list[int]:
        """The numbers of the messages that a query has written."""
        place = f"{channel}/1"
        reader = self._spark.read.format("tmqp").options(**self._connection, subscribe=place)
        return [int(row["value"]) for row in reader.schema("value string").load().collect()]

    def catch_up(self) -> None:
        """Wait until all have written what there is."""
        for query in self._started:
            query.processAllAvailable()

    def check(self) -> None:
        """They are what was started, and nothing has gone wrong in them."""
        for query, run in zip(self._started, self._runs, strict=True):
            assert query.exception() is None
            assert query.isActive
            assert query.runId == run

    def stop(self) -> None:
        for query in self._started:
            query.stop()


def until(what: str, holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + MOST_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(_LOOK_S)


def confirmed(group: Group) -> None:
    """Wait until producers have had some more confirms."""
    enough = len(group.confirms) + _SOME
    until("no confirms", lambda: len(group.confirms) > enough)


def kill_leader(group: Group) -> None:
    """Kill the leader, and wait until another server leads."""
    leader = group.leader()
    group.brokers[leader.node].send(signal.SIGKILL)
    until("no other leader", lambda: group.leader().epoch > leader.epoch)


@contextmanager
def producing(group: Group, ledger: OrderedLedger) -> Iterator[None]:
    """Have producers at work, in a thread: Spark starts queries in the main thread only."""
    done = threading.Event()

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for producer in range(_PRODUCERS):
                tasks.start_soon(produce, group, ledger, done, producer)

    thread = threading.Thread(target=anyio.run, args=(work,))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_streaming_queries_go_on_where_they_are_when_leaders_are_killed(
    group: Group, spark: SparkSession, tmp_path: Path
) -> None:
    ledger = OrderedLedger(group.producers)
    anyio.run(partial(create, group, retain_time_ms=86_400_000))
    queries = Queries(spark, group, tmp_path)
    try:
        with producing(group, ledger):
            for _ in range(_KILLS):
                confirmed(group)
                queries.check()
                kill_leader(group)
            confirmed(group)
        queries.catch_up()
        queries.check()
        written = queries.in_files()
        copies, once = queries.in_queue("copy"), queries.in_queue("once")
    finally:
        queries.stop()
    assert len({sequence for sequence, _ in written}) == len(written), "each message once"
    for _, number in written:
        ledger.receive(b"%d" % number)
    ledger.check()
    assert set(copies) == ledger.seen, "the copies are of the same messages"
    assert sorted(once) == sorted(number for _, number in written), "each message once"
    print(
        f"{len(ledger.confirmed)} confirmed, {len(written)} in files, {len(copies)} copies,"
        f" {len(once)} once, with {queries.repeated} micro-batches written again"
    )
