"""The decoder of a client: what servers of the TCP protocol V2 send (N5, N14)."""

from __future__ import annotations

from typing import Final, final

from tmqp_wires.nsq.events import (
    ErrorReceived,
    Event,
    Heartbeat,
    MessageReceived,
    ResponseReceived,
    Violation,
)
from tmqp_wires.nsq.writing import FRAME_ERROR, FRAME_MESSAGE, FRAME_RESPONSE, MESSAGE_HEAD_BYTES

__all__ = ["DEFAULT_MAX_FRAME_BYTES", "FrameDecoder"]

#: The largest frame that is accepted by default; servers can be configured for larger messages.
DEFAULT_MAX_FRAME_BYTES: Final = 16_777_216
#: What the size of a message says at least: type, timestamp, attempts, id.
_LEAST_MESSAGE: Final = MESSAGE_HEAD_BYTES - 4


def _uint(data: bytes, at: int, size: int) -> int:
    value = 0
    for place in range(at, at + size):
        value = (value << 8) | data[place]
    return value


@final
class FrameDecoder:
    """Decodes the frames of one server.

    :param max_frame_bytes: the largest size of a frame.

    While ``one_by_one`` is set, :meth:`feed` reads only one frame.  The bytes after it, which may
    be encoded differently, are returned by :meth:`take_rest`.
    """

    __slots__ = ("_held", "_most", "_need", "_over", "_parts", "one_by_one")

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._most = max_frame_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._need = 0
        self._over = False
        self.one_by_one = False

    @property
    def held_bytes(self) -> int:
        """Bytes that were received and are not an event yet."""
        return self._held

    def take_rest(self) -> bytes:
        """Return the held bytes, and drop them here."""
        rest = b"".join(self._parts)
        self._parts = []
        self._held = 0
        return rest

    def feed(self, data: bytes) -> list[Event]:
        """The complete frames; nothing after a violation."""
        events: list[Event] = []
        if self._over:
            return events
        if self._held:
            self._parts.append(data)
            self._held += len(data)
            if self._held < self._need:
                return events
            data = self.take_rest()
        at = 0
        limit = len(data)
        while limit - at >= 8:
            size = _uint(data, at, 4)
            kind = _uint(data, at + 4, 4)
            problem = self._problem(size, kind)
            if problem:
                events.append(Violation(b"", problem))
                self._over = True
                return events
            after = at + 4 + size
            if after > limit:
                break
            events.append(_event(data, at, after, kind))
            at = after
            if self.one_by_one:
                break
        if at < limit:
            self._parts.append(data[at:] if at else data)
            self._held = limit - at
            self._need = 8 if self._held < 8 else 4 + _uint(data, at, 4)
        return events

    def _problem(self, size: int, kind: int) -> bytes:
        """What is wrong with a frame of this size and type; empty if it is valid."""
        if size < 4 or size > self._most:
            return b"a frame of %d bytes; 4 to %d are allowed" % (size, self._most)
        if kind == FRAME_MESSAGE:
            return b"a message of %d bytes" % size if size < _LEAST_MESSAGE else b""
        if kind == FRAME_RESPONSE or kind == FRAME_ERROR:
            return b""
        return b"a frame of the unknown type %d" % kind


def _event(data: bytes, at: int, after: int, kind: int) -> Event:
    if kind == FRAME_MESSAGE:
        timestamp_ns = _uint(data, at + 8, 8)
        if timestamp_ns >= 1 << 63:
            timestamp_ns -= 1 << 64
        attempts = (data[at + 16] << 8) | data[at + 17]
        body_at = at + MESSAGE_HEAD_BYTES
        name = data[at + 18 : body_at]
        return MessageReceived(timestamp_ns, attempts, name, data[body_at:after])
    said = data[at + 8 : after]
    if kind == FRAME_RESPONSE:
        return Heartbeat() if said == b"_heartbeat_" else ResponseReceived(said)
    code, _, text = said.partition(b" ")
    return ErrorReceived(code, text)
