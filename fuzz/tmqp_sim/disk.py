"""The simulated disk: what is written is safe only after a sync; that takes time and may fail.

The disk holds a store in memory behind the very port that the real ones have, and does what the
turn wants of it, after a delay.  What it decides is how long that takes and how it ends; when to
write, to read and to try again is decided by the product's own ``Saving``.

At a crash the batch in progress is there as a whole or not at all; what had only gathered is gone.
A new life begins with the real recovery, from what a store finds after its process has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp_server.engine.commands import Command
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.recovery import answer_of, recover
from tmqp_server.shell.saving import PAUSED, Saving
from tmqp_server.shell.world import CatchUp, CloseStore, ReadBatch, WorldEffect, WriteBatch
from tmqp_server.storage.gathered import BodyCodec
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import StoreError, StoreFullError
from tmqp_sim.audit import Audit
from tmqp_sim.cursed import Cursed
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["Disk", "DiskHabits"]

#: The wall clock at the beginning, in Unix seconds.
EPOCH_S: Final = 1_700_000_000.0
#: Of the failures, one in so many is of reads.
_READS_FAIL: Final = 3
#: How many of the batches the store begins with some time after it was called.
_BEGINS_LATER: Final = 0.3
#: What rounding may cost, in seconds.
_SLACK_S: Final = 0.001


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
        #: No room: for anything, or only for messages.
        self.full = False
        self.full_for_messages = False
        self._hurries = False
        #: By how much the wall clock is wrong.
        self.clock_error_s = 0.0
        self.store = MemoryStore("simulated")
        self.journal: Journal
        self.audit = Audit()
        self._random = self.world.child("disk")
        self._life = 0
        self._work: WorldEffect | None = None
        self._wanted_at = 0.0
        self._last_failed = False
        self._read_failed = False
        #: What the batch holds, once the store has begun with it.
        self._writing: Writing | None = None
        self._begins = self.world.child("the store begins")
        #: The batch was written, or failed, and the process may not have heard of it.
        self._tried = False

    # -- lives ----------------------------------------------------------------------------------

    def new_journal(self, doors: Sequence[BodyCodec]) -> Journal:
        """The journal of a life that begins, for the messages of these doors."""
        self.journal = Journal(doors, EPOCH_S + self.simulation.server.booted_at)
        return self.journal

    def begin(self, life: int, hub: Hub) -> None:
        """A life begins with what is there."""
        self._life = life
        self._work = self._writing = None
        self._last_failed = False
        self._hurries = False
        if life > 1:
            self.store = self.store.restarted()
        self.audit.recovering = True
        found = recover(self.store, hub, self.journal, self.simulation.server.now)
        self.audit.recovering = False
        if self.simulation.watched:
            self.audit.check(self.store, found)
        owed = sum(queue.high_count + queue.regular_count for queue in found.queues)
        if owed:
            self.world.mark("restored from the disk")
            self.world.note("restored", owed, "messages")

    def crash(self) -> None:
        """The power is gone."""
        writing = self._writing
        if writing is not None and not self._tried:
            if self._random.random() < 0.5 and not self.full and not self.full_for_messages:
                self._write(writing)
                self.audit.crashed(True)
                self.world.mark("unanswered batch survived a crash")
            else:
                self.world.mark("unanswered batch lost in a crash")
        self.audit.crashed(False)
        self._work = self._writing = None
        self._life = -1

    # -- work -----------------------------------------------------------------------------------

    def do(self, work: WorldEffect) -> None:
        """What the turn wants, done after a while.

        :raises Violation: when there is something else to be done.
        """
        if self._work is not None:
            raise Violation("disk", f"{work!r} is wanted beside {self._work!r}")
        self._work = work
        self._tried = False
        self._wanted_at = self.simulation.server.now
        if self._hurries:
            self._end(self._life)
        elif isinstance(work, WriteBatch) and self._begins.random() < _BEGINS_LATER:
            later_s = self.habits.sync_max_s * self._begins.random()
            self.world.after(later_s, self._take, self._life)
        else:
            self._take(self._life)

    def _take(self, life: int) -> None:
        """The store begins."""
        if life != self._life or self._work is None:
            return
        if isinstance(self._work, WriteBatch):
            self._begin_batch()
        self.world.after(self._delay(), self._end, self._life)

    def _begin_batch(self) -> Writing:
        """What the batch holds: all that came until the store began with it."""
        writing = self._writing
        if writing is None:
            writing = self._writing = self.simulation.server.turn.take_batch()
            self.audit.taken()
        return writing

    def hurry(self) -> None:
        """The server is stopping: from now on everything is done at once."""
        self._hurries = True
        self._end(self._life)

    def _delay(self) -> float:
        habits = self.habits
        return habits.sync_min_s + (habits.sync_max_s - habits.sync_min_s) * self._random.random()

    def _end(self, life: int) -> None:
        work = self._work
        if life != self._life or work is None:
            return
        server = self.simulation.server
        if isinstance(work, WriteBatch):
            self._tried = True
            writing = self._begin_batch()
            error = self._try_to_write(writing)
            server.hear(lambda: self._tell_written(writing, error))
        elif isinstance(work, ReadBatch):
            answers, error = self._answers(work)
            server.hear(lambda: self._tell_read(answers, error))
        elif isinstance(work, CatchUp):
            self._work = None
            late = self._failure()
            server.hear(lambda: server.turn.caught_up(late, server.now))
        elif isinstance(work, CloseStore):
            self._work = None
            self._close(work.clean)
            unclean = self._failure()
            server.hear(lambda: server.turn.store_closed(unclean))

    def _failure(self) -> StoreError | None:
        """What goes wrong where nothing depends on it, as often as a write fails."""
        return StoreError("failed") if self._random.randrange(1000) < self.habits.fails else None

    def _write(self, writing: Writing) -> None:
        """What the store does, at once."""
        if not writing.batch.is_empty():
            unix_s = self.world.now + EPOCH_S + self.clock_error_s
            self.store.write(writing.batch, int(unix_s * 1_000_000))

    def _try_to_write(self, writing: Writing) -> Exception | None:
        fails = self._random.randrange(1000) < self.habits.fails
        if self.full or (self.full_for_messages and writing.batch.brings()):
            self.store.failures.append(StoreFullError("no room"))
        elif fails:
            a_bug = self._random.random() < 0.2
            failure = Cursed("a bug of the store") if a_bug else StoreError("failed")
            self.store.failures.append(failure)
        planned = bool(self.store.failures)
        try:
            self._write(writing)
        except (Cursed, StoreError) as error:
            if not planned:
                raise Violation("storage", f"cannot be written, ever: {error}") from error
            self.audit.written(False)
            self.world.mark("sync failed")
            self.world.note("disk", str(error))
            self._last_failed = True
            return error
        finally:
            self.store.failures.clear()
        self.audit.written(True)
        if self.simulation.watched:
            self.audit.check_staged(self.store)
            self.audit.check_store(self.store)
        if writing.batch.staged:
            self.world.mark("put aside for a transaction")
        self._last_failed = False
        return None

    def _tell_written(self, writing: Writing, error: Exception | None) -> None:
        turn = self.simulation.server.turn
        saving = turn.saving
        assert saving is not None, "the simulated server saves"
        failing = saving.failing
        self._work = self._writing = None
        is_late = self._check_patience(saving)
        turn.written(error, self.simulation.server.now)
        proves = is_late or _brings(writing)
        if failing and error is None and not proves and not saving.failing:
            raise Violation("disk", "it is said to save again, and no message was saved")
        self._check_rest(saving, error)

    def _check_patience(self, saving: Saving) -> bool:
        """Whether a batch took so long that the storage counted as one that fails.

        :raises Violation: when it should, and did not.
        """
        server = self.simulation.server
        late_s = server.now - self._wanted_at - saving.patience_s
        was_asleep = server.slept_at >= self._wanted_at
        if late_s > server.lateness_s + _SLACK_S and not saving.failing and not was_asleep:
            raise Violation("disk", f"a batch is {late_s:.3f} s late, and nobody was told")
        if late_s >= 0.0:
            self.world.mark("slow write taken for a failure")
        return late_s >= 0.0

    def _answers(self, work: ReadBatch) -> tuple[list[Command], StoreError | None]:
        self.world.mark("read back from the disk")
        now = self.simulation.server.now
        questions = work.questions
        likely = self.habits.fails and self._read_failed and self._random.random() < 0.3
        self._read_failed = False
        if likely or self._random.randrange(1000 * _READS_FAIL) < self.habits.fails:
            self._read_failed = True
            self.world.mark("read failed")
            # A call in a slice is made twice when this is compiled (seed 121).
            count = self._random.randrange(len(questions))
            some = questions[:count]
            answers = [answer_of(self.store, self.journal, asked, now) for asked in some]
            return answers, StoreError("cannot be read")
        return [answer_of(self.store, self.journal, asked, now) for asked in questions], None

    def _tell_read(self, answers: list[Command], error: StoreError | None) -> None:
        turn = self.simulation.server.turn
        self._work = None
        turn.read(answers, error, self.simulation.server.now)
        assert turn.saving is not None, "the simulated server saves"
        self._check_rest(turn.saving, error)

    def _check_rest(self, saving: Saving, error: Exception | None) -> None:
        if saving.state == PAUSED and error is None and not saving.failing:
            raise Violation("promptness", "the storage rests after a success")

    def _close(self, clean: bool) -> None:
        if clean and self._last_failed:
            raise Violation("disk", "it is said to be closed cleanly, and the last batch failed")
        if clean:
            self.world.mark("store closed cleanly")
        else:
            self.audit.crashed(False)
        self.store.close(clean)
        self._life = -1


def _brings(writing: Writing) -> bool:
    """Whether there are messages in a batch, staged ones too, told without the product's help."""
    batch = writing.batch
    return bool(batch.appended or batch.runs or batch.portions or batch.staged)
