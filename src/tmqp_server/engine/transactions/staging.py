"""The contents of a transaction by queue, and the effect of a commit on the counters of queues.

Messages are collected in segments, and the counters have no single messages: so the cost of all
work on them is proportional to the number of queues and segments.  ``transactions.py`` moves them.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.commands import MessageSet, OpenTransaction, Segment
from tmqp_server.engine.core import PendingWrite
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import OPEN, TransactionSnapshot
from tmqp_server.engine.model.tails import Tail

__all__ = [
    "MESSAGE_SET_BYTES",
    "STAGED_BYTES",
    "CommittedQueue",
    "Mark",
    "PendingCommit",
    "PendingStage",
    "Staged",
    "Transaction",
    "any_under_way",
    "gathered",
    "hold_tails",
    "release_tail",
]

#: The charge for a message set beyond its bytes, so that many tiny ones are limited.
MESSAGE_SET_BYTES: Final = 512
#: What is left in memory of a segment that the storage has staged, without its ``highs``.
STAGED_BYTES: Final = 512


class Staged:
    """The staged messages for one queue."""

    __slots__ = ("queue", "segments", "count", "high", "size", "high_size", "largest")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.segments: list[Segment] = []
        self.count = 0
        self.high = 0
        self.size = 0
        self.high_size = 0
        self.largest = 0

    def add(self, message_set: MessageSet) -> Segment:
        """Add a message set; return the segment that it is in."""
        if not self.segments or self.segments[-1].is_full() or self.segments[-1].staging:
            self.segments.append(Segment())
        segment = self.segments[-1]
        segment.add(message_set)
        self.count += message_set.count
        self.high += message_set.high
        self.size += message_set.size
        self.high_size += message_set.high_size
        self.largest = max(self.largest, message_set.largest)
        return segment

    def merge(self, other: Staged) -> None:
        """Append the contents of *other*."""
        self.segments.extend(other.segments)
        self.count += other.count
        self.high += other.high
        self.size += other.size
        self.high_size += other.high_size
        self.largest = max(self.largest, other.largest)


class Transaction:
    """One transaction.

    ``held`` is the number of bytes that count against the limits, ``memory`` that of the bytes in
    memory.  ``stagings`` are the numbers of the segments that the storage was asked to stage,
    ``under_way`` is how many of these requests it has not answered, and ``latest`` the last of
    them.
    """

    __slots__ = (
        "number",
        "application",
        "epoch",
        "part",
        "attempt",
        "timeout_s",
        "ends_at",
        "state",
        "staged",
        "count",
        "size",
        "held",
        "memory",
        "stagings",
        "under_way",
        "latest",
    )

    def __init__(self, number: int, command: OpenTransaction, timeout_s: float) -> None:
        self.number = number
        self.application: str = command.application
        self.epoch: int = command.epoch
        self.part: int | None = command.part
        self.attempt: int = command.attempt
        self.timeout_s = timeout_s
        self.ends_at = 0.0
        self.state = OPEN
        #: By the queue's key, in the order of the first push.
        self.staged: dict[int, Staged] = {}
        self.count = 0
        self.size = 0
        self.held = 0
        self.memory = 0
        self.stagings: list[int] = []
        self.under_way = 0
        self.latest: PendingStage | None = None

    def snapshot(self) -> TransactionSnapshot:
        """The snapshot for answers."""
        return TransactionSnapshot(
            self.number,
            self.application,
            self.epoch,
            self.part,
            self.attempt,
            self.state,
            self.count,
            self.size,
            self.ends_at,
        )


class PendingStage(PendingWrite):
    """A segment that is being staged by the storage, and the pushes that wait for that.

    Each push has its answer, as of its arrival.
    """

    __slots__ = ("transaction", "segment", "waiting")

    def __init__(self, transaction: Transaction, segment: Segment) -> None:
        self.transaction = transaction
        self.segment = segment
        self.waiting: list[tuple[Session, object, TransactionSnapshot]] = []

    def memory(self) -> int:
        """The memory that staging it will free, in bytes."""
        size = 0
        for message_set in self.segment.message_sets:
            size += message_set.weight + MESSAGE_SET_BYTES
        return size


class Mark:
    """The last epoch that an application committed, and when."""

    __slots__ = ("epoch", "at")

    def __init__(self, epoch: int, at: float) -> None:
        self.epoch = epoch
        self.at = at


class CommittedQueue:
    """The effect of a commit on the accounts of one queue."""

    __slots__ = (
        "queue",
        "last",
        "count",
        "high",
        "size",
        "high_size",
        "high_tail",
        "regular_tail",
    )

    def __init__(self, staged: Staged, last: int) -> None:
        self.queue = staged.queue
        self.last = last
        self.count = staged.count
        self.high = staged.high
        self.size = staged.size
        self.high_size = staged.high_size
        self.high_tail: Tail | None = None
        self.regular_tail: Tail | None = None


class PendingCommit(PendingWrite):
    """A commit that the storage has not answered yet, and the requests that wait for it."""

    __slots__ = ("application", "epoch", "at", "transactions", "entries", "waiting")

    def __init__(
        self, application: str, epoch: int, at: float, transactions: list[Transaction]
    ) -> None:
        self.application = application
        self.epoch = epoch
        self.at = at
        self.transactions = transactions
        self.entries: list[CommittedQueue] = []
        self.waiting: list[tuple[Session, object]] = []


def any_under_way(transactions: list[Transaction]) -> bool:
    """Whether the storage has yet to answer about a segment of any of them."""
    under_way = 0
    for transaction in transactions:
        under_way += transaction.under_way
    return under_way > 0


def gathered(transactions: list[Transaction]) -> dict[int, Staged]:
    """The contents of several transactions by queue, in the order of the transactions."""
    whole: dict[int, Staged] = {}
    for transaction in transactions:
        for key, staged in transaction.staged.items():
            there = whole.get(key)
            if there is None:
                there = Staged(staged.queue)
                whole[key] = there
            there.merge(staged)
    return whole


def hold_tails(flights: Flights, entry: CommittedQueue, first: int) -> None:
    """Hold the tails open for the messages of a commit, from a sequence on."""
    regular = entry.count - entry.high
    if entry.high:
        entry.high_tail = _held_tail(entry.queue, first, True)
        flights.put_on_disk(entry.queue, entry.high_tail, entry.high, entry.high_size)
    if regular:
        entry.regular_tail = _held_tail(entry.queue, first, False)
        size = entry.size - entry.high_size
        flights.put_on_disk(entry.queue, entry.regular_tail, regular, size)


def _held_tail(queue: Queue, first: int, high_priority: bool) -> Tail:
    """A priority's tail, held open for messages that come from a sequence on."""
    tail = queue.high_tail if high_priority else queue.regular_tail
    if tail is None:
        tail = Tail(first - 1, first - 1)
        queue.set_tail(high_priority, tail)
    tail.unsynced += 1
    return tail


def release_tail(flights: Flights, entry: CommittedQueue, high_priority: bool, ok: bool) -> None:
    """Release a tail that was held open: with the messages of the commit, or without."""
    tail = entry.high_tail if high_priority else entry.regular_tail
    if tail is None:
        return
    queue = entry.queue
    tail.unsynced -= 1
    there = queue.high_tail if high_priority else queue.regular_tail
    if there is not tail:
        return  # it was cleared
    if ok:
        tail.last = max(tail.last, entry.last)
    else:
        count = entry.high if high_priority else entry.count - entry.high
        size = entry.high_size if high_priority else entry.size - entry.high_size
        flights.take_from_disk(queue, tail, count, size)
        flights.unstore(queue, size)
        flights.take_back(queue, count)
    flights.close_tail(queue, tail, high_priority)
