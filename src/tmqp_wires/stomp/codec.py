"""Decodes the bytes of a STOMP peer into frames.

A frame is decoded only as a whole: however TCP divides the stream, the frames are the same.  Line
feeds between frames are heart-beats.  A line ends with a line feed, and a carriage return before it
is part of that, in every version.  A body extends as far as ``content-length`` says, and without it
to the first NUL.

:class:`FrameLimits` limits the buffered bytes of an incomplete frame.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from tmqp_wires.stomp.frames import (
    UNESCAPED,
    V1_0,
    V1_2,
    FrameLimits,
    StompFrame,
    Violation,
    read_header_lines,
)

__all__ = ["OF_CLIENTS", "OF_SERVERS", "Event", "FrameDecoder"]

Event: TypeAlias = StompFrame | Violation

#: What clients send, and what servers send.
OF_CLIENTS: Final = frozenset(
    {
        "CONNECT",
        "STOMP",
        "SEND",
        "SUBSCRIBE",
        "UNSUBSCRIBE",
        "ACK",
        "NACK",
        "BEGIN",
        "COMMIT",
        "ABORT",
        "DISCONNECT",
    }
)
OF_SERVERS: Final = frozenset({"CONNECTED", "MESSAGE", "RECEIPT", "ERROR"})

_LONGEST_COMMAND: Final = 16
_MOST_DIGITS: Final = 18
_FEED: Final = 10
_RETURN: Final = 13
_CONNECTS: Final = frozenset({"CONNECT", "STOMP"})


@final
class FrameDecoder:
    """Decodes the frames of the other side.

    :param commands: the commands that the other side may send.

    Attributes: ``version``, that of the headers; set it when it is negotiated.
    """

    def __init__(self, limits: FrameLimits, commands: frozenset[str] = OF_CLIENTS) -> None:
        self.version = V1_0
        self._limits = limits
        self._commands = commands
        self._buffer = bytearray()
        #: No end of the head, or of the body, begins before this place.
        self._searched = 0
        self._is_over = False
        #: The frame whose head was read, and the bytes of its body, -1 if it ends with a NUL.
        self._open: StompFrame | None = None
        self._body_bytes = -1
        #: Bytes of its head.
        self._head_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of an incomplete frame."""
        return self._head_bytes + len(self._buffer)

    def forget(self) -> None:
        """Drop incomplete input, and read nothing more."""
        self._buffer.clear()
        self._open = None
        self._head_bytes = 0
        self._is_over = True

    def receive(self, data: bytes) -> list[Event]:
        """Read bytes; after a violation nothing more is read."""
        events: list[Event] = []
        if not self._is_over:
            self._buffer += data
            while True:
                event = self.next_event()
                if event is None:
                    break
                events.append(event)
        return events

    def add(self, data: bytes) -> None:
        """Take bytes, to be read by :meth:`next_event`."""
        if not self._is_over:
            self._buffer += data

    def next_event(self) -> Event | None:
        """The next frame, or a violation; None when no frame is complete."""
        if self._is_over:
            return None
        try:
            if self._open is None and not self._read_head():
                return None
            return self._read_body()
        except ValueError as error:
            self.forget()
            return Violation(str(error))

    def _read_head(self) -> bool:
        """Read the command and the headers of the next frame; False if they are incomplete."""
        buffer = self._buffer
        start = 0
        size = len(buffer)
        while start < size and (buffer[start] == _FEED or buffer[start] == _RETURN):
            start += 1
        if start:
            del buffer[:start]
            size -= start
            self._searched = 0
        if not size:
            return False
        command = self._command(size)
        stop, skipped = self._end_of_head(size)
        if max(stop, size if stop < 0 else 0) > self._limits.max_head_bytes:
            most = self._limits.max_head_bytes
            raise ValueError(f"command and headers of a frame have more than {most} bytes")
        if stop < 0:
            return False
        self._open = self._frame_of(command, bytes(buffer[:stop]), stop + skipped)
        self._head_bytes = stop + skipped
        del buffer[: self._head_bytes]
        self._searched = 0
        return True

    def _end_of_head(self, size: int) -> tuple[int, int]:
        """Where the empty line begins, and how long it is; -1 if it has not arrived."""
        buffer = self._buffer
        first = max(0, self._searched - 2)
        plain = buffer.find(b"\n\n", first)
        returned = buffer.find(b"\n\r\n", first, plain if plain >= 0 else size)
        self._searched = size
        if returned >= 0:
            return returned + 1, 2
        return (-1, 0) if plain < 0 else (plain + 1, 1)

    def _command(self, size: int) -> str:
        """The command of the next frame; empty while it is incomplete and may become valid.

        It examines the same bytes whatever follows them, so the result does not depend on how the
        stream is divided.

        :raises ValueError: when the command is unknown.
        """
        line, feed, _ = bytes(self._buffer[:_LONGEST_COMMAND]).partition(b"\n")
        if not feed and size < _LONGEST_COMMAND and b"\0" not in line:
            return ""
        line, nul, _ = line.partition(b"\0")
        command = line.removesuffix(b"\r").decode("latin-1")
        if nul or not feed or command not in self._commands:
            raise ValueError(f"there is no command {command!r}")
        return command

    def _frame_of(self, command: str, head: bytes, size: int) -> StompFrame:
        try:
            text = head.partition(b"\n")[2].decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError("the headers of a frame are not UTF-8") from None
        version = V1_0 if command in UNESCAPED else self.version
        most = self._limits.max_headers
        trims = self.version == V1_0
        headers = read_header_lines(text, version, trims=trims, most=most)
        if command in _CONNECTS and any([name == "accept-version" for name, _ in headers]):
            # The client supports later versions, so its blanks count.  STOMP may have escapes.
            version = V1_0 if command in UNESCAPED else V1_2
            headers = read_header_lines(text, version, most=most)
        frame = StompFrame(command, headers)
        self._body_bytes = self._length_of(frame)
        frame.encoded_size = size + max(0, self._body_bytes) + 1
        return frame

    def _length_of(self, frame: StompFrame) -> int:
        """The value of ``content-length``; -1 without this header."""
        text = frame.find("content-length")
        if text is None:
            return -1
        text = text.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
            raise ValueError(f"content-length is not a number: {text[:32]!r}")
        length = int(text)
        if length > self._limits.max_body_bytes:
            raise ValueError(self._too_large())
        return length

    def _too_large(self) -> str:
        return f"the body of a frame has more than {self._limits.max_body_bytes} bytes"

    def _read_body(self) -> StompFrame | None:
        """Complete the frame whose head was read; None while its body is incomplete."""
        frame = self._open
        assert frame is not None, "its head was read before"
        buffer = self._buffer
        length = self._body_bytes
        if length < 0:
            length = buffer.find(b"\0", self._searched)
            self._searched = len(buffer)
            if max(length, len(buffer) if length < 0 else 0) > self._limits.max_body_bytes:
                raise ValueError(self._too_large())
            if length < 0:
                return None
            frame.encoded_size += length
        elif len(buffer) <= length:
            return None
        elif buffer[length]:
            raise ValueError("no NUL follows the body whose length was given")
        frame.body = bytes(buffer[:length])
        del buffer[: length + 1]
        self._searched = 0
        self._open = None
        self._head_bytes = 0
        return frame
