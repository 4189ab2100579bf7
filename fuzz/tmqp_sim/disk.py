"""Owns the disk: what is written is safe only after a sync, and a sync takes time and may fail.

Theory of operation.  The disk holds a store in memory behind the very port that the real ones have,
and works for it as the server's own storage task does: one batch at a time, taken from the real
journal; what arrives meanwhile is the next batch; reads go behind the batch that was gathered
before them.  A batch is there when its sync has succeeded, and only then the broker is told.  A
write that fails leaves nothing behind; its messages are refused, and what is owed to the store is
tried again after a pause.

At a crash the batch under way is there as a whole or not at all; what had only gathered is gone.
A new life begins with the real recovery, from what a store finds after its process has ended.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.commands import Command, StorageState
from tmqp_server.hub.hub import Hub, StorageQuestion
from tmqp_server.hub.recovery import answer_of, recover
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import StoreError, StoreFullError
from tmqp_sim.audit import Audit
from tmqp_sim.stage import Stage

__all__ = ["Disk", "DiskHabits"]

#: Pauses after a failed write, in seconds.
_FIRST_PAUSE_S: Final = 0.05
_LAST_PAUSE_S: Final = 1.0
#: The wall clock at the beginning, in Unix seconds.
EPOCH_S: Final = 1_700_000_000.0


class DiskHabits:
    """How a disk behaves: seconds of a sync or a read, and failures in a thousand."""

    __slots__ = ("fails", "sync_max_s", "sync_min_s")

    def __init__(self, sync_min_s: float, sync_max_s: float, fails: int) -> None:
        self.sync_min_s = sync_min_s
        self.sync_max_s = sync_max_s
        self.fails = fails


class Disk:
    """One disk over all lives of the server."""

    def __init__(self, simulation: Stage, habits: DiskHabits) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.habits = habits
        self.full = False
        #: By how much the wall clock is wrong.
        self.clock_error_s = 0.0
        self.store = MemoryStore("simulated")
        self.journal: Journal
        self.audit = Audit()
        self._random = self.world.child("disk")
        self._life = 0
        self._busy = False
        self._under_way: Writing | None = None
        self._reads: deque[StorageQuestion] = deque()
        self._pause_s = 0.0
        self._failing = False

    # -- lives ----------------------------------------------------------------------------------

    def new_journal(self, door: NativeDoor) -> Journal:
        """The journal of a life that begins."""
        self.journal = Journal([door], EPOCH_S + self.simulation.server.booted_at)
        return self.journal

    def begin(self, life: int, hub: Hub) -> None:
        """A life begins with what is there."""
        self._life = life
        self._busy = False
        self._failing = False
        self._pause_s = 0.0
        self._under_way = None
        self._reads.clear()
        if life > 1:
            self.store = self.store.restarted()
        found = recover(self.store, hub, self.journal, self.simulation.server.now)
        if self.simulation.watched:
            self.audit.check(self.store, found)
        owed = sum(queue.high_count + queue.regular_count for queue in found.queues)
        if owed:
            self.world.mark("restored from the disk")
            self.world.note("restored", owed, "messages")

    def crash(self) -> None:
        """The power is gone."""
        writing = self._under_way
        if writing is not None:
            if self._random.random() < 0.5 and not self.full:
                self._write(writing)
                self.audit.crashed(True)
                self.world.mark("unanswered batch survived a crash")
            else:
                self.world.mark("unanswered batch lost in a crash")
        self.audit.crashed(False)
        self._under_way = None
        self._life = -1

    def finish(self) -> bool:
        """The server stops in order: write what is left, close the store; False if that failed."""
        clean = not self.full
        if clean:
            if self._under_way is not None:
                self._write(self._under_way)
                self.audit.written(True)
            self.journal.notes(self.simulation.broker.notes())
            writing = self.journal.take()
            self.audit.taken()
            self._write(writing)
            self.audit.written(True)
            self.world.mark("store closed cleanly")
        else:
            self.audit.crashed(False)
        self._under_way = None
        self.store.close(clean)
        self._life = -1
        return clean

    # -- work -----------------------------------------------------------------------------------

    def wake(self) -> None:
        """The hub has something for the storage."""
        if not self._busy:
            self._work()

    def _delay(self) -> float:
        habits = self.habits
        return habits.sync_min_s + (habits.sync_max_s - habits.sync_min_s) * self._random.random()

    def _work(self) -> None:
        """One batch, or one of the reads that were asked for before it was taken."""
        hub = self.simulation.server.hub
        if not self._reads:
            self._reads.extend(hub.take_fetches())
            if not self.journal.is_empty:
                self._busy = True
                self._under_way = self.journal.take()
                self.audit.taken()
                self.world.after(self._delay(), self._written, self._life)
                return
        if self._reads:
            self._busy = True
            self.world.after(self._delay(), self._read, self._life)
            return
        self._busy = False

    def _write(self, writing: Writing) -> None:
        """What the store does, at once."""
        if not writing.batch.is_empty():
            unix_s = self.world.now + EPOCH_S + self.clock_error_s
            self.store.write(writing.batch, int(unix_s * 1_000_000))

    def _written(self, life: int) -> None:
        writing = self._under_way
        if life != self._life or writing is None:
            return
        self._under_way = None
        fails = self._random.randrange(1000) < self.habits.fails
        if self.full:
            self.store.failures.append(StoreFullError("no room"))
        elif fails:
            self.store.failures.append(StoreError("failed"))
        try:
            self._write(writing)
        except StoreError as error:
            self.audit.written(False)
            self.world.mark("sync failed")
            self.world.note("disk", str(error))
            self._failing = True
            self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LAST_PAUSE_S)
            self._answer([StorageState(False), *self._answers(writing, False)])
            self.world.after(self._pause_s, self._paused, life)
            return
        finally:
            self.store.failures.clear()
        self.audit.written(True)
        commands = self._answers(writing, True)
        if self._failing:
            self._failing = False
            commands.append(StorageState(True))
        self._pause_s = 0.0
        self._answer(commands)
        if life == self._life:
            self._work_on()

    def _work_on(self) -> None:
        if self._reads:
            self.world.after(self._delay(), self._read, self._life)
        else:
            self._work()

    def _paused(self, life: int) -> None:
        """After a failure; with nothing owed, the next message is the trial."""
        if life != self._life:
            return
        if self._failing and self.journal.is_empty:
            self._answer([StorageState(True)])
        if life == self._life:
            self._work_on()

    def _read(self, life: int) -> None:
        if life != self._life or not self._reads:
            return
        self.world.mark("read back from the disk")
        asked = self._reads.popleft()
        self._answer([answer_of(self.store, self.journal, asked, self.simulation.server.now)])
        if life == self._life:
            self._work_on()

    def _answers(self, writing: Writing, ok: bool) -> list[Command]:
        whole = self.journal.finished(writing, ok)
        return [] if whole is None else [whole]

    def _answer(self, commands: list[Command]) -> None:
        self.simulation.server.storage_answers(commands)
