"""Owns the block: how messages of one queue are written down, many of them in one piece.

Theory of operation.  A block is a head of 64 bytes, an index with one entry of 56 bytes for each
message, and the bodies one after another.  All numbers are little endian and have a fixed width, so
that any tool can read the index as a table without this module.

::

    head                         entry                          then
    0  4  magic "TMQB"           0  u64  sequence               the bodies, each at its position
    4  u16  version, 1           8  i64  timestamp_us           (counted from the end of the index)
    6  u16  flags, 0            16  i64  expires_us, 0 never
    8  u32  count               24  i64  due_us, 0 at once
    12 u32  size of an entry    32  u32  position
    16 u64  key of the queue    36  u32  size
    24 u64  first sequence      40  u32  payload offset
    32 u64  last sequence       44  u32  payload size
    40 u64  size of all bodies  48  u16  flags
    48 u64  0                   50  u16  attempts
    56 u32  CRC-32 of bodies    52  u16  put backs
    60 u32  CRC-32 of the head  54  u16  hops
            so far and index

The head's checksum covers the bodies' one, so together they cover every bit; and head and index
can be judged without the bodies.  Sequences rise from entry to entry.  Lengths are never trusted:
each is compared with what is there before it is used.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from tmqp_server.storage.port import DamageError, StoredMessage

__all__ = [
    "ENTRY_SIZE",
    "HEAD_SIZE",
    "MAX_COUNT",
    "Block",
    "decode_block",
    "decode_index",
    "encode_block",
    "index_end",
    "survey",
]

HEAD_SIZE: Final = 64
ENTRY_SIZE: Final = 56
#: Messages in one block at most, so that a size computed from a count stays small.
MAX_COUNT: Final = 1_000_000

_MAGIC: Final = b"TMQB"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHHIIQQQQQI")
_CRC: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<QqqqIIIIHHHH")
_SEQUENCE: Final = struct.Struct("<Q")
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
    count = len(messages)
    last = messages[count - 1].sequence
    payload = b"".join(bodies)
    body_crc = crc32(payload)
    head = _HEAD.pack(
        _MAGIC, _VERSION, 0, count, ENTRY_SIZE, key, first, last, position, 0, body_crc
    )
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


class Block:
    """A block that was read: gives its messages one by one, without decoding the others.

    ``first`` and ``last`` are sequences; ``body_size`` is that of all bodies together.
    """

    __slots__ = ("data", "key", "count", "first", "last", "body_size", "_bodies")

    def __init__(
        self, data: bytes, key: int, count: int, first: int, last: int, body_size: int
    ) -> None:
        self.data = data
        self.key = key
        self.count = count
        self.first = first
        self.last = last
        self.body_size = body_size
        self._bodies = HEAD_SIZE + ENTRY_SIZE * count

    def sequence(self, index: int) -> int:
        """The sequence of a message by its place in the block."""
        found: int = _SEQUENCE.unpack_from(self.data, HEAD_SIZE + ENTRY_SIZE * index)[0]
        return found

    def find(self, sequence: int) -> int:
        """The place of the first message whose sequence is at least this; ``count`` if none."""
        if sequence <= self.first:
            return 0
        if sequence > self.last:
            return self.count
        if self.last - self.first + 1 == self.count:
            return sequence - self.first
        low, high = 0, self.count - 1
        while low < high:
            middle = (low + high) // 2
            if self.sequence(middle) < sequence:
                low = middle + 1
            else:
                high = middle
        return low

    def size(self, index: int) -> int:
        """The size of a message's body, in bytes."""
        return int(_ENTRY.unpack_from(self.data, HEAD_SIZE + ENTRY_SIZE * index)[5])

    def timestamp_us(self, index: int) -> int:
        """When a message came, in microseconds of Unix time."""
        return int(_ENTRY.unpack_from(self.data, HEAD_SIZE + ENTRY_SIZE * index)[1])

    def message(self, index: int) -> StoredMessage:
        """A message by its place in the block.

        :raises DamageError: when its entry points outside the bodies.
        """
        (
            sequence,
            timestamp_us,
            expires_us,
            due_us,
            position,
            size,
            payload_offset,
            payload_size,
            flags,
            attempts,
            put_backs,
            hops,
        ) = _ENTRY.unpack_from(self.data, HEAD_SIZE + ENTRY_SIZE * index)
        if position + size > self.body_size or payload_offset + payload_size > size:
            raise DamageError(f"message {sequence} of queue {self.key}: its place is impossible")
        start = self._bodies + position
        return StoredMessage(
            sequence,
            timestamp_us,
            expires_us,
            due_us,
            flags,
            attempts,
            put_backs,
            hops,
            payload_offset,
            payload_size,
            self.data[start : start + size],
        )

    def messages(self) -> list[StoredMessage]:
        """All messages, in rising sequence."""
        return [self.message(index) for index in range(self.count)]

    def part(self, first: int, last: int) -> bytes:
        """The messages from sequence ``first`` to ``last`` as a block of their own; or none."""
        if first <= self.first and last >= self.last:
            return self.data
        begin, end = self.find(first), self.find(last + 1)
        if begin >= end:
            return b""
        return encode_block(self.key, [self.message(index) for index in range(begin, end)])


def index_end(count: int) -> int:
    """Where the bodies of a block with ``count`` messages begin: so much is for decode_index."""
    return HEAD_SIZE + ENTRY_SIZE * count


def decode_block(data: bytes) -> Block:
    """Read a block, all of it.

    :raises DamageError: when it is no block or not what was written; the text says why.
    """
    block = decode_index(data)
    end = index_end(block.count)
    if len(data) != end + block.body_size:
        raise DamageError(
            f"{_name(block)}: {len(data)} bytes are there, not {end + block.body_size}"
        )
    if crc32(data[end:]) != _CRC.unpack_from(data, HEAD_SIZE - 8)[0]:
        raise DamageError(f"{_name(block)}: the checksum of the bodies does not fit")
    return block


def decode_index(data: bytes) -> Block:
    """Read head and index of a block, whatever else is there: for all but the bodies.

    :raises DamageError: as :func:`decode_block`.
    """
    if len(data) < HEAD_SIZE:
        raise DamageError(f"a block has a head of {HEAD_SIZE} bytes, here are {len(data)}")
    magic, version, _, count, entry_size, key, first, last, body_size, _, _ = _HEAD.unpack_from(
        data, 0
    )
    if magic != _MAGIC:
        raise DamageError("this is no block: the first bytes are wrong")
    if version != _VERSION:
        raise DamageError(f"a block of version {version}; only {_VERSION} is known")
    block = Block(data, key, count, first, last, body_size)
    if entry_size != ENTRY_SIZE or not 1 <= count <= MAX_COUNT:
        raise DamageError(f"{_name(block)}: {count} entries of {entry_size} bytes are impossible")
    end = index_end(count)
    if len(data) < end:
        raise DamageError(f"{_name(block)}: the index has {end} bytes, {len(data)} are there")
    crc = crc32(data[HEAD_SIZE:end], crc32(data[: HEAD_SIZE - 4]))
    if crc != _CRC.unpack_from(data, HEAD_SIZE - 4)[0]:
        raise DamageError(f"{_name(block)}: the checksum of head and index does not fit")
    return block


def _name(block: Block) -> str:
    return f"messages {block.first} to {block.last} of queue {block.key}"
