"""The lines of a running case: the sent and received messages of each connection, in order.

:class:`Wire` and :class:`Stage` are the interfaces to the peer: over a socket, or in memory.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol

from tmqp.codec import FrameDecoder
from tmqp.constants import (
    ACCEPTED_PREAMBLES,
    OP_CHANNEL_INFORMATION,
    PING_BYTES,
    PONG_BYTES,
    PREAMBLE,
    SERVER_ACCEPTED,
    TYPE_PING,
    TYPE_PONG,
    TYPE_SERVER,
)
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp.testing.conformance.cases import Case
from tmqp.testing.conformance.patterns import Preamble
from tmqp.testing.conformance.steps import Fence

__all__ = ["Entry", "Kind", "Line", "Log", "Stage", "Stream", "UnreachableError", "Wire"]

_PREAMBLE_BYTES: Final = len(PREAMBLE)
_READER: Final = Limits(max_payload_bytes=268_435_456)
#: The most bytes that a log keeps of one piece.
_LOGGED_BYTES: Final = 65_536


class UnreachableError(Exception):
    """A connection could not be opened, or the client did not connect."""


class Wire(Protocol):
    """One connection to the peer."""

    @property
    def closed(self) -> bool:
        """Whether the peer has closed it, or it has failed."""

    def send(self, data: bytes) -> None:
        """Send bytes in one write; :meth:`receive` notices if the peer has closed."""

    def receive(self, wait_s: float) -> bytes:
        """Return the next bytes; empty if none arrive in this time, or the peer has closed."""

    def close(self, how: str) -> None:
        """End the connection: ``end``, ``half`` or ``abort`` (:class:`Close`)."""


class Stage(Protocol):
    """The environment of a case: it opens connections to the peer, and has the clock."""

    def open(self, line: str, case: Case) -> Wire:
        """Connect to the server; or wait until the client under test connects.

        :raises UnreachableError: if that fails.
        """

    def now(self) -> float:
        """Return seconds of any monotonic clock."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""

    def restart(self) -> None:
        """Kill the server and start it again.

        :raises UnreachableError: if it does not return, or cannot be restarted.
        """


class Kind(StrEnum):
    """The kind of an entry in a log."""

    SENT = "sent"
    RECEIVED = "received"
    NOTE = "note"


class Entry:
    """One entry of a wire log: the time (seconds since the case began), the line, and the bytes.

    ``size`` is the true number of bytes; ``data`` has only the beginning of long pieces.
    """

    __slots__ = ("at_s", "data", "kind", "line", "note", "size")

    def __init__(self, at_s: float, line: str, kind: Kind, data: bytes, note: str) -> None:
        self.at_s = at_s
        self.line = line
        self.kind = kind
        self.size = len(data)
        self.data = data[:_LOGGED_BYTES]
        self.note = note


class Log:
    """The events of one case, in order.

    :param secret: sent bytes that are masked, such as a token.
    """

    __slots__ = ("_began", "_secret", "_stage", "entries", "received_bytes")

    def __init__(self, stage: Stage, secret: bytes = b"") -> None:
        self._stage = stage
        self._secret = secret
        self._began = stage.now()
        self.entries: list[Entry] = []
        self.received_bytes = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the case began."""
        return self._stage.now() - self._began

    def add(self, line: str, kind: Kind, data: bytes = b"", note: str = "") -> None:
        """Write an entry."""
        if kind is Kind.RECEIVED:
            self.received_bytes += len(data)
        elif self._secret and self._secret in data:
            data = data.replace(self._secret, b"*" * len(self._secret))
        self.entries.append(Entry(self.elapsed_s, line, kind, data, note))


class Stream:
    """One connection of a case: the wire, and the received messages that are not examined yet
    (``seen``).

    ``accepted``: the peer serves this line, so that a fence can be sent.  ``quiet``: there is no
    fence; a moment of silence shows that nothing more arrives.  ``last``: the last message that was
    sent, if any.  ``complaint``: the description of invalid bytes from the peer.  A subclass
    interprets the bytes.
    """

    def __init__(self, name: str, wire: Wire, log: Log) -> None:
        self.name = name
        self.wire = wire
        self.seen: list[object] = []
        self.accepted = False
        self.quiet = False
        self.last: object = None
        self.complaint = ""
        self.ended = False
        self._log = log

    @property
    def fenced(self) -> bool:
        """Whether a fence was sent and its answer has not arrived."""
        raise NotImplementedError

    def put_fence(self, fence: Fence) -> None:
        """Request something whose answer arrives after everything that was sent before it."""
        raise NotImplementedError

    def take(self, data: bytes) -> None:
        """Decode received bytes into ``seen``."""
        raise NotImplementedError

    @property
    def unfinished(self) -> bool:
        """Whether the received bytes end inside a message."""
        raise NotImplementedError

    def note(self, sent: object) -> None:
        """Remember the sent bytes, if they are a message."""
        self.last = sent

    def send(self, data: bytes, sent: object = None, note: str = "") -> None:
        """Send bytes, and remember the message that they end with."""
        self._log.add(self.name, Kind.SENT, data, note)
        if sent is not None:
            self.note(sent)
        self.wire.send(data)

    def receive(self, wait_s: float) -> bool:
        """Wait this time for more bytes; return False if none arrived, or the stream has ended."""
        if self.ended:
            return False
        data = self.wire.receive(max(0.0, wait_s))
        if not data:
            if self.wire.closed:
                self.ended = True
                self._log.add(self.name, Kind.NOTE, note="the peer closed")
                if not self.complaint and self.unfinished:
                    self.complaint = "the stream ended inside a message"
            return False
        self._log.add(self.name, Kind.RECEIVED, data)
        self.take(data)
        return True

    def close(self, how: str) -> None:
        """End the connection from this side."""
        self._log.add(self.name, Kind.NOTE, note=f"this side: {how}")
        self.wire.close(how)
        if how != "half":
            self.ended = True

    def release(self) -> None:
        """Close the wire, whichever side has ended the connection."""
        if not self.ended:
            self.close("end")
        else:
            self.wire.close("end")


class Line(Stream):
    """A TMQP connection: ``accepted`` once the hello is, so that messages flow and pings are
    answered."""

    def __init__(self, name: str, wire: Wire, log: Log, *, pongs: bool) -> None:
        super().__init__(name, wire, log)
        self.fenced_by_ping = 0
        self.fence_id = ""
        self._pongs = pongs
        self._decoder = FrameDecoder(_READER)
        self._begin = b""
        self._begun = False

    @property
    def fenced(self) -> bool:
        """See :class:`Stream`."""
        return bool(self.fenced_by_ping or self.fence_id)

    @property
    def unfinished(self) -> bool:
        """See :class:`Stream`."""
        return bool(self._decoder.buffered or self._begin)

    def put_fence(self, fence: Fence) -> None:
        """See :class:`Stream`: a ping, or a request that every server answers."""
        if fence is Fence.PING:
            self.fenced_by_ping += 1
            self.send(PING_BYTES, None, "fence")
            return
        self.fence_id = f"fence-{len(self._log.entries)}"
        request = Frame.build(
            TYPE_SERVER,
            "fence",
            OP_CHANNEL_INFORMATION,
            message_id=self.fence_id,
            pending_response=True,
        )
        self.send(request.raw, None, "fence")

    def note(self, sent: object) -> None:
        """See :class:`Stream`."""
        self.last = sent
        if isinstance(sent, Frame) and _accepts(sent):
            self.accepted = True  # said by this side: it plays the server

    def take(self, data: bytes) -> None:
        """See :class:`Stream`."""
        if not self._begun:
            self._begin += data
            if len(self._begin) < _PREAMBLE_BYTES:
                return
            begin, data = self._begin[:_PREAMBLE_BYTES], self._begin[_PREAMBLE_BYTES:]
            self._begun, self._begin = True, b""
            self.seen.append(Preamble(begin))
            if begin not in ACCEPTED_PREAMBLES:
                self.complaint = f"the stream begins with {begin!r}, which is no preamble"
        if self.complaint:
            return
        for frame in self._decoder.feed(data):
            self._sort(frame)
        if self._decoder.error is not None:
            self.complaint = f"the peer sent what is not a message: {self._decoder.error}"

    def _sort(self, frame: Frame) -> None:
        """Keep a message, unless it is only for the player."""
        if frame.type == TYPE_PONG and self.fenced_by_ping:
            self.fenced_by_ping -= 1
        elif self.fence_id and frame.message_id == self.fence_id:
            self.fence_id = ""
        elif frame.type == TYPE_PING and self._pongs:
            self.send(PONG_BYTES, None, "pong")
        else:
            if _accepts(frame):
                self.accepted = True
            self.seen.append(frame)


def _accepts(frame: Frame) -> bool:
    return frame.type == TYPE_SERVER and frame.content_type == SERVER_ACCEPTED
