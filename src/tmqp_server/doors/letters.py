"""Letters: messages in a neutral form, for doors that deliver what came in by another door.

Theory of operation.  A message travels through the engine as its door received it (``wire``).  If
the consumer's door is of the same kind, it writes that form again and nothing is translated.  If
not, it asks :class:`Letters` for the message's :class:`Letter`, which the owner of the wire form
makes, and encodes that.  A TMQP frame is its own owner: :func:`letter_of_frame`.

On the TMQP wire a letter is a Queue Message (:func:`frame_of_letter`).  Its fields are headers:
``Content-Type``, ``Correlation-Id``, ``Reply-To``, ``Type``, ``Priority``, ``Timestamp``,
``Expires``, ``Group-Key``, ``traceparent`` and ``tracestate``.  Each further header and each
property is one header.  ``Property-Types`` (``n=i;d=f``) lists the properties that are no text.
The same headers of a native push become the fields of the letter.  A value that cannot be read
remains a header, so nothing is lost.

A name or value that no TMQP header can hold, and a name that the server itself reads, is
percent-encoded and marked with ``u`` in ``Property-Types``.

It is pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias, final
from urllib.parse import quote, unquote

from tmqp.constants import (
    MAX_HEADER_BLOCK_BYTES,
    MAX_NAME_BYTES,
    TYPE_DIRECT_MESSAGE,
    TYPE_QUEUE_MESSAGE,
)
from tmqp.extensions import DEAD_LETTER_HEADERS, HEADER_GROUP_KEY
from tmqp.frames import Frame
from tmqp.names import EXACT_MARK
from tmqp_server.engine.effects import Forward
from tmqp_server.engine.model.message import Message

__all__ = [
    "BOOLEAN",
    "BYTE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LONG",
    "OF_DEAD_LETTERS",
    "REGULAR_PRIORITY",
    "RESERVED_HEADERS",
    "SHORT",
    "TOP_PRIORITY",
    "Letter",
    "LetterOwner",
    "Letters",
    "Property",
    "PropertyValue",
    "frame_of_letter",
    "letter_of_frame",
]

PropertyValue: TypeAlias = bool | int | float

#: Kinds of properties: the letters of ``Property-Types``.
BOOLEAN: Final = "z"
BYTE: Final = "b"
SHORT: Final = "h"
INT: Final = "i"
LONG: Final = "l"
FLOAT: Final = "f"
DOUBLE: Final = "d"
#: Marks a name, and a text, that is percent-encoded.
_ESCAPED: Final = "u"
#: The empty name, percent-encoded.
_NO_NAME: Final = "%"

#: Priorities go from 0 to 9; these are those of regular and of high-priority TMQP messages.
REGULAR_PRIORITY: Final = 4
TOP_PRIORITY: Final = 9

_BITS: Final[dict[str, int]] = {BYTE: 8, SHORT: 16, INT: 32, LONG: 64}
_BOOLEANS: Final[dict[str, bool]] = {"true": True, "false": False}
_MAX_DIGITS: Final = 20
_MAX_TIME_MS: Final = (1 << 63) - 1

_CONTENT_TYPE: Final = "Content-Type"
_CORRELATION_ID: Final = "Correlation-Id"
_REPLY_TO: Final = "Reply-To"
_TYPE: Final = "Type"
_PRIORITY: Final = "Priority"
_TIMESTAMP: Final = "Timestamp"
_EXPIRES: Final = "Expires"
_TRACEPARENT: Final = "traceparent"
_TRACESTATE: Final = "tracestate"
_PROPERTY_TYPES: Final = "Property-Types"
_PROPERTY_TYPES_KEY: Final = "property-types"

#: Names in lower case of the headers that the server alone writes, on dead letters.
OF_DEAD_LETTERS: Final = frozenset([name.lower() for name in DEAD_LETTER_HEADERS])
#: Names in lower case that a header of another protocol must not have on the TMQP wire: those of
#: fields, and those that a TMQP server or client reads.
RESERVED_HEADERS: Final = frozenset(
    (
        "content-type",
        "correlation-id",
        "reply-to",
        "type",
        "priority",
        "timestamp",
        "expires",
        "group-key",
        _TRACEPARENT,
        _TRACESTATE,
        _PROPERTY_TYPES_KEY,
        "cc",
        "request-id",
        "queue-status",
        "wait-for-acknowledge",
        "queue-tag",
        "delivery-handler",
        "no-content",
        "delay",
        "deliver-at",
        "message-timeout",
        "receivers",
        "wait",
    )
)


@final
class Property:
    """A typed property of a letter: ``kind`` is one of BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT,
    DOUBLE."""

    __slots__ = ("kind", "name", "value")

    def __init__(self, name: str, kind: str, value: PropertyValue) -> None:
        self.name = name
        self.kind = kind
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Property):
            return NotImplemented
        mine, others = (self.name, self.kind), (other.name, other.kind)
        # By their texts: a NaN equals itself, and 1 is not True.
        return mine == others and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((self.name, self.kind, repr(self.value)))

    def __repr__(self) -> str:
        return f"Property({self.name!r}, {self.kind!r}, {self.value!r})"


#: What a letter prints; compiled classes have no ``__slots__``.
_FIELDS: Final = (
    "message_id", "source", "channel", "queue_id", "content_type", "correlation_id", "reply_to",
    "kind", "priority", "timestamp_ms", "expires_ms", "group_key", "traceparent", "tracestate",
    "headers", "properties", "body",
)  # fmt: skip


@final
class Letter:
    """A message in the neutral form.

    An empty text means that a field is not given, and so does 0 for a time.  ``channel`` is the
    producer's spelling; of a direct message it is the client that the message is for.  ``kind`` is
    what the producer calls the type of the message.  Times are in milliseconds since 1970.
    ``headers`` are texts, in order, and may repeat names; ``properties`` are typed.
    """

    __slots__ = (
        "body",
        "channel",
        "content_type",
        "correlation_id",
        "expires_ms",
        "group_key",
        "headers",
        "kind",
        "message_id",
        "priority",
        "properties",
        "queue_id",
        "reply_to",
        "source",
        "timestamp_ms",
        "traceparent",
        "tracestate",
    )

    def __init__(
        self,
        body: bytes,
        message_id: str = "",
        source: str = "",
        channel: str = "",
        queue_id: int = 0,
    ) -> None:
        self.body = body
        self.message_id = message_id
        self.source = source
        self.channel = channel
        self.queue_id = queue_id
        self.content_type = ""
        self.correlation_id = ""
        self.reply_to = ""
        self.kind = ""
        self.priority = REGULAR_PRIORITY
        self.timestamp_ms = 0
        self.expires_ms = 0
        self.group_key = ""
        self.traceparent = ""
        self.tracestate = ""
        self.headers: list[tuple[str, str]] = []
        self.properties: list[Property] = []

    @property
    def high_priority(self) -> bool:
        """Whether TMQP counts its priority as high."""
        return self.priority > REGULAR_PRIORITY

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in _FIELDS]
        return f"Letter({', '.join(parts)})"


class LetterOwner(Protocol):
    """A protocol as :class:`Letters` sees it: its door, or its codec where no door is open."""

    name: str

    def letter(self, wire: object) -> Letter:
        """The contents of what the protocol keeps as a message's ``wire``."""

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """A message's ``wire`` with these text headers in the place of its own, and how many bytes
        larger it is; as it is, and 0, where the protocol has none."""


@final
class Letters:
    """Finds who can read a message, by the name of the door that it came in by.

    :param owners: all protocols whose messages may come in, or were kept.
    :param wall_clock_offset_s: seconds to add to the engine's time for Unix time.
    """

    __slots__ = ("_offset_s", "_owners")

    def __init__(
        self, owners: Iterable[LetterOwner] = (), wall_clock_offset_s: float = 0.0
    ) -> None:
        self._offset_s = wall_clock_offset_s
        self._owners: dict[str, LetterOwner] = {}
        for owner in owners:
            self.add(owner)

    def add(self, owner: LetterOwner) -> None:
        """Add a protocol; a door replaces the codec of the same name."""
        self._owners[owner.name] = owner

    def of(self, message: Message, channel: str = "") -> Letter:
        """A message's letter, with its present address: *channel*, or the producer's spelling.

        :raises LookupError: when nobody here reads its form.
        """
        wire = message.wire
        letter = self.of_wire(wire, message.producer.door)
        if (
            message.high_priority
            and letter.priority == REGULAR_PRIORITY
            and not isinstance(wire, Frame)
        ):
            letter.priority = TOP_PRIORITY
        if not letter.expires_ms and message.expires_at < math.inf:
            letter.expires_ms = max(1, int((message.expires_at + self._offset_s) * 1_000))
        if letter.headers and not message.is_dead_letter:
            letter.headers = [
                pair for pair in letter.headers if pair[0].lower() not in OF_DEAD_LETTERS
            ]
        letter.message_id = message.message_id
        letter.source = message.source
        letter.channel = channel or message.channel.removeprefix(EXACT_MARK)
        letter.queue_id = message.queue_id
        return letter

    def of_wire(self, wire: object, door: str) -> Letter:
        """The letter of what came in by the door of this name.

        :raises LookupError: when nobody here reads its form.
        """
        if isinstance(wire, Frame):
            return letter_of_frame(wire)
        owner = self._owners.get(door)
        if owner is None:
            raise LookupError(f"nobody here reads messages of the door {door!r}")
        return owner.letter(wire)

    def with_headers(
        self, wire: object, door: str, headers: list[tuple[str, str]]
    ) -> tuple[object, int]:
        """What came in by the door of this name with these headers in the place of its own, and how
        many bytes larger it is; as it is where nobody here can write them."""
        owner = self._owners.get(door)
        return (wire, 0) if owner is None else owner.with_headers(wire, headers)

    def frame_of(self, message: Message, channel: str = "") -> Frame:
        """A message as the TMQP message that it is or that says the same.

        :param channel: the real name of its channel, by which a TMQP consumer can acknowledge a
            message that was pushed to an exact name.
        :raises LookupError: when nobody here reads its form.
        """
        wire = message.wire
        if isinstance(wire, Frame):
            return wire
        return frame_of_letter(self.of(message, channel), high_priority=message.high_priority)

    def frame_forwarded(self, effect: Forward) -> Frame:
        """What a client said to another one, as the TMQP message that it is or that says the same.

        :raises LookupError: when nobody here reads its form.
        """
        wire = effect.wire
        if isinstance(wire, Frame):
            return wire
        letter = self.of_wire(wire, effect.door)
        return frame_of_letter(letter, TYPE_DIRECT_MESSAGE, high_priority=letter.high_priority)


# --- TMQP messages to letters --------------------------------------------------------------------


def letter_of_frame(frame: Frame) -> Letter:
    """The letter that says the same as a TMQP message."""
    letter = Letter(frame.payload, frame.message_id, frame.source, frame.target, frame.content_type)
    if frame.high_priority:
        letter.priority = TOP_PRIORITY
    if frame.has_header:
        _read_headers(letter, frame.headers)
    return letter


def _read_headers(letter: Letter, headers: list[tuple[str, str]]) -> None:
    types: dict[str, str] | None = None
    for key, value in headers:
        if key.lower() == _PROPERTY_TYPES_KEY:
            types = _types_of(value)
            break
    listed = types is None
    read: set[str] = set()
    for key, value in headers:
        lower = key.lower()
        if not listed and lower == _PROPERTY_TYPES_KEY:
            listed = True
            continue
        if lower in RESERVED_HEADERS and lower not in read and _read_field(letter, lower, value):
            read.add(lower)
            continue
        kind = "" if types is None else types.get(key, "")
        if not kind or not _read_property(letter, kind, key, value):
            letter.headers.append((key, value))
        elif types is not None and kind != _ESCAPED:
            del types[key]  # names of properties are not repeated


def _types_of(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(";"):
        name, _, kind = part.strip().rpartition("=")
        if name:
            found[name] = kind
    return found


def _read_field(letter: Letter, key: str, value: str) -> bool:
    """Take a header as a field; False when it is none or its value makes no sense there."""
    if not value:
        return False
    if key == "content-type":
        letter.content_type = value
    elif key == "correlation-id":
        letter.correlation_id = value
    elif key == "reply-to":
        letter.reply_to = value
    elif key == "type":
        letter.kind = value
    elif key == "group-key":
        letter.group_key = value
    elif key == _TRACEPARENT:
        letter.traceparent = value
    elif key == _TRACESTATE:
        letter.tracestate = value
    elif key == "priority":
        number = _natural(value)
        if not 0 <= number <= TOP_PRIORITY:
            return False
        letter.priority = number
    elif key in ("timestamp", "expires"):
        number = _natural(value)
        if not 0 < number <= _MAX_TIME_MS:
            return False
        if key == "timestamp":
            letter.timestamp_ms = number
        else:
            letter.expires_ms = number
    else:
        return False
    return True


def _natural(text: str) -> int:
    """A decimal number without a sign, or -1; one that would be written otherwise is none, so that
    what is passed on reads as it came."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
        return -1
    return -1 if len(text) > 1 and text.startswith("0") else int(text)


def _read_property(letter: Letter, kind: str, key: str, value: str) -> bool:
    """Take a header as a property; False when its value is not of that kind."""
    name = key
    if kind.startswith(_ESCAPED):
        name = "" if key == _NO_NAME else unquote(key)
        kind = kind[1:]
        if not kind:
            letter.headers.append((name, unquote(value)))
            return True
    found = _typed(kind, value)
    if found is None:
        return False
    letter.properties.append(Property(name, kind, found))
    return True


def _typed(kind: str, text: str) -> PropertyValue | None:
    """A value of a kind; None when the text is none."""
    if kind == BOOLEAN:
        return _BOOLEANS.get(text)
    bits = _BITS.get(kind, 0)
    if bits:
        most = 1 << (bits - 1)
        number = _natural(text.removeprefix("-"))
        if text.startswith("-"):
            return -number if 0 < number <= most else None
        return number if 0 <= number < most else None
    if kind in (FLOAT, DOUBLE):
        try:
            return float(text)
        except ValueError:
            return None
    return None


# --- Letters to TMQP messages --------------------------------------------------------------------


def frame_of_letter(
    letter: Letter,
    message_type: int = TYPE_QUEUE_MESSAGE,
    *,
    high_priority: bool = False,
    pending_acknowledge: bool = False,
    first: list[tuple[str, str]] | None = None,
) -> Frame:
    """The TMQP message that says the same as a letter.

    *first* are headers that servers read, and that stand before those of the letter.

    Headers beyond the 65,535 bytes of a TMQP message are left out, the last ones first.  Its time
    to live is that of a message that was pushed as it is.

    :raises LocalProtocolError: when id or channel have more than 255 bytes.
    """
    source = letter.source
    if len(source.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        source = ""
    return Frame.build(
        message_type,
        letter.channel,
        letter.queue_id,
        letter.body,
        message_id=letter.message_id,
        source=source,
        headers=_headers_of(letter, first, high_priority=high_priority),
        high_priority=high_priority,
        pending_acknowledge=pending_acknowledge,
    )


def _headers_of(
    letter: Letter, first: list[tuple[str, str]] | None, *, high_priority: bool
) -> list[tuple[str, str]]:
    block = _Block()
    if first is not None:
        for name, text in first:
            block.add_field(name, text)
    for name, text in (
        (_CONTENT_TYPE, letter.content_type),
        (_CORRELATION_ID, letter.correlation_id),
        (_REPLY_TO, letter.reply_to),
        (_TYPE, letter.kind),
        (HEADER_GROUP_KEY, letter.group_key),
        (_TRACEPARENT, letter.traceparent),
        (_TRACESTATE, letter.tracestate),
    ):
        if text:
            block.add_field(name, text)
    if letter.priority != (TOP_PRIORITY if high_priority else REGULAR_PRIORITY):
        block.add_field(_PRIORITY, str(letter.priority))
    if letter.timestamp_ms > 0:
        block.add_field(_TIMESTAMP, str(letter.timestamp_ms))
    if letter.expires_ms > 0:
        block.add_field(_EXPIRES, str(letter.expires_ms))
    for each in letter.properties:
        value = each.value
        if each.kind == BOOLEAN:
            text = "true" if value else "false"
        else:
            text = repr(float(value)) if each.kind in (FLOAT, DOUBLE) else str(int(value))
        block.add(each.name, each.kind, text)
    for name, text in letter.headers:
        block.add(name, "", text)
    return block.pairs()


@final
class _Block:
    """The headers of a message while they are written: as many as fit."""

    __slots__ = ("_pairs", "_room", "_types")

    def __init__(self) -> None:
        self._pairs: list[tuple[str, str]] = []
        self._types: list[str] = []
        self._room = MAX_HEADER_BLOCK_BYTES - _size_of(_PROPERTY_TYPES, "")

    def add_field(self, name: str, text: str) -> None:
        """Add a field; a line end would forge another header."""
        self._put(name, " ".join(_valid(text).splitlines()), "")

    def add(self, name: str, kind: str, text: str) -> None:
        """Add a header, or a property of a kind, in a form that is read as it was."""
        name = _valid(name)
        text = _valid(text)
        plain = not (":" in name or "%" in name or _has_line_end(name) or _has_line_end(text))
        lower = name.lower()
        if name and plain and lower not in RESERVED_HEADERS and not (kind and _has_mark(name)):
            self._put(name, text, kind)
            return
        key = quote(name, safe="")
        if key == name:
            # Reserved: another spelling of its first letter makes it another name.
            key = f"%{ord(name[0]):02X}{name[1:]}" if name else _NO_NAME
        self._put(key, text if kind else quote(text, safe=" "), _ESCAPED + kind)

    def _put(self, key: str, text: str, kind: str) -> None:
        entry = f"{key}={kind}" if kind else ""
        size = _size_of(key, text) + (len(entry) + 1 if entry else 0)
        if size > self._room:
            return
        self._room -= size
        self._pairs.append((key, text))
        if entry:
            self._types.append(entry)

    def pairs(self) -> list[tuple[str, str]]:
        """All that was added."""
        if self._types:
            self._pairs.append((_PROPERTY_TYPES, ";".join(self._types)))
        return self._pairs


def _size_of(key: str, text: str) -> int:
    """Bytes of a line of the header block."""
    return len(key.encode()) + len(text.encode()) + 3


def _valid(text: str) -> str:
    """A text without what UTF-8 cannot write."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _has_line_end(text: str) -> bool:
    return "\r" in text or "\n" in text


def _has_mark(name: str) -> bool:
    """Whether a name has a sign that ``Property-Types`` needs."""
    return "=" in name or ";" in name or name != name.strip() or not name.isascii()
