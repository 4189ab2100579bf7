"""The line protocol of the Simple Message Queue Server (commit 9c0f968), both roles.

A line ends with a newline.  The protocol's document shows ``S``, ``C:queue`` and ``D:queue:count``
without one, because the original takes each TCP segment for a line.  So an unended ``S`` counts
when the client has been silent for :data:`SILENCE_S`, and so does an unended ``C:`` or ``D:`` that
is the first line of its connection.  Later ones need their newline, because an incomplete line must
have no effect.  A message always needs it.  Colons that follow an unended line that counted belong
to it.

Unlike in the original, TCP may divide and join lines in any way, and nothing is lost.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_wires.smq.events import Consume, Done, Event, Publish, Stats, Unknown, Violation

__all__ = [
    "DEFAULT_PORT",
    "SILENCE_S",
    "UNKNOWN_TYPE",
    "LineDecoder",
    "LineReader",
    "consume_line",
    "done_line",
    "message_line",
    "publish_line",
    "stats_line",
]

DEFAULT_PORT: Final = 2201
#: After so many seconds of silence an unended line may count.
SILENCE_S: Final = 0.1
UNKNOWN_TYPE: Final = b"UNKNOWN_TYPE\n"

_NEVER: Final = float("inf")
_STATS: Final = frozenset({b"S", b"S:", b"S::"})
_COLON: Final = b":"
_MAX_DIGITS: Final = 18


@final
class LineDecoder:
    """A server's side: decodes the bytes of a client into events.

    :param max_line_bytes: the most bytes of a line without its newline; a longer one is a
        violation.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self._most = max_line_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._is_first = True
        #: The last line was not ended, and counted.
        self._is_late = False
        self._due = _NEVER
        self._is_over = False

    @property
    def held_bytes(self) -> int:
        """Bytes of an unended line."""
        return self._held_bytes

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Read bytes; after a violation nothing more is read.  Consecutive messages to one queue
        are one event."""
        if self._is_over or not data:
            return []
        if self._is_late:
            data = data.lstrip(_COLON)
            self._is_late = not data
        events: list[Event] = []
        end = data.rfind(b"\n") + 1
        if end:
            whole = data[:end]
            if self._held_bytes:
                self._parts.append(whole)
                whole = b"".join(self._parts)
                self._clear()
            if not (self._take_row(whole, events) or self._take_lines(whole, events)):
                return self._violated(events)
        if end < len(data):
            rest = data[end:]
            self._parts.append(rest)
            self._held_bytes += len(rest)
            if self._held_bytes > self._most:
                return self._violated(events)
        self._due = now + SILENCE_S if self._may_be_whole() else _NEVER
        return events

    def _take_row(self, lines: bytes, events: list[Event]) -> bool:
        """Take lines that are all messages to one queue; else do nothing and return False."""
        if lines[:2] != b"M:":
            return False
        start = lines.find(_COLON, 2) + 1
        head = lines[:start]
        if not start or b"\n" in head:
            return False
        bodies = lines[start:-1].split(b"\n" + head)
        if len(bodies) != lines.count(b"\n") or start + max(map(len, bodies)) > self._most:
            return False
        events.append(Publish(head[2:-1], bodies))
        self._is_first = False
        return True

    def _take_lines(self, lines: bytes, events: list[Event]) -> bool:
        """Take lines one by one; False at one that is too long."""
        for line in lines[:-1].split(b"\n"):
            if len(line) > self._most:
                return False
            self._take(line, events)
        return True

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` must be called if nothing is received before; None for never."""
        return None if self._due == _NEVER else self._due

    def on_deadline(self, now: float) -> list[Event]:
        """Let an unended line count when the client has been silent."""
        if now < self._due:
            return []
        self._due = _NEVER
        self._is_late = True
        line = b"".join(self._parts)
        self._clear()
        events: list[Event] = []
        self._take(line, events)
        return events

    def forget(self) -> None:
        """Drop an unended line."""
        self._clear()
        self._due = _NEVER

    def _clear(self) -> None:
        self._parts.clear()
        self._held_bytes = 0

    def _violated(self, events: list[Event]) -> list[Event]:
        self.forget()
        self._is_over = True
        events.append(Violation(f"a line has more than {self._most} bytes"))
        return events

    def _may_be_whole(self) -> bool:
        """Whether the unended line counts after a silence."""
        if not self._held_bytes:
            return False
        if self._held_bytes <= 3 and b"".join(self._parts) in _STATS:
            return True
        # Of parts that have a byte each, two are enough.
        return self._is_first and b"".join(self._parts[:2])[:2] in (b"C:", b"D:")

    def _take(self, line: bytes, events: list[Event]) -> None:
        if line in _STATS:
            events.append(Stats())
        elif line[:2] == b"M:":
            queue, _, body = line[2:].partition(_COLON)
            last = events[-1] if events else None
            if isinstance(last, Publish) and last.queue == queue:
                last.bodies.append(body)
            else:
                events.append(Publish(queue, [body]))
        elif line[:2] == b"C:":
            events.append(Consume(line[2:].partition(_COLON)[0]))
        elif line[:2] == b"D:":
            queue, _, text = line[2:].partition(_COLON)
            count = _count(text)
            if count > 0:
                events.append(Done(queue, count))
        elif _COLON in line:
            events.append(Stats() if line[:2] == b"S:" else Unknown())
        if line:
            self._is_first = False


def _count(text: bytes) -> int:
    """Read a number of messages; 0 if it is invalid or negative."""
    text = text.strip()
    if not text.isdigit() or len(text) > _MAX_DIGITS:
        return 0
    return int(text)


def message_line(body: bytes) -> bytes:
    """The line of a message for a consumer.

    :raises ValueError: when the body has a newline, which would end the line.
    """
    if b"\n" in body:
        raise ValueError("a message has no newline")
    return body + b"\n"


@final
class LineReader:
    """A client's side: divides the bytes of a server into lines: messages, statistics,
    ``UNKNOWN_TYPE``.

    :param max_line_bytes: the most bytes of a line without its newline.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self._most = max_line_bytes
        self._rest = b""

    def receive(self, data: bytes) -> list[bytes]:
        """The complete lines, without their newlines.

        :raises ValueError: for a line that is too long.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in (*lines, self._rest):
            if len(line) > self._most:
                self._rest = b""
                raise ValueError(f"a line has more than {self._most} bytes")
        return lines


def publish_line(queue: bytes, body: bytes) -> bytes:
    """``M:queue:body``.

    :raises ValueError: when the queue's name has a colon or a newline, or the body a newline.
    """
    return b"M:%s:%s" % (_checked(queue), message_line(body))


def consume_line(queue: bytes) -> bytes:
    """``C:queue:``, as the original's client writes it.

    :raises ValueError: when the queue's name has a colon or a newline.
    """
    return b"C:%s:\n" % _checked(queue)


def done_line(queue: bytes, count: int) -> bytes:
    """``D:queue:count``.

    :raises ValueError: when the queue's name has a colon or a newline.
    """
    return b"D:%s:%d\n" % (_checked(queue), count)


def stats_line() -> bytes:
    """``S::``, as the original's client writes it."""
    return b"S::\n"


def _checked(queue: bytes) -> bytes:
    if b":" in queue or b"\n" in queue:
        raise ValueError(f"the name of a queue has no colon and no newline: {queue!r}")
    return queue
