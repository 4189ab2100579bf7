"""Messages of STOMP inside the server: their wire form, letter and stored form.

A message keeps its headers as lines in the form of 1.2, ready to be sent.  Headers with a meaning
in every protocol have ActiveMQ's names (``correlation-id``, ``expires`` and so on); all others are
text headers of the letter.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from tmqp_server.doors.bodies import bytes_around
from tmqp_server.doors.letter import (
    BOOLEAN,
    REGULAR_PRIORITY,
    TOP_PRIORITY,
    Letter,
    read_text_field,
    text_fields,
)
from tmqp_server.doors.names import exact_channel, foreign_name
from tmqp_server.doors.port import OwnBodies
from tmqp_server.doors.stomp.places import path_of
from tmqp_server.engine.model.message import Message
from tmqp_wires.common import kept
from tmqp_wires.stomp.frames import V1_2, header_lines, read_header_lines

__all__ = [
    "DOOR",
    "GROUP",
    "NUMBER",
    "OF_DELIVERIES",
    "QUEUE",
    "StompBodies",
    "StompMessage",
    "headers_of",
    "is_keyless",
    "letter_of",
    "number_of",
]

#: The door's name and number, kept with its messages.
DOOR: Final = "stomp"
NUMBER: Final = 4
#: The queue of every channel.
QUEUE: Final = 0

GROUP: Final = "JMSXGroupID"
_GROUP_LINE: Final = b"JMSXGroupID:"
#: What a letter calls it.
_GROUP_KEY: Final = "group-key"
_REPLY_TO: Final = "reply-to"
#: Headers that the server writes in front of a message, or converts.
OF_DELIVERIES: Final = frozenset(
    {
        "ack",
        "content-length",
        "destination",
        "message-id",
        "redelivered",
        "subscription",
        "timestamp",
    }
)
#: Headers that are fields of a letter.
_FIELDS: Final = frozenset(
    {
        "content-type",
        "correlation-id",
        _REPLY_TO,
        "type",
        "priority",
        "expires",
        GROUP,
        "traceparent",
        "tracestate",
    }
)
_HIDDEN: Final = OF_DELIVERIES | _FIELDS
_MOST_TIME: Final = (1 << 63) - 1
_MOST_DIGITS: Final = 19
#: The time of arrival, in milliseconds since 1970, and the number of bytes of headers.
_INNER: Final = Struct(">QI")


def number_of(text: str) -> int:
    """A decimal number without a sign, or -1."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return -1
    return min(int(text), _MOST_TIME)


@final
class StompMessage:
    """The wire form of a message.

    ``lines`` are its headers, without those that are made for each delivery; ``came_ms`` is when
    the server received it, in milliseconds since 1970.

    :param around: the result of ``bytes_around`` for the message.
    """

    __slots__ = ("body", "came_ms", "channel", "lines", "message_id", "size")

    def __init__(
        self, message_id: str, channel: str, came_ms: int, lines: bytes, body: bytes, around: int
    ) -> None:
        self.message_id = message_id
        self.channel = channel
        self.came_ms = came_ms
        self.lines = lines
        self.body = body
        #: The size of its stored form in bytes.
        self.size = around + len(message_id.encode()) + _INNER.size + len(lines) + len(body)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers in the lines, decoded."""
        return read_header_lines(self.lines.decode("utf-8"), V1_2)


def is_keyless(wire: object) -> bool:
    """Whether a message has no group key."""
    return isinstance(wire, StompMessage) and _GROUP_LINE not in wire.lines


def letter_of(wire: object) -> Letter:
    """The letter of a message."""
    assert isinstance(wire, StompMessage), "this door keeps its own messages"
    letter = Letter(wire.body)
    letter.timestamp_ms = wire.came_ms
    read: set[str] = set()
    for name, value in wire.headers:
        if name not in _FIELDS:
            letter.headers.append((name, value))
        elif name not in read:
            # Of several the first one counts.
            read.add(name)
            _read_field(letter, name, value)
    return letter


def _read_field(letter: Letter, name: str, value: str) -> None:
    if read_text_field(letter, _GROUP_KEY if name == GROUP else name, value):
        return
    if name == "expires":
        letter.expires_ms = max(0, number_of(value))
    else:
        number = number_of(value)
        letter.priority = number if 0 <= number <= TOP_PRIORITY else REGULAR_PRIORITY


def headers_of(letter: Letter) -> list[tuple[str, str]]:
    """The headers for another protocol's message, without those that STOMP would read as its
    own."""
    found: list[tuple[str, str]] = []
    for name, text in text_fields(letter):
        value = path_of(text) if name == _REPLY_TO else text
        found.append((GROUP if name == _GROUP_KEY else name, value))
    if letter.priority != REGULAR_PRIORITY:
        found.append(("priority", str(letter.priority)))
    if letter.expires_ms > 0:
        found.append(("expires", str(letter.expires_ms)))
    for each in letter.properties:
        text = str(each.value).lower() if each.kind == BOOLEAN else str(each.value)
        if each.name and each.name not in _HIDDEN:
            found.append((each.name, text))
    for name, text in letter.headers:
        if name and name not in _HIDDEN:
            found.append((name, text))
    return found


class StompBodies(OwnBodies):
    """The stored form of the door's messages: the common one, with the time of arrival and the
    headers in front of the body."""

    name = DOOR
    number = NUMBER

    def letter(self, wire: object) -> Letter:
        """The letter of a message."""
        return letter_of(wire)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """Replace the text headers of a message."""
        assert isinstance(wire, StompMessage), "this door keeps its own messages"
        fields = [pair for pair in wire.headers if pair[0] in _FIELDS]
        others = [pair for pair in headers if pair[0] and pair[0] not in _HIDDEN]
        lines = header_lines([*fields, *others], V1_2)
        more = len(lines) - len(wire.lines)
        new = StompMessage(wire.message_id, wire.channel, wire.came_ms, lines, wire.body, 0)
        new.size = wire.size + more
        return new, more

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The stored form of a message; see ``Door.stored``."""
        wire = message.wire
        assert isinstance(wire, StompMessage), "this door keeps its own messages"
        head = kept.stored_head(
            message.message_id.encode(), message.source.encode(), foreign_name(wire.channel)
        )
        head += _INNER.pack(wire.came_ms, len(wire.lines)) + wire.lines
        return head + wire.body, len(head), len(wire.body)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A message from its stored form; see ``Door.restored``.

        :raises ValueError: when it cannot be read.
        """
        found = kept.read(body)
        inner = found.body
        if len(inner) < _INNER.size:
            raise ValueError(f"{len(body)} bytes are not a kept message of STOMP")
        came_ms, size = _INNER.unpack_from(inner)
        start = _INNER.size + size
        lines = inner[_INNER.size : start]
        if len(lines) != size:
            raise ValueError("the headers of a kept message of STOMP are cut off")
        read_header_lines(lines.decode("utf-8"), V1_2)  # or it is damaged
        name = found.message_id.decode("utf-8", "replace")
        source = found.source.decode("utf-8", "replace")
        channel = exact_channel(found.place)
        around = bytes_around(source, channel)
        wire = StompMessage(name, channel, came_ms, lines, inner[start:], around)
        return wire, name, source, channel, len(body)
