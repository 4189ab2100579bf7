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
    """Messages for one queue, in the order of pushing, as their door wants them to be kept.

    ``data`` is for the storage to hand back to the door of that name; ``size`` is in bytes as the
    door counts messages, ``largest`` that of the largest one, ``high`` how many of the ``count``
    have high priority and ``high_size`` their bytes.  ``changes`` is what they say of a queue that
    may have to be created.

    ``sizes`` are those of the messages in ``data``, and ``offsets`` where in each its payload
    begins, which reaches to its end: numbers of 4 bytes in the machine's order, a single one where
    all are alike.  Both are empty where only the door can tell; where they are not, all messages
    are of one priority.
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
        """The bytes it takes."""
        return len(self.data) + len(self.sizes) + len(self.offsets)


class Segment(Record):
    """Message sets for one queue that are kept in one piece, about 1 MiB; in the order of pushing.

    ``staging`` is the number under which the storage was asked to put it aside, 0 for one that is
    in memory; ``message sets`` is empty when the storage has done so.  ``highs`` says then of each
    message, in a byte, whether it has high priority, unless all are alike.
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
        """Put a message set behind the others."""
        self.message_sets.append(message_set)
        self.count += message_set.count
        self.high += message_set.high
        self.size += len(message_set.data)

    def is_full(self) -> bool:
        """Whether the next message set begins another one."""
        return self.size >= _SEGMENT_BYTES or self.count >= _SEGMENT_MESSAGES


class OpenTransaction(SessionCommand):
    """Begin a transaction.  Answered with a TransactionSnapshot.

    One of the same ``part`` and ``attempt`` of the same epoch that is open already is given up: its
    opener begins again.  ``part`` is None for one that has no such name; ``timeout_ms`` is 0 for
    the server's own.  An epoch that is committed is answered so, and nothing is opened.  400 for
    what is no name, 482 for too many or for a timeout that is too long, 501 without a storage
    and in a cluster.
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

    ``problem`` is the result code of what the door could not read.  All sets are staged or none;
    when none are, the transaction is broken, so that it cannot be committed without them.  404 for
    no such transaction (of that application, if one is named), 409 for one that is broken or being
    committed; for a queue 401, 404, 406 or 482; 482 or 503 for too much.
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
    """Push all that these transactions hold, at once, and note the epoch with it.

    Answered with a TransactionSnapshot when all of it is safe, or when the epoch was committed
    before.  ``counts`` says how many messages each must hold, below 0 where nobody has counted.
    Refused, with nothing pushed: 404 for a transaction that is not there, or a queue that has
    gone; 409 for one that is another's, broken, doubled or of another count; 401, 406 or 482 for a
    queue that cannot take all of it; 503 when it cannot be saved now, or another epoch of the
    application is being committed.  The transactions are open still then.
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
    """Give up a transaction, or with None for it all those of an epoch of an application.

    404 for no such transaction, 409 for one that is being committed.
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
    """The transactions that are open and the last epochs committed, of all applications whose name
    passes a filter (F53).  Answered with a list of TransactionSnapshot."""

    __slots__ = ("request", "filter")

    def __init__(self, session: int, request: object, filter: str) -> None:
        super().__init__(session)
        self.request = request
        self.filter = filter


class RestoreMark(Command):
    """An application and the last epoch it committed, at a time in monotonic seconds (which may be
    negative); oldest first."""

    __slots__ = ("application", "epoch", "at")

    def __init__(self, application: str, epoch: int, at: float) -> None:
        self.application = application
        self.epoch = epoch
        self.at = at
