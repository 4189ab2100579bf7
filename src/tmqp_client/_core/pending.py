"""Requests that are not answered yet: found by message id, timed out by deadline.

Deadlines are in a heap from which answered entries are not removed one by one; they are skipped
when they come to the top, and removed together when they are the majority.  So each entry costs a
bounded amount of work, whichever way it ends.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from tmqp.errors import LocalProtocolError, TmqpError
from tmqp.frames import Frame
from tmqp_client.errors import OperationTimeout

__all__ = [
    "NO_QUEUE",
    "Kind",
    "Pending",
    "PendingTable",
    "Waiter",
    "time_limit",
    "timeout_error",
]

#: For requests that are not about one queue.
NO_QUEUE: Final = -1
#: Answered entries that may be in the heap before it is worth sweeping.
_SWEEP_ENTRIES: Final = 64
_NO_ACKNOWLEDGE: Final = (
    "; a queue acknowledges to the producer only if its delivery handler does (F77)"
)
_OFFLINE: Final = "; the connection was lost meanwhile"
_UNSENT: Final = "; there was no connection to send it on"
_PAUSED: Final = "; reading was paused because a consumer's buffer is full"


def time_limit(given: float | None, usual: float) -> float:
    """Return how many seconds to wait: the given number, or the default.

    :raises LocalProtocolError: if the given number is not positive.
    """
    if given is None:
        return usual
    if not given > 0:
        raise LocalProtocolError(f"a timeout must be a positive number of seconds, not {given!r}")
    return given


class Waiter(Protocol):
    """The code that is notified when an entry is settled."""

    def settled(self, pending: Pending) -> None:
        """Handle that ``pending`` now has its ``answer`` or its ``error``."""


class Kind:
    """What an entry waits for: plain integers, compared in a hot path."""

    OPERATION: Final = 0
    PUSH: Final = 1
    PING: Final = 2
    #: The message of a cache queue.
    CACHE: Final = 3
    #: A direct message whose acknowledgement is awaited.
    DIRECT: Final = 4
    #: A direct message whose response is awaited.
    REQUEST: Final = 5


class Pending:
    """One request whose answer is awaited.

    ``answer`` is the frame that settled it (None for a pong), ``error`` why it failed; neither is
    set before ``done``.  ``frame`` is the sent message if it may have to be sent again,
    ``attempts`` how often it was sent; ``queued`` is true while it waits to be sent.  ``repeat``
    allows sending it again, ``restoring`` marks a request of the machine itself; ``request`` is the
    :class:`Request`.  ``waiter`` belongs to the caller.
    """

    __slots__ = (
        "answer",
        "asked_at",
        "attempts",
        "deadline",
        "done",
        "error",
        "frame",
        "kind",
        "message_id",
        "queue_id",
        "queued",
        "repeat",
        "request",
        "restoring",
        "settled_at",
        "target",
        "timeout_s",
        "waiter",
        "word",
    )

    def __init__(
        self,
        kind: int,
        message_id: str,
        word: str,
        target: str,
        queue_id: int,
        now: float,
        timeout_s: float,
        request: object = None,
        frame: Frame | None = None,
    ) -> None:
        self.kind = kind
        self.message_id = message_id
        self.word = word
        self.target = target
        self.queue_id = queue_id
        self.asked_at = now
        self.timeout_s = timeout_s
        self.deadline = now + timeout_s
        self.settled_at = now
        self.request = request
        self.frame = frame
        self.attempts = 0
        self.queued = False
        self.repeat = kind == Kind.PUSH
        self.restoring = False
        self.answer: Frame | None = None
        self.error: TmqpError | None = None
        self.done = False
        self.waiter: Waiter | None = None

    @property
    def asked(self) -> str:
        """The request in words, for the text of an error."""
        if not self.target:
            return self.word
        if self.queue_id == NO_QUEUE:
            return f"{self.word} {self.target!r}"
        return f"{self.word} {self.target!r}/{self.queue_id}"

    def takes_acknowledge(self, positive: bool) -> bool:
        """Whether an acknowledgement settles it; a request only if it is negative, because
        otherwise the response is still to come."""
        kind = self.kind
        return not (kind == Kind.PING or (positive and kind == Kind.REQUEST))

    def takes_response(self, positive: bool) -> bool:
        """Whether a Response settles it; if an acknowledgement confirms it, a Response can only
        refuse it (F75, F115)."""
        kind = self.kind
        return not (kind == Kind.PING or (positive and (kind == Kind.PUSH or kind == Kind.DIRECT)))

    def __repr__(self) -> str:
        return f"<Pending {self.asked} id={self.message_id!r}>"


class PendingTable:
    """All entries that wait for an answer.

    Attributes to read: ``held_bytes``, the size of the messages that are kept because they may be
    sent again.
    """

    __slots__ = ("_by_id", "_heap", "_sequence", "held_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self._by_id: dict[str, Pending] = {}
        self._heap: list[tuple[float, int, Pending]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._by_id

    def add(self, pending: Pending) -> None:
        """Add an entry; its id must not be in use."""
        assert pending.message_id not in self._by_id, "whoever asks checks the id"
        self._by_id[pending.message_id] = pending
        if pending.frame is not None:
            self.held_bytes += len(pending.frame.raw)
        if len(self._heap) > 2 * len(self._by_id) + _SWEEP_ENTRIES:
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapify(self._heap)
        self._sequence += 1
        heappush(self._heap, (pending.deadline, self._sequence, pending))

    def get(self, message_id: str) -> Pending | None:
        """Return the entry with this id; None if none waits."""
        return self._by_id.get(message_id)

    def remove(self, pending: Pending) -> None:
        """Remove an entry: it can no longer be found or time out."""
        pending.done = True
        if self._by_id.pop(pending.message_id, None) is not None and pending.frame is not None:
            self.held_bytes -= len(pending.frame.raw)

    def next_deadline(self) -> float | None:
        """Return when the first entry times out; None if there are none."""
        heap = self._heap
        while heap and heap[0][2].done:
            heappop(heap)
        return heap[0][0] if heap else None

    def expire(self, now: float) -> list[Pending]:
        """Remove and return the entries whose deadline has passed, the earliest first."""
        expired: list[Pending] = []
        while True:
            due = self.next_deadline()
            if due is None or due > now:
                return expired
            pending = heappop(self._heap)[2]
            self.remove(pending)
            expired.append(pending)

    def in_order(self) -> list[Pending]:
        """Return all entries, in the order of their requests."""
        return list(self._by_id.values())

    def clear(self) -> list[Pending]:
        """Remove and return all entries, in the order of their requests."""
        everything = list(self._by_id.values())
        self._by_id.clear()
        self._heap.clear()
        self.held_bytes = 0
        for pending in everything:
            pending.done = True
        return everything


def timeout_error(pending: Pending, paused: bool, offline: bool = False) -> OperationTimeout:
    """Make the error of an entry that timed out; ``paused`` says that nothing was being read,
    ``offline`` that there was no connection."""
    hint = _NO_ACKNOWLEDGE if pending.kind == Kind.PUSH else ""
    if offline:
        hint = _OFFLINE if pending.attempts else _UNSENT
    elif paused:
        hint = _PAUSED
    return OperationTimeout(pending.asked, pending.message_id, pending.timeout_s, hint)
