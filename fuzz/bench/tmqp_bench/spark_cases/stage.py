"""What measurements stand on: a broker with kept queues, Spark, and taking turns.

Theory of operation.  The broker is a real one, in a process of its own on the loopback, and its
data is removed at the end.  Queues are filled by the encoder of our own sink, with payloads that no
compression shortens.  Those compared do the same work in turn: once each to warm up (the JVM
compiles what it runs), then round by round.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pyarrow as pa

from tmqp_bench.spark_cases.aims import Record
from tmqp_bench.spark_cases.processes import Spent, Usage, has_proc
from tmqp_spark.committing import TaskKey
from tmqp_spark.options import ConnectionOptions, SinkOptions, read_options
from tmqp_spark.pipelines.reporting import Reporter, plain_number
from tmqp_spark.testing import Broker
from tmqp_spark.writing import borrow_pusher, return_pusher, write_plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Plan", "Stage", "write_nowhere"]

_FILL_ROWS: Final = 10_000
_SEED: Final = 20
_MOST_TRIES: Final = 3
#: What a broker must allow beyond its defaults: 1 KiB times a million in memory.
_SETTINGS: Final = ""


class Plan:
    """How much is measured.

    :param messages: of 100 bytes; of 1 KiB there are a quarter.
    :param rounds: how often each of those compared takes its turn.
    :param cores: of Spark's ``local[...]``.
    """

    __slots__ = ("cores", "messages", "rounds")

    def __init__(self, messages: int, rounds: int, cores: int) -> None:
        self.messages = messages
        self.rounds = rounds
        self.cores = cores


class Stage:
    """A context with a broker and what the cases share.

    :param spark: makes the session when the first case needs it.
    :param folder: under which data is written, and removed at the end.
    """

    def __init__(
        self,
        plan: Plan,
        reporter: Reporter,
        spark: Callable[[], SparkSession],
        folder: Path | None = None,
    ) -> None:
        self.plan = plan
        self._reporter = reporter
        self._make_spark = spark
        self._spark: SparkSession | None = None
        self._jvm = 0
        self._above = folder
        self._filled: set[str] = set()
        self.folder = Path()

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="tmqp-bench-", dir=self._above))
        try:
            self.broker = Broker(self.folder / "broker", _SETTINGS)
            self.broker.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.broker.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- What the cases use ----------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The session, with the rivals registered."""
        if self._spark is None:
            self.say("Spark starts")
            self._spark = self._make_spark()
            from tmqp_bench.spark_cases import rivals  # noqa: PLC0415 - needs pyspark

            for rival in (rivals.TupleSource, rivals.RowSource, rivals.RowSink):
                self._spark.dataSource.register(rival)
            jvm: Any = self._spark.sparkContext._jvm
            self._jvm = int(jvm.java.lang.ProcessHandle.current().pid())
        return self._spark

    @property
    def connection(self) -> ConnectionOptions:
        """How the broker is reached."""
        return read_options(ConnectionOptions, {"url": self.broker.url})

    def say(self, text: str, **fields: Any) -> None:
        """Tell what is being done."""
        self._reporter.say("bench", text, **fields)

    def queue(self, payload: int, times: int = 1) -> tuple[str, int]:
        """A queue with messages of so many bytes, ``channel/queue``, and how many: filled when it
        is first asked for.

        :param times: how many times as many as usual.  What a query costs whatever it reads is a
            tenth of a second of the JVM: as much as half a million messages.
        """
        count = self.plan.messages if payload <= 100 else max(1, self.plan.messages // 4)
        count *= times
        channel = f"kept-{payload}" if times == 1 else f"kept-{payload}-{times}"
        if channel not in self._filled:
            self.say(f"{plain_number(count)} messages of {payload} bytes are pushed")
            self.broker.create(channel, 1)
            self.push(channel, 1, payload, count)
            self._filled.add(channel)
        return f"{channel}/1", count

    def push(self, channel: str, queue: int, payload: int, count: int) -> None:
        """Push messages into a queue that is there, and wait until all are stored."""
        options = SinkOptions(channel=channel, queue=queue, guarantee="at_least_once")
        pusher = borrow_pusher(self.connection, options.window)
        key = TaskKey(channel, 0, 0, 0)
        write_plain(pusher, options, ["value"], key, _batches(payload, count))
        return_pusher(pusher)

    def read(self, queue: str, schema: str = "", form: str = "tmqp", **options: Any) -> DataFrame:
        """A queue as a DataFrame: the columns of ``schema``, all if empty."""
        reader = self.spark.read.format(form).options(url=self.broker.url, subscribe=queue)
        if schema:
            reader = reader.schema(schema)
        return reader.options(**options).load()

    # --- Measuring -------------------------------------------------------------------------------

    def usage(self) -> Usage:
        """What has been used so far."""
        return Usage(time.perf_counter(), self._jvm, self.broker.pid)

    def spend(
        self, action: Callable[[], object], after: Callable[[], object] | None = None
    ) -> Spent:
        """Do something; what it took.  Done again where that cannot be known.

        :param after: puts things back behind it, unmeasured.
        """
        spent = Spent(0.0)
        for _ in range(_MOST_TRIES):
            before = self.usage()
            action()
            spent = self.usage().since(before)
            if after is not None:
                after()
            if not spent.lost:
                return spent
        return Spent(spent.wall_s)

    def contest(
        self,
        record: Record,
        actions: Mapping[str, Callable[[], object]],
        *,
        warm_up: int = 4,
        after: Callable[[], object] | None = None,
    ) -> dict[str, list[Spent]]:
        """Have some do the same in turn; what each took, round by round.

        :param warm_up: rounds before those that count.
        :param after: puts things back behind each, unmeasured.
        """
        found: dict[str, list[Spent]] = {name: [] for name in actions}
        for number in range(warm_up + self.plan.rounds):
            for name, action in actions.items():
                spent = self.spend(action, after)
                if number >= warm_up:
                    found[name].append(spent)
                    self.say(
                        f"{record.case}, round {number - warm_up + 1}: {name} {spent.wall_s:.2f} s",
                        case=record.case,
                        variant=name,
                        wall_s=round(spent.wall_s, 4),
                    )
        return found

    def warn_of_missing_clock(self) -> None:
        """Say so where nothing can be known of processor time."""
        if not has_proc():
            self._reporter.warn(
                "no-proc",
                "this system has no /proc: processor time is not measured, and aims about it are"
                " not judged",
            )


def write_nowhere(frame: DataFrame) -> None:
    """Have Spark compute every row and column, and forget them."""
    frame.write.format("noop").mode("overwrite").save()


def _batches(payload: int, count: int) -> Iterator[Any]:
    """Payloads that nothing shortens, as Arrow batches with the column ``value``."""
    random = Random(_SEED)
    for start in range(0, count, _FILL_ROWS):
        rows = min(_FILL_ROWS, count - start)
        offsets = np.arange(0, (rows + 1) * payload, payload, dtype=np.int32)
        data = random.randbytes(rows * payload)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        yield pa.RecordBatch.from_arrays(
            [pa.Array.from_buffers(pa.binary(), rows, buffers)], names=["value"]
        )
