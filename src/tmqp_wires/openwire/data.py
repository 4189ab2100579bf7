"""The elements of OpenWire's loose encoding: numbers, texts, byte strings, primitive maps.

Everything is big-endian.  A text that may be missing is a byte 0 or 1, then its length in two bytes
and Java's *modified UTF-8*: NUL is C0 80, and a character beyond U+FFFF is two surrogates of three
bytes each.  A primitive map is a count and that many names with values; each value is a tag and
data of the tag's type.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, TypeAlias, final

__all__ = [
    "BIG_STRING",
    "BOOLEAN",
    "BYTE",
    "BYTES",
    "CHARACTER",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LIST",
    "LONG",
    "MAP",
    "MAX_DEPTH",
    "NULL",
    "SHORT",
    "STRING",
    "Entry",
    "Primitive",
    "Reader",
    "WireError",
    "decode_text",
    "encode_bytes",
    "encode_map",
    "encode_primitive",
    "encode_string",
    "encode_text",
    "read_list",
    "read_map",
    "read_stream",
]

#: Tags of primitive values.
NULL: Final = 0
BOOLEAN: Final = 1
BYTE: Final = 2
CHARACTER: Final = 3
SHORT: Final = 4
INTEGER: Final = 5
LONG: Final = 6
DOUBLE: Final = 7
FLOAT: Final = 8
STRING: Final = 9
BYTES: Final = 10
MAP: Final = 11
LIST: Final = 12
BIG_STRING: Final = 13

#: The deepest nesting.
MAX_DEPTH: Final = 16
_MOST_SHORT: Final = 0xFFFF
#: From this value on, the first byte is that of a negative number.
_SIGN: Final = 0x80

_H: Final = Struct(">H")
_I: Final = Struct(">i")
_Q: Final = Struct(">q")
#: The encoding of numbers, by tag.
_NUMBERS: Final[dict[int, Struct]] = {
    BYTE: Struct(">b"),
    CHARACTER: Struct(">H"),
    SHORT: Struct(">h"),
    INTEGER: _I,
    LONG: _Q,
    DOUBLE: Struct(">d"),
    FLOAT: Struct(">f"),
}

#: A value: its tag, and None, a bool, a number, a text, bytes, or a list of values or entries.
Primitive: TypeAlias = tuple[int, object]
#: A name of a map with its value: name, tag, value.
Entry: TypeAlias = tuple[str, int, object]


class WireError(ValueError):
    """Bytes are invalid, or a value cannot be encoded; the text says why."""


def decode_text(data: bytes) -> str:
    """Decode modified UTF-8; half a surrogate pair becomes U+FFFD.

    :raises WireError: when it is not one.
    """
    if data.isascii():
        return data.decode("ascii")
    try:
        text = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise WireError("a text is not modified UTF-8") from None
    if b"\xed" in data:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def encode_text(text: str) -> bytes:
    """Encode a text as modified UTF-8."""
    if text.isascii():
        data = text.encode("ascii")
        return data if "\0" not in text else data.replace(b"\0", b"\xc0\x80")
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [units[at] | units[at + 1] << 8 for at in range(0, len(units), 2)]
    data = "".join([chr(unit) for unit in halves]).encode("utf-8", "surrogatepass")
    return data.replace(b"\0", b"\xc0\x80")


def encode_string(text: str | None) -> bytes:
    """Encode a text that may be missing.

    :raises WireError: when it has more than 65,535 bytes.
    """
    return b"\0" if text is None else b"\1" + _short_text(text)


def _short_text(text: str) -> bytes:
    data = encode_text(text)
    if len(data) > _MOST_SHORT:
        raise WireError(f"a text of {len(data)} bytes is longer than 65,535")
    return _H.pack(len(data)) + data


def encode_bytes(data: bytes | None) -> bytes:
    """Encode bytes that may be missing."""
    return b"\0" if data is None else b"\1" + _I.pack(len(data)) + data


@final
class Reader:
    """Reads the elements in some bytes one after another.

    Attributes: ``at``, the position; ``version``, that of the wire format; ``depth``, the current
    nesting.  Each method raises ``WireError`` if the bytes end too early.
    """

    __slots__ = ("at", "data", "depth", "version")

    def __init__(self, data: bytes, version: int, at: int = 0) -> None:
        self.data = data
        self.version = version
        self.at = at
        self.depth = 0

    def left(self) -> int:
        """The number of bytes that follow."""
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """The next *size* bytes."""
        at = self.at
        end = at + size
        if size < 0 or end > len(self.data):
            raise WireError(f"{size} bytes should follow, {self.left()} do")
        self.at = end
        return self.data[at:end]

    def byte(self) -> int:
        """One byte, from 0 to 255."""
        at = self.at
        if at >= len(self.data):
            raise WireError("it ends too early")
        self.at = at + 1
        return self.data[at]

    def flag(self) -> bool:
        """A boolean."""
        return self.byte() != 0

    def short(self) -> int:
        """Two bytes, from 0 to 65,535."""
        at = self.at
        data = self.data
        if at + 2 > len(data):
            raise WireError("it ends too early")
        self.at = at + 2
        return data[at] << 8 | data[at + 1]

    def integer(self) -> int:
        """Four bytes."""
        at = self.at
        data = self.data
        if at + 4 > len(data):
            raise WireError("it ends too early")
        self.at = at + 4
        high = data[at]
        if high >= _SIGN:
            high -= 2 * _SIGN
        return high << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]

    def long(self) -> int:
        """Eight bytes."""
        high = self.integer()
        low = self.integer()
        return high << 32 | (low if low >= 0 else low + (1 << 32))

    def number(self, tag: int) -> object:
        """A number of the tag's type."""
        at = self.at
        struct = _NUMBERS[tag]
        try:
            (found,) = struct.unpack_from(self.data, at)
        except error:
            raise WireError("it ends too early") from None
        self.at = at + struct.size
        number: object = found  # a float would make one of an integer, where this is compiled
        return number

    def text(self) -> str:
        """A text that cannot be missing."""
        return decode_text(self.take(self.short()))

    def string(self) -> str | None:
        """A text that may be missing."""
        return self.text() if self.flag() else None

    def bytes_(self) -> bytes | None:
        """Bytes that may be missing."""
        return self.take(self.integer()) if self.flag() else None

    def skip_string(self) -> None:
        """Skip a text that may be missing."""
        if self.flag():
            self.take(self.short())

    def enter(self) -> None:
        """Enter a nested value; the caller lowers ``depth`` at its end."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise WireError(f"values are nested more than {MAX_DEPTH} deep")


# --- Primitive maps -------------------------------------------------------------------------------


def read_map(data: bytes | None) -> list[Entry]:
    """Read a primitive map, such as the properties of a message; the last of equal names counts.

    :raises WireError: when it is not one.
    """
    if data is None:
        return []
    reader = Reader(data, 0)
    return _entries(reader)


def _entries(reader: Reader) -> list[Entry]:
    count = reader.integer()
    found: dict[str, Entry] = {}
    if count > reader.left() // 3:
        raise WireError(f"a map of {count} entries does not have enough bytes")
    for _ in range(count):
        name = reader.text()
        tag, value = _primitive(reader)
        found[name] = (name, tag, value)
    return list(found.values())


def read_list(reader: Reader) -> list[Primitive]:
    """Read a primitive list.

    :raises WireError: when it is not one.
    """
    count = reader.integer()
    if count > reader.left():
        raise WireError(f"a list of {count} values does not have enough bytes")
    return [_primitive(reader) for _ in range(max(0, count))]


def read_stream(data: bytes) -> list[Primitive]:
    """Read consecutive values, as in the body of a stream message.

    :raises WireError: when they are invalid.
    """
    reader = Reader(data, 0)
    found: list[Primitive] = []
    while reader.left():
        found.append(_primitive(reader))
    return found


def _primitive(reader: Reader) -> Primitive:
    tag = reader.byte()
    if tag in _NUMBERS:
        return tag, reader.number(tag)
    if tag == STRING:
        return tag, reader.text()
    if tag == BIG_STRING:
        return tag, decode_text(reader.take(reader.integer()))
    if tag == BOOLEAN:
        return tag, reader.flag()
    if tag == NULL:
        return tag, None
    if tag == BYTES:
        return tag, reader.take(reader.integer())
    if tag not in (MAP, LIST):
        raise WireError(f"there is no primitive type {tag}")
    reader.enter()
    inner: list[Entry] | list[Primitive]
    inner = _entries(reader) if tag == MAP else read_list(reader)
    reader.depth -= 1
    return tag, inner


def encode_map(entries: list[Entry]) -> bytes:
    """Encode a primitive map.

    :raises WireError: for a value that its tag does not allow.
    """
    parts = [_I.pack(len(entries))]
    for name, tag, value in entries:
        parts += (_short_text(name), encode_primitive(tag, value))
    return b"".join(parts)


def encode_primitive(tag: int, value: object) -> bytes:
    """Encode a value with its tag.  A text that is too long for STRING becomes a BIG_STRING.

    :raises WireError: for a value that its tag does not allow.
    """
    head = bytes((tag,))
    if tag == NULL:
        return head
    if isinstance(value, bool):
        if tag == BOOLEAN:
            return head + (b"\1" if value else b"\0")
    elif isinstance(value, (int, float)):
        if tag in _NUMBERS:
            try:
                return head + _NUMBERS[tag].pack(value)
            except (error, OverflowError):
                raise WireError(f"{value!r} has no room in primitive type {tag}") from None
    elif isinstance(value, str):
        if tag in (STRING, BIG_STRING):
            data = encode_text(value)
            if tag == STRING and len(data) <= _MOST_SHORT:
                return head + _H.pack(len(data)) + data
            return bytes((BIG_STRING,)) + _I.pack(len(data)) + data
    elif isinstance(value, bytes):
        if tag == BYTES:
            return head + _I.pack(len(value)) + value
    elif isinstance(value, list):
        if tag == MAP:
            return head + encode_map(value)
        if tag == LIST:
            return (
                head + _I.pack(len(value)) + b"".join([encode_primitive(*each) for each in value])
            )
    raise WireError(f"{value!r:.64} is not a value of primitive type {tag}")
