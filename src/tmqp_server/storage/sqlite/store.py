"""The database: messages in blocks, and all facts about them, in SQLite.

Theory of operation.  It is a complete store, into which ``SqliteStore`` (``front``) carries its
recent writes, many at a time.  A write is one transaction of a database in write-ahead mode with
full synchronisation: its pages are appended to the log, one sync follows, and it is durable.  The
new messages of each queue are one block (``storage.records``) in one row, whatever their number;
settling is a bit in the small row beside it (``extents``); tidying accompanies it (``upkeep``).

The extents of the blocks are in memory and updated by each write.  When a write fails, they are not
undone: the transaction is rolled back and, before anything else is done, everything is read again.

*A failed write never comes back.*  When a sync fails, it is unknown which part of the log is on
disk, and a sync that succeeds later need not repair it.  So nothing is ever written after such
pages: the next transaction overwrites one that was rolled back, from its first page on, and a small
one follows the failure immediately for this purpose.  The log is never trusted beyond that: when a
store is opened, all of an earlier log is first carried into the database and synced.

*Damage.*  Every row and every block has a checksum.  Damaged ones are refused with a
``DamageError`` or, if the store was opened for that, reported in ``problems`` and skipped.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tmqp.blocks import AS_BLOCKS, StoredMessage
from tmqp.references import FORMAT_VERSION
from tmqp_server.storage.port import (
    ANY_PRIORITY,
    HIGH_ONLY,
    REGULAR_ONLY,
    CheckReport,
    DamageError,
    DropCursor,
    DropQueue,
    KeepCursor,
    KeepQueue,
    QueueOffsets,
    Recovered,
    SettleAll,
    StoreBatch,
    StoredPart,
    StoreError,
    TopologyChange,
)
from tmqp_server.storage.sqlite import topology
from tmqp_server.storage.sqlite.aside import Aside
from tmqp_server.storage.sqlite.extents import INFINITY, QueueState, retains
from tmqp_server.storage.sqlite.looking import find, offsets, read, split
from tmqp_server.storage.sqlite.places import LogPlace, load_place, save_place
from tmqp_server.storage.sqlite.reads import fetch, recovered
from tmqp_server.storage.sqlite.room import Room
from tmqp_server.storage.sqlite.schema import (
    DirectoryLock,
    connect,
    explained,
    format_of,
    prepare_database,
    prepare_directory,
    translated,
)
from tmqp_server.storage.sqlite.shelf import Shelf, portions
from tmqp_server.storage.sqlite.tally import count_records
from tmqp_server.storage.sqlite.upkeep import (
    advance_floor,
    merge_some,
    replace,
    set_floor,
    shrink,
    sweep,
)
from tmqp_server.storage.sqlite.verify import verify
from tmqp_server.storage.sqlite.witness import Known

__all__ = ["CHECKPOINT_PAGES", "DEFAULT_FLOOR_BYTES", "BlockStore"]

logger = logging.getLogger(__name__)

#: Free space below which messages are refused: it is for settlements and other programs.
DEFAULT_FLOOR_BYTES: Final = 64 << 20
#: Pages of 16 KiB in the log before it is carried into the database.
CHECKPOINT_PAGES: Final = 512
#: Dead blocks deleted beside a write, in addition to twice those it brings.
_BURIED_AT_ONCE: Final = 64
#: Queues that retain by age and are examined beside each write, whether it touches them or not.
_AGED_AT_ONCE: Final = 8


class BlockStore:
    """Keeps messages in the file ``messages.sqlite3`` of a directory; a ``Store``.

    The directory is created if it is missing, and locked for this process until :meth:`close`. The
    store leaves ``floor_bytes`` of the disk free: below that, it refuses messages, and all else
    continues. With ``skip_damage``, damaged records are skipped and reported in :attr:`problems`.

    :raises StoreError: when the directory is in use, cannot be used, or has other contents.
    :raises DamageError: when the database cannot be read at all.
    """

    def __init__(
        self,
        directory: Path,
        *,
        floor_bytes: int = DEFAULT_FLOOR_BYTES,
        skip_damage: bool = False,
        checkpoint_pages: int = CHECKPOINT_PAGES,
    ) -> None:
        self.directory = directory
        self.room = Room(directory, floor_bytes)
        self._touched: dict[int, QueueState] = {}
        self._aged: dict[int, QueueState] = {}
        self._last_key = 0
        self._writes = 0
        self._is_stale = False
        self._is_old = False
        self._owes_void = False
        self._owes_checkpoint = False
        self._is_closed = False
        #: The number of the last transaction that carried recent writes, and the turn after it.
        self.generation = 0
        self.turn = b""
        prepare_directory(directory)
        self._lock = DirectoryLock(directory)
        try:
            with translated(directory, "open"):
                self._db = connect(directory, checkpoint_pages)
                try:
                    prepare_database(self._db, directory)
                except BaseException:
                    self._db.close()
                    raise
        except BaseException:
            self._lock.release()
            raise
        (self._checkpoint_pages,) = self._db.execute("PRAGMA wal_autocheckpoint").fetchone()
        self._shelf = Shelf(self._db, directory, skip_damage)
        self.aside = Aside(directory)

    @property
    def problems(self) -> list[str]:
        """The damage that was skipped."""
        return self._shelf.problems

    # --- Opening and closing ---------------------------------------------------------------------

    def recover(self, *, looking: bool = False) -> Recovered:
        """Return the contents of the store.  With ``looking``, for tools, the store is not changed.

        :raises DamageError: when it is damaged and damage is not skipped.
        :raises StoreError: when it cannot be read.
        """
        with translated(self.directory, "read"):
            self._roll_back()
            if not looking:
                self.aside.clear()
                # See the theory of operation: the log of an earlier process proves nothing.
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._load()
            clean = bool(topology.load_meta(self._db)["clean"])
            if clean and not looking:
                topology.save_meta(self._db, "clean", 0)
        return self.found(clean)

    def found(self, clean: bool) -> Recovered:
        """Return the contents of the store as known from :meth:`recover` and from later writes.

        :raises DamageError: when it is damaged and damage is not skipped.
        :raises StoreError: when it cannot be read.
        """
        with translated(self.directory, "read"):
            meta = topology.load_meta(self._db)
            return Recovered(
                str(meta["store_id"]),
                clean,
                int(meta["last_key"]),
                topology.load_channels(self._db),
                [recovered(self._shelf, state) for state in self._shelf.queues.values()],
                topology.load_routers(self._db),
                topology.load_cursors(self._db),
                topology.load_marks(self._db),
            )

    def known(self) -> Known:
        """What the database knows about the store and about the log of recent writes.

        :raises StoreError: when it cannot be read.
        """
        with translated(self.directory, "read"):
            return topology.load_known(self._db)

    def place(self) -> LogPlace:
        """The store's position in a replicated log.

        :raises StoreError: when it cannot be read.
        """
        with translated(self.directory, "read"):
            return load_place(self._db)

    def _load(self) -> None:
        """Read all tables except the bodies."""
        meta = topology.load_meta(self._db)
        shelf = self._shelf.anew(str(meta["store_id"]))
        shelf.tally = count_records(self._db)
        if "records" in meta:
            for problem in shelf.tally.differences(str(meta["records"])):
                if not shelf.skip:
                    raise DamageError(f"{self.directory}: {problem}")
                shelf.report(problem)
        self.generation = int(meta.get("generation", 0))
        self.turn = bytes.fromhex(str(meta.get("turn", "")))
        self._is_old = format_of(self._db) < FORMAT_VERSION
        self._last_key = int(meta["last_key"])
        counters = topology.load_counters(self._db)
        for queue in topology.load_queues(self._db):
            shelf.queues[queue.key] = QueueState(queue, counters.get(queue.key, 0))
        for cursor in topology.load_cursors(self._db):
            if cursor.key in shelf.queues:
                shelf.queues[cursor.key].cursors[cursor.name] = cursor.sequence
        shelf.load()
        for state in shelf.queues.values():
            advance_floor(shelf, state, None)
        queues = shelf.queues.items()
        self._aged = {key: each for key, each in queues if each.queue.retention.retain_time_ms}
        self._shelf = shelf
        self._touched = {}
        self._is_stale = False

    def close(self, clean: bool) -> None:
        """Close the store; a second call does nothing.

        :raises StoreError: when ``clean`` could not be noted; the store is closed nevertheless.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with translated(self.directory, "close"):
                try:
                    self._roll_back()
                    if clean:
                        topology.save_meta(self._db, "clean", 1)
                finally:
                    self._db.close()
        finally:
            self._lock.release()

    # --- Writing ---------------------------------------------------------------------------------

    def write(self, batch: StoreBatch, now_us: int) -> None:
        """Make a batch durable.

        :raises StoreFullError: when there is no room; nothing of the batch is stored.
        :raises StoreError: when it fails for another reason; nothing of the batch is stored.
        """
        self.ready()
        if batch.brings():
            self.room.check(batch.size())
        with self.aside.around(batch):
            self.write_all([batch], now_us)

    def write_all(
        self,
        batches: Sequence[StoreBatch],
        now_us: int,
        tops: Mapping[int, int] | None = None,
        carried: tuple[int, bytes, bytes] | None = None,
        *,
        looking: bool = False,
        place: LogPlace | None = None,
    ) -> None:
        """Store several batches, all or none, without a check of the free space.

        :param tops: the last sequences of queues, if the batches do not show them.
        :param carried: the last recent write's number, the log's turn, and its next turn.
        :param looking: store them only in memory, until :meth:`close`.
        :param place: the store's position in a replicated log afterwards.
        :raises StoreError: as :meth:`write`.
        """
        self.ready()
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for batch in batches:
                self._apply(batch)
            for key, sequence in (tops or {}).items():
                self.reserve(key, sequence)
            if self._is_old:
                topology.upgrade(self._db)
            if carried is not None:
                topology.save_meta(self._db, "carried", carried[0])
                topology.save_meta(self._db, "before", carried[1].hex())
                topology.save_meta(self._db, "turn", carried[2].hex())
                topology.save_meta(self._db, "generation", self.generation + 1)
            if place is not None:
                save_place(self._db, place)
            self._tidy(now_us)
            self._shelf.flush()
            topology.save_meta(self._db, "records", self._shelf.tally.text())
            if not looking:
                self._commit(any(batch.portions for batch in batches))
                if carried is not None:
                    self.generation += 1
                    self.turn = carried[2]
                self._is_old = False
        except (sqlite3.Error, OSError) as error:
            self._fail()
            raise explained(error, self.directory, "write to") from error
        except BaseException as error:
            self._fail()
            if isinstance(error, ValueError | OverflowError):
                raise StoreError(f"a message cannot be kept: {error}") from error
            raise

    def _commit(self, is_large: bool) -> None:
        """Commit; a large write is carried out of SQLite's log later (:meth:`catch_up`)."""
        if is_large:
            self._owes_checkpoint = True
            self._db.execute("PRAGMA wal_autocheckpoint = 0")
        try:
            self._db.execute("COMMIT")
        finally:
            if is_large:
                self._db.execute(f"PRAGMA wal_autocheckpoint = {self._checkpoint_pages}")

    def catch_up(self) -> None:
        """Carry a large write out of SQLite's log now, so that the next commit need not."""
        if self._owes_checkpoint and not self._is_stale:
            self._owes_checkpoint = False
            with suppress(sqlite3.Error):  # nobody depends on it
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def _apply(self, batch: StoreBatch) -> None:
        batch.unroll()
        for change in batch.changes:
            self._change(change)
        for key, messages in batch.appended.items():
            self._append(key, messages, batch.settled.get(key))
        for portion in batch.portions:
            with self.aside.loaded(portion):
                settled = batch.settled.get(portion.key)
                state = None if settled else self._shelf.append_runs(portion.key, portion.runs())
                if state is None:
                    self._append(portion.key, portion.messages(), settled)
                else:
                    self._touched[portion.key] = state
        for key, sequences in batch.settled.items():
            self._settle(key, sequences)
        self._shelf.take_down(batch.notes)

    def queues_of(self, keys: Iterable[int]) -> dict[int, int]:
        """The last sequences of those queues that exist; -1 for a queue that retains settled
        messages.
        """
        queues = self._shelf.queues
        return {
            key: -1 if retains(queues[key].queue) else queues[key].sequence
            for key in keys
            if key in queues
        }

    def adopt(self, store_id: str, last_key: int) -> None:
        """Take over the id of an earlier store, and the highest key of its queues."""
        with translated(self.directory, "write to"):
            if store_id:
                topology.save_meta(self._db, "store_id", store_id)
            topology.save_meta(self._db, "last_key", last_key)

    def reserve(self, key: int, sequence: int) -> None:
        """Note that a queue's next message has a sequence after this one; stored with the next
        write.
        """
        self.ready()
        state = self._shelf.queues.get(key)
        if state is not None and sequence > state.sequence:
            state.sequence = sequence
            self._touched[key] = state

    def ready(self) -> None:
        """After a failed write, read everything again, and overwrite what it may have left.

        :raises StoreError: when that fails too.
        """
        if self._is_stale:
            with translated(self.directory, "read"):
                self._roll_back()
                self._load()
        if self._owes_void:
            with translated(self.directory, "write to"):
                self._void()

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _fail(self) -> None:
        """Undo a write, so that nothing of it is found after a crash."""
        self._is_stale = True
        self._owes_void = True
        with suppress(sqlite3.Error):
            self._roll_back()
            self._void()

    def _void(self) -> None:
        """Overwrite what a failed write may have left in SQLite's log."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            topology.save_meta(self._db, "voided", self._writes)
            self._db.execute("COMMIT")
            self._owes_void = False
        except BaseException:
            with suppress(sqlite3.Error):
                self._roll_back()
            raise

    def _change(self, change: TopologyChange) -> None:
        if isinstance(change, KeepQueue):
            self._keep_queue(change)
        elif isinstance(change, DropQueue):
            self._drop_queue(change.key)
        elif isinstance(change, SettleAll):
            self._settle_all(change)
        elif isinstance(change, KeepCursor | DropCursor):
            self._move_cursor(change)
        else:
            topology.change(self._db, self._shelf.tally, change)

    def _keep_queue(self, queue: KeepQueue) -> None:
        topology.save_queue(self._db, self._shelf.tally, queue)
        if queue.key > self._last_key:
            self._last_key = queue.key
            topology.save_meta(self._db, "last_key", queue.key)
        state = self._shelf.queues.get(queue.key)
        if state is None:
            state = self._shelf.queues[queue.key] = QueueState(queue, 0)
        else:
            state.queue = queue
            if not retains(queue):
                set_floor(state, INFINITY)
                sweep(self._shelf, state)
            else:
                # The new rule may retain messages that are owed now and that the old one did not.
                set_floor(state, 0)
        self._aged.pop(queue.key, None)
        if queue.retention.retain_time_ms:
            self._aged[queue.key] = state
        self._touched[queue.key] = state

    def _drop_queue(self, key: int) -> None:
        topology.drop_queue(self._db, self._shelf.tally, key)
        state = self._shelf.queues.pop(key, None)
        self._aged.pop(key, None)
        self._touched.pop(key, None)
        if state is not None:
            for extent in state.extents:
                # Its row is left as it is: without its queue it is dead.
                self._shelf.dirty.pop(extent.id, None)
                self._shelf.suspects.pop(extent.id, None)
                self._shelf.dead.append(extent)

    def _move_cursor(self, change: KeepCursor | DropCursor) -> None:
        state = self._shelf.queues.get(change.key)
        if state is None:
            return
        if isinstance(change, KeepCursor):
            topology.save_cursor(self._db, self._shelf.tally, change)
            state.cursors[change.name] = change.sequence
            if retains(state.queue) and change.sequence < state.floor:
                # A reader that begins before the floor still gets what exists.
                set_floor(state, change.sequence + 1)
        else:
            topology.drop_cursor(self._db, self._shelf.tally, change.key, change.name)
            state.cursors.pop(change.name, None)
        self._touched[change.key] = state

    def _settle_all(self, change: SettleAll) -> None:
        state = self._shelf.queues.get(change.key)
        if state is None:
            return
        for extent in state.extents[state.begin(change.first) :]:
            if extent.first > change.last:
                break
            mask = extent.owed_of(change.priority) & extent.within(change.first, change.last)
            if mask:
                self._shelf.mark(extent, mask)
        sweep(self._shelf, state)
        self._touched[change.key] = state

    def _append(self, key: int, messages: list[StoredMessage], settled: list[int] | None) -> None:
        state = self._shelf.queues.get(key)
        if state is None or not messages:
            return
        self._touched[key] = state
        if messages[0].sequence <= state.sequence:
            replace(self._shelf, state, messages)
        state.sequence = max(state.sequence, messages[-1].sequence)
        if settled and not retains(state.queue):
            gone = set(settled)
            messages = [message for message in messages if message.sequence not in gone]
        for part in portions(state.queue.retention, messages) if messages else ():
            self._shelf.append(state, part, set())

    def _settle(self, key: int, sequences: list[int]) -> None:
        state = self._shelf.queues.get(key)
        if state is None:
            return
        self._touched[key] = state
        self._shelf.settle(state, sequences)

    def _tidy(self, now_us: int) -> None:
        """Do the maintenance of a write; see ``upkeep``."""
        shelf = self._shelf
        self._writes += 1
        for state in self._touched.values():
            advance_floor(shelf, state, now_us)
        for key in list(self._aged)[:_AGED_AT_ONCE]:
            state = self._aged.pop(key)
            self._aged[key] = state  # behind the others
            if key not in self._touched:
                self._touched[key] = state
                advance_floor(shelf, state, now_us)
        merge_some(shelf)
        for key, state in self._touched.items():
            top = state.extents[-1].last if state.extents else 0
            if state.sequence > max(top, state.stored):
                topology.save_counter(self._db, shelf.tally, key, state.sequence)
                state.stored = state.sequence
        shelf.bury(_BURIED_AT_ONCE + 2 * shelf.added)
        shelf.added = 0
        if self._writes % 16 == 0:
            shrink(shelf)
        self._touched = {}

    # --- Reading ---------------------------------------------------------------------------------

    def fetch(
        self, key: int, after: int, last: int, limit: int, max_bytes: int, priority: int
    ) -> list[StoredMessage]:
        """Return the first owed messages of a queue, ``after`` < sequence <= ``last``.

        :raises DamageError: when a stored message is damaged.
        :raises StoreError: when the store cannot be read.
        """
        assert priority in (ANY_PRIORITY, HIGH_ONLY, REGULAR_ONLY)
        self.ready()
        state = self._shelf.queues.get(key)
        if state is None or limit < 1:
            return []
        return fetch(self._shelf, state, after, last, limit, max_bytes, priority)

    def read(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, form: int = AS_BLOCKS
    ) -> list[bytes]:
        """Return the kept messages of a queue from ``first`` to ``last``, settled or not, as
        blocks.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """
        self.ready()
        state = self._shelf.queues.get(key)
        if state is None or limit < 1:
            return []
        return read(self._shelf, state, (first, last), (limit, max_bytes), form)

    def offsets(self, keys: Sequence[int]) -> list[QueueOffsets]:
        """Return the readable sequences of these queues; zeros for an unknown queue.

        :raises StoreError: when the store cannot be read.
        """
        self.ready()
        queues = self._shelf.queues
        return [offsets(self._shelf, queues.get(key)) for key in keys]

    def find(self, key: int, timestamp_us: int) -> int:
        """Return the first kept sequence of a queue that arrived at a time or later; 0 if none.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """
        self.ready()
        state = self._shelf.queues.get(key)
        return 0 if state is None else find(self._shelf, state, timestamp_us)

    def split(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, most_parts: int
    ) -> list[StoredPart]:
        """Split the kept messages of a queue from ``first`` to ``last``; raises as ``fetch``."""
        self.ready()
        state = self._shelf.queues.get(key)
        if state is None:
            return []
        return split(self._shelf, state, (first, last), (limit, max_bytes), most_parts)

    def check(self) -> CheckReport:
        """Read everything and compare it with its checksums; damage is reported, not raised."""
        return verify(self._db, self.directory)
