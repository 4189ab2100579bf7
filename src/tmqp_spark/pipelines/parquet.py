"""Writes an archive's Parquet files: a task reads a range, and writes one file per day.

It does not need pyspark: the input and output of a task are plain data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tmqp_spark.arrow import BatchBuilder
from tmqp_spark.errors import SparkError
from tmqp_spark.options import ConnectionOptions, SourceOptions
from tmqp_spark.pipelines.log import ArchiveFile
from tmqp_spark.ranges import QueueRange, read_range
from tmqp_spark.schema import COLUMNS, Projection, project
from tmqp_spark.transport import BrokerLink

__all__ = ["ArchiveTask", "archive_columns", "write_task"]

#: The columns that are in the names of the folders.
_IN_FOLDERS: Final = ("channel", "queue")
_DAY_US: Final = 86_400_000_000
#: Columns with few values in most queues; looking for repeats in others would double the work.
_DICTIONARY: Final = ["source"]


class ArchiveTask:
    """The work of one task.

    :param number: the number of the task, for the names of files.
    :param folder: where files are staged; the same on every executor.
    :param headers: write the column ``headers`` too.
    """

    __slots__ = ("compression", "connection", "folder", "headers", "number", "range", "source")

    def __init__(
        self,
        number: int,
        connection: ConnectionOptions,
        source: SourceOptions,
        wanted: QueueRange,
        folder: str,
        headers: bool,
        compression: str,
    ) -> None:
        self.number = number
        self.connection = connection
        self.source = source
        self.range = wanted
        self.folder = folder
        self.headers = headers
        self.compression = compression


def archive_columns(headers: bool) -> list[tuple[str, str, bool]]:
    """Return the columns of a file: name, Spark's type, and whether it may be null."""
    return [
        (column.name, column.types[0], column.nullable)
        for column in COLUMNS
        if column.name not in _IN_FOLDERS
        and (not column.opt_in or (headers and column.name == "headers"))
    ]


def write_task(task: ArchiveTask, attempt: int, link: BrokerLink) -> list[ArchiveFile]:
    """Read a range and write its files, one for each day.

    :param attempt: distinguishes this run of the task from others, whose files stay untouched.
    :raises SparkError: as :func:`tmqp_spark.ranges.read_range`, or if the folder does not exist.
    """
    if not Path(task.folder).is_dir():
        raise SparkError(
            f"{task.folder} is not there on {os.uname().nodename}: the engine arrow writes to a"
            " folder that all executors share; on others use --engine spark"
        )
    projection = project(archive_columns(task.headers))
    days: dict[int, _DayFile] = {}
    try:
        for batch in _batches(task, projection, link):
            for day, portion in _by_day(batch):
                file = days.get(day)
                if file is None:
                    file = days[day] = _DayFile(task, attempt, day, projection.schema)
                file.write(portion)
    except BaseException:
        for file in days.values():
            file.give_up()
        raise
    return [days[day].finish() for day in sorted(days)]


def _batches(task: ArchiveTask, projection: Projection, link: BrokerLink) -> Iterator[Any]:
    wanted = task.range
    what = f"{task.connection.url} {wanted.channel}/{wanted.queue}"
    builder = BatchBuilder(projection, wanted.channel, wanted.queue, wanted.incarnation, what)
    for portion in read_range(link, wanted, task.source):
        if len(portion):
            yield builder.build(portion)


def _by_day(batch: Any) -> Iterator[tuple[int, Any]]:
    """Divide rows by day, counted from 1970."""
    times = batch.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
    days = times // _DAY_US
    first, last = int(days.min()), int(days.max())
    if first == last:
        yield first, batch
        return
    for day in np.unique(days).tolist():
        yield day, batch.filter(pa.array(days == day))


class _DayFile:
    """A file that is being written."""

    def __init__(self, task: ArchiveTask, attempt: int, day: int, schema: pa.Schema) -> None:
        self._task = task
        self._day = day
        self._name = f"{task.number:06d}-{attempt}-{day}.parquet"
        self._path = Path(task.folder) / self._name
        self._rows = 0
        self._first = self._last = -1
        wanted = task.range
        about = {
            "tmqp.channel": wanted.channel,
            "tmqp.queue": str(wanted.queue),
            "tmqp.incarnation": wanted.incarnation,
        }
        self._writer = pq.ParquetWriter(
            self._path,
            schema.with_metadata(about),
            compression=task.compression,
            use_dictionary=_DICTIONARY,
            write_statistics=["seq", "timestamp"],
        )
        self._schema = schema.with_metadata(about)

    def write(self, batch: Any) -> None:
        """Append rows."""
        self._writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
        # Sequences rise.
        sequence = batch.column("seq")
        if self._rows == 0:
            self._first = sequence[0].as_py()
        self._last = sequence[-1].as_py()
        self._rows += batch.num_rows

    def finish(self) -> ArchiveFile:
        """Close the file and sync it to disk."""
        self._writer.close()
        number = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
        wanted = self._task.range
        return ArchiveFile(
            self._name,
            wanted.channel,
            wanted.queue,
            wanted.incarnation,
            str(np.datetime64(self._day, "D")),
            self._first,
            self._last,
            self._rows,
            self._path.stat().st_size,
        )

    def give_up(self) -> None:
        """Remove the file, if possible."""
        try:
            self._writer.close()
        finally:
            self._path.unlink(missing_ok=True)
