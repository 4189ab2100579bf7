"""Owns the disk: what is written is safe only after a sync, and a sync takes time and may fail.

Theory of operation.  What the broker wants saved or erased gathers in a batch.  A batch is written
at once and atomically, as a store promises: when its sync has succeeded, all of it is there and the
broker is told; when it fails, nothing of it is.  At a crash the batch under way is kept or lost as a
whole, and what had only gathered is gone.

A new life of the server begins with what is there: each message is pushed again into its queue, and
its old record is erased in the very batch that holds the new one.
"""

from __future__ import annotations

from collections.abc import Callable

from tmqp.frames import Frame
from tmqp_server.engine.effects import Append
from tmqp_sim.world import World

__all__ = ["Batch", "Disk", "DiskHabits", "Stored"]


class Stored:
    """One message as the disk has it."""

    __slots__ = ("channel", "frame", "high", "queue_id", "uid")

    def __init__(self, uid: str, channel: str, queue_id: int, high: bool, frame: Frame) -> None:
        self.uid = uid
        self.channel = channel
        self.queue_id = queue_id
        self.high = high
        self.frame = frame


class DiskHabits:
    """How a disk behaves: seconds of a sync, and failures in a thousand."""

    __slots__ = ("fails", "sync_max_s", "sync_min_s")

    def __init__(self, sync_min_s: float, sync_max_s: float, fails: int) -> None:
        self.sync_min_s = sync_min_s
        self.sync_max_s = sync_max_s
        self.fails = fails


class Batch:
    """What is written at once; ``told`` are the tickets that are to be answered, ``replaced`` the
    records of an earlier life in whose place new ones stand."""

    __slots__ = ("added", "removed", "replaced", "told")

    def __init__(self) -> None:
        self.added: dict[tuple[int, int], Stored] = {}
        self.removed: list[tuple[int, int]] = []
        self.replaced: list[tuple[int, int]] = []
        self.told: list[int] = []

    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.added or self.removed)


class Disk:
    """One disk over all lives of the server.

    :param tell: gets the tickets of a batch and whether they are safe.
    """

    def __init__(
        self, world: World, habits: DiskHabits, tell: Callable[[list[int], bool], None]
    ) -> None:
        self.world = world
        self.habits = habits
        self.full = False
        #: What survives a crash, by life and ticket.
        self.records: dict[tuple[int, int], Stored] = {}
        self._tell = tell
        self._random = world.child("disk")
        self._gathering = Batch()
        self._under_way: Batch | None = None
        self._life = 0
        self._restoring: tuple[int, int] | None = None

    # -- what the broker says -------------------------------------------------------------------

    def append(self, effect: Append) -> None:
        """Save a message."""
        message = effect.message
        frame = message.wire
        assert isinstance(frame, Frame)
        batch = self._gathering
        batch.added[(self._life, effect.ticket)] = Stored(
            message.message_id, effect.channel, effect.queue_id, message.high_priority, frame
        )
        batch.told.append(effect.ticket)
        if self._restoring is not None:
            batch.replaced.append(self._restoring)
            self._restoring = None
        self._write_soon()

    def erase(self, ticket: int) -> None:
        """A message is settled."""
        self._gathering.removed.append((self._life, ticket))
        self._write_soon()

    # -- writing --------------------------------------------------------------------------------

    def _write_soon(self) -> None:
        if self._under_way is not None or self._gathering.is_empty():
            return
        habits = self.habits
        self._under_way, self._gathering = self._gathering, Batch()
        delay = habits.sync_min_s
        delay += (habits.sync_max_s - habits.sync_min_s) * self._random.random()
        self.world.after(delay, self._synced, self._life)

    def _synced(self, life: int) -> None:
        batch = self._under_way
        if batch is None or life != self._life:
            return
        self._under_way = None
        failed = self.full or self._random.randrange(1000) < self.habits.fails
        if failed:
            self.world.mark("sync failed")
            # The records stay as they were; what was to be erased is tried again with the next.
            self._gathering.removed = batch.removed + self._gathering.removed
            if batch.told:
                self._tell(batch.told, False)
            else:
                self.world.after(0.2, self._retry, life)
                return
        else:
            self._apply(batch)
            if batch.told:
                self._tell(batch.told, True)
        self._write_soon()

    def _retry(self, life: int) -> None:
        if life == self._life:
            self._write_soon()

    def _apply(self, batch: Batch) -> None:
        self.records.update(batch.added)
        for key in batch.replaced:
            self.records.pop(key, None)
        for key in batch.removed:
            self.records.pop(key, None)

    # -- lives ----------------------------------------------------------------------------------

    def crash(self) -> None:
        """The power is gone."""
        batch = self._under_way
        if batch is not None:
            if self._random.random() < 0.5:
                self._apply(batch)
                self.world.mark("unanswered batch survived a crash")
            else:
                self.world.mark("unanswered batch lost in a crash")
        self._under_way = None
        self._gathering = Batch()

    def begin(self, life: int) -> list[tuple[tuple[int, int], Stored]]:
        """A new life begins; what is there, oldest first."""
        self._life = life
        return list(self.records.items())

    def restoring(self, key: tuple[int, int]) -> None:
        """The next message that is saved takes the place of this record."""
        self._restoring = key
