"""The audit of the disk: what must be on it, told from the broker's effects alone.

Theory of operation.  The broker says what is to be kept and what is settled, and hears when a batch
is safe.  From that the audit knows at any moment what the store owes: what was appended in a batch
that succeeded, and settled in none.  At each beginning of a life the two must be equal, message by
message: nothing that was promised is missing, and nothing that was settled has come back.
"""

from __future__ import annotations

from typing import Final

from tmqp.blocks import FLAG_TRANSIENT
from tmqp_server.engine.effects import (
    Append,
    ClearStored,
    CommitBatch,
    CommitStored,
    DropStaged,
    Effect,
    Erase,
    ForgetQueue,
    StageSegment,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import ANY_PRIORITY, Recovered
from tmqp_sim.world import Violation

__all__ = ["Audit"]

#: More than any queue of the world has on disk.
_ALL: Final = 1 << 40
_AUDITED: Final = (
    Append, ClearStored, CommitBatch, CommitStored, DropStaged, Erase, ForgetQueue, StageSegment,
)  # fmt: skip


class Audit:
    """What the store must hold, by key and sequence."""

    def __init__(self) -> None:
        #: What is owed: message id, empty for transient ones, whether its priority is high, and its
        #: bytes.
        self.owed: dict[tuple[int, int], tuple[str, bool, int]] = {}
        #: A life begins: what is owed has not been compared with what there is.
        self.recovering = False
        #: Queues with messages whose bytes are not known here.
        self._unmeasured: set[int] = set()
        #: What is put aside for transactions, by number.
        self.staged: dict[int, None] = {}
        self._gathered: list[Effect] = []
        self._under_way: list[Effect] = []
        #: Settled in a batch that failed: to be settled in the next.
        self._late: list[tuple[int, int]] = []
        self._late_clears: list[ClearStored] = []
        #: Queues that are forgotten in such a batch (seed 4551).
        self._late_queues: list[ForgetQueue] = []
        self._late_drops: list[int] = []

    def see(self, effects: list[Effect]) -> None:
        """The broker has said something."""
        for effect in effects:
            if isinstance(effect, _AUDITED):
                self._gathered.append(effect)

    def taken(self) -> None:
        """What was said up to now is the batch that is written."""
        self._under_way, self._gathered = self._gathered, []

    def written(self, ok: bool) -> None:
        """The batch is there, or nothing of it."""
        batch, self._under_way = self._under_way, []
        if not ok:
            self._failed(batch)
            return
        for late in self._late:
            self.owed.pop(late, None)
        self._late.clear()
        for clear in self._late_clears:
            self._clear(clear)
        self._late_clears.clear()
        for gone in self._late_queues:
            self._forget(gone)
        self._late_queues.clear()
        drops, self._late_drops = self._late_drops, []
        self._stage(batch, drops)
        for effect in batch:
            if isinstance(effect, Append):
                uid = "" if effect.transient else effect.message.message_id
                message = effect.message
                self.owed[effect.key, effect.sequence] = (uid, message.high_priority, message.size)
                if effect.old:
                    self.owed.pop((effect.old_key, effect.old), None)
            elif isinstance(effect, CommitBatch):
                for each in effect.appended:
                    self.owed[each.key, each.sequence] = (
                        each.message.message_id,
                        each.message.high_priority,
                        each.message.size,
                    )
                for erased in effect.erased:
                    self.owed.pop((erased.key, erased.sequence), None)
            elif isinstance(effect, CommitStored):
                for part in effect.parts:
                    self._unmeasured.add(part.key)
                    for sequence in range(part.first, part.first + part.count):
                        self.owed[part.key, sequence] = ("a commit's", False, 0)
            elif isinstance(effect, Erase):
                self.owed.pop((effect.key, effect.sequence), None)
            elif isinstance(effect, ForgetQueue):
                self._forget(effect)
            elif isinstance(effect, ClearStored):
                self._clear(effect)

    def _stage(self, batch: list[Effect], drops: list[int]) -> None:
        for effect in batch:
            if isinstance(effect, StageSegment):
                self.staged[effect.number] = None
            elif isinstance(effect, DropStaged):
                drops.extend(effect.numbers)
        for number in drops:
            self.staged.pop(number, None)

    def _forget(self, effect: ForgetQueue) -> None:
        for place in [place for place in self.owed if place[0] == effect.key]:
            del self.owed[place]

    def _clear(self, effect: ClearStored) -> None:
        for place, (_, high, _size) in list(self.owed.items()):
            within = effect.first <= place[1] <= effect.last
            if place[0] == effect.key and within and high == effect.high_priority:
                del self.owed[place]

    def _failed(self, batch: list[Effect]) -> None:
        """Messages of a failed batch are void; what it settled is settled by the next."""
        for effect in batch:
            if isinstance(effect, Erase):
                if not effect.depends:
                    self._late.append((effect.key, effect.sequence))
            elif isinstance(effect, ClearStored):
                self._late_clears.append(effect)
            elif isinstance(effect, ForgetQueue):
                self._late_queues.append(effect)
            elif isinstance(effect, DropStaged):
                self._late_drops.extend(effect.numbers)

    def crashed(self, kept: bool) -> None:
        """A crash: the batch in progress is there or not, the rest is gone."""
        self.written(kept)
        self._late.clear()
        self._late_clears.clear()
        self._late_queues.clear()
        self._late_drops.clear()
        self._gathered.clear()

    def check(self, store: MemoryStore, found: Recovered) -> None:
        """Compare with what a store has found.

        :raises Violation: when they differ.
        """
        self.staged.clear()  # transactions end with the process
        self.check_staged(store)
        self.owed = {place: kept for place, kept in self.owed.items() if kept[0]}
        there: dict[tuple[int, int], None] = {}
        for queue in found.queues:
            key = queue.queue.key
            for stored in store.fetch(key, 0, _ALL, _ALL, _ALL, ANY_PRIORITY):
                if not stored.flags & FLAG_TRANSIENT:
                    there[key, stored.sequence] = None
        missing = [
            f"{kept[0]} (queue {place[0]}, sequence {place[1]})"
            for place, kept in self.owed.items()
            if place not in there
        ]
        if missing:
            raise Violation("storage", f"not on the disk any more: {', '.join(missing)}")
        risen = [str(place) for place in there if place not in self.owed]
        if risen:
            raise Violation("storage", f"settled, and on the disk again: {', '.join(risen)}")

    def check_store(self, store: MemoryStore) -> None:
        """Compare what a store holds, after a batch that it has written, with what it owes.

        :raises Violation: when they differ.
        """
        there = {(key, each) for key, queue in store._queues.items() for each in queue.owed}
        if there != self.owed.keys():
            missing, more = sorted(self.owed.keys() - there), sorted(there - self.owed.keys())
            text = f"of the places (queue, sequence) {missing} are not there, and {more} are"
            raise Violation("storage", text)

    def check_bytes(self, queues: list[Queue]) -> None:
        """Compare what queues say they have on the disk with what is there, if nothing is about to
        be written.

        :raises Violation: when they differ.
        """
        if self.recovering or self._gathered or self._under_way or self._late or self._late_clears:
            return
        there: dict[int, int] = {}
        for (key, _), (_, _, size) in self.owed.items():
            there[key] = there.get(key, 0) + size
        for queue in queues:
            size = there.get(queue.key, 0)
            if queue.disk_bytes != size and queue.key not in self._unmeasured:
                text = f"{queue!r} counts {queue.disk_bytes} bytes on the disk, not {size}"
                raise Violation("quota", text)

    def check_staged(self, store: MemoryStore) -> None:
        """Compare what is put aside with what the broker asked for.

        :raises Violation: when they differ.
        """
        there = sorted(store.staged)
        if there != sorted(self.staged):
            raise Violation("storage", f"{there} are put aside, not {sorted(self.staged)}")
