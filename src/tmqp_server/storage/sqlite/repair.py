"""Repairs a damaged data directory: creates a new store with everything that can still be read.

Theory of operation.  Nothing is repaired in place.  Every record with a correct checksum is copied
into a new store in a subdirectory, which then replaces the old one; the old files are moved into
``damaged-1`` (or the next free number).  While the files are exchanged, there is a log without a
database, and such a directory is not opened; the next repair finishes one that was interrupted
there.

Messages of which it is unknown whether they were settled are kept: they may be delivered twice.
Lost messages at the end of a queue may have used unknown sequences, so the queues continue ``_GAP``
later.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from tmqp.blocks import FLAG_TRANSIENT, StoredMessage
from tmqp.references import DATABASE_NAME
from tmqp_server.storage.port import (
    DamageError,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Retention,
    StoreBatch,
    StoreError,
    TopologyChange,
)
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.sqlite.extents import Extent, extent_of, retains
from tmqp_server.storage.sqlite.front import SqliteStore
from tmqp_server.storage.sqlite.recent import LOG_NAME, RecentLog
from tmqp_server.storage.sqlite.schema import (
    LOCK_NAME,
    DirectoryLock,
    check_version,
    digest,
    format_of,
    sync_directory,
    translated,
)
from tmqp_server.storage.sqlite.shelf import bits, noted
from tmqp_server.storage.sqlite.tally import count_records
from tmqp_server.storage.sqlite.witness import (
    WITNESS_NAME,
    Known,
    disagreements,
    read_witness,
)
from tmqp_server.storage.writes import Write, read_writes

__all__ = ["RepairReport", "repair"]

#: The subdirectory in which the new store is created.
_NEW: Final = "repaired"
#: How many sequences are skipped after the last known one.
_GAP: Final = 1_000_000
_BLOCK_ROW: Final = (
    "id, key, first, last, count, size, newest_us, present, owed, high, transient, notes, crc"
)
_QUEUE_ROW: Final = "key, channel, queue_id, options, max_bytes, max_age_ms, for_readers"
#: What SQLite raises for a damaged page or value.
_UNREADABLE: Final = (sqlite3.Error, UnicodeDecodeError, MemoryError, OverflowError)


class RepairReport:
    """The result of a repair: what was kept, what was lost, each as lines, and where the old files
    are.
    """

    __slots__ = ("given_up", "messages", "old_files", "queues")

    def __init__(self) -> None:
        self.given_up: list[str] = []
        self.messages = 0
        self.queues = 0
        self.old_files = Path()


def repair(directory: Path) -> RepairReport:
    """Replace the store of a directory with a new one that has everything that can still be read.

    :raises StoreError: when nothing can be read, the directory is in use, or a file cannot be
        written; then all old files still exist.
    """
    report = RepairReport()
    lock = DirectoryLock(directory)
    new = directory / _NEW
    try:
        with translated(directory, "repair"):
            if not _is_interrupted(directory):
                shutil.rmtree(new, ignore_errors=True)
                _rebuild(directory, new, report)
            report.old_files = _exchange(directory, new)
    finally:
        lock.release()
    return report


# --- The files -----------------------------------------------------------------------------------


def _is_interrupted(directory: Path) -> bool:
    """Whether an earlier repair was interrupted after it had created the new store."""
    return (directory / _NEW / DATABASE_NAME).exists() and not (directory / DATABASE_NAME).exists()


def _exchange(directory: Path, new: Path) -> Path:
    """Replace the old files with the new ones, and return where the old ones are."""
    number = 1
    while (directory / f"damaged-{number}").exists():
        number += 1
    old = directory / f"damaged-{number}"
    if _is_interrupted(directory):
        old = directory / f"damaged-{max(number - 1, 1)}"
    old.mkdir(mode=0o700, exist_ok=True)
    for name in (LOG_NAME, WITNESS_NAME):
        if (directory / name).exists() and not (old / name).exists():
            shutil.copy2(directory / name, old / name)
    if not (directory / LOG_NAME).exists():
        # Without a database and a log the directory would be taken for a new one.
        (new / LOG_NAME).rename(directory / LOG_NAME)
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal", f"{DATABASE_NAME}-shm"):
        if (directory / name).exists():
            (directory / name).rename(old / name)
    sync_directory(directory)
    for name in (LOG_NAME, WITNESS_NAME, DATABASE_NAME):
        if (new / name).exists():
            (new / name).rename(directory / name)
    sync_directory(directory)
    with suppress(FileNotFoundError):
        (new / LOCK_NAME).unlink()
    new.rmdir()
    return old


# --- Reading what can be read --------------------------------------------------------------------


def _rebuild(directory: Path, new: Path, report: RepairReport) -> None:
    path = directory / DATABASE_NAME
    if not path.exists():
        raise StoreError(f"{path} is missing: there is nothing to repair; restore a backup")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        check_version(db, directory)
        salvage = _Salvage(db, directory, report)
        salvage.read()
        store = SqliteStore(new, floor_bytes=0)
        try:
            store.adopt(salvage.store_id, salvage.last_key)
            store.recover()
            salvage.write(store)
        finally:
            store.close(clean=False)


class _Salvage:
    """Reads what it can of a damaged store, and writes it into a new one."""

    def __init__(self, db: sqlite3.Connection, directory: Path, report: RepairReport) -> None:
        self._db = db
        self._directory = directory
        self._lost = report.given_up
        self._report = report
        self._queues: dict[int, KeepQueue] = {}
        self._changes: list[TopologyChange] = []
        self._tops: dict[int, int] = {}
        self._extents: list[Extent] = []
        self._writes: list[Write] = []
        self.store_id = ""
        self.last_key = 0

    def read(self) -> None:
        """Read everything except the messages.

        :raises StoreError: when no channel and no queue can be read.
        """
        meta = {row[0]: row[1] for row in self._records("meta", "name, value", "name")}
        for row in self._records("channels", "name, options"):
            self._changes.append(KeepChannel(*row))
        for row in self._records("routers", "name, value"):
            self._changes.append(KeepRouter(*row))
        for key, channel, number, options, *rest in self._records("queues", _QUEUE_ROW):
            retention = Retention(rest[0], rest[1], bool(rest[2]))
            queue = KeepQueue(key, channel, number, options, retention)
            self._queues[queue.key] = queue
            self._changes.append(queue)
        if not self._changes:
            raise StoreError(
                f"nothing of {self._directory / DATABASE_NAME} can be read; restore a backup"
            )
        for row in self._records("cursors", "name, key, sequence"):
            self._changes.append(KeepCursor(*row))
        for row in self._records("marks", "name, epoch, at_us", "name"):
            self._changes.append(KeepMark(*row))
        for key, sequence in self._records("counters", "key, sequence", "key"):
            self._top(key, sequence)
        for row in self._rows("blocks", _BLOCK_ROW, "id"):
            with suppress(DamageError):  # its body is read without it
                self._extents.append(extent_of(row))
        self.store_id = str(meta.get("store_id", ""))
        keys = [*self._queues, *[extent.key for extent in self._extents]]
        self.last_key = max([int(meta.get("last_key", 0)), *keys])
        self._read_log(meta)

    def _read_log(self, meta: dict[str, Any]) -> None:
        """Read the log of recent writes, and note which files are missing."""
        is_counted = format_of(self._db) > 1
        known = Known(
            self.store_id,
            int(meta.get("carried", 0)),
            bytes.fromhex(str(meta.get("turn", ""))),
            bytes.fromhex(str(meta.get("before", ""))),
            int(meta.get("generation", 0)),
            bool(meta.get("clean", 0)),
            is_counted,
            self.last_key,
            set(self._queues),
        )
        witness = read_witness(self._directory)
        turns = {known.turn, known.before}
        if witness is not None:
            turns.add(witness.turn)
        log = RecentLog(self._directory, 0)
        self._writes, problems = read_writes(log.read(), known.number, turns - {b""})
        self._lost.extend([f"{LOG_NAME}: {problem}" for problem in problems])
        self._lost.extend(disagreements(known, self._writes, witness, log.exists()))
        if "records" in meta:
            with suppress(*_UNREADABLE):
                self._lost.extend(count_records(self._db).differences(str(meta["records"])))

    def write(self, store: SqliteStore) -> None:
        """Write everything into a new store."""
        batch = StoreBatch()
        batch.changes = self._changes
        store.write(batch, 0)
        self._report.queues = len(self._queues)
        for extent in self._extents:
            self._copy(store, extent)
        self._copy_orphans(store)
        for write in self._writes:
            self._copy_write(store, write)
        for key, sequence in self._tops.items():
            if key in self._queues:
                store.reserve(key, sequence + _GAP)
        store.write(StoreBatch(), 0)
        checked = store.check()
        if checked.problems:
            raise DamageError(f"the new store is damaged: {'; '.join(checked.problems)}")
        self._report.messages = checked.messages

    def _copy(self, store: SqliteStore, extent: Extent) -> None:
        """Copy the owed and the retained messages of a block."""
        queue = self._queues.get(extent.key)
        self._top(extent.key, extent.last)
        wanted = extent.owed & ~extent.transient
        if queue is None:
            if wanted:
                self._lost.append(
                    f"{extent.words}: the queue has no record (it may have been deleted)"
                )
            return
        if retains(queue):
            wanted = extent.present & ~extent.transient
        if not wanted:
            return
        try:
            row = self._db.execute("SELECT block FROM bodies WHERE id = ?", (extent.id,)).fetchone()
            if row is None or not isinstance(row[0], bytes):
                raise DamageError("the block is missing")
            block = decode_block(row[0])
            if (block.key, block.first, block.last) != (extent.key, extent.first, extent.last):
                raise DamageError("another block is in its place")
        except (*_UNREADABLE, DamageError) as error:
            self._lost.append(f"{extent.words}: {extent.why(error)}")
            return
        messages = [
            noted(extent, block.message(block.find(sequence)))
            for sequence in bits(extent.first, wanted)
        ]
        self._put(store, extent.key, messages, bits(extent.first, wanted & ~extent.owed))

    def _copy_orphans(self, store: SqliteStore) -> None:
        """Copy blocks whose row is lost; all their messages count as owed."""
        there = {extent.id for extent in self._extents}
        for number, data in self._rows("bodies", "id, block", "id"):
            if number in there:
                continue
            try:
                block = decode_block(data)
            except (DamageError, TypeError) as error:
                self._lost.append(f"block {number}, which has no record: {error}")
                continue
            self._top(block.key, block.last)
            what = f"messages {block.first} to {block.last} of queue {block.key}"
            if block.key not in self._queues:
                self._lost.append(f"{what}: the queue has no record (it may have been deleted)")
                continue
            messages = [
                message
                for message in block.messages()
                if not message.flags & FLAG_TRANSIENT
                and not self._is_known(block.key, message.sequence)
            ]
            if messages:
                self._lost.append(f"{what}: which of them are settled; they are all kept")
                self._put(store, block.key, messages, [])

    def _is_known(self, key: int, sequence: int) -> bool:
        return any(
            extent.key == key
            and extent.first <= sequence <= extent.last
            and extent.present >> (sequence - extent.first) & 1
            for extent in self._extents
        )

    def _copy_write(self, store: SqliteStore, write: Write) -> None:
        """Copy a write of the log."""
        batch = write.batch
        for key, messages in list(batch.appended.items()):
            self._top(key, messages[-1].sequence)
            if key not in self._queues:
                what = f"{len(messages)} messages of queue {key} in {LOG_NAME}"
                self._lost.append(f"{what}: the queue has no record")
            batch.appended[key] = [m for m in messages if not m.flags & FLAG_TRANSIENT]
        store.write(batch, write.now_us)

    def _put(
        self, store: SqliteStore, key: int, messages: list[StoredMessage], settled: list[int]
    ) -> None:
        batch = StoreBatch()
        batch.appended[key] = messages
        if settled:
            batch.settled[key] = settled
        store.write(batch, 0)

    def _top(self, key: int, sequence: int) -> None:
        self._tops[key] = max(self._tops.get(key, 0), sequence)

    def _records(self, table: str, columns: str, order: str = "id") -> Iterator[tuple[Any, ...]]:
        """The records of a table whose checksums are correct."""
        for *values, crc in self._rows(table, f"{columns}, crc", order):
            if crc == digest(*values):
                yield tuple(values)
            else:
                self._lost.append(f"a record of the table {table}: {values[0]!r}")

    def _rows(self, table: str, columns: str, order: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table from both ends, each up to the first page that cannot be read."""
        seen: set[object] = set()
        place = columns.split(", ").index(order) if order in columns.split(", ") else -1
        for direction in ("ASC", "DESC"):
            extra = "" if place >= 0 else f", {order}"
            statement = f"SELECT {columns}{extra} FROM {table} ORDER BY {order} {direction}"
            rows = self._db.cursor()
            try:
                rows.execute(statement)
                while (row := rows.fetchone()) is not None:
                    if row[place] in seen:
                        break
                    seen.add(row[place])
                    yield row if place >= 0 else row[:-1]
                if direction == "ASC":
                    return
            except _UNREADABLE as error:
                if direction == "ASC":
                    self._lost.append(f"a part of the table {table}: {error}")
