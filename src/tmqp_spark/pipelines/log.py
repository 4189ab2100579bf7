"""The log of an archive: which batches are in it, and the step from staged to archived.

Theory of operation.  A batch is written into files under ``_tmqp/staging``, which readers of the
archive skip.  When all of them are on disk, one small file, the batch's record, is put into
``_tmqp/log`` by a rename: from then on the batch counts, and the record says up to where the queues
are archived.  Only after that the files are renamed to their final places, and at last the staging
folder is removed.  So a crash at any moment leaves either no record, and the next run writes the
batch again (perhaps a longer one), or a record, and the next run does the missing renames.  No
message is in two files, and none is left out.

Everything is synced in that order, so this also holds if the machine stops.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from tmqp_spark.errors import SparkError

__all__ = ["ArchiveFile", "ArchiveLog", "partition_folder", "sync_folder"]

_VERSION: Final = 1
_FOLDER: Final = "_tmqp"
#: Records that are kept for people; only the last one is used.
_KEPT_RECORDS: Final = 1_000
#: Characters that are unchanged in a path; others are written as %XX, as by Hive and Spark.
_PLAIN: Final = " !$&()+,-.;@_~"


class ArchiveFile:
    """A file of the archive.

    ``path`` is relative to the archive, ``staged`` the name of the file before it is moved there.
    It has ``rows`` messages, from ``first`` to ``last`` of a queue (of ``incarnation``), that
    arrived on ``day``.
    """

    __slots__ = (
        "bytes",
        "channel",
        "day",
        "first",
        "incarnation",
        "last",
        "path",
        "queue",
        "rows",
        "staged",
    )

    def __init__(
        self,
        staged: str,
        channel: str,
        queue: int,
        incarnation: str,
        day: str,
        first: int,
        last: int,
        rows: int,
        bytes: int,
    ) -> None:
        self.staged = staged
        self.channel = channel
        self.queue = queue
        self.incarnation = incarnation
        self.day = day
        self.first = first
        self.last = last
        self.rows = rows
        self.bytes = bytes
        name = f"{first:012d}-{last:012d}-{incarnation[:8] or 'x'}.parquet"
        self.path = f"{partition_folder(day, channel, queue)}/{name}"

    def __repr__(self) -> str:
        return f"<ArchiveFile {self.path} {self.rows} rows>"

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the log."""
        return {"path": self.path, **{name: getattr(self, name) for name in _FIELDS}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ArchiveFile:
        """Read the result of :meth:`to_json`.

        :raises KeyError: if a field is missing.
        """
        return cls(*(data[name] for name in _FIELDS))


_FIELDS: Final = (
    "staged",
    "channel",
    "queue",
    "incarnation",
    "day",
    "first",
    "last",
    "rows",
    "bytes",
)


def partition_folder(day: str, channel: str, queue: int) -> str:
    """Return the folder for the files of a queue and a day:
    ``day=2026-11-21/channel=orders/queue=7``."""
    return f"day={day}/channel={quote(channel, safe=_PLAIN)}/queue={queue}"


class ArchiveLog:
    """The log of the archive in ``folder``; as a context manager, it locks the archive for writing.

    :param engine: the engine that writes it; an archive cannot change its engine.
    :raises SparkError: on entering, if another process or another engine writes the archive, or if
        the log is invalid.
    """

    def __init__(self, folder: Path, engine: str) -> None:
        self.folder = folder
        self._engine = engine
        self._own = folder / _FOLDER
        self._log = self._own / "log"
        self._staging = self._own / "staging"
        self._lock: int | None = None
        #: The number of the last committed batch, and the places after it.
        self.batch = 0
        self.end: dict[str, Any] | None = None

    # --- Begin and end ---------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._own.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            self._check_head()
            self._log.mkdir(exist_ok=True)
            self._recover()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _take_lock(self) -> None:
        self._lock = os.open(self._own / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._release()
            raise SparkError(
                f"{self.folder}: another process archives into it; wait for it, or use another"
                " folder"
            ) from None

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _check_head(self) -> None:
        file = self._own / "archive.json"
        if not file.exists():
            _write_whole(file, {"v": _VERSION, "engine": self._engine})
            return
        head = _read(file)
        version, engine = head.get("v"), head.get("engine")
        if not isinstance(version, int) or version > _VERSION:
            raise SparkError(
                f"{file}: an archive of version {version}; this tmqp-spark knows {_VERSION}:"
                " install a newer one"
            )
        if engine != self._engine:
            raise SparkError(
                f"{self.folder}: this archive is written by the engine {engine}, and stays with"
                f" it: --engine {engine}, or another folder"
            )

    # --- Batches ---------------------------------------------------------------------------------

    def stage(self) -> Path:
        """Create a folder for the files of the next batch."""
        folder = self._staging / f"{self.batch + 1:08d}-{uuid.uuid4().hex[:12]}"
        folder.mkdir(parents=True)
        return folder

    def commit(
        self, staged: Path, end: dict[str, Any], files: Iterable[ArchiveFile]
    ) -> list[ArchiveFile]:
        """Commit a batch and move its files to their places; return the files.

        :param staged: the folder with the files, under the names ``staged``.
        :param end: the places after the batch.
        """
        listed = list(files)
        sync_folder(staged)
        number = self.batch + 1
        record = {
            "v": _VERSION,
            "batch": number,
            "staging": staged.name,
            "end": end,
            "files": [file.to_json() for file in listed],
        }
        _write_whole(self._log / f"{number:08d}.json", record)
        self.batch, self.end = number, end
        self._place(staged, listed)
        (self._log / f"{number - _KEPT_RECORDS:08d}.json").unlink(missing_ok=True)
        return listed

    def _place(self, staged: Path, files: list[ArchiveFile]) -> None:
        folders = set()
        for file in files:
            target = self.folder / file.path
            source = staged / file.staged
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)
                folders.add(target.parent)
            elif not target.exists():
                raise SparkError(
                    f"{target} is missing, and so is {source}: a file was removed that the "
                    f"archive's log ({self._log}) counts as archived"
                )
        for each in _with_parents(folders, self.folder):
            sync_folder(each)
        # This also removes files of tasks that ran twice.
        shutil.rmtree(staged)

    def _recover(self) -> None:
        """Finish the last batch, and remove files that were staged after it."""
        numbers = sorted(int(file.stem) for file in self._log.glob("*.json") if file.stem.isdigit())
        if numbers:
            file = self._log / f"{numbers[-1]:08d}.json"
            record = _read(file)
            try:
                self.batch, self.end = int(record["batch"]), dict(record["end"])
                staged = self._staging / str(record["staging"])
                files = [ArchiveFile.from_json(each) for each in record["files"]]
            except (KeyError, TypeError, ValueError):
                raise SparkError(f"{file}: not a record of an archive's batch") from None
            # The folder exists until all of its files are in their places.
            if staged.is_dir():
                self._place(staged, files)
        if self._staging.exists():
            shutil.rmtree(self._staging)


# --- Files that are written completely or not at all ----------------------------------------------


def _write_whole(file: Path, data: dict[str, Any]) -> None:
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    with fresh.open("w", encoding="utf-8") as stream:
        json.dump(data, stream, sort_keys=True)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(file)
    sync_folder(file.parent)


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SparkError(f"{file} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise SparkError(f"{file}: not a JSON object")
    return data


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _with_parents(folders: Iterable[Path], top: Path) -> list[Path]:
    """Return folders and their parents up to ``top``, the deepest first."""
    found = {top}
    for folder in folders:
        each = folder
        while each != top:
            found.add(each)
            each = each.parent
    return sorted(found, key=lambda each: -len(each.parts))
