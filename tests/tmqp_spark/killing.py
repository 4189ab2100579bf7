"""A sink that dies at a chosen point, and the books that must be right afterwards.

A round is *armed* with a victim at some points; the first process that comes to one of them
kills there, once.  Points are those at which Spark or the broker can be caught: where the write
is planned, in a task between two rows, behind a task's last row, before the commit and behind it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tmqp_client import sync
from tmqp_spark.sink import TmqpArrowWriter, TmqpStreamArrowWriter
from tmqp_spark.source import TmqpDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POINTS: Final = ("plan", "rows", "staged", "before the commit", "after the commit")
ROWS: Final = 400
#: How long one lingers that is slower than all others.
LINGER_S: Final = 30
#: A file is read by two tasks.
_FILE_SPLIT_BYTES: Final = "1200"


def arm(folder: Path, victim: str, *points: str) -> None:
    """Let the next process that comes to one of these points kill, once at each.

    :param victim: ``itself``; or ``broker`` or ``driver``, whose number stands in a file of that
        name, negative for a group of processes; or ``executor``, the JVM that the task runs in; or
        ``nobody``: it only lingers there.
    """
    for point in points:
        (folder / "next").write_text(victim)
        (folder / "next").replace(folder / f"armed {point}")


def armed(folder: Path) -> list[str]:
    """The points at which nobody has struck yet."""
    return sorted(path.name.removeprefix("armed ") for path in folder.glob("armed *"))


def kill_at(folder: str, point: str) -> None:
    """Kill the victim if this is a point to do it."""
    order = Path(folder, f"armed {point}")
    try:
        victim = order.read_text()
        order.rename(order.with_name(f"struck {point} {os.getpid()}"))  # one of several succeeds
    except OSError:
        return
    if victim == "nobody":
        time.sleep(LINGER_S)
        return
    if victim in ("broker", "driver"):
        victim = Path(folder, victim).read_text()
    elif victim == "executor":
        victim = _parent_of(os.getppid())  # of the daemon that made this process
    number = os.getpid() if victim == "itself" else int(victim)
    if number < 0:
        # Spark's workers are in a group of their own.
        os.killpg(-number, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        os.kill(number, signal.SIGKILL)


def _parent_of(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1]


class _Killing:
    """What may happen to either kind of writer, in a task and where it commits."""

    folder = ""

    def write(self, iterator: Iterator[Any]) -> Any:
        """As the sink does, in pieces."""
        message = super().write(self._pieces(iterator))  # type: ignore[misc]  # a writer's
        kill_at(self.folder, "staged")
        return message

    def commit(self, *given: Any, **named: Any) -> None:
        """As the sink does."""
        kill_at(self.folder, "before the commit")
        super().commit(*given, **named)  # type: ignore[misc]  # a writer's
        kill_at(self.folder, "after the commit")

    def _pieces(self, iterator: Iterator[Any]) -> Iterator[Any]:
        for batch in iterator:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            kill_at(self.folder, "rows")
            yield batch.slice(half)


class KillingBatchWriter(_Killing, TmqpArrowWriter):
    """The batch sink's writer, and what may happen to it."""


class KillingWriter(_Killing, TmqpStreamArrowWriter):
    """The streaming sink's writer, and what may happen to it."""


class KillingSource(TmqpDataSource):
    """The format ``tmqp_killing``: ``tmqp`` with a folder to look for orders in."""

    def __init__(self, options: Any) -> None:
        self._folder = options["kills"]
        super().__init__({name: options[name] for name in options if name.lower() != "kills"})

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "tmqp_killing"

    def writer(self, schema: Any, overwrite: bool) -> KillingBatchWriter:
        """The batch writer, with orders."""
        made = super().writer(schema, overwrite)
        writer = KillingBatchWriter(made._connection, made._options, made._columns)
        writer.folder = self._folder
        return writer

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: Any, overwrite: bool
    ) -> KillingWriter:
        """The writer, with orders."""
        kill_at(self._folder, "plan")
        made = super().streamWriter(schema, overwrite)
        writer = KillingWriter(made._connection, made._options, made._columns)
        writer.folder = self._folder
        return writer


def register(spark: SparkSession) -> None:
    """Make the format known; workers get the class itself, for they cannot import it."""
    import sys  # noqa: PLC0415

    from pyspark import cloudpickle  # noqa: PLC0415 - only where Spark is

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(KillingSource)
    spark.conf.set("spark.sql.files.maxPartitionBytes", _FILE_SPLIT_BYTES)
    spark.conf.set("spark.sql.files.openCostInBytes", "0")


def add_rows(folder: Path, number: int) -> None:
    """One more file of rows for the query to find."""
    source = folder / "rows"
    source.mkdir(exist_ok=True)
    fresh = folder / "fresh"
    fresh.write_text("".join(f"{row}\n" for row in range(number * ROWS, (number + 1) * ROWS)))
    fresh.rename(source / f"{number:04d}.txt")


def start_query(
    spark: SparkSession, folder: Path, url: str, channel: str, *, stays: bool = False
) -> StreamingQuery:
    """Write whatever rows there are that were not written yet; those to come too, if it stays."""
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "rows"))
    writer = (
        rows.writeStream.format("tmqp_killing")
        .option("url", url)
        .option("retries", 1)
        .option("kills", str(folder))
        .option("channel", channel)
        .option("queue", 1)
        .option("checkpointLocation", str(folder / "checkpoint"))
    )
    return (writer if stays else writer.trigger(availableNow=True)).start()


def books(url: str, channel: str) -> tuple[int, int, int]:
    """How many rows are in the queue, how many of them more than once, and the largest."""
    seen: list[int] = []
    last = 0
    with sync.connect(url, name="books") as client:
        while more := client.read_range(channel, 1, last + 1):
            seen += [int(message.payload) for message in more]
            last = more[-1].sequence
    return len(set(seen)), len(seen) - len(set(seen)), max(seen, default=-1)
