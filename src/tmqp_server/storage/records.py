"""Owns the block as it is written: messages of one queue, many of them in one piece.

The format, and how it is read, stand in :mod:`tmqp.blocks`, for clients read blocks too.  What is
damaged here is a :class:`DamageError`, as the port has it.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from tmqp import blocks
from tmqp.blocks import ENTRY_SIZE, Block, StoredMessage
from tmqp_server.storage.port import DamageError
from tmqp_server.storage.stored_runs import StoredRun

__all__ = [
    "decode_block",
    "decode_index",
    "encode_block",
    "encode_runs",
    "survey",
]

_MAGIC: Final = b"TMQB"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHHIIQQQQQI")
_CRC: Final = struct.Struct("<I")
#: Entries are written several at a time: one call costs as much as some numbers.
_SEVERAL: Final = 16
#: The same entry as numbers to pack, 8 bytes each.
_FIELDS: Final = 7
_PACKED: Final = struct.Struct("<QqqqQQQ")
_ENTRIES: Final = struct.Struct("<" + "QqqqQQQ" * _SEVERAL)


def encode_block(key: int, messages: list[StoredMessage]) -> bytes:
    """The messages of one queue, in rising sequence, as a block.

    :raises ValueError: when there is none, when sequences do not rise, or when a number of a
        message has no place in its field.
    """
    if not messages:
        raise ValueError("a block has one message at least")
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
            # Neighbouring small fields go as one number: half the numbers to pack.  So what does
            # not fit its field must be found here.
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
    return _block(key, len(messages), first, last, parts, b"".join(bodies))


def encode_runs(key: int, runs: list[StoredRun]) -> bytes:
    """The same of runs, with what is settled of them.

    :raises ValueError: as :func:`encode_block`.
    """
    if not runs:
        raise ValueError("a block has one message at least")
    parts: list[bytes] = [b""]
    position = 0
    count = 0
    before = -1
    try:
        for run in runs:
            if run.first <= before:
                raise ValueError(f"sequence {run.first} does not follow {before}")
            before = run.last
            parts.append(run.index(position))
            position += len(run.bodies)
            count += run.count
    except OverflowError as error:
        raise ValueError(f"a message does not fit the format: {error}") from None
    payload = b"".join([run.bodies for run in runs])
    return _block(key, count, runs[0].first, before, parts, payload)


def _block(
    key: int, count: int, first: int, last: int, parts: list[bytes], payload: bytes
) -> bytes:
    """A block of entries, of which the first part is missing still, and bodies."""
    size = len(payload)
    crc = crc32(payload)
    try:
        head = _HEAD.pack(_MAGIC, _VERSION, 0, count, ENTRY_SIZE, key, first, last, size, 0, crc)
    except struct.error as error:
        raise ValueError(f"a number does not fit the format: {error}") from None
    parts[0] = head
    index = b"".join(parts)
    return b"".join([head, _CRC.pack(crc32(index)), index[len(head) :], payload])


def survey(messages: list[StoredMessage]) -> tuple[int, int, int]:
    """Of some messages: the size of all bodies, all flags that any has, the newest timestamp."""
    size = flags = newest_us = 0
    for message in messages:
        size += len(message.body)
        flags |= message.flags
        timestamp_us = message.timestamp_us
        newest_us = max(newest_us, timestamp_us)
    return size, flags, newest_us


def decode_block(data: bytes) -> Block:
    """Read a block, all of it.

    :raises DamageError: when it is no block or not what was written; the text says why.
    """
    return blocks.decode_block(data, DamageError)


def decode_index(data: bytes) -> Block:
    """Read head and index of a block, whatever else is there: for all but the bodies.

    :raises DamageError: as :func:`decode_block`.
    """
    return blocks.decode_index(data, DamageError)
