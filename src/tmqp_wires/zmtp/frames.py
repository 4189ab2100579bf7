"""Frames of ZMTP 2.0 and 3.x, the messages and commands made of them, and metadata.

A frame is a byte of flags, the length of its body in one byte or in eight (``LONG``), and the body.
A message is one or several frames; all but the last have the flag ``MORE``.  A command is one frame
whose body begins with its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

__all__ = [
    "COMMAND",
    "LONG",
    "MORE",
    "bounds",
    "command_frame",
    "first_part",
    "frame",
    "is_multipart",
    "message_frames",
    "metadata_bytes",
    "more_frames",
    "pack_parts",
    "parts_of",
    "read_metadata",
    "split_command",
    "unpack_parts",
]

MORE: Final = 1
LONG: Final = 2
COMMAND: Final = 4
#: The longest body with a length of one byte.
_SHORT: Final = 255
_LONG_HEAD: Final = 9
_SHORT_HEAD: Final = 2
_PACKED_HEAD: Final = 4
_MOST_VALUE: Final = 0x7FFF_FFFF
_OTHERS_IN_NAMES: Final = b"-_.+"


def _head(flags: int, size: int) -> bytes:
    if size <= _SHORT:
        return bytes((flags, size))
    return bytes((flags | LONG,)) + size.to_bytes(8, "big")


def frame(flags: int, body: bytes) -> bytes:
    """Encode one frame; the flag ``LONG`` is added if it needs eight bytes of length."""
    return _head(flags, len(body)) + body


def bounds(raw: bytes, at: int) -> tuple[int, int]:
    """Where the body of the frame at *at* begins, and where it ends."""
    if raw[at] & LONG:
        begin = at + _LONG_HEAD
        return begin, begin + int.from_bytes(raw[at + 1 : begin], "big")
    begin = at + _SHORT_HEAD
    return begin, begin + raw[at + 1]


def message_frames(parts: Sequence[bytes]) -> bytes:
    """Encode a message.

    :raises ValueError: for a message without parts.
    """
    if len(parts) == 1:
        return _head(0, len(parts[0])) + parts[0]
    if not parts:
        raise ValueError("a message has at least one part")
    pieces: list[bytes] = []
    for part in parts[:-1]:
        pieces.append(_head(MORE, len(part)))
        pieces.append(part)
    pieces.append(_head(0, len(parts[-1])))
    pieces.append(parts[-1])
    return b"".join(pieces)


def more_frames(parts: Iterable[bytes]) -> bytes:
    """Encode the first parts of a message, which others follow."""
    pieces: list[bytes] = []
    for part in parts:
        pieces.append(_head(MORE, len(part)))
        pieces.append(part)
    return b"".join(pieces)


def command_frame(name: bytes, data: bytes = b"") -> bytes:
    """Encode a command."""
    size = 1 + len(name) + len(data)
    return b"".join((_head(COMMAND, size), bytes((len(name),)), name, data))


def is_multipart(raw: bytes) -> bool:
    """Whether a message has several parts."""
    return raw[0] & MORE != 0


def first_part(raw: bytes) -> bytes:
    """The first part of a message."""
    begin, end = bounds(raw, 0)
    return raw[begin:end]


def parts_of(raw: bytes) -> list[bytes]:
    """The parts of a complete message."""
    parts: list[bytes] = []
    at = 0
    size = len(raw)
    while at < size:
        begin, at = bounds(raw, at)
        parts.append(raw[begin:at])
    return parts


def split_command(body: bytes) -> tuple[bytes, bytes]:
    """The name and the data of a command.

    :raises ValueError: when it has no name, or its name is incomplete.
    """
    size = body[0] if body else 0
    end = 1 + size
    if not size or end > len(body):
        raise ValueError("a command has no name")
    return body[1:end], body[end:]


def metadata_bytes(properties: Iterable[tuple[str, bytes]]) -> bytes:
    """Encode metadata, as in READY and INITIATE.

    :raises ValueError: for an invalid name.
    """
    pieces: list[bytes] = []
    for name, value in properties:
        key = name.encode("ascii", "replace")
        if not _is_name(key):
            raise ValueError(f"the name {name!r} of a property has characters that are not allowed")
        pieces += (bytes((len(key),)), key, len(value).to_bytes(4, "big"), value)
    return b"".join(pieces)


def read_metadata(data: bytes) -> dict[str, bytes]:
    """Read metadata: values by lower-case names; the last of equal names counts.

    :raises ValueError: when they cannot be read.
    """
    found: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        value_at = at + 1 + data[at] + 4
        if value_at > len(data):
            raise ValueError("metadata end in a name")
        name = data[at + 1 : value_at - 4]
        size = int.from_bytes(data[value_at - 4 : value_at], "big")
        at = value_at + size
        if size > _MOST_VALUE or at > len(data):
            raise ValueError("metadata end in a value")
        if not _is_name(name):
            raise ValueError(f"{name!r} is not the name of a property")
        found[name.decode("ascii").lower()] = data[value_at:at]
    return found


def _is_name(name: bytes) -> bool:
    return 0 < len(name) <= _SHORT and name.translate(None, _OTHERS_IN_NAMES).isalnum()


def pack_parts(parts: Iterable[bytes]) -> bytes:
    """Join parts into one body, ``application/x-zmq-multipart``: each after its length in four
    bytes.

    :raises ValueError: for a part of 4 GiB or more.
    """
    pieces: list[bytes] = []
    for part in parts:
        size = len(part)
        if size > 0xFFFF_FFFF:
            raise ValueError("a part has less than 4 GiB")
        pieces += (size.to_bytes(_PACKED_HEAD, "big"), part)
    return b"".join(pieces)


def unpack_parts(data: bytes) -> list[bytes]:
    """The parts of such a body.

    :raises ValueError: when it is not one.
    """
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        begin = at + _PACKED_HEAD
        at = begin + int.from_bytes(data[at:begin], "big")
        if at > len(data) or begin > len(data):
            raise ValueError(f"{len(data)} bytes are not a packed list of parts")
        parts.append(data[begin:at])
    if not parts:
        raise ValueError("a packed list has at least one part")
    return parts
