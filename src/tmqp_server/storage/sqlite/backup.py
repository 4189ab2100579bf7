"""Owns the copying of a store while it is in use, in one moment's state."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from tmqp_server.storage.port import CheckReport, StoreError
from tmqp_server.storage.sqlite.schema import (
    DATABASE_NAME,
    check_version,
    prepare_directory,
    sync_directory,
    translated,
)
from tmqp_server.storage.sqlite.verify import verify

__all__ = ["back_up"]

_PAGES_AT_ONCE: Final = 1_024


def back_up(
    directory: Path, target: Path, progress: Callable[[int, int], None] | None = None
) -> CheckReport:
    """Copy the store of a directory into another, which is made; then verify the copy.

    The copy is of the moment at which copying begins, whatever a server does meanwhile.
    ``progress`` is told how many pages are done, and of how many.  The copy has its name only when
    it is complete and on the disk.

    :raises StoreError: when there is no store, when there is one in ``target`` already, or when
        reading or writing fails.
    """
    source = directory / DATABASE_NAME
    if not source.is_file():
        raise StoreError(f"there is no store in {directory}")
    prepare_directory(target)
    place = target / DATABASE_NAME
    if place.exists():
        raise StoreError(f"there is a store in {target} already")
    part = place.with_suffix(".part")
    try:
        with translated(directory, "copy"):
            part.unlink(missing_ok=True)
            _copy(source, part, progress)
        with closing(sqlite3.connect(part)) as db, translated(target, "verify"):
            report = verify(db, target)
        with translated(target, "finish the copy in"):
            _sync(part)
            part.rename(place)
            sync_directory(target)
    except BaseException:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                Path(f"{part}{suffix}").unlink(missing_ok=True)
        raise
    return report


def _copy(source: Path, part: Path, progress: Callable[[int, int], None] | None) -> None:
    def told(_status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    with (
        closing(sqlite3.connect(source, timeout=5.0, isolation_level=None)) as db,
        closing(sqlite3.connect(part, isolation_level=None)) as copy,
    ):
        check_version(db, source.parent)
        copy.execute("PRAGMA synchronous = OFF")  # synced once, at the end
        # An open transaction holds the moment; without it each write would begin the copy anew.
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM meta").fetchone()
        db.backup(copy, pages=_PAGES_AT_ONCE, progress=told)
        db.execute("ROLLBACK")
        # The copy stands alone, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
