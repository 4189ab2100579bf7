"""Writes blocks; :mod:`tmqp.blocks` reads them and describes their format."""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from tmqp.blocks import ENTRY_SIZE, StoredMessage

__all__ = ["assembled_block", "encode_block"]

_MAGIC: Final = b"TMQB"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHHIIQQQQQI")
_CRC: Final = struct.Struct("<I")
#: Entries are packed several at a time, because a call costs as much as packing some numbers.
_SEVERAL: Final = 16
#: The same entry as numbers to pack, 8 bytes each.
_FIELDS: Final = 7
_PACKED: Final = struct.Struct("<QqqqQQQ")
_ENTRIES: Final = struct.Struct("<" + "QqqqQQQ" * _SEVERAL)


def encode_block(key: int, messages: list[StoredMessage]) -> bytes:
    """Encode the messages of one queue, in the order of their sequences, as a block.

    :raises ValueError: if there are none, if sequences do not increase, or if a number does not fit
        into its field.
    """
    if not messages:
        raise ValueError("a block needs at least one message")
    parts: list[bytes] = [b""]
    bodies: list[bytes] = []
    numbers: list[int] = []
    position = 0
    before = -1
    try:
        for message in messages:
            body = message.body
            size = len(body)
            sequence = message.sequence
            if sequence <= before:
                raise ValueError(f"sequence {sequence} does not follow {before}")
            before = sequence
            numbers.append(sequence)
            numbers.append(message.timestamp_us)
            numbers.append(message.expires_us)
            numbers.append(message.due_us)
            payload_offset = message.payload_offset
            payload_size = message.payload_size
            flags = message.flags
            attempts = message.attempts
            put_backs = message.put_backs
            hops = message.hops
            # Neighbouring small fields are packed as one number, which halves the numbers.  So this
            # must find values that do not fit into their fields.
            if (position | size | payload_offset | payload_size) >> 32 or (
                flags | attempts | put_backs | hops
            ) >> 16:
                raise ValueError(f"message {sequence} does not fit the format")
            numbers.append(position | size << 32)
            numbers.append(payload_offset | payload_size << 32)
            numbers.append(flags | attempts << 16 | put_backs << 32 | hops << 48)
            if len(numbers) == _FIELDS * _SEVERAL:
                parts.append(_ENTRIES.pack(*numbers))
                numbers.clear()
            position += size
            bodies.append(body)
        for start in range(0, len(numbers), _FIELDS):
            parts.append(_PACKED.pack(*numbers[start : start + _FIELDS]))
    except struct.error as error:
        raise ValueError(f"a message does not fit the format: {error}") from None
    first = messages[0].sequence
    last = messages[len(messages) - 1].sequence
    return assembled_block(key, len(messages), first, last, parts, b"".join(bodies))


def assembled_block(
    key: int, count: int, first: int, last: int, parts: list[bytes], payload: bytes
) -> bytes:
    """Make a block from its entries and bodies.

    :raises ValueError: if a number does not fit into its field.
    """
    size = len(payload)
    crc = crc32(payload)
    try:
        head = _HEAD.pack(_MAGIC, _VERSION, 0, count, ENTRY_SIZE, key, first, last, size, 0, crc)
    except struct.error as error:
        raise ValueError(f"a number does not fit the format: {error}") from None
    parts[0] = head
    index = b"".join(parts)
    return b"".join([head, _CRC.pack(crc32(index)), index[len(head) :], payload])
