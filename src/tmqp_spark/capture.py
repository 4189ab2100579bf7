"""The source ``tmqp_capture``: wire captures and fuzz corpora as tables, parsed by the codec.

The files are listed where the query is planned, and returned in portions of about equal size; they
must have the same paths on the executors.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from tmqp_spark.errors import InvalidOption, SparkError
from tmqp_spark.options import check_names, option, parse_size, read_options
from tmqp_spark.recorded import CAPTURE, Recorded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["CaptureOptions", "CapturePartition", "CaptureReader", "TmqpCaptureDataSource"]

_FEW_FILES = 64


def _layout(text: str) -> str:
    word = text.strip().lower()
    if word not in ("auto", "recording", "corpus"):
        raise ValueError("auto, recording or corpus")
    return word


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= 1_000_000:
        raise ValueError("a whole number from 1 to 1000000")
    return int(text)


def _skip(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 65_536:
        raise ValueError("a number of bytes from 0 to 65536")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """Which files are read, and how."""

    path: str = option("path", str, "file, directory (with all below it) or pattern", "")
    paths: str = option(
        "paths", str, "several of them, as a JSON list: what `load([...])` gives", ""
    )
    layout: str = option(
        "layout",
        _layout,
        "`recording` (JSON), `corpus` (`.txt`: hexadecimal lines, others: raw bytes), or `auto`, by"
        " the ending",
        "auto",
    )
    skip_bytes: int = option(
        "skipBytes", _skip, "corpus: bytes before TMQP's at the beginning of each input", 0
    )
    files_per_batch: int = option(
        "filesPerBatch", _count, "maximum number of files in an Arrow batch", 2_000
    )
    batch_bytes: int = option(
        "batchBytes", parse_size, "bytes in an Arrow batch, about", 2 << 20, "2m"
    )
    min_partitions: int | None = option(
        "minPartitions", _count, "tasks, as far as there are files", None, "twice the processors"
    )


class CapturePartition(InputPartition):
    """The files of one task."""

    def __init__(self, files: list[str]) -> None:
        super().__init__(None)
        self.files = files


class CaptureReader(DataSourceReader):
    """Reads captures; travels to the executors."""

    def __init__(self, options: CaptureOptions, schema: StructType) -> None:
        self._options = options
        self._projection = CAPTURE.project(
            (field.name, field.dataType.simpleString(), field.nullable) for field in schema
        )

    def partitions(self) -> list[CapturePartition]:
        """The current files, in portions of about equal size."""
        files = _files(self._options)
        wanted = self._options.min_partitions
        if wanted is None:
            wanted = min(2 * (os.cpu_count() or 1), len(files) // _FEW_FILES or 1)
        count = min(wanted, max(1, len(files)))
        total = sum(size for size, _ in files) + len(files)
        portions: list[list[str]] = [[]]
        filled = 0
        for size, path in files:
            if filled * count >= total * len(portions) and len(portions) < count:
                portions.append([])
            portions[-1].append(path)
            filled += size + 1
        return [CapturePartition(portion) for portion in portions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a portion, in batches."""
        if not isinstance(partition, CapturePartition):  # Spark's stand-in for no partition
            return
        options = self._options
        gathered = Recorded(self._projection, options.skip_bytes)
        files = 0
        for path in partition.files:
            for _ in gathered.read(path, options.layout):
                if gathered.size >= options.batch_bytes:
                    yield gathered.take_batch()
                    files = 0
            files += 1
            if files >= options.files_per_batch:
                yield gathered.take_batch()
                files = 0
        if len(gathered):
            yield gathered.take_batch()


class TmqpCaptureDataSource(DataSource):
    """``spark.read.format("tmqp_capture")``."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        check_names(options, "capture source", CaptureOptions)
        self._read: CaptureOptions = read_options(CaptureOptions, options)
        if not self._read.path and not self._read.paths:
            raise InvalidOption("the option path is missing: which files? .load('captures/*.json')")

    @classmethod
    def name(cls) -> str:
        """What is in ``format(...)``."""
        return "tmqp_capture"

    def schema(self) -> str:
        """All columns."""
        return CAPTURE.ddl()

    def reader(self, schema: StructType) -> CaptureReader:
        """A reader of the columns asked for."""
        return CaptureReader(self._read, schema)


def _files(options: CaptureOptions) -> list[tuple[int, str]]:
    """Size and path of each file, in the order of their names.

    :raises SparkError: when there are none.
    """
    found: list[tuple[int, str]] = []
    for pattern in _patterns(options):
        matches = [pattern]
        if not Path(pattern).exists():
            # Path.glob takes no absolute pattern.
            matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
        if not matches:
            raise SparkError(
                f"tmqp_capture: {pattern} does not exist (on the machine where the query is "
                f"planned)"
            )
        for match in matches:
            if Path(match).is_dir():
                found.extend(_below(match))
            else:
                found.append((Path(match).stat().st_size, match))
    return found


def _patterns(options: CaptureOptions) -> list[str]:
    patterns = [options.path] if options.path else []
    if options.paths:
        try:
            listed = json.loads(options.paths)
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
            raise InvalidOption(
                f"option paths is a JSON list of paths, got {options.paths[:100]!r}"
            )
        patterns.extend(listed)
    return [pattern.removeprefix("file://") for pattern in patterns]


def _below(folder: str) -> list[tuple[int, str]]:
    """The files below a folder; names that begin with a dot or underscore are not data."""
    files: list[tuple[int, str]] = []
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_file():
                files.append((entry.stat().st_size, entry.path))
    files.sort(key=_by_path)
    for below in sorted(folders):
        files.extend(_below(below))
    return files


def _by_path(file: tuple[int, str]) -> str:
    return file[1]
