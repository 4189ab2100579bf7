"""The data directory: its lock, the database file, its tables and their version."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from zlib import crc32

from tmqp.references import (
    APPLICATION_ID,
    DATABASE_NAME,
    FORMAT_VERSION,
    OLDEST_VERSION,
    database_mark,
)
from tmqp_server.storage.port import DamageError, StoreError, StoreFullError
from tmqp_server.storage.sqlite.tally import Tally

__all__ = [
    "FILES_BESIDE",
    "LOCK_NAME",
    "DirectoryLock",
    "check_version",
    "connect",
    "create_private",
    "digest",
    "explained",
    "exposed",
    "format_of",
    "free_bytes",
    "mark_of",
    "prepare_database",
    "prepare_directory",
    "size_of",
    "sync_directory",
    "translated",
]

LOCK_NAME: Final = "lock"
#: The other files of a store: made after the database, and useless without it.
FILES_BESIDE: Final = ("recent.log", "witness")

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


#: Blocks are large: with pages of 4 KiB, writing one would take twice as long.
_PAGE_BYTES: Final = 16_384


def digest(*values: object) -> int:
    """The checksum of a row: of its values, with their types."""
    return crc32(repr(values).encode())


# --- The directory and its lock ------------------------------------------------------------------

#: The errors of file systems that cannot lock directories.
_NO_DIRECTORY_LOCKS: Final = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP)


def prepare_directory(path: Path) -> None:
    """Create the data directory if it is missing, and sync its name, so that it survives a power
    cut.

    :raises StoreError: when it cannot be created or is not a directory.
    """
    try:
        missing = not path.exists()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if missing:
            sync_directory(path.parent)
    except FileExistsError:
        raise StoreError(f"{path} is not a directory") from None
    except OSError as error:
        raise StoreError(f"cannot create the directory {path}: {error.strerror}") from error


def size_of(path: Path) -> int:
    """The size of a file in bytes; 0 if there is none.

    :raises OSError: when it cannot be examined.
    """
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def mark_of(directory: Path, store_id: str) -> int:
    """The mark that distinguishes a directory's database from others, for references to its blocks.

    :raises OSError: when it cannot be examined.
    """
    found = (directory / DATABASE_NAME).stat()
    return database_mark(store_id, found.st_dev, found.st_ino)


def free_bytes(path: Path) -> int:
    """How many bytes may still be written to the file system of a directory."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def create_private(path: Path) -> None:
    """Create a file that only its owner can read, if there is none.

    :raises OSError: when it cannot be created.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def exposed(directory: Path) -> str:
    """How other users can read or change a data directory; empty if they cannot."""
    try:
        mode = stat.S_IMODE(directory.stat().st_mode)
        if not mode & 0o077:
            return ""
        names = [DATABASE_NAME, f"{DATABASE_NAME}-wal", f"{DATABASE_NAME}-shm", LOCK_NAME]
        files = [directory / name for name in (*names, *FILES_BESIDE)]
        open_files = [path.name for path in files if path.exists() and path.stat().st_mode & 0o077]
    except OSError:
        return ""
    text = f"other users can open the data directory {directory} (mode {mode:04o})"
    if open_files:
        text += f" and its files {', '.join(open_files)}"
    return f"{text}; to close it: chmod -R go-rwx {directory}"


class DirectoryLock:
    """Keeps other processes out of a data directory; the system releases it if the process dies.

    Two things are locked: the file ``lock``, which names the process and which earlier releases
    lock too, and the directory itself, which still keeps others out if that file is deleted.
    """

    __slots__ = ("_directory", "_file", "path")

    def __init__(self, directory: Path) -> None:
        """Take the lock.

        :raises StoreError: when another process has it (the text names it), or it cannot be taken.
        """
        self.path = directory / LOCK_NAME
        self._directory = -1
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot open {self.path}: {error.strerror}") from error
        try:
            self._take(directory)
        except BaseException:
            self.release()
            raise

    def _take(self, directory: Path) -> None:
        try:
            self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"cannot open {directory}: {error.strerror}") from error
        try:
            import fcntl  # noqa: PLC0415 - some systems have none
        except ImportError:  # pragma: no cover - not on this system
            raise StoreError("this system cannot lock a directory: fcntl is missing") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _NO_DIRECTORY_LOCKS:
                    raise
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
        """Release the lock; a second call does nothing."""
        for file in (self._directory, self._file):
            if file >= 0:
                os.close(file)
        self._directory = self._file = -1


def sync_directory(path: Path) -> None:
    """Sync a directory, so that the names of its files survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- The database --------------------------------------------------------------------------------

_DAMAGED: Final = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_FORMAT")


@contextmanager
def translated(directory: Path, what: str) -> Iterator[None]:
    """Convert errors of SQLite and the system to the port's errors."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise explained(error, directory, what) from error


def explained(error: Exception, directory: Path, what: str) -> StoreError:
    """The port's error for an error of SQLite or the system."""
    name = getattr(error, "sqlite_errorname", None)
    text = f"cannot {what} {directory}: {error}" + (f" ({name})" if name else "")
    if name == "SQLITE_FULL" or getattr(error, "errno", None) == errno.ENOSPC:
        return StoreFullError(text)
    if name is not None and name.startswith("SQLITE_IOERR"):
        # A sync or a truncation that fails for lack of space does not say so.
        with suppress(OSError):
            free = free_bytes(directory)
            if free < 1 << 16:
                return StoreFullError(f"{text}: the disk is full, {free} bytes are free")
    if isinstance(error, UnicodeDecodeError) or name in _DAMAGED:
        return DamageError(text)
    return StoreError(text)


def connect(directory: Path, checkpoint_pages: int) -> sqlite3.Connection:
    """Open the database of a directory; create it if it is missing.

    :param checkpoint_pages: for a new database; larger if an earlier release used smaller pages.
    """
    path = directory / DATABASE_NAME
    is_new = not path.exists() or path.stat().st_size == 0
    if is_new:
        _refuse_leftovers(directory, "is missing or empty")
        create_private(path)  # SQLite gives its log and index the rights of the database
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
            raise StoreError(f"{path}: the file system does not support a write-ahead log")
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


def _refuse_leftovers(directory: Path, what: str) -> None:
    """Refuse to create a store beside files that belong to one.

    :raises DamageError: when there are such files.
    """
    left = [name for name in FILES_BESIDE if (directory / name).exists()]
    if left:
        raise DamageError(
            f"{directory / DATABASE_NAME} {what}, but {' and '.join(left)} of its store"
            f" {'is' if len(left) == 1 else 'are'} there: restore the database from a backup,"
            " or remove the other files to begin with an empty store"
        )


def format_of(db: sqlite3.Connection) -> int:
    """The version of a database's format; 0 while it has no tables."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def check_version(db: sqlite3.Connection, directory: Path) -> None:
    """Refuse a database that is not ours or was written by a newer program.

    :raises StoreError: when it is one; the text has its version and the known ones.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == 0 and version == 0 and tables == 0:
        return  # made, and interrupted before its tables were
    if application != APPLICATION_ID:
        raise StoreError(f"{directory / DATABASE_NAME} is a database of another program")
    if version < OLDEST_VERSION:
        raise DamageError(f"{directory / DATABASE_NAME}: the format version {version} is damaged")
    if version > FORMAT_VERSION:
        raise StoreError(
            f"{directory} has the format version {version}, this program knows {FORMAT_VERSION}:"
            " a newer tmqp-server wrote it; nothing was changed"
        )


def prepare_database(db: sqlite3.Connection, directory: Path) -> None:
    """Create the tables of a new database, all or none."""
    check_version(db, directory)
    version = format_of(db)
    if version == OLDEST_VERSION:
        # The first releases had no such table; later ones of the same format skipped it.
        (there,) = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'marks'").fetchone()
        if not there:
            db.execute(_MARKS)
    if version:
        return
    _refuse_leftovers(directory, "has no tables")
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement in _TABLES.split(";"):
            if statement.strip():
                db.execute(statement)
        store_id = secrets.token_hex(16)
        values = {"store_id": store_id, "clean": 1, "last_key": 0, "voided": 0, "generation": 0}
        for name, value in {**values, "records": Tally().text()}.items():
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
