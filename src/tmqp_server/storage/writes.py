"""Encodes the writes of the log of recent writes, and finds them again.

Theory of operation.  The log is a sequence of *writes*, each on a boundary of ``ALIGNMENT`` bytes.
A write is a head, a block (``records``) for the new messages of each queue, then what is settled
and what was noted.  All numbers are little endian.

::

    head                                  then
    0  4   magic "TMQW"                   the blocks
    4  u16 version, 1                     for each queue with settled messages: u64 key,
    6  u16 generation, bits 32 to 47        u32 count, u32 0, count sequences (u64)
    8  u32 size of the write              for each note: u64 key, u64 sequence,
    12 u32 CRC-32, see below                u16 attempts, u16 put backs, u32 0
    16 u64 number of the write
    24 8   the turn
    32 u64 Unix time, microseconds
    40 u32 blocks
    44 u32 queues with settled messages
    48 u32 notes
    52 u32 generation, bits 0 to 31

The checksum covers the head (except itself), the heads of the blocks, which have checksums of the
rest of the blocks, and everything after the blocks.

Writes have consecutive numbers.  Each time that the log restarts, it gets a new *turn*, a random
secret of 8 bytes, so neither the rest of an earlier turn nor bytes from a client can be mistaken
for a write of this turn.  The *generation* says which transaction of the database the write follows
(``sqlite.witness``); earlier releases wrote 0.

The last write may be cut off by a crash; it was not confirmed.  One that cannot be read and is
followed by others of its turn was confirmed: it is reported as damaged.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from tmqp.block_writing import encode_block
from tmqp.blocks import ENTRY_SIZE, HEAD_SIZE, StoredMessage
from tmqp_server.storage.port import DamageError, Note, StoreBatch
from tmqp_server.storage.records import decode_block, encode_runs
from tmqp_server.storage.stored_runs import unrolled

__all__ = [
    "ALIGNMENT",
    "TURN_SIZE",
    "Write",
    "block_size",
    "decode_groups",
    "decode_notes",
    "encode_groups",
    "encode_notes",
    "encode_write",
    "read_writes",
]

#: No write shares a sector with another one.
ALIGNMENT: Final = 512
TURN_SIZE: Final = 8

_MAGIC: Final = b"TMQW"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHHIIQ8sQIIII")
_WRITE_HEAD_SIZE: Final = 56
_CRC_AT: Final = 12
_BEHIND_CRC: Final = 16
_CRC: Final = struct.Struct("<I")
_GROUP: Final = struct.Struct("<QII")
_GROUP_SIZE: Final = 16
_NOTE: Final = struct.Struct("<QQHHI")
_NOTE_SIZE: Final = 24
_SEQUENCE_SIZE: Final = 8
_COUNT: Final = struct.Struct("<I")
_SIZE: Final = struct.Struct("<Q")


class Write:
    """A write that was found: its number, its turn, when it was made, and its contents.

    ``generation`` is the transaction of the database that it follows.
    """

    __slots__ = ("batch", "generation", "now_us", "number", "size", "turn")

    def __init__(
        self,
        number: int,
        turn: bytes,
        now_us: int,
        size: int,
        batch: StoreBatch,
        generation: int,
    ) -> None:
        self.number = number
        self.turn = turn
        self.now_us = now_us
        self.size = size
        self.batch = batch
        self.generation = generation


def encode_write(
    number: int, turn: bytes, now_us: int, batch: StoreBatch, generation: int = 0
) -> bytes:
    """A batch without changes of topology as a write of the log, padded.

    :param generation: the transaction of the database that the write follows, below 2**48.

    :raises ValueError: when a message does not fit the format, or sequences do not increase.
    """
    parts: list[bytes] = [b""]
    heads: list[bytes] = []
    for key, singles in batch.appended.items():
        runs = batch.runs.get(key)
        messages = unrolled(singles, runs) if runs else singles
        if messages:
            block = encode_block(key, messages)
            heads.append(block[:HEAD_SIZE])
            parts.append(block)
    for key, runs in batch.runs.items():
        if key not in batch.appended:
            block = encode_runs(key, runs)
            heads.append(block[:HEAD_SIZE])
            parts.append(block)
    blocks = len(heads)
    settled, groups = encode_groups(batch.settled)
    heads += (settled, encode_notes(batch.notes))
    parts.append(b"".join(heads[blocks:]))
    size = _WRITE_HEAD_SIZE + sum([len(part) for part in parts])
    if size >> 32:
        raise ValueError(f"a write of {size} bytes is too large")
    high, low = generation >> 32, generation & 0xFFFFFFFF
    head = _HEAD.pack(
        _MAGIC, _VERSION, high, size, 0, number, turn, now_us, blocks, groups, len(batch.notes), low
    )
    crc = crc32(head[_BEHIND_CRC:], crc32(head[:_CRC_AT]))
    crc = crc32(b"".join(heads), crc)
    parts[0] = b"".join([head[:_CRC_AT], _CRC.pack(crc), head[_BEHIND_CRC:]])
    parts.append(bytes(-size % ALIGNMENT))
    return b"".join(parts)


def read_writes(data: bytes, carried: int, turns: set[bytes]) -> tuple[list[Write], list[str]]:
    """Read the writes of a log after the one with the number ``carried``, and what is wrong with
    the log.

    :param turns: the log's possible turns, known from the database.
    """
    found: list[Write] = []
    problems: list[str] = []
    turns = set(turns)
    at = 0
    number = -1
    while True:
        write = _write_at(data, at)
        if (
            write is not None
            and number >= 0
            and (write.number != number or write.turn not in turns)
        ):
            write = None
        if write is None:
            at = _next(data, at, max(number, carried + 1), turns)
            if at < 0:
                return found, problems
            write = _write_at(data, at)
            assert write is not None
            problems.append(_told(max(number, carried + 1), write.number - 1, "damaged"))
        elif number < 0:
            turns.add(write.turn)
            if write.number > carried + 1:
                problems.append(_told(carried + 1, write.number - 1, "missing"))
        if write.number > carried:
            found.append(write)
        number = write.number + 1
        at += write.size + -write.size % ALIGNMENT


def _told(first: int, last: int, what: str) -> str:
    return f"writes {first} to {last} are {what}" if last > first else f"write {first} is {what}"


def _next(data: bytes, at: int, number: int, turns: set[bytes]) -> int:
    """The place of the next write after a damaged one; -1 if there is none."""
    while True:
        at = data.find(_MAGIC, at + 1)
        if at < 0:
            return -1
        if at % ALIGNMENT == 0 and data[at + 24 : at + 32] in turns:
            write = _write_at(data, at)
            if write is not None and write.number > number:
                return at


def _write_at(data: bytes, at: int) -> Write | None:
    """The write at a place; None if there is none, or only a part of it."""
    if len(data) - at < _WRITE_HEAD_SIZE or data[at : at + 4] != _MAGIC:
        return None
    head = data[at : at + _WRITE_HEAD_SIZE]
    _, version, high, size, crc, number, turn, now_us, blocks, groups, notes, low = _HEAD.unpack(
        head
    )
    if version != _VERSION or size > len(data) - at:
        return None
    end = at + size
    place = at + _WRITE_HEAD_SIZE
    batch = StoreBatch()
    found = crc32(head[_BEHIND_CRC:], crc32(head[:_CRC_AT]))
    for _ in range(blocks):
        length = block_size(data, place, end)
        if not length:
            return None
        found = crc32(data[place : place + HEAD_SIZE], found)
        try:
            block = decode_block(data[place : place + length])
        except DamageError:
            return None
        messages: list[StoredMessage] = block.messages()
        batch.appended[block.key] = messages
        place += length
    if crc32(data[place:end], found) != crc:
        return None
    place = decode_groups(data, place, groups, batch.settled)
    decode_notes(data, place, notes, batch.notes)
    return Write(number, turn, now_us, size, batch, high << 32 | low)


def encode_groups(settled: dict[int, list[int]]) -> tuple[bytes, int]:
    """Encode the settled sequences of each queue; also return the number of queues.

    :raises ValueError: when a number does not fit.
    """
    parts: list[bytes] = []
    groups = 0
    try:
        for key, sequences in settled.items():
            if sequences:
                groups += 1
                count = len(sequences)
                parts.append(_GROUP.pack(key, count, 0))
                parts.append(struct.pack(f"<{count}Q", *sequences))
    except struct.error as error:
        raise ValueError(f"a number does not fit the format: {error}") from None
    return b"".join(parts), groups


def encode_notes(notes: list[Note]) -> bytes:
    """Encode notes, one after another.

    :raises ValueError: when a number does not fit.
    """
    try:
        return b"".join(
            [
                _NOTE.pack(each.key, each.sequence, each.attempts, each.put_backs, 0)
                for each in notes
            ]
        )
    except struct.error as error:
        raise ValueError(f"a number does not fit the format: {error}") from None


def decode_groups(data: bytes, place: int, groups: int, settled: dict[int, list[int]]) -> int:
    """Decode the settled sequences of *count* queues from a place on; return the place after them.

    :raises struct.error: when the data is cut off.
    """
    for _ in range(groups):
        key, count, _ = _GROUP.unpack_from(data, place)
        place += _GROUP_SIZE
        settled[key] = list(struct.unpack_from(f"<{count}Q", data, place))
        place += _SEQUENCE_SIZE * count
    return place


def decode_notes(data: bytes, place: int, count: int, notes: list[Note]) -> int:
    """Decode *count* notes from a place on; return the place after them.

    :raises struct.error: when the data is cut off.
    """
    for _ in range(count):
        key, sequence, attempts, put_backs, _ = _NOTE.unpack_from(data, place)
        notes.append(Note(key, sequence, attempts, put_backs))
        place += _NOTE_SIZE
    return place


def block_size(data: bytes, at: int, end: int) -> int:
    """The size of the block at a place; 0 if no block can be there."""
    if end - at < HEAD_SIZE:
        return 0
    count: int = _COUNT.unpack_from(data, at + 8)[0]
    body_size: int = _SIZE.unpack_from(data, at + 40)[0]
    size = HEAD_SIZE + ENTRY_SIZE * count + body_size
    return size if size <= end - at else 0
