"""Finds Parquet files for a replay, in order, and reads their rows.

It does not need pyspark: executors read spans of rows with Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tmqp_spark.errors import InvalidSchema, SparkError

__all__ = ["ParquetFile", "Span", "find_files", "inspect_file", "read_span"]

#: The number of rows that are read at a time.
_BATCH_ROWS: Final = 10_000
_PARTITION_COLUMNS: Final = ("channel", "queue")


class ParquetFile:
    """A file to replay: ``path``, its ``rows`` and ``bytes`` (uncompressed), and the ``channel``
    and ``queue`` in the names of its folders (empty and -1 if they are missing)."""

    __slots__ = ("began_us", "bytes", "channel", "day", "first", "path", "queue", "rows")

    def __init__(
        self,
        path: str,
        rows: int,
        bytes: int,
        channel: str,
        queue: int,
        day: str,
        began_us: int,
        first: int,
    ) -> None:
        self.path = path
        self.rows = rows
        self.bytes = bytes
        self.channel = channel
        self.queue = queue
        #: The day in the names of its folders, empty if missing; the arrival time of its earliest
        #: message and its lowest sequence, 0 if unknown.
        self.day = day
        self.began_us = began_us
        self.first = first

    def __repr__(self) -> str:
        return f"<ParquetFile {self.path} {self.rows} rows>"

    @property
    def order(self) -> tuple[str, int, str, int, int, str]:
        """The sort key: files of a queue are consecutive, in the order of their messages."""
        return (self.channel, self.queue, self.day, self.began_us, self.first, self.path)


class Span:
    """The rows of a file from ``start`` to before ``end``."""

    __slots__ = ("channel", "end", "path", "queue", "start")

    def __init__(self, path: str, channel: str, queue: int, start: int, end: int) -> None:
        self.path = path
        self.channel = channel
        self.queue = queue
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"<Span {self.path} {self.start}..{self.end}>"


def find_files(place: Path) -> list[Path]:
    """Return the Parquet files of a folder, or the single file; not those that are being written.

    :raises SparkError: if there are none.
    """
    if place.is_file():
        return [place]
    found = [
        file
        for file in sorted(place.rglob("*.parquet"))
        # As in Spark, files and folders whose names begin so are not data.
        if not any(part.startswith(("_", ".")) for part in file.relative_to(place).parts)
    ]
    if not found:
        raise SparkError(f"{place}: no Parquet files there")
    return found


def inspect_file(file: Path, top: Path) -> ParquetFile:
    """Read the properties of a file from its metadata and the names of its folders below ``top``.

    :raises SparkError: if it is not a Parquet file, or has no column ``value``.
    """
    try:
        with pq.ParquetFile(file) as opened:
            about = opened.metadata
            names = opened.schema_arrow.names
            if "value" not in names:
                raise InvalidSchema(
                    f"{file}: a replay needs a column value, the payload; there are"
                    f" {', '.join(names)}"
                )
            size = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
            moment = _least(about, "timestamp")
            first = _least(about, "seq")
            rows = about.num_rows
    except (pa.ArrowException, OSError) as error:
        raise SparkError(f"{file} cannot be read: {error}") from None
    said = _folders(file, top)
    queue = said.get("queue", "")
    return ParquetFile(
        str(file),
        rows,
        size,
        said.get("channel", ""),
        int(queue) if queue.isascii() and queue.isdigit() else -1,
        said.get("day", ""),
        int(moment.timestamp() * 1_000_000) if isinstance(moment, datetime) else 0,
        first if isinstance(first, int) else 0,
    )


def _folders(file: Path, top: Path) -> dict[str, str]:
    parts = file.parent.relative_to(top if top.is_dir() else top.parent).parts
    pairs = [part.partition("=") for part in parts]
    return {name: unquote(value) for name, equals, value in pairs if equals}


def _least(about: Any, name: str) -> Any:
    """Return the least value of a column from the statistics of its row groups; None if unknown."""
    found: list[Any] = []
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema == name:
                if column.statistics is None or not column.statistics.has_min_max:
                    return None
                found.append(column.statistics.min)
    return min(found, default=None)


def read_span(span: Span, columns: list[str], target: tuple[str, int] | None) -> Iterator[Any]:
    """Read the rows of a span as batches with these columns, in this order.

    :param target: the channel and queue of all rows; None for those of the rows, or of their
        folders.
    :raises InvalidSchema: if a column is missing.
    """
    with pq.ParquetFile(span.path) as opened:
        present = [name for name in columns if name in opened.schema_arrow.names]
        position = 0
        for number in range(opened.metadata.num_row_groups):
            rows = opened.metadata.row_group(number).num_rows
            if position + rows > span.start and position < span.end:
                for batch in opened.iter_batches(_BATCH_ROWS, [number], present):
                    first = max(0, span.start - position)
                    last = min(batch.num_rows, span.end - position)
                    if first < last:
                        yield _arranged(batch.slice(first, last - first), span, columns, target)
                    position += batch.num_rows
            else:
                position += rows


def _arranged(batch: Any, span: Span, columns: list[str], target: tuple[str, int] | None) -> Any:
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    if target is not None:
        given["channel"] = pa.repeat(target[0], batch.num_rows)
        given["queue"] = pa.repeat(pa.scalar(target[1], pa.int32()), batch.num_rows)
    else:
        if "channel" not in given and span.channel:
            given["channel"] = pa.repeat(span.channel, batch.num_rows)
        if "queue" not in given and span.queue >= 0:
            given["queue"] = pa.repeat(pa.scalar(span.queue, pa.int32()), batch.num_rows)
    missing = [name for name in columns if name not in given]
    if missing:
        raise InvalidSchema(
            f"{span.path} has no column {missing[0]}"
            + ("; say where to with --to" if missing[0] in _PARTITION_COLUMNS else "")
        )
    return pa.RecordBatch.from_arrays([given[name] for name in columns], names=columns)
