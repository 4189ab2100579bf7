"""Makes a consistent copy of a store while it is in use.

Theory of operation.  A read transaction holds a snapshot of the database; then the log of recent
writes is read, which has everything that was written between the snapshot and the reading.  If the
server carries its recent writes into the database in between and restarts its log, numbers are
missing, and both are read again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from tmqp.references import DATABASE_NAME
from tmqp_server.storage.port import CheckReport, StoreError
from tmqp_server.storage.sqlite.front import SqliteStore
from tmqp_server.storage.sqlite.recent import LOG_NAME, RecentLog
from tmqp_server.storage.sqlite.schema import (
    check_version,
    create_private,
    prepare_directory,
    sync_directory,
    translated,
)
from tmqp_server.storage.sqlite.topology import load_known
from tmqp_server.storage.sqlite.verify import verify
from tmqp_server.storage.sqlite.witness import WITNESS_NAME
from tmqp_server.storage.writes import ALIGNMENT, read_writes

__all__ = ["back_up"]

_PAGES_AT_ONCE: Final = 1_024
#: Where a copy is made, below its directory.
_UNFINISHED: Final = "unfinished"
#: How often database and log are read again if they do not fit together.
_ATTEMPTS: Final = 20
_PAUSE_S: Final = 0.05


def back_up(
    directory: Path, target: Path, progress: Callable[[int, int], None] | None = None
) -> CheckReport:
    """Copy the store of a directory into a new directory, and verify the copy.

    The copy has the state at which copying begins, whatever a server writes meanwhile. ``progress``
    gets the number of copied pages and the number of all pages. The copy gets its name only when it
    is complete and on disk.

    :raises StoreError: when there is no store, when there is one in ``target`` already, or when
        reading or writing fails.
    """
    source = directory / DATABASE_NAME
    if not source.is_file():
        raise StoreError(f"there is no store in {directory}")
    prepare_directory(target)
    place = target / DATABASE_NAME
    if place.exists():
        raise StoreError(f"{target} already has a store")
    part = target / _UNFINISHED
    try:
        with translated(directory, "copy"):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(mode=0o700)
            create_private(part / DATABASE_NAME)
            _copy_witness(directory, part)
            recent = _copy(source, part / DATABASE_NAME, progress)
            create_private(part / LOG_NAME)
            (part / LOG_NAME).write_bytes(recent)
        with translated(target, "verify"):
            report = _verified(part)
        with translated(target, "finish the copy in"):
            # The database is what makes a store: it gets its name last.
            for name in (LOG_NAME, WITNESS_NAME, DATABASE_NAME):
                if (part / name).exists():
                    _sync(part / name)
                    (part / name).rename(target / name)
            sync_directory(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return report


def _verified(part: Path) -> CheckReport:
    """Verify a copy; if it is too damaged to be opened, check as much of it as can be read."""
    try:
        with closing(SqliteStore(part, floor_bytes=0)) as store:
            report = store.check()
            store.testify()
            return report
    except StoreError:
        with closing(sqlite3.connect(part / DATABASE_NAME)) as db:
            return verify(db, part)


def _copy_witness(directory: Path, part: Path) -> None:
    """Copy the witness first: what is copied after it may only be newer, which is allowed."""
    with suppress(FileNotFoundError):
        said = (directory / WITNESS_NAME).read_bytes()
        create_private(part / WITNESS_NAME)
        (part / WITNESS_NAME).write_bytes(said)


def _copy(source: Path, part: Path, progress: Callable[[int, int], None] | None) -> bytes:
    """Copy the database; return the writes of the log of recent writes that it does not have."""

    def told(_status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    with (
        closing(sqlite3.connect(source, timeout=5.0, isolation_level=None)) as db,
        closing(sqlite3.connect(part, isolation_level=None)) as copy,
    ):
        check_version(db, source.parent)
        copy.execute("PRAGMA synchronous = OFF")  # synced once, at the end
        recent = _begin(db, source.parent)
        db.backup(copy, pages=_PAGES_AT_ONCE, progress=told)
        db.execute("ROLLBACK")
        # The copy stands alone, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()
    return recent


def _begin(db: sqlite3.Connection, directory: Path) -> bytes:
    """Hold a snapshot of the database, and read the log that belongs to it."""
    log = RecentLog(directory, 0)
    for _ in range(_ATTEMPTS):
        # An open transaction holds the moment; without it each write would begin the copy again.
        db.execute("BEGIN")
        known = load_known(db)
        data = log.read()
        writes, problems = read_writes(data, known.number, {known.turn, known.before})
        if not problems and log.read()[:ALIGNMENT] == data[:ALIGNMENT]:
            return data if writes else b""
        # The server has begun its log again meanwhile; or it is damaged, and stays so.
        db.execute("ROLLBACK")
        time.sleep(_PAUSE_S)
    db.execute("BEGIN")
    load_known(db)
    return log.read()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
