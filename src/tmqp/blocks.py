"""Read blocks: up to 1,024 kept messages of one queue with an index.

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

The head's checksum covers that of the bodies, so together they cover every bit, and head and index
can be checked without the bodies.  Sequences increase from entry to entry.  Every length is checked
against the available bytes before it is used.

A server stores its messages in blocks, and answers range reads with consecutive blocks
(:func:`split_blocks`), or with heads and indexes alone (:func:`split_indexes`).  The door defines a
message's body: for TMQP, it is the whole message as it arrived.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from tmqp._compat import mypyc_attr
from tmqp.errors import TmqpError

__all__ = [
    "AS_BLOCKS",
    "AS_COLUMNS",
    "AS_INDEXES",
    "AS_REFERENCES",
    "DOOR_NATIVE",
    "ENTRY_SIZE",
    "FLAG_COPY",
    "FLAG_DOOR_SHIFT",
    "FLAG_FED",
    "FLAG_HIGH",
    "FLAG_IN_FLIGHT",
    "FLAG_TRANSIENT",
    "FLAG_WANTS",
    "HEAD_SIZE",
    "MAX_COUNT",
    "Block",
    "BlockError",
    "StoredMessage",
    "decode_block",
    "decode_index",
    "head_of",
    "index_end",
    "others_in",
    "split_blocks",
    "split_indexes",
]

HEAD_SIZE: Final = 64
ENTRY_SIZE: Final = 56
#: The most messages in one block, so that a size computed from a count stays small.
MAX_COUNT: Final = 1_000_000

_MAGIC: Final = b"TMQB"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHHIIQQQQQI")
_CRC: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<QqqqIIIIHHHH")
#: The offset of the upper byte of the flags in an entry.
_DOOR_AT: Final = 49
_COUNT: Final = struct.Struct("<I")
_SEQUENCE: Final = struct.Struct("<Q")

#: The form in which kept messages are requested: whole blocks, their heads and indexes, or
#: references to blocks in a database (:mod:`tmqp.references`).  ``AS_COLUMNS`` and larger numbers
#: are ``AS_COLUMNS`` plus the bits of the requested columns (:mod:`tmqp.block_columns`).
AS_BLOCKS: Final = 0
AS_INDEXES: Final = 1
AS_REFERENCES: Final = 2
AS_COLUMNS: Final = 1 << 16

#: The message is delivered before every regular one.
FLAG_HIGH: Final = 1
#: Its producer requested an acknowledgement.
FLAG_WANTS: Final = 2
#: It is on disk only to save memory, and does not survive a restart.
FLAG_TRANSIENT: Final = 4
#: A feed copied it: its body names a different queue from the one that has it.
FLAG_COPY: Final = 8
#: It is in flight; only in answers to requests that browse a queue.
FLAG_IN_FLIGHT: Final = 128
#: The feeds of its queue have copied it; only in a server's store.
FLAG_FED: Final = 128
#: Bits 8 to 15 of the flags: the door that can read the body.
FLAG_DOOR_SHIFT: Final = 8
#: The door whose bodies are messages of this protocol.
DOOR_NATIVE: Final = 1


class BlockError(TmqpError):
    """The bytes are not a valid block, or were damaged; the text says why."""


@mypyc_attr(acyclic=True)
class StoredMessage:
    """One message in its stored form.

    Times are microseconds of Unix time; ``expires_us`` and ``due_us`` are 0 for never and
    immediately.  ``body`` is in the door's format; the payload begins at ``payload_offset`` in it
    and has ``payload_size`` bytes.  ``attempts``, ``put_backs`` and ``hops`` belong to the engine,
    each at most 65,535.
    """

    __slots__ = (
        "sequence",
        "timestamp_us",
        "expires_us",
        "due_us",
        "flags",
        "attempts",
        "put_backs",
        "hops",
        "payload_offset",
        "payload_size",
        "body",
    )

    def __init__(
        self,
        sequence: int,
        timestamp_us: int,
        expires_us: int,
        due_us: int,
        flags: int,
        attempts: int,
        put_backs: int,
        hops: int,
        payload_offset: int,
        payload_size: int,
        body: bytes,
    ) -> None:
        self.sequence = sequence
        self.timestamp_us = timestamp_us
        self.expires_us = expires_us
        self.due_us = due_us
        self.flags = flags
        self.attempts = attempts
        self.put_backs = put_backs
        self.hops = hops
        self.payload_offset = payload_offset
        self.payload_size = payload_size
        self.body = body

    def __repr__(self) -> str:
        numbers = (
            f"sequence={self.sequence}, timestamp_us={self.timestamp_us},"
            f" expires_us={self.expires_us}, due_us={self.due_us}, flags={self.flags},"
            f" attempts={self.attempts}, put_backs={self.put_backs}, hops={self.hops},"
            f" payload_offset={self.payload_offset}, payload_size={self.payload_size}"
        )
        return f"StoredMessage({numbers}, body={self.body!r})"

    @property
    def payload(self) -> bytes:
        """The producer's payload, a part of the body."""
        return self.body[self.payload_offset : self.payload_offset + self.payload_size]


class Block:
    """A block that was read; it decodes its messages one by one, on demand.

    ``first`` and ``last`` are sequences; ``body_size`` is that of all bodies together.
    """

    __slots__ = ("data", "key", "count", "first", "last", "body_size", "_bodies", "_error")

    def __init__(
        self,
        data: bytes,
        key: int,
        count: int,
        first: int,
        last: int,
        body_size: int,
        error: type[Exception],
    ) -> None:
        self.data = data
        self.key = key
        self.count = count
        self.first = first
        self.last = last
        self.body_size = body_size
        self._error = error
        self._bodies = HEAD_SIZE + ENTRY_SIZE * count

    def sequence(self, index: int) -> int:
        """Return the sequence of a message by its index in the block."""
        found: int = _SEQUENCE.unpack_from(self.data, HEAD_SIZE + ENTRY_SIZE * index)[0]
        return found

    def find(self, sequence: int) -> int:
        """Return the index of the first message whose sequence is at least this; ``count`` if there
        is none."""
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
        """Return the size of a message's body, in bytes."""
        return int(_ENTRY.unpack_from(self.data, HEAD_SIZE + ENTRY_SIZE * index)[5])

    def timestamp_us(self, index: int) -> int:
        """Return the arrival time of a message, in microseconds of Unix time."""
        return int(_ENTRY.unpack_from(self.data, HEAD_SIZE + ENTRY_SIZE * index)[1])

    def message(self, index: int) -> StoredMessage:
        """Return a message by its index in the block.

        :raises BlockError: if its entry points outside the bodies.
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
            raise self._error(f"message {sequence} of queue {self.key}: its place is invalid")
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
        """Return all messages, in order of their sequences."""
        return [self.message(index) for index in range(self.count)]


def head_of(data: bytes) -> tuple[int, int, int, int, int]:
    """Return the fields of a block's head: key, first and last sequence, count, size of all bodies.

    Nothing is checked; *data* must have at least the size of a head.
    """
    _, _, _, count, _, key, first, last, body_size, _, _ = _HEAD.unpack_from(data, 0)
    return key, first, last, count, body_size


def others_in(data: bytes) -> bool:
    """Return whether a block has messages of other doors, whose bodies are in the formats of their
    protocols.

    Nothing is checked: the code that reads the block must refuse an invalid one.
    """
    if len(data) < HEAD_SIZE or not data.startswith(_MAGIC):
        return False
    doors = data[HEAD_SIZE + _DOOR_AT : index_end(head_of(data)[3]) : ENTRY_SIZE]
    return doors.count(DOOR_NATIVE) != len(doors)


def index_end(count: int) -> int:
    """Return where the bodies of a block with ``count`` messages begin; decode_index needs the
    bytes before."""
    return HEAD_SIZE + ENTRY_SIZE * count


def decode_block(data: bytes, error: type[Exception] = BlockError) -> Block:
    """Read a whole block.

    :param error: the class of the error to raise.
    :raises BlockError: or ``error``, if it is not a valid block, or damaged; the text says why.
    """
    block = decode_index(data, error)
    end = index_end(block.count)
    if len(data) != end + block.body_size:
        raise error(f"{_name(block)}: {len(data)} bytes, not {end + block.body_size}")
    if crc32(data[end:]) != _CRC.unpack_from(data, HEAD_SIZE - 8)[0]:
        raise error(f"{_name(block)}: the checksum of the bodies does not match")
    return block


def split_blocks(data: bytes) -> list[Block]:
    """Read consecutive blocks, such as the answer to a range read.

    :raises BlockError: if one is invalid.
    """
    blocks: list[Block] = []
    start = 0
    while start < len(data):
        count = _count_at(data, start)
        body_size: int = _SEQUENCE.unpack_from(data, start + 40)[0]
        end = start + index_end(count) + body_size
        blocks.append(decode_block(data[start:end]))
        start = end
    return blocks


def split_indexes(data: bytes) -> list[Block]:
    """Read consecutive heads and indexes of blocks, without their bodies.

    The blocks have everything except the bodies of their messages: do not call
    :meth:`Block.message`.

    :raises BlockError: if one is invalid.
    """
    blocks: list[Block] = []
    start = 0
    while start < len(data):
        end = start + index_end(_count_at(data, start))
        blocks.append(decode_index(data[start:end]))
        start = end
    return blocks


def _count_at(data: bytes, start: int) -> int:
    """Return how many messages the block has whose head begins here."""
    if len(data) - start < HEAD_SIZE:
        raise BlockError(f"{len(data) - start} trailing bytes are not a valid block")
    count: int = _COUNT.unpack_from(data, start + 8)[0]
    return count


def decode_index(data: bytes, error: type[Exception] = BlockError) -> Block:
    """Read the head and the index of a block; further bytes are ignored.

    :param error: as in :func:`decode_block`.
    :raises BlockError: as in :func:`decode_block`.
    """
    if len(data) < HEAD_SIZE:
        raise error(f"a block has a head of {HEAD_SIZE} bytes, here are {len(data)}")
    magic, version, _, count, entry_size, key, first, last, body_size, _, _ = _HEAD.unpack_from(
        data, 0
    )
    if magic != _MAGIC:
        raise error("not a block: the first bytes are wrong")
    if version != _VERSION:
        raise error(f"a block of version {version}; only {_VERSION} is known")
    block = Block(data, key, count, first, last, body_size, error)
    if entry_size != ENTRY_SIZE or not 1 <= count <= MAX_COUNT:
        raise error(f"{_name(block)}: {count} entries of {entry_size} bytes are invalid")
    end = index_end(count)
    if len(data) < end:
        raise error(f"{_name(block)}: the index has {end} bytes, {len(data)} are there")
    crc = crc32(data[HEAD_SIZE:end], crc32(data[: HEAD_SIZE - 4]))
    if crc != _CRC.unpack_from(data, HEAD_SIZE - 4)[0]:
        raise error(f"{_name(block)}: the checksum of head and index does not match")
    return block


def _name(block: Block) -> str:
    return f"messages {block.first} to {block.last} of queue {block.key}"
