"""The clients of a simulated group: what they push and settle, and what they were promised.

Theory of operation.  A producer pushes *items* into two queues, one of which retains what is
settled for a while, and repeats each until it is confirmed.  A consumer takes what a server that
serves owes it, and has it settled.  Both go to any server that lets them in: there may be two of
those, one of which does not know yet that it has been replaced.

What is promised: an item that was confirmed has been received, or is owed at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from tmqp.blocks import FLAG_HIGH, FLAG_TRANSIENT, StoredMessage
from tmqp_server.storage.gathered import Sealed
from tmqp_server.storage.logged import Logged
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import (
    ANY_PRIORITY,
    DropChannel,
    DropCursor,
    DropMark,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Note,
    QueueOffsets,
    Retention,
    SettleAll,
    StoreBatch,
)
from tmqp_server.storage.stored_runs import StoredRun
from tmqp_sim.replicas.nodes import Node, Wanted
from tmqp_sim.world import Violation, World

__all__ = ["Traffic"]

_EVER: Final = 1 << 62
#: The queue of items, and the one that retains them for 3 s.
_PLAIN: Final = 1
_RETAINING: Final = 2
_TAKEN_AT_ONCE: Final = 4


class Traffic:
    """What clients do and know.

    Attributes: ``confirmed`` items, ``received`` ones, those that were ``cleared`` unseen.
    """

    def __init__(self, world: World, items: int) -> None:
        self.world = world
        self.items = items
        self.random: Random = world.child("traffic")
        self.confirmed: set[int] = set()
        self.received: set[int] = set()
        self.cleared: set[int] = set()
        self.next_item = 0
        #: Queues and sequences of transient messages, which are in no log.
        self.transient: set[tuple[int, int]] = set()

    @property
    def is_done(self) -> bool:
        """Whether every item was confirmed."""
        return len(self.confirmed) == self.items

    def next_wanted(self) -> Wanted:
        """What some client wants next."""
        chance = self.random.random()
        if chance < 0.25:
            return _Consumption(self)
        if chance < 0.4:
            return _Administration(self)
        if self.next_item < self.items and self.random.random() < 0.8:
            self.next_item += 1
            return _Push(self, [self.next_item - 1])
        open_items = [each for each in range(self.next_item) if each not in self.confirmed]
        self.random.shuffle(open_items)
        if open_items:
            return _Push(self, open_items[: self.random.randint(1, 5)])
        return _Consumption(self)

    def check(self, store: MemoryStore, writes: Iterable[Logged]) -> None:
        """Whether everything that was promised is there.

        :param writes: all that was ever in the log.
        :raises Violation: when something is missing.
        """
        for logged in writes:
            for key, messages in logged.batch.appended.items():
                again = self.transient.intersection([(key, each.sequence) for each in messages])
                if again:
                    raise Violation("sequence", f"given twice (queue, sequence): {sorted(again)}")
        found = self.received | self.cleared
        for key in (_PLAIN, _RETAINING):
            found |= {item_of(each) for each in owed(store, key, 1_000_000)}
        missing = self.confirmed - found
        if missing:
            raise Violation("lost", f"confirmed, not received and not owed: {sorted(missing)}")


def owed(store: MemoryStore, key: int, limit: int) -> list[StoredMessage]:
    """What a store owes of a queue."""
    return store.fetch(key, 0, _EVER, limit, _EVER, ANY_PRIORITY)


def item_of(message: StoredMessage) -> int:
    """The item of a message."""
    return int(message.body.split(b":")[0])


def _sequence(node: Node, key: int) -> int:
    """The last sequence that a server knows of a queue."""
    for each in node.store.memory.restarted().recover().queues:
        if each.queue.key == key:
            return each.sequence
    return 0


class _Push(Wanted):
    """Some items are pushed."""

    def __init__(self, traffic: Traffic, items: list[int]) -> None:
        self._traffic = traffic
        self._items = items
        self._transient: set[tuple[int, int]] = set()

    def make(self, node: Node) -> StoreBatch | None:
        """The batch."""
        traffic = self._traffic
        random = traffic.random
        batch = StoreBatch()
        known = {each.queue.key for each in node.store.memory.restarted().recover().queues}
        if _PLAIN not in known:
            batch.changes.append(KeepChannel("c", b"{}"))
            batch.changes.append(KeepQueue(_PLAIN, "c", 1, b"{}", Retention()))
            batch.changes.append(KeepQueue(_RETAINING, "c", 2, b"{}", Retention(0, 3_000)))
        key = random.choice((_PLAIN, _RETAINING))
        sequence = _sequence(node, key)
        messages: list[StoredMessage] = []
        for item in self._items:
            sequence += 1
            body = b"%d:" % item + b"x" * random.choice((0, 10, 400))
            flags = FLAG_HIGH if random.random() < 0.2 else 0
            messages.append(
                StoredMessage(sequence, node.now_us, 0, 0, flags, 0, 0, 0, 0, len(body), body)
            )
        self._put(batch, key, messages)
        if key == _PLAIN and random.random() < 0.2:
            sequence += 1
            spilled = StoredMessage(
                sequence, node.now_us, 0, 0, FLAG_TRANSIENT, 0, 0, 0, 0, 1, b"0:local"
            )
            batch.appended.setdefault(key, []).append(spilled)
            batch.unroll()
            self._transient.add((key, sequence))
            traffic.world.mark("a transient message")
        return batch

    def _put(self, batch: StoreBatch, key: int, messages: list[StoredMessage]) -> None:
        """Messages can come in three ways."""
        way = self._traffic.random.random()
        if way < 0.3 and len({each.flags for each in messages}) == 1:
            first = messages[0]
            batch.runs[key] = [
                StoredRun(
                    first.sequence,
                    len(messages),
                    first.timestamp_us,
                    first.flags,
                    0,
                    b"".join([each.body for each in messages]),
                    [len(each.body) for each in messages],
                    [0],
                )
            ]
        elif way < 0.5 and len(messages) > 1:
            batch.appended[key] = messages[:1]
            batch.portions.append(Sealed(key, messages[1:2]))
            if messages[2:]:
                batch.portions.append(Sealed(key, messages[2:]))
        else:
            batch.appended[key] = messages

    def done(self, node: Node) -> None:
        """They are confirmed."""
        self._traffic.confirmed.update(self._items)
        self._traffic.transient.update(self._transient)


class _Consumption(Wanted):
    """Some of what is owed is received, and then settled, or comes back."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def make(self, node: Node) -> StoreBatch | None:
        """The batch."""
        traffic = self._traffic
        batch = StoreBatch()
        for key in (_PLAIN, _RETAINING):
            some = owed(node.store.memory, key, _TAKEN_AT_ONCE)
            traffic.received.update([item_of(each) for each in some])
            settled = [each.sequence for each in some if traffic.random.random() < 0.7]
            if settled:
                batch.settled[key] = settled
            for each in some:
                if each.sequence not in settled and not each.flags & FLAG_TRANSIENT:
                    batch.notes.append(Note(key, each.sequence, each.attempts + 1, 1))
        return None if batch.is_empty() else batch

    def done(self, node: Node) -> None:
        """It is settled."""


class _Administration(Wanted):
    """Something is changed."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._cleared: list[int] = []

    def make(self, node: Node) -> StoreBatch | None:
        """The batch."""
        random = self._traffic.random
        memory = node.store.memory
        batch = StoreBatch()
        offsets: list[QueueOffsets] = memory.offsets([_PLAIN])
        if offsets[0].latest == 0:
            return None
        kind = random.randrange(8)
        if kind == 0:
            batch.changes.append(KeepRouter(f"r{random.randrange(3)}", b"%d" % random.randrange(9)))
        elif kind == 1:
            batch.changes.append(DropRouter(f"r{random.randrange(3)}"))
        elif kind == 2:
            batch.changes.append(KeepCursor("reader", _RETAINING, random.randrange(9)))
        elif kind == 3:
            batch.changes.append(DropCursor("reader", _RETAINING))
        elif kind == 4:
            batch.changes.append(KeepMark("app", random.randrange(99), node.now_us))
        elif kind == 5:
            batch.changes.append(DropMark("app"))
        elif kind == 6:
            batch.changes.append(DropChannel("none"))
        else:
            some = owed(memory, _PLAIN, _TAKEN_AT_ONCE)
            if not some:
                return None
            self._cleared = [item_of(each) for each in some]
            # Nobody is owed what an administrator had cleared, confirmed or not.
            self._traffic.cleared.update(self._cleared)
            last = some[-1].sequence
            batch.changes.append(SettleAll(_PLAIN, last, ANY_PRIORITY))
        return batch

    def done(self, node: Node) -> None:
        """It is changed."""
