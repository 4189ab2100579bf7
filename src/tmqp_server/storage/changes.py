"""Encodes changes of topology: the part of a logged write that is not in blocks.

Each change is its kind (u8), three zero bytes, the size of the rest (u32), and its fields in the
order of its record: numbers as 8 bytes, flags as one, texts (UTF-8) and bytes after their size
(u32).  All numbers are little endian.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from tmqp_server.engine.records import field_names
from tmqp_server.storage.port import (
    DamageError,
    DropChannel,
    DropCursor,
    DropMark,
    DropQueue,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Retention,
    SettleAll,
    TopologyChange,
)

__all__ = ["decode_changes", "encode_changes"]

#: The kinds of changes: never given to another one.  Fields: Q number, q number with a sign, s
#: text, b bytes, r what a queue retains.
_KINDS: Final[dict[int, tuple[type[TopologyChange], str]]] = {
    1: (KeepChannel, "sb"),
    2: (DropChannel, "s"),
    3: (KeepQueue, "QsQbr"),
    4: (DropQueue, "Q"),
    5: (KeepRouter, "sb"),
    6: (DropRouter, "s"),
    7: (KeepCursor, "sQQ"),
    8: (DropCursor, "sQ"),
    9: (KeepMark, "sqq"),
    10: (DropMark, "s"),
    11: (SettleAll, "QQQQ"),
}
_NUMBERS: Final = {kind: number for number, (kind, _) in _KINDS.items()}
_HEAD: Final = struct.Struct("<B3xI")
_SIZE: Final = struct.Struct("<I")
_RETENTION: Final = struct.Struct("<QQ?")
_INTEGERS: Final = {"Q": struct.Struct("<Q"), "q": struct.Struct("<q")}


def encode_changes(changes: list[TopologyChange]) -> bytes:
    """Encode changes, one after another.

    :raises ValueError: when a number does not fit.
    """
    parts: list[bytes] = []
    try:
        for change in changes:
            number = _NUMBERS[type(change)]
            forms = _KINDS[number][1]
            fields = [
                _field(form, getattr(change, name))
                for form, name in zip(forms, field_names(type(change)), strict=True)
            ]
            body = b"".join(fields)
            parts += (_HEAD.pack(number, len(body)), body)
    except struct.error as error:
        raise ValueError(f"a change does not fit the format: {error}") from None
    return b"".join(parts)


def _field(form: str, value: Any) -> bytes:
    if isinstance(value, Retention):
        return _RETENTION.pack(value.retain_bytes, value.retain_time_ms, value.retain_for_readers)
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return _SIZE.pack(len(value)) + value
    return _INTEGERS[form].pack(value)


def decode_changes(data: bytes) -> list[TopologyChange]:
    """Decode changes.

    :raises DamageError: when the bytes are not encoded changes.
    """
    changes: list[TopologyChange] = []
    at = 0
    try:
        while at < len(data):
            number, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            kind, forms = _KINDS[number]
            body = data[at : at + size]
            at += size
            if at > len(data):
                raise DamageError("a change is cut off")
            changes.append(kind(*_values(forms, body)))
    except KeyError as error:
        raise DamageError(f"changes of the kind {error} are not known here") from None
    except (struct.error, UnicodeDecodeError) as error:
        raise DamageError(f"a change cannot be read: {error}") from None
    return changes


def _values(forms: str, body: bytes) -> list[Any]:
    values: list[Any] = []
    at = 0
    for form in forms:
        if form in _INTEGERS:
            values.append(_INTEGERS[form].unpack_from(body, at)[0])
            at += 8
        elif form == "r":
            values.append(Retention(*_RETENTION.unpack_from(body, at)))
            at += _RETENTION.size
        else:
            (size,) = _SIZE.unpack_from(body, at)
            at += _SIZE.size
            value = body[at : at + size]
            if len(value) != size:
                raise DamageError("a change is cut off")
            values.append(value.decode("utf-8", "surrogatepass") if form == "s" else value)
            at += size
    if at != len(body):
        raise DamageError("a change has more than its fields")
    return values
