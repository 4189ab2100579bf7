"""The output that waits for one peer: high-water and low-water mark, stall, flush and
disconnection.

Theory of operation.  Bytes are sent directly as long as none wait.  Bytes that the wire does not
accept are kept, in order, and a writer is started; nothing overtakes them.  Above the high-water
mark, the peer's deliveries are paused (``BLOCK``) until the waiting bytes are down to the low-water
mark.  If they grow beyond the hard limit nevertheless, or the peer reads nothing for the stall
time, the connection is closed: so a slow reader costs a known amount of memory and time, and does
not affect others.  Output that arrives together, before the broker knows about the pause, is
accepted: a large message is no reason to disconnect a healthy consumer.

A connection that ends has the flush time to send the rest.  If sending failed, it is still read
from for that time, because the peer's input counts.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, final

from tmqp_server.shell.rates import Flow
from tmqp_server.shell.tallies import BROKEN, BY_SERVER, SLOW_READER, STALL, DoorTally, count_one
from tmqp_server.shell.world import Wire

__all__ = [
    "BEHIND",
    "BLOCK",
    "CUT",
    "EMPTY",
    "FLUSHING",
    "KEPT",
    "LOST",
    "OPEN",
    "OVER",
    "SENT",
    "UNBLOCK",
    "Marks",
    "Outbound",
]

#: States: nothing waits; bytes wait; bytes wait and no more will come; the connection is broken and
#: only read from; the end.
OPEN: Final = 0
BEHIND: Final = 1
FLUSHING: Final = 2
LOST: Final = 3
OVER: Final = 4

#: Results of given bytes: sent or dropped; kept; kept, and now hold deliveries
#: back; too many, so end the connection.
SENT: Final = 0
KEPT: Final = 1
BLOCK: Final = 2
CUT: Final = 3

#: Results of bytes that were accepted, as bits: deliveries resume; nothing waits any more.
UNBLOCK: Final = 1
EMPTY: Final = 2

#: Small pieces are joined up to this size before they are sent.
_JOIN_BYTES: Final = 262_144


@final
class Marks:
    """The limits for a peer that reads slowly, in bytes and seconds.

    ``pause_bytes`` is how many bytes of answers may wait before the server also stops reading from
    a blocked peer: later than deliveries are paused, because a client may push for a while before
    it reads.
    """

    __slots__ = (
        "flush_timeout_s",
        "high_bytes",
        "low_bytes",
        "max_bytes",
        "pause_bytes",
        "stall_timeout_s",
    )

    def __init__(
        self,
        max_bytes: int,
        high_bytes: int,
        low_bytes: int,
        stall_timeout_s: float,
        flush_timeout_s: float,
    ) -> None:
        self.max_bytes = max_bytes
        self.high_bytes = high_bytes
        self.low_bytes = low_bytes
        self.pause_bytes = max(max_bytes // 2, high_bytes)
        self.stall_timeout_s = stall_timeout_s
        self.flush_timeout_s = flush_timeout_s


@final
class _NoWire(Wire):
    """Accepts no bytes directly, so a writer sends everything."""

    def send(self, data: bytes) -> int:
        """Accept nothing."""
        return 0


@final
class Outbound:
    """The output of one connection.

    Attributes: ``number`` of the session, ``wire``, ``host`` the peer's address, ``state``,
    ``bytes``, how many wait, ``blocked`` while deliveries are held back, ``writing`` while a writer
    is at work, ``reason``, why the connection was cut or lost, ``offset``, where in its piece the
    writer continues, ``tally``, the counters.

    :param tally: the counters of the connection's door.
    """

    def __init__(
        self, number: int, wire: Wire, host: str, marks: Marks, tally: DoorTally | None = None
    ) -> None:
        self.tally = DoorTally() if tally is None else tally
        self.tally.opened += 1
        self._closing = ""
        self.number = number
        self.wire = wire
        self.host = host
        self.state: int = OPEN
        self.bytes: int = 0
        self.offset: int = 0
        self.blocked = False
        self.writing = False
        self.reason = ""
        #: Whether the reader was told to wait; whether it is in the line for its next portion.
        self.waits = False
        self.in_line = False
        #: It sends faster than it may, and is not read from for a while; since when.  Its deadlines
        #: do not count that time: they are kept from ``excused_until`` on.
        self.throttled = False
        self.throttled_at = 0.0
        self.excused_until = 0.0
        #: The rate limits of the connection.
        self.flow: Flow | None = None
        #: Whether ``Drained`` is awaited.
        self.awaited = False
        #: The limits for this peer.
        self.marks = marks
        self._head = b""
        self._pieces: deque[bytes] | None = None
        self._progress_at = 0.0
        self._flush_by = math.inf

    # -- giving ---------------------------------------------------------------------------------

    def give(self, data: bytes, now: float) -> int:
        """Let a writer send bytes, after the waiting ones; the caller has already tried to send
        directly.

        :returns: ``SENT`` if the bytes were dropped, or ``KEPT``, ``BLOCK`` or ``CUT``.
        """
        if self.state == LOST or self.state == OVER:
            return SENT
        return self.keep(data, 0, now)

    def keep(self, data: bytes, taken: int, now: float) -> int:
        """Keep the bytes that the wire did not accept: all except the first *taken*."""
        if self.state == OPEN:
            self.state = BEHIND
            self._progress_at = now
            self._head = data
            self.offset = taken
        elif self._pieces is None:
            self._pieces = deque([data])
        else:
            self._pieces.append(data)
        self.bytes += len(data) - taken
        self.tally.sent_bytes += taken
        if self.blocked:
            # Deliveries are paused, and still more waits: answers that it has requested.
            if self.bytes <= self.marks.max_bytes:
                return KEPT
            self.count_as(SLOW_READER)
            return CUT
        if self.bytes > self.marks.high_bytes:
            self.blocked = True
            return BLOCK
        return KEPT

    def hold(self) -> None:
        """Let only a writer send from now on, because the connection changes to TLS."""
        self.wire = _NoWire()

    # -- the writer -----------------------------------------------------------------------------

    def piece(self) -> bytes:
        """Return the next bytes to write, from ``offset`` on; empty when nothing waits."""
        if self.offset < len(self._head):
            return self._head
        pieces = self._pieces
        if not pieces:
            self.writing = False
            return b""
        first = pieces.popleft()
        if pieces and len(first) < _JOIN_BYTES:
            joined = [first]
            size = len(first)
            while pieces and size + len(pieces[0]) <= _JOIN_BYTES:
                size += len(pieces[0])
                joined.append(pieces.popleft())
            first = b"".join(joined)
        self._head = first
        self.offset = 0
        return first

    def taken(self, count: int, now: float) -> int:
        """Handle that the transport has accepted *count* bytes of the piece.

        :returns: the bits ``UNBLOCK`` and ``EMPTY``.
        """
        if self.state != BEHIND and self.state != FLUSHING:
            return 0
        self.bytes -= count
        self.offset += count
        self.tally.sent_bytes += count
        self._progress_at = now
        if self.offset == len(self._head):
            self._head = b""
            self.offset = 0
        found = 0
        if self.blocked and self.bytes <= self.marks.low_bytes:
            self.blocked = False
            found = UNBLOCK
        if self.bytes == 0:
            if self.state == BEHIND:
                self.state = OPEN
            found |= EMPTY
        return found

    # -- the end --------------------------------------------------------------------------------

    def count_as(self, closing: str) -> None:
        """Note why the connection ends, for the counters; the first reason counts."""
        self._closing = self._closing or closing

    def count_end(self, violation: str) -> None:
        """Count the end of the connection: closed by its session, if nothing else was noted;
        *violation* is the rule that its peer broke, empty for none."""
        count_one(self.tally.closed, self._closing or BY_SERVER)
        if violation:
            count_one(self.tally.violations, violation)

    def unsent(self, *, goes_on: bool) -> int:
        """Return how many of the waiting bytes have certainly not left.

        :param goes_on: the rest is still to be sent, so a writer keeps its piece.
        """
        lent = self.writing and (goes_on or not self.wire.is_exact)
        return self.bytes - (len(self._head) - self.offset if lent else 0)

    def take_back(self, count: int) -> None:
        """Drop the last *count* waiting bytes."""
        self.bytes -= count
        pieces = self._pieces
        while count and pieces:
            last = pieces.pop()
            if len(last) > count:
                pieces.append(last[: len(last) - count])
                count = 0
            else:
                count -= len(last)
        if count:
            self._head = self._head[: len(self._head) - count]
        if not self.bytes and self.state == BEHIND:
            self.state = OPEN

    def finish(self, now: float) -> bool:
        """Note that no more output follows; return True if the connection can be closed at once."""
        if self.state == BEHIND:
            self.state = FLUSHING
            self._flush_by = now + self.marks.flush_timeout_s
            return False
        return self.state != FLUSHING

    def lose(self, reason: str, now: float) -> bool:
        """Handle that sending has failed; return True if the connection can be closed at once."""
        if self.state == LOST or self.state == OVER:
            return False
        self.reason = reason
        self.count_as(BROKEN)
        if self.state == FLUSHING:
            return True
        self.drop()
        self.state = LOST
        self._flush_by = now + self.marks.flush_timeout_s
        return False

    def drop(self) -> None:
        """Drop all waiting bytes, because the connection is lost."""
        self._head = b""
        self.offset = 0
        self._pieces = None
        self.bytes = 0
        self.blocked = False

    def due(self) -> float:
        """When to check for a stall or the end of the flush time; infinity for never."""
        if self.state == BEHIND:
            return self._progress_at + self.marks.stall_timeout_s
        if self.state == FLUSHING:
            return min(self._progress_at + self.marks.stall_timeout_s, self._flush_by)
        return self._flush_by if self.state == LOST else math.inf

    def late(self, now: float) -> str:
        """Return why the connection must end at this time, for the log; empty if it need not, or
        ends silently."""
        if self.state == LOST or now < self._progress_at + self.marks.stall_timeout_s:
            return ""
        self.count_as(STALL)
        return f"slow reader: no progress for {self.marks.stall_timeout_s:g} seconds"
