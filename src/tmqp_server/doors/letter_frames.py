"""Letters as TMQP messages, and TMQP messages as letters.

On the TMQP wire a letter is a Queue Message (:func:`frame_of_letter`).  Its fields are headers:
``Content-Type``, ``Correlation-Id``, ``Reply-To``, ``Type``, ``Priority``, ``Timestamp``,
``Expires``, ``Group-Key``, ``traceparent`` and ``tracestate``.  Each further header and each
property is one header.  ``Property-Types`` (``n=i;d=f``) lists the types of properties.  The same
headers of a native push become the fields of the letter.  A value that cannot be read remains a
header, so nothing is lost.

A name or value that no TMQP header can hold, and a name that the server itself reads, is
percent-encoded and marked with ``u`` in ``Property-Types``.
"""

from __future__ import annotations

from typing import Final, final
from urllib.parse import quote, unquote

from tmqp.constants import MAX_HEADER_BLOCK_BYTES, MAX_NAME_BYTES, TYPE_QUEUE_MESSAGE
from tmqp.extensions import DEAD_LETTER_HEADERS, HEADER_GROUP_KEY, HEADER_PRIORITY
from tmqp.frames import Frame
from tmqp_server.doors.letter import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    REGULAR_PRIORITY,
    SHORT,
    TOP_PRIORITY,
    Letter,
    Property,
    PropertyValue,
    read_text_field,
    text_fields,
)

__all__ = ["OF_DEAD_LETTERS", "RESERVED_HEADERS", "frame_of_letter", "letter_of_frame"]

#: Marks a name, and a text, that is percent-encoded.
_ESCAPED: Final = "u"
#: The empty name, percent-encoded.
_NO_NAME: Final = "%"

_BITS: Final[dict[str, int]] = {BYTE: 8, SHORT: 16, INT: 32, LONG: 64}
_BOOLEANS: Final[dict[str, bool]] = {"true": True, "false": False}
_MAX_DIGITS: Final = 20
_MAX_TIME_MS: Final = (1 << 63) - 1

#: The headers of fields that are texts.
_TEXT_HEADERS: Final[dict[str, str]] = {
    "content-type": "Content-Type",
    "correlation-id": "Correlation-Id",
    "reply-to": "Reply-To",
    "type": "Type",
    "group-key": HEADER_GROUP_KEY,
    "traceparent": "traceparent",
    "tracestate": "tracestate",
}
_PRIORITY: Final = HEADER_PRIORITY
_TIMESTAMP: Final = "Timestamp"
_EXPIRES: Final = "Expires"
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
        "traceparent",
        "tracestate",
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


# --- TMQP messages to letters --------------------------------------------------------------------


def letter_of_frame(frame: Frame) -> Letter:
    """The letter with the contents of a TMQP message."""
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
    """Read a header as a field; False if it is not a field, or its value is invalid."""
    if not value:
        return False
    if read_text_field(letter, key, value):
        return True
    if key == "priority":
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
    """A decimal number without a sign, or -1.  A number with leading zeros does not count, so that
    a letter is written exactly as it was read."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
        return -1
    return -1 if len(text) > 1 and text.startswith("0") else int(text)


def _read_property(letter: Letter, kind: str, key: str, value: str) -> bool:
    """Read a header as a property; False if its value is not of that kind."""
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
    """Read a value of a kind; None if the text is not one."""
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
    """The TMQP message with the contents of a letter.

    *first* are headers for other servers, which are put before those of the letter.

    Headers that do not fit the 65,535 bytes of a TMQP message's headers are left out.  The time to
    live is that of a new TMQP message.  A source of more than 255 bytes is left out.

    :raises LocalProtocolError: when the id or the channel has more than 255 bytes.
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
    for name, text in text_fields(letter):
        block.add_field(_TEXT_HEADERS[name], text)
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
    """The headers of a message that is being written, as many as fit."""

    __slots__ = ("_pairs", "_room", "_types")

    def __init__(self) -> None:
        self._pairs: list[tuple[str, str]] = []
        self._types: list[str] = []
        self._room = MAX_HEADER_BLOCK_BYTES - _size_of(_PROPERTY_TYPES, "")

    def add_field(self, name: str, text: str) -> None:
        """Add a field; line ends become spaces, because they would forge another header."""
        self._put(name, " ".join(_valid(text).splitlines()), "")

    def add(self, name: str, kind: str, text: str) -> None:
        """Add a header, or a property of a kind, escaped if it could not be read back otherwise."""
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
        """All headers that were added, and ``Property-Types``."""
        if self._types:
            self._pairs.append((_PROPERTY_TYPES, ";".join(self._types)))
        return self._pairs


def _size_of(key: str, text: str) -> int:
    """The bytes that a header takes in the header block."""
    return len(key.encode()) + len(text.encode()) + 3


def _valid(text: str) -> str:
    """A text without characters that UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _has_line_end(text: str) -> bool:
    return "\r" in text or "\n" in text


def _has_mark(name: str) -> bool:
    """Whether a name cannot be written in ``Property-Types`` unescaped."""
    return "=" in name or ";" in name or name != name.strip() or not name.isascii()
