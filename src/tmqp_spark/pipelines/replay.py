"""The replay: pushes Parquet files back into queues, every row once, in order.

Theory of operation.  The files are divided into numbered chunks of rows.  Each chunk is a
transaction of the replay's application, with its number as the epoch (docs/protocol.md,
"Transactions"): tasks stage the rows of their spans, and one commit makes the whole chunk visible,
in order, together with the mark that this epoch is done.  The *plan* records which rows belong to a
number before the first of them is sent, and never changes; files that appear later get new numbers.
So the same command, run again after any failure, continues after the last chunk that the broker
has.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tmqp.extensions import OP_LIST_TRANSACTIONS
from tmqp.models import ModelError, TransactionInformation, parse_list
from tmqp_spark.committing import TaskKey, commit
from tmqp_spark.errors import DecodeFailed, InvalidOption, SparkError
from tmqp_spark.offsets import parse_key
from tmqp_spark.options import ConnectionOptions, SinkOptions
from tmqp_spark.pipelines.log import sync_folder
from tmqp_spark.pipelines.recordings import (
    ParquetFile,
    Span,
    find_files,
    inspect_file,
    read_span,
)
from tmqp_spark.pipelines.reporting import Reporter, plain_number
from tmqp_spark.pipelines.stopping import Stop
from tmqp_spark.transport import BrokerLink
from tmqp_spark.workers import settle_memory
from tmqp_spark.writing import borrow_pusher, return_pusher, write_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ReplayPlan", "ReplaySummary", "Target", "replay", "replay_name"]

_VERSION: Final = 1
_CHUNK_ROWS: Final = 100_000
#: A chunk is one transaction, whose size a broker limits (max_transaction_bytes, 256 MiB).
_CHUNK_BYTES: Final = 64 << 20
#: The columns of a message that are replayed, besides its target.
_COLUMNS: Final = ("value", "headers", "high_priority", "ttl")


@dataclass(slots=True, kw_only=True)
class ReplaySummary:
    """The results of a run; an earlier run had already pushed the ``skipped`` messages."""

    application: str
    source: str
    target: str
    chunks: int = 0
    messages: int = 0
    skipped: int = 0
    seconds: float = 0.0
    stopped: bool = False


class Target:
    """The target of rows: one queue, or each row's own.

    :param text: ``orders-copy/7``, or ``same``.
    :raises InvalidOption: if it is neither.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.queue: tuple[str, int] | None = None
        if text != "same":
            try:
                self.queue = parse_key(text)
            except ValueError as error:
                raise InvalidOption(f"--to: {error}, nor the word same") from None


def replay_name(place: Path, target: Target) -> str:
    """Return the application of a replay without a name, which is the same for the same command."""
    what = f"{place.resolve()}\0{target.text}".encode()
    return f"replay-{blake2b(what, digest_size=8).hexdigest()}"


# --- The plan -----------------------------------------------------------------------------------


class ReplayPlan:
    """Defines the rows of each chunk: files in a fixed order, in segments with equal chunk sizes.

    :param file: the file that stores the plan.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._segments: list[dict[str, Any]] = []
        if file.exists():
            try:
                data = json.loads(file.read_text(encoding="utf-8"))
                version, self._segments = data["v"], data["segments"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise SparkError(f"{file} cannot be read: {error}") from None
            if version != _VERSION:
                raise SparkError(f"{file}: a plan of version {version}, not {_VERSION}")

    def extend(self, files: list[ParquetFile], chunk_rows: int) -> None:
        """Add the files that are not in the plan yet, and store it.

        :raises SparkError: if a file in the plan now has another number of rows.
        """
        known = {each["path"]: each for segment in self._segments for each in segment["files"]}
        fresh = []
        for found in files:
            before = known.get(found.path)
            if before is None:
                fresh.append(found)
            elif before["rows"] != found.rows:
                raise SparkError(
                    f"{found.path} has {found.rows} rows, and {before['rows']} when its replay"
                    f" began: what of it was replayed is not known ({self._file})"
                )
        if not fresh:
            return
        entries = [
            {"path": each.path, "rows": each.rows, "channel": each.channel, "queue": each.queue}
            for each in sorted(fresh, key=lambda each: each.order)
        ]
        self._segments.append({"chunk_rows": chunk_rows, "files": entries})
        self._write()

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        with fresh.open("w", encoding="utf-8") as stream:
            json.dump({"v": _VERSION, "segments": self._segments}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(self._file)
        sync_folder(self._file.parent)

    def chunks(self) -> list[list[Span]]:
        """Return the spans of each chunk; the first chunk has the number 1."""
        found: list[list[Span]] = []
        for segment in self._segments:
            most = int(segment["chunk_rows"])
            chunk: list[Span] = []
            room = most
            for each in segment["files"]:
                start, rows = 0, int(each["rows"])
                while start < rows:
                    end = min(rows, start + room)
                    chunk.append(Span(each["path"], each["channel"], each["queue"], start, end))
                    room -= end - start
                    start = end
                    if room == 0:
                        found.append(chunk)
                        chunk, room = [], most
            if chunk:
                found.append(chunk)
        return found


# --- A run --------------------------------------------------------------------------------------


class _Task:
    """The work of one task."""

    __slots__ = ("columns", "connection", "key", "sink", "spans", "target")

    def __init__(
        self,
        connection: ConnectionOptions,
        sink: SinkOptions,
        key: TaskKey,
        spans: list[Span],
        columns: list[str],
        target: tuple[str, int] | None,
    ) -> None:
        self.connection = connection
        self.sink = sink
        self.key = key
        self.spans = spans
        self.columns = columns
        self.target = target


def replay(
    spark: SparkSession,
    connection: ConnectionOptions,
    sink: SinkOptions,
    place: Path,
    target: Target,
    *,
    stop: Stop,
    reporter: Reporter,
    application: str,
    plan_file: Path,
    rate: float | None = None,
    preserve_ids: bool = False,
) -> ReplaySummary:
    """Push the rows of Parquet files into queues, each once under this application's name.

    :param place: a folder of Parquet files, or one; shared with the executors.
    :param rate: the most messages per second; None for no limit.
    :param preserve_ids: messages keep their ids; otherwise they get new ones.
    :raises SparkError: if it cannot continue; the next run continues from there.
    """
    began = time.monotonic()
    files = [inspect_file(file, place) for file in find_files(place)]
    plan = ReplayPlan(plan_file)
    plan.extend(files, _chunk_rows(files, rate))
    chunks = plan.chunks()
    names = [name for name in _COLUMNS if name == "value" or _has(files, name)]
    columns = [*names, *(["message_id"] if preserve_ids else []), "channel", "queue"]
    summary = ReplaySummary(application=application, source=str(place), target=target.text)
    link = BrokerLink(connection)
    try:
        done = _last_epoch(link, application)
        summary.skipped = sum(_rows(chunk) for chunk in chunks[:done])
        for number in range(done + 1, len(chunks) + 1):
            if stop.wanted:
                break
            chunk = chunks[number - 1]
            parts = _divided(chunk, spark.sparkContext.defaultParallelism)
            tasks = [
                _Task(
                    connection,
                    sink,
                    TaskKey(application, number, part, 0),
                    spans,
                    columns,
                    target.queue,
                )
                for part, spans in enumerate(parts)
            ]
            staged: list[tuple[int, int]] = (
                spark.sparkContext.parallelize(tasks, len(tasks)).map(_stage_in_task).collect()
            )
            commit(link, application, number, [each for each in staged if each[0]])
            summary.chunks += 1
            summary.messages += _rows(chunk)
            _tell(reporter, number, len(chunks), summary)
            if rate is not None:
                stop.sleep(began + summary.messages / rate - time.monotonic())
    finally:
        link.close()
        summary.seconds = round(time.monotonic() - began, 3)
        summary.stopped = stop.wanted
    return summary


def _chunk_rows(files: list[ParquetFile], rate: float | None) -> int:
    rows = sum(each.rows for each in files)
    each_bytes = sum(each.bytes for each in files) / rows if rows else 0
    most = _CHUNK_ROWS if each_bytes <= 0 else int(_CHUNK_BYTES / each_bytes)
    if rate is not None:
        # A chunk becomes visible at once, so it has the messages of one second.
        most = min(most, int(rate))
    return max(1, min(_CHUNK_ROWS, most))


def _has(files: list[ParquetFile], name: str) -> bool:
    """Whether the files have a column; only the first is examined, because all have the same
    columns."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only here

    return name in pq.read_schema(files[0].path).names


def _rows(chunk: list[Span]) -> int:
    return sum(span.end - span.start for span in chunk)


def _divided(chunk: list[Span], parts: int) -> list[list[Span]]:
    """Divide a chunk's spans into about equal parts for the tasks, in order."""
    share = max(1_000, -(-_rows(chunk) // parts))
    found: list[list[Span]] = [[]]
    room = share
    for span in chunk:
        start = span.start
        while start < span.end:
            if room == 0:
                found.append([])
                room = share
            end = min(span.end, start + room)
            found[-1].append(Span(span.path, span.channel, span.queue, start, end))
            room -= end - start
            start = end
    return found


def _last_epoch(link: BrokerLink, application: str) -> int:
    """Return the number of the last chunk that the broker has; 0 for none."""
    answer = link.ask(OP_LIST_TRANSACTIONS, f"transactions of {application}", application)
    try:
        most = max(len(answer.payload), TransactionInformation.max_bytes)
        found = parse_list(TransactionInformation, answer.payload, max_bytes=most)
    except ModelError as error:
        raise DecodeFailed(f"the list of transactions cannot be read: {error}") from None
    return max((each.epoch for each in found if each.state == "committed"), default=0)


def _tell(reporter: Reporter, number: int, count: int, summary: ReplaySummary) -> None:
    reporter.say(
        "chunk",
        f"chunk {number} of {count}: {plain_number(summary.messages)} messages replayed",
        chunk=number,
        chunks=count,
        messages=summary.messages,
    )


def _stage_in_task(task: _Task) -> tuple[int, int]:
    """Stage the rows of a task, on an executor; return number and message count of its
    transaction."""
    from pyspark import TaskContext  # noqa: PLC0415 - only there where Spark is

    settle_memory()
    context = TaskContext.get()
    key = task.key
    if context is not None:
        key = TaskKey(key.application, key.epoch, key.part, context.taskAttemptId())
    pusher = borrow_pusher(task.connection, task.sink.window)
    batches = (batch for span in task.spans for batch in read_span(span, task.columns, task.target))
    try:
        number, written = write_once(pusher, task.sink, task.columns, key, batches)
    except BaseException:
        pusher.close()
        raise
    return_pusher(pusher)
    return number, written.rows
