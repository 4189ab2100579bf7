"""The archive: the kept messages of queues, as Parquet files by day, channel and queue.

Two engines write it.  ``arrow``: Spark distributes ranges, each task writes files with Arrow and
reports them, and this module moves them to their places (:mod:`tmqp_spark.pipelines.log` explains
why every message is in them once).  That costs a fraction of the time that rows through the JVM
take.  ``spark``: a streaming query of Spark, for file systems to which only Spark can write.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmqp_spark.following import Following, check_stream
from tmqp_spark.offsets import read_checkpoint
from tmqp_spark.options import ConnectionOptions, SourceOptions
from tmqp_spark.pipelines.log import ArchiveFile, ArchiveLog
from tmqp_spark.pipelines.parquet import ArchiveTask, write_task
from tmqp_spark.pipelines.reporting import Reporter, plain_number
from tmqp_spark.pipelines.stopping import Stop
from tmqp_spark.ranges import QueueRange
from tmqp_spark.source import borrow_link, return_link
from tmqp_spark.transport import first_contact
from tmqp_spark.workers import settle_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ArchiveSummary", "archive_with_arrow"]


@dataclass(slots=True, kw_only=True)
class ArchiveSummary:
    """The results of a run: ``queues`` has the number of messages by ``channel/queue``, ``end``
    the places after the last ones.  The engine spark does not count files, bytes and messages by
    queue."""

    engine: str
    folder: str
    batches: int = 0
    messages: int = 0
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    stopped: bool = False
    queues: dict[str, int] = field(default_factory=dict)
    end: dict[str, int] = field(default_factory=dict)


def archive_with_arrow(
    spark: SparkSession,
    connection: ConnectionOptions,
    source: SourceOptions,
    folder: Path,
    *,
    stop: Stop,
    reporter: Reporter,
    follow: bool = False,
    every_s: float = 10.0,
    compression: str = "zstd",
) -> ArchiveSummary:
    """Archive the kept messages that are not archived yet; with ``follow``, continue with new ones.

    :param folder: the archive, in a file system that the executors share; created if necessary.
    :param source: the queues, where a new archive begins, and the size of a batch.
    :param every_s: with ``follow``, the least number of seconds between the beginnings of two
        batches.
    :raises SparkError: if it cannot continue; committed batches stay.
    """
    check_stream(source)
    began = time.monotonic()
    link = first_contact(connection)
    try:
        with ArchiveLog(folder.absolute(), "arrow") as log:
            run = _Archiving(spark, connection, source, log, Following(link, source), compression)
            try:
                run.run(stop, reporter, follow, every_s)
            finally:
                run.summary.seconds = round(time.monotonic() - began, 3)
                run.summary.stopped = stop.wanted
            return run.summary
    finally:
        link.close()


class _Archiving:
    """Archives batch after batch."""

    def __init__(
        self,
        spark: SparkSession,
        connection: ConnectionOptions,
        source: SourceOptions,
        log: ArchiveLog,
        following: Following,
        compression: str,
    ) -> None:
        self._spark = spark
        self._connection = connection
        self._source = source
        self._log = log
        self._following = following
        self._compression = compression
        self.summary = ArchiveSummary(engine="arrow", folder=str(log.folder))

    def run(self, stop: Stop, reporter: Reporter, follow: bool, every_s: float) -> None:
        """Archive until there are no more messages, or until a stop is requested."""
        if not follow:
            self._following.prepare_available_now()
        # With a group, this stores the beginning of the archive before anything is read.
        start = self._following.initial() if self._log.end is None else self._log.end
        while not stop.wanted:
            due = time.monotonic() + every_s
            end = self._following.latest(start, False)
            if end is start:
                if not follow:
                    break
                continue
            files = self._batch(start, end)
            start = end
            self._tell(files, reporter)
            if follow:
                stop.sleep(due - time.monotonic())
        else:
            # The next request also commits the last batch for the group.
            self._following.latest(start, False)
        places = read_checkpoint(start)
        self.summary.end = {key: place.next for key, place in places.items()}

    def _batch(self, start: dict[str, Any], end: dict[str, Any]) -> list[ArchiveFile]:
        parts = self._following.plan(start, end)
        staged = self._log.stage()
        try:
            files = self._write(parts, str(staged)) if parts else []
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        return self._log.commit(staged, end, files)

    def _write(self, parts: list[QueueRange], staged: str) -> list[ArchiveFile]:
        tasks = [
            ArchiveTask(
                number,
                self._connection,
                self._source,
                part,
                staged,
                self._source.include_headers,
                self._compression,
            )
            for number, part in enumerate(parts)
        ]
        context = self._spark.sparkContext
        found: list[ArchiveFile] = (
            context.parallelize(tasks, len(tasks)).flatMap(_write_in_task).collect()
        )
        return found

    def _tell(self, files: list[ArchiveFile], reporter: Reporter) -> None:
        summary = self.summary
        rows = sum(file.rows for file in files)
        size = sum(file.bytes for file in files)
        summary.batches += 1
        summary.messages += rows
        summary.files += len(files)
        summary.bytes += size
        for file in files:
            key = f"{file.channel}/{file.queue}"
            summary.queues[key] = summary.queues.get(key, 0) + file.rows
        behind = (self._following.report() or {}).get("behind", {}).get("messages", 0)
        reporter.say(
            "batch",
            f"batch {self._log.batch}: {plain_number(rows)} messages in {len(files)} files"
            f" ({plain_number(size)} bytes); {plain_number(behind)} behind",
            batch=self._log.batch,
            messages=rows,
            files=len(files),
            bytes=size,
            behind=behind,
        )


def _write_in_task(task: ArchiveTask) -> list[ArchiveFile]:
    """Runs on an executor."""
    from pyspark import TaskContext  # noqa: PLC0415 - only there where Spark is

    settle_memory()
    context = TaskContext.get()
    attempt = context.taskAttemptId() if context is not None else 0
    link = borrow_link(task.connection)
    try:
        return write_task(task, attempt, link)
    finally:
        return_link(link)
