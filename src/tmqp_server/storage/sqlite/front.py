"""``SqliteStore``: the store that keeps messages in a directory and survives everything except the
loss of the disk.

Theory of operation.  A *log of recent writes* (``recent``) precedes the database (``store``).  A
write is appended to the log, one sync follows, and it is durable.  The writes that are in the log
and not in the database are also in memory, merged into one batch (``storage.pending``), without
messages that were settled meanwhile.  When the log is full or that batch is large, the batch is
*carried* into the database in one transaction, which also records the number of the last write;
then the log begins again.  So a message that is consumed soon never reaches the database, and the
others reach it in large blocks.

The recent writes of a queue are carried before anything of it is read, because only the database
can be read.  A change of topology, and a write that is too large for the log, go directly into the
database, in one transaction with the recent writes: so a batch in the log never depends on a change
that the database does not have.

*After a crash*, writes in the log that are newer than the database are carried first.  A write that
was cut off ends the log; it was not confirmed.  Each write is identified by its number, so it does
not matter whether a carrying with an unknown result took place.

*Failure.* A failed write is overwritten in the log immediately, or before the next one
(``recent``); its number is used up, so that the database can record that it is past it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tmqp.blocks import FLAG_TRANSIENT
from tmqp_server.engine.model.histograms import Histogram
from tmqp_server.storage.pending import GatheredWrites
from tmqp_server.storage.port import (
    CheckReport,
    DamageError,
    Recovered,
    StoreBatch,
    StoreError,
    StoreFullError,
)
from tmqp_server.storage.sqlite.fronts import MOST_PENDING_BYTES, Front, keys_of
from tmqp_server.storage.sqlite.recent import LOG_NAME, RecentLog
from tmqp_server.storage.sqlite.schema import explained, translated
from tmqp_server.storage.sqlite.store import CHECKPOINT_PAGES, DEFAULT_FLOOR_BYTES, BlockStore
from tmqp_server.storage.sqlite.witness import Known, Witness, disagreements, read_witness
from tmqp_server.storage.writes import TURN_SIZE, Write, encode_write, read_writes

__all__ = ["DEFAULT_LOG_BYTES", "SqliteStore"]

#: The log's size when it is full.
DEFAULT_LOG_BYTES: Final = 16 << 20


class SqliteStore(Front):
    """Keeps messages in a directory, in a SQLite database and a log before it; a ``Store``.

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
        log_bytes: int = DEFAULT_LOG_BYTES,
    ) -> None:
        super().__init__(
            BlockStore(
                directory,
                floor_bytes=floor_bytes,
                skip_damage=skip_damage,
                checkpoint_pages=checkpoint_pages,
            )
        )
        self._skip = skip_damage
        self._log = RecentLog(directory, log_bytes)
        self._witness = Witness(directory)
        self._number = 0
        self._is_known = False
        self._is_looking = False
        self._problems: list[str] = []

    @property
    def problems(self) -> list[str]:
        """The damage that was skipped."""
        return self._problems + self._database.problems

    @property
    def syncs(self) -> Histogram:
        """How long syncs of the log took."""
        return self._log.syncs

    # --- Opening and closing ---------------------------------------------------------------------

    def recover(self, *, looking: bool = False) -> Recovered:
        """Return the contents of the store.  With ``looking``, for tools, the store is not changed,
        and nothing can be written afterwards.

        :raises DamageError: when it is damaged and damage is not skipped.
        :raises StoreError: when it cannot be read.
        """
        if self._is_known:
            self._carry()
            return self._database.recover(looking=looking)
        try:
            return self._recover(looking)
        except StoreFullError as error:
            with translated(self.directory, "look at the free space of"):
                needed = self._database.room.to_open(self._pending.weight + self._log.length())
            raise StoreFullError(
                f"the disk is full: the server starts when {self.directory} has about"
                f" {(needed >> 20) + 1} MiB of free space, to move its logs into the database;"
                f" nothing is lost ({error})"
            ) from error

    def _recover(self, looking: bool) -> Recovered:
        known, writes = self._examine()
        if self._database.place().epoch and not looking:
            raise StoreError(
                f"{self.directory} belongs to a group of replicated servers, which alone may write"
                " to it"
            )
        if not looking:
            with translated(self.directory, f"make {LOG_NAME} in"):
                self._log.make()
        clean = self._database.recover(looking=looking).clean
        self._take_in(known, writes)
        self._is_looking = looking
        if looking:
            self._database.write_all(
                [self._pending.batch()], self._now_us, self._pending.tops, looking=True
            )
            self._pending = GatheredWrites()
        else:
            self._witness.begin(known.store_id)
            self._carry(always=True)
            self._is_known = True
        return self._database.found(clean)

    def _examine(self) -> tuple[Known, list[Write]]:
        """Read the state of the database and the newer writes of the log, and check that they fit
        together.

        :raises DamageError: when they do not and damage is not skipped.
        """
        known = self._database.known()
        witness = read_witness(self.directory)
        with translated(self.directory, f"read {LOG_NAME} of"):
            has_log = self._log.exists()
            data = self._log.read()
        turns = {turn for turn in (known.turn, known.before) if turn}
        writes, problems = read_writes(data, known.number, turns)
        self._problems = [f"{LOG_NAME}: {problem}" for problem in problems]
        self._problems += disagreements(known, writes, witness, has_log)
        if self._problems and not self._skip:
            raise DamageError(f"{self.directory}: {'; '.join(self._problems)}")
        return known, writes

    def _take_in(self, known: Known, writes: list[Write]) -> None:
        """Add the writes of the log that the database does not have to the recent writes."""
        self._pending = GatheredWrites()
        self._number = known.number
        for write in writes:
            self._number = write.number
            self._now_us = max(self._now_us, write.now_us)
            there = self._known(write.batch)
            self._forget_transient(write, there)
            self._pending.add(write.batch, there)
        self._log.begin(known.turn or secrets.token_bytes(TURN_SIZE))

    def _forget_transient(self, write: Write, known: dict[int, int]) -> None:
        """Drop the transient messages of an earlier process; their sequences stay used."""
        for key, messages in write.batch.appended.items():
            if key in known:
                self._pending.reserve(key, messages[-1].sequence)
            write.batch.appended[key] = [m for m in messages if not m.flags & FLAG_TRANSIENT]

    def close(self, clean: bool = False) -> None:
        """Close the store; a second call does nothing.

        :raises StoreError: when ``clean`` could not be noted; the store is closed nevertheless.
        """
        if self._is_closed:
            return
        self._is_closed = True
        done = False
        try:
            if clean and self._is_known:
                self._carry()
                self._witness.sync()
            done = True
        finally:
            self._log.close()
            self._witness.close()
            self._database.close(clean and done and self._is_known)

    # --- Writing ---------------------------------------------------------------------------------

    def write(self, batch: StoreBatch, now_us: int) -> None:
        """Make a batch durable.

        :raises StoreFullError: when there is no room; nothing of the batch is stored.
        :raises StoreError: when it fails for another reason; nothing of the batch is stored.
        """
        self._ready()
        self._now_us = max(self._now_us, now_us)
        if batch.staged:
            self._database.room.check(batch.size(), self._pending.weight)
        if batch.staged or batch.dropped:
            with self._database.aside.around(batch):
                self._write_if_any(batch, now_us)
        else:  # most: who waits for a sync waits for every call before it
            self._write_if_any(batch, now_us)

    def _write_if_any(self, batch: StoreBatch, now_us: int) -> None:
        if batch.keeps() or batch.is_empty():
            self._write(batch, now_us)

    def _write(self, batch: StoreBatch, now_us: int) -> None:
        """Write a batch to the log, or directly to the database."""
        is_small = not (batch.changes or batch.portions)
        if not is_small or batch.is_empty():
            if batch.brings():
                self._database.room.check(batch.size(), self._pending.weight)
            self._carry(batch)
            return
        known = self._known(batch)
        if any(key not in known for key in keys_of(batch)):
            # What nobody knows is not written: in the log it would count as damage.
            batch = _only(batch, known)
            if batch.is_empty():
                return
        number = self._number + 1
        data = self._encoded(number, batch, now_us)
        if batch.brings():
            self._database.room.check(len(data), self._pending.weight)
        if len(data) * 2 > self._log.size:
            self._carry(batch)
            return
        if self._pending.weight > MOST_PENDING_BYTES or not self._log.fits(len(data)):
            self._carry()
            known = self._known(batch)
            data = self._encoded(number, batch, now_us)
        try:
            self._log.append(data, number)
        except OSError as error:
            if self._log.owes:
                self._number = number  # used: what failed may be on the disk
                with suppress(OSError):
                    self._log.heal()
            raise explained(error, self.directory, "write to") from error
        self._number = number
        self._witness.testify(self._database.turn, self._database.generation, number)
        self._pending.add(batch, known)

    def testify(self) -> None:
        """Write the witness of a new copy, recovered with ``looking``, if it is undamaged."""
        if self._is_looking and not self.problems:
            known = self._database.known()
            self._witness.begin(known.store_id)
            self._witness.testify(known.turn, known.generation, self._number)
            self._witness.sync()

    def _encoded(self, number: int, batch: StoreBatch, now_us: int) -> bytes:
        try:
            return encode_write(number, self._log.turn, now_us, batch, self._database.generation)
        except (ValueError, OverflowError) as error:
            raise StoreError(f"a message cannot be kept: {error}") from error

    def adopt(self, store_id: str, last_key: int) -> None:
        """Give a new store the id of an earlier store; before :meth:`recover`.

        :param store_id: the id; if empty, the store keeps its own.
        :param last_key: the highest key of a queue in the earlier store.
        """
        self._database.adopt(store_id, last_key)

    def reserve(self, key: int, sequence: int) -> None:
        """Note that a queue's next message has a sequence after this one; written with the next
        write, for tools.
        """
        self._ready()
        self._carry()
        self._database.reserve(key, sequence)

    def _ready(self) -> None:
        """After a failed write, read everything again, and overwrite what it may have left."""
        if self._is_looking or self._is_closed:
            raise StoreError(f"{self.directory} is not open for writing")
        if not self._is_known:
            self.recover()
        self._database.ready()
        if self._log.owes:
            with translated(self.directory, "write to"):
                self._log.heal()

    def _carry(self, batch: StoreBatch | None = None, *, always: bool = False) -> None:
        """Carry all recent writes into the database, and a batch that does not go through the log.

        With ``always``, restart the log even if there are no writes, so that its turn is known.

        :raises StoreError: when it fails; then nothing has changed.
        """
        pending = self._pending
        batches = [] if pending.is_empty() else [pending.batch()]
        if batch is not None:
            batches.append(batch)
        if not batches and not always:
            return
        turn = secrets.token_bytes(TURN_SIZE)
        carried = (self._number, self._log.turn, turn)
        self._database.write_all(batches, self._now_us, pending.tops, carried)
        self._pending = GatheredWrites()
        self._log.begin(turn)
        self._witness.testify(turn, self._database.generation, self._number)

    def _before_reading(self, keys: Iterable[int]) -> None:
        if not self._is_looking:
            super()._before_reading(keys)

    def _carry_pending(self) -> None:
        self._carry()

    def check(self) -> CheckReport:
        """Read everything and compare it with its checksums; damage is reported, not raised."""
        failure = ""
        try:
            if self._is_known:
                self._carry()
            elif not self._is_looking:
                self.recover(looking=True)
        except StoreError as error:
            failure = str(error)
        report = self._database.check()
        report.problems.extend(each for each in self._problems if each not in report.problems)
        if failure and not report.problems:
            report.problems.append(failure)
        return report


def _only(batch: StoreBatch, known: dict[int, int]) -> StoreBatch:
    """The part of a batch that is about known queues."""
    made = StoreBatch()
    made.appended = {key: each for key, each in batch.appended.items() if key in known}
    made.runs = {key: each for key, each in batch.runs.items() if key in known}
    made.settled = {key: each for key, each in batch.settled.items() if key in known}
    made.notes = [note for note in batch.notes if note.key in known]
    return made
