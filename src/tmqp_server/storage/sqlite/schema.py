"""Owns the data directory: its lock, the database file, its tables and their version."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from zlib import crc32

from tmqp_server.storage.port import DamageError, StoreError, StoreFullError

__all__ = [
    "APPLICATION_ID",
    "DATABASE_NAME",
    "FORMAT_VERSION",
    "LOCK_NAME",
    "DirectoryLock",
    "check_version",
    "connect",
    "digest",
    "explained",
    "free_bytes",
    "prepare_database",
    "prepare_directory",
    "size_of",
    "sync_directory",
    "translated",
]

DATABASE_NAME: Final = "messages.sqlite3"
LOCK_NAME: Final = "lock"
#: "TMQP", so that `file` and others can tell what it is.
APPLICATION_ID: Final = 0x544D5150
#: Raised whenever an older program could misread what a newer one writes.
FORMAT_VERSION: Final = 1

_MARKS: Final = """CREATE TABLE marks (
    name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, at_us INTEGER NOT NULL, crc INTEGER NOT NULL)
    WITHOUT ROWID"""
_TABLES: Final = f"""
{_MARKS};
CREATE TABLE meta (name TEXT PRIMARY KEY, value, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE channels (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, options BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE queues (
    id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, channel TEXT NOT NULL,
    queue_id INTEGER NOT NULL, options BLOB NOT NULL, max_bytes INTEGER NOT NULL,
    max_age_ms INTEGER NOT NULL, for_readers INTEGER NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE routers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE cursors (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, key INTEGER NOT NULL, sequence INTEGER NOT NULL,
    crc INTEGER NOT NULL, UNIQUE (key, name));
CREATE TABLE counters (key INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY, key INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    count INTEGER NOT NULL, size INTEGER NOT NULL, newest_us INTEGER NOT NULL, present BLOB,
    owed BLOB, high BLOB, transient BLOB, notes BLOB, crc INTEGER NOT NULL);
CREATE TABLE bodies (id INTEGER PRIMARY KEY, block BLOB NOT NULL);
"""


#: Blocks are long: with pages of 4 KiB, writing one takes twice the time.
_PAGE_BYTES: Final = 16_384


def digest(*values: object) -> int:
    """The checksum of a row: of its values, with their types."""
    return crc32(repr(values).encode())


# --- The directory and its lock ------------------------------------------------------------------


def prepare_directory(path: Path) -> None:
    """Make the data directory if it is missing, so that a power cut cannot take it back.

    :raises StoreError: when it cannot be made or is no directory.
    """
    try:
        missing = not path.exists()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if missing:
            sync_directory(path.parent)
    except FileExistsError:
        raise StoreError(f"{path} is no directory") from None
    except OSError as error:
        raise StoreError(f"cannot make the directory {path}: {error.strerror}") from error


def size_of(path: Path) -> int:
    """The size of a file in bytes; 0 when there is none.

    :raises OSError: when it cannot be looked at.
    """
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def free_bytes(path: Path) -> int:
    """How much may still be written to the file system of a directory."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


class DirectoryLock:
    """Keeps other processes out of a data directory; given back by the system if we die."""

    __slots__ = ("_file", "path")

    def __init__(self, directory: Path) -> None:
        """Take the lock.

        :raises StoreError: when another process has it (the text names it), or it cannot be taken.
        """
        self.path = directory / LOCK_NAME
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            self._take(directory)
        except BaseException:
            os.close(self._file)
            raise

    def _take(self, directory: Path) -> None:
        try:
            import fcntl  # noqa: PLC0415 - some systems have none
        except ImportError:  # pragma: no cover - not on this system
            raise StoreError("this system cannot lock a directory: fcntl is missing") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreError(f"cannot lock {self.path}: {error.strerror}") from error
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip()
            who = f"process {holder}" if holder.isdecimal() else "another process"
            raise StoreError(f"{directory} is in use by {who}") from None
        # Only for people: who cannot write it has the lock all the same.
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let others in; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def sync_directory(path: Path) -> None:
    """Make sure of the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- The database --------------------------------------------------------------------------------


@contextmanager
def translated(directory: Path, what: str) -> Iterator[None]:
    """Turn what SQLite and the system raise into the port's errors."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explained(error, directory, what) from error


def explained(error: Exception, directory: Path, what: str) -> StoreError:
    """The port's error for one of SQLite or the system."""
    name = getattr(error, "sqlite_errorname", None)
    text = f"cannot {what} {directory}: {error}" + (f" ({name})" if name else "")
    if name == "SQLITE_FULL" or getattr(error, "errno", None) == errno.ENOSPC:
        return StoreFullError(text)
    if name is not None and name.startswith("SQLITE_IOERR"):
        # A sync or a truncation that fails for lack of space does not say so.
        with suppress(OSError):
            if free_bytes(directory) < 1 << 16:
                return StoreFullError(text)
    if name in ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_FORMAT"):
        return DamageError(text)
    return StoreError(text)


def connect(directory: Path, checkpoint_pages: int) -> sqlite3.Connection:
    """Open the database of a directory, made if it is missing.

    :param checkpoint_pages: of a new database; more where an earlier release made smaller ones.
    """
    path = directory / DATABASE_NAME
    is_new = not path.exists() or path.stat().st_size == 0
    # The worker thread of the server uses what its main thread opened; never two at a time.
    db = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    try:
        if is_new:
            db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        else:
            check_version(db, directory)
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreError(f"{path}: the file system allows no write-ahead log")
        db.execute("PRAGMA synchronous = FULL")
        (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
        pages = checkpoint_pages * _PAGE_BYTES // page_bytes
        db.execute(f"PRAGMA wal_autocheckpoint = {pages}")
        db.execute(f"PRAGMA journal_size_limit = {checkpoint_pages * _PAGE_BYTES * 2}")
        # What is deleted need not be overwritten: that would write every message once more.
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("PRAGMA cache_size = -8192")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA mmap_size = 0")
    except BaseException:
        db.close()
        raise
    return db


def check_version(db: sqlite3.Connection, directory: Path) -> None:
    """Refuse what is not ours or was written by a newer program.

    :raises StoreError: with what is there and what is known.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == 0 and version == 0 and tables == 0:
        return  # made, and interrupted before its tables were
    if application != APPLICATION_ID:
        raise StoreError(f"{directory / DATABASE_NAME} is a database of another program")
    if version != FORMAT_VERSION:
        raise StoreError(
            f"{directory} has the format version {version}, this program knows {FORMAT_VERSION}:"
            " a newer tmqp-server wrote it; nothing was changed"
        )


def prepare_database(db: sqlite3.Connection, directory: Path) -> None:
    """Make the tables, all or none, in a new database."""
    check_version(db, directory)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version:
        # A store of an earlier release has no such table; that release passes over it.
        (there,) = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'marks'").fetchone()
        if not there:
            db.execute(_MARKS)
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement in _TABLES.split(";"):
            if statement.strip():
                db.execute(statement)
        store_id = secrets.token_hex(16)
        for name, value in (("store_id", store_id), ("clean", 1), ("last_key", 0), ("voided", 0)):
            db.execute("INSERT INTO meta VALUES (?, ?, ?)", (name, value, digest(name, value)))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    # The names of the files must survive too.
    sync_directory(directory)
