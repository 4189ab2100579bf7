"""The commands of transactions: open, push, commit, abort, list; and earlier commits.

A transaction belongs to an *application* and to one of its *epochs*, a number that increases from
one commit to the next.  Pushes into it contain message sets, which the engine does not read.
"""

from __future__ import annotations

from typing import Final

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.options import QueueChanges
from tmqp_server.engine.records import Record

__all__ = [
    "AbortTransaction",
    "CommitTransaction",
    "ListTransactions",
    "MessageSet",
    "OpenTransaction",
    "PushTransaction",
    "RestoreMark",
    "Segment",
]


#: A segment is full when it has as much, or as many.
_SEGMENT_BYTES: Final = 1_048_576
_SEGMENT_MESSAGES: Final = 8_192


@mypyc_attr(acyclic=True)
class MessageSet(Record):
    """Messages for one queue, in the order of pushing, in their door's stored form.

    The storage returns ``data`` to the door of that name.  ``size`` is in bytes, as the door counts
    messages, and ``largest`` the size of the largest; ``high`` of the ``count`` messages have high
    priority, with ``high_size`` bytes.  ``changes`` are the options of a queue that may have to be
    created.

    ``sizes`` are those of the messages in ``data``; ``offsets`` say where in each message the
    payload begins, which extends to its end.  Both are numbers of 4 bytes in the machine's byte
    order, a single one if all are equal.  Both are empty if only the door can tell; otherwise all
    messages have the same priority.
    """

    __slots__ = (
        "door",
        "channel",
        "queue_id",
        "data",
        "count",
        "high",
        "size",
        "largest",
        "changes",
        "sizes",
        "offsets",
        "high_size",
    )

    def __init__(
        self,
        door: str,
        channel: str,
        queue_id: int,
        data: bytes,
        count: int,
        high: int,
        size: int,
        largest: int,
        changes: QueueChanges | None = None,
        sizes: bytes = b"",
        offsets: bytes = b"",
        *,
        high_size: int = 0,
    ) -> None:
        self.door = door
        self.channel = channel
        self.queue_id = queue_id
        self.data = data
        self.count = count
        self.high = high
        self.size = size
        self.largest = largest
        self.changes = changes
        self.sizes = sizes
        self.offsets = offsets
        self.high_size = size if high == count else high_size

    @property
    def weight(self) -> int:
        """The memory that it takes, in bytes."""
        return len(self.data) + len(self.sizes) + len(self.offsets)


class Segment(Record):
    """Message sets for one queue that are stored in one piece of about 1 MiB, in the order of
    pushing.

    ``staging`` is the number under which the storage was asked to stage it, 0 if it is in memory;
    when the storage has done so, ``message_sets`` is empty.  Then ``highs`` has a byte for each
    message, which says whether it has high priority; it is empty if all have the same.
    """

    __slots__ = ("message_sets", "count", "high", "size", "staging", "highs")

    def __init__(self) -> None:
        self.message_sets: list[MessageSet] = []
        self.count = 0
        self.high = 0
        self.size = 0
        self.staging = 0
        self.highs = b""

    def add(self, message_set: MessageSet) -> None:
        """Append a message set."""
        self.message_sets.append(message_set)
        self.count += message_set.count
        self.high += message_set.high
        self.size += len(message_set.data)

    def is_full(self) -> bool:
        """Whether the next message set needs a new segment."""
        return self.size >= _SEGMENT_BYTES or self.count >= _SEGMENT_MESSAGES


class OpenTransaction(SessionCommand):
    """Begin a transaction.  Answered with a TransactionSnapshot.

    An open transaction with the same ``part`` and ``attempt`` of the same epoch is aborted, because
    its opener begins again.  ``part`` is None for a transaction without such a name; ``timeout_ms``
    0 means the server's timeout.  If the epoch is committed already, the answer says so and nothing
    is opened.  400 for an invalid name, 482 for too many transactions or too long a timeout, 501
    without a storage and in a cluster.
    """

    __slots__ = ("request", "application", "epoch", "part", "attempt", "timeout_ms")

    def __init__(
        self,
        session: int,
        request: object,
        application: str,
        epoch: int,
        part: int | None = None,
        attempt: int = 0,
        timeout_ms: int = 0,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.application = application
        self.epoch = epoch
        self.part = part
        self.attempt = attempt
        self.timeout_ms = timeout_ms


class PushTransaction(SessionCommand):
    """Stage messages.  Answered with a TransactionSnapshot.

    ``problem`` is the result code if the door could not read the push.  Either all sets are staged
    or none; if none, the transaction is broken, so that it cannot be committed without them.  404
    if there is no such transaction (of that application, if one is named), 409 if it is broken or
    being committed; for a queue 401, 404, 406 or 482; 482 or 503 for too much.
    """

    __slots__ = ("request", "application", "transaction", "message_sets", "problem")

    def __init__(
        self,
        session: int,
        request: object,
        application: str,
        transaction: int,
        message_sets: list[MessageSet],
        problem: int = 0,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.application = application
        self.transaction = transaction
        self.message_sets = message_sets
        self.problem = problem


class CommitTransaction(SessionCommand):
    """Push everything staged in these transactions at once, and record the epoch with it.

    Answered with a TransactionSnapshot when everything is saved, or if the epoch was committed
    before.  ``counts`` says how many messages each must have, below 0 for unknown.  Refusals push
    nothing and leave the transactions open: 404 for a missing transaction or a removed queue; 409
    for a transaction of another application or epoch, one that is not open or has another count,
    and for two with the same number or part; 401, 406 or 482 if a queue cannot take all of its
    messages; 503 if it cannot be saved now, or if another epoch of the application is being
    committed.
    """

    __slots__ = ("request", "application", "epoch", "transactions", "counts")

    def __init__(
        self,
        session: int,
        request: object,
        application: str,
        epoch: int,
        transactions: list[int],
        counts: list[int],
    ) -> None:
        super().__init__(session)
        self.request = request
        self.application = application
        self.epoch = epoch
        self.transactions = transactions
        self.counts = counts


class AbortTransaction(SessionCommand):
    """Abort a transaction, or, if it is None, all those of an epoch of an application.

    404 if there is no such transaction, 409 if it is being committed.
    """

    __slots__ = ("request", "application", "transaction", "epoch")

    def __init__(
        self,
        session: int,
        request: object,
        application: str,
        transaction: int | None,
        epoch: int = 0,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.application = application
        self.transaction = transaction
        self.epoch = epoch


class ListTransactions(SessionCommand):
    """List the open transactions and the last committed epochs of all applications whose name
    passes a filter (F53).  Answered with a list of TransactionSnapshot."""

    __slots__ = ("request", "filter")

    def __init__(self, session: int, request: object, filter: str) -> None:
        super().__init__(session)
        self.request = request
        self.filter = filter


class RestoreMark(Command):
    """Restore an application's last committed epoch and when it was committed, in monotonic seconds
    (may be negative); oldest first."""

    __slots__ = ("application", "epoch", "at")

    def __init__(self, application: str, epoch: int, at: float) -> None:
        self.application = application
        self.epoch = epoch
        self.at = at
