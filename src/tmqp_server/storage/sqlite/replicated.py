"""``ReplicatedStore``: the store of a server in a group, whose recent writes are in a shared log.

Theory of operation.  It is like ``SqliteStore``, with a replicated log (``storage.log``) instead of
the file of recent writes.  Entries from the log are held in memory and *carried* into the database
together with the number of the last entry; so nothing needs to be synced before that, and after a
crash the log is read from there on.

As a *follower* it applies entries (:meth:`take`).  As a *leader* it writes (:meth:`write`): each
entry of a batch is appended first, by a function that returns when the log has it and raises
``LifeOverError`` if this server can never append it.  If anything fails after that point, this
server's role ends, too: the batch is in the log, and whether it is also here does not matter once
the log is read again.

Only the leader has transient messages: they are stored here, but not in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tmqp_server.storage.log import LifeOverError, LogEntry
from tmqp_server.storage.pending import GatheredWrites
from tmqp_server.storage.port import CheckReport, Recovered, StoreBatch, StoreError
from tmqp_server.storage.replicated import Keeping, ReplicatedWrites
from tmqp_server.storage.sqlite.fronts import MOST_PENDING_BYTES, Front
from tmqp_server.storage.sqlite.places import LogPlace
from tmqp_server.storage.sqlite.recent import LOG_NAME
from tmqp_server.storage.sqlite.store import CHECKPOINT_PAGES, DEFAULT_FLOOR_BYTES, BlockStore
from tmqp_server.storage.sqlite.witness import WITNESS_NAME

__all__ = ["ReplicatedStore"]


#: After this time, a leader's writes are in its database, so that the log can be trimmed.
_MOST_UNKEPT_US: Final = 5_000_000


def _ignore(_reason: str) -> None:
    """Do nothing: no caller has asked to be told."""


def _nothing() -> None:
    """Do nothing: no caller has asked to be told."""


class ReplicatedStore(Front, Keeping):
    """Keeps messages in a directory, which belongs to a group; a ``Store`` while it leads.

    The directory is created if it is missing, and locked for this process until :meth:`close`.

    :raises StoreError: when the directory is in use, cannot be used, or has other contents than a
        replicated store.
    :raises DamageError: when the store is damaged.
    """

    def __init__(
        self,
        directory: Path,
        *,
        floor_bytes: int = DEFAULT_FLOOR_BYTES,
        checkpoint_pages: int = CHECKPOINT_PAGES,
    ) -> None:
        super().__init__(
            BlockStore(directory, floor_bytes=floor_bytes, checkpoint_pages=checkpoint_pages)
        )
        self._append: Callable[[LogEntry], None] | None = None
        self._fail: Callable[[str], None] = _ignore
        self._kept: Callable[[], None] = _nothing
        self._kept_us = 0
        self._is_over = False
        try:
            found = self._database.recover()
            place = self._database.place()
            if not place.epoch and (found.last_key or found.channels or found.routers):
                raise StoreError(
                    f"{directory} has the store of a server that is not replicated; a group"
                    " begins with empty directories"
                )
        except BaseException:
            self._database.close(clean=False)
            raise
        for name in (LOG_NAME, WITNESS_NAME):
            # A copy has them from the tool that made it; they say nothing of what comes by the log,
            # and other tools would compare them with that.
            (directory / name).unlink(missing_ok=True)
        self._carried = place.number
        self.writes = ReplicatedWrites(self, place.number, place.epoch)
        self.writes.now_us = place.now_us
        self.writes.ended = place.ended or not place.epoch

    # --- Following -------------------------------------------------------------------------------

    @property
    def carried(self) -> int:
        """The last entry of the log that the database has; it is never read again."""
        return self._carried

    def take(self, entries: list[LogEntry]) -> None:
        """Take entries of the log, in order.

        :raises StoreError: when they are damaged, are of another group, or cannot be kept; then
            this server cannot continue.
        """
        self._go_on()
        try:
            self.writes.take(entries)
        except BaseException:
            self._is_over = True
            raise

    def carry(self) -> int:
        """Carry everything that was taken into the database; return the last entry that it has.

        :raises StoreError: when it fails; then nothing has changed.
        """
        self._go_on()
        if self.writes.applied != self._carried:
            self._carry()
        return self._carried

    # --- Where it is kept ------------------------------------------------------------------------

    def identity(self) -> str:
        """The id of the store."""
        return self._database.known().store_id

    def adopt(self, identity: str) -> None:
        """Take over the group's id."""
        self._database.adopt(identity, 0)

    def keep(self, batch: StoreBatch, used: dict[int, int], now_us: int) -> None:
        """Keep a batch that is in the log; the ``used`` sequences are not used again."""
        self._now_us = now_us
        if batch.changes or batch.portions:
            self._carry(batch, used)
            return
        known = self._known(batch)
        known.update(self._database.queues_of(used))
        self._pending.add(batch, known)
        for key, sequence in used.items():
            if key in known:
                self._pending.reserve(key, sequence)
        if self._pending.weight > MOST_PENDING_BYTES:
            self._carry()

    def _carry(self, batch: StoreBatch | None = None, used: dict[int, int] | None = None) -> None:
        pending = self._pending
        batches = [] if pending.is_empty() else [pending.batch()]
        if batch is not None:
            batches.append(batch)
        tops = {**pending.tops, **(used or {})}
        writes = self.writes
        place = LogPlace(writes.applied, writes.epoch, writes.now_us, writes.ended)
        self._database.write_all(batches, self._now_us, tops, place=place)
        self._carried = place.number
        self._pending = GatheredWrites()
        self._kept()

    def _carry_pending(self) -> None:
        self._carry()

    # --- Leading ---------------------------------------------------------------------------------

    def begin(self, epoch: int, node: str, address: str, now_us: int) -> LogEntry:
        """The entry with which this server begins to lead; after it is in the log, take it like any
        other.

        :raises StoreError: when the store's id cannot be read.
        """
        return self.writes.begin(epoch, node, address, now_us)

    def lead(
        self,
        append: Callable[[LogEntry], None],
        fail: Callable[[str], None] | None = None,
        kept: Callable[[], None] | None = None,
    ) -> None:
        """Begin to accept writes as the leader.

        :param append: returns when the log has an entry, and raises ``LifeOverError`` if the log
            will never have it from this server.
        :param fail: called before a ``LifeOverError`` is raised.
        :param kept: called when :attr:`carried` has increased.
        """
        self._append = append
        self._fail = _ignore if fail is None else fail
        self._kept = _nothing if kept is None else kept

    def recover(self) -> Recovered:
        """Return the contents of the store, for a server that begins to lead.

        :raises StoreError: when it cannot be read.
        """
        self._go_on()
        self._carry()
        return self._database.found(self.writes.clean)

    def write(self, batch: StoreBatch, now_us: int) -> None:
        """Append a batch to the log, and keep it.

        :raises StoreFullError: when there is no room; nothing of the batch is anywhere.
        :raises LifeOverError: when the result is unknown; then no client may be answered.
        :raises StoreError: when it fails for another reason; nothing of the batch is anywhere.
        """
        self._go_on()
        self._database.ready()
        if batch.brings():
            self._database.room.check(batch.size(), self._pending.weight)
        with self._database.aside.around(batch):
            if batch.keeps():
                self._write(batch, now_us)

    def _write(self, batch: StoreBatch, now_us: int) -> None:
        append = self._append
        assert append is not None, "only a leader writes"
        aside = self._database.aside
        with ExitStack() as loaded:
            for portion in batch.portions:
                loaded.enter_context(aside.loaded(portion))
            entries = self.writes.prepare(batch, now_us)
        try:
            for entry in entries:
                append(entry)
            self.writes.commit(batch, entries)
            if now_us - self._kept_us > _MOST_UNKEPT_US:
                self._carry()
                self._kept_us = now_us
        except BaseException as error:
            self._is_over = True
            self._fail(str(error))
            if isinstance(error, LifeOverError) or not isinstance(error, Exception):
                raise
            raise LifeOverError(f"entries of the log cannot be stored here: {error}") from error

    def close(self, clean: bool = False) -> None:
        """Close the store; a second call does nothing.

        A leader that closes its store ``clean`` first appends the ``END`` entry.

        :raises LifeOverError: when the log does not accept that entry.
        :raises StoreError: when what was taken could not be carried; the store is closed
            nevertheless.
        """
        if self._is_closed:
            return
        done = False
        try:
            if clean and not self._is_over:
                if self._append is not None:
                    entry = self.writes.end(self.writes.now_us)
                    self._append(entry)
                    self.writes.take([entry])
                self.carry()
                done = True
        finally:
            self._is_closed = True
            self._database.close(clean=done)

    def check(self) -> CheckReport:
        """Read everything and compare it with its checksums; damage is reported, not raised."""
        failure = ""
        try:
            self.carry()
        except StoreError as error:
            failure = str(error)
        report = self._database.check()
        if failure:
            report.problems.append(failure)
        return report

    def _go_on(self) -> None:
        if self._is_closed or self._is_over:
            raise StoreError(f"{self.directory} is no longer open")
