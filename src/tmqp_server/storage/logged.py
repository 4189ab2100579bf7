"""A write in a replicated log: encodes and decodes version 2 of the format of writes.

Theory of operation.  Every change of a replicated store goes through the log first, so a logged
write can have everything that a :class:`StoreBatch` has, with three differences.  Portions are
already messages.  Transient messages, which a server has on disk only to save memory, are left out;
their sequences are noted as *used*, because sequences are never reused.  Bodies that are staged for
a transaction are left out, because a transaction ends with its server.

The log accepts entries of at most 1 MiB, so a write is one entry or several consecutive *parts*. It
is valid when the log has its last part.  A server that ends between two parts leaves an incomplete
write; the next leader's ``BEGIN`` entry follows it, and readers drop it.

All numbers are little endian::

    entry                                 write, from the parts together
    0  4   magic "TMQW"                   0  u32 bytes of changes (``changes``)
    4  u16 version, 2                     4  u32 blocks
    6  u8  kind: write 1, begin 2, end 3  8  u32 portions
    7  u8  0                              12 u32 queues with settled messages
    8  u32 size of the entry              16 u32 notes
    12 u32 CRC-32 of all the rest         20 u32 queues with used sequences
    16 u64 number                         24 changes, blocks, portions (blocks, too),
    24 u64 epoch                             for each queue with settled messages: u64 key,
    32 u64 Unix time, microseconds             u32 count, u32 0, count sequences (u64)
    40 u32 part, from 0                      for each note: u64 key, u64 sequence,
    44 u32 parts                               u16 attempts, u16 put backs, u32 0
    48 its part of the write                 for each used sequence: u64 key, u64 sequence

A ``begin`` entry has JSON instead of a write: the ``node``, its ``address``, and the id of the
``store``.  An ``end`` entry is empty: its leader stopped cleanly, and the log has all settlements.
"""

from __future__ import annotations

import json
import struct
from typing import Final
from zlib import crc32

from tmqp.block_writing import encode_block
from tmqp.blocks import FLAG_TRANSIENT, StoredMessage
from tmqp_server.storage.changes import decode_changes, encode_changes
from tmqp_server.storage.gathered import Sealed
from tmqp_server.storage.log import MOST_ENTRY_BYTES, LogEntry
from tmqp_server.storage.port import DamageError, StoreBatch
from tmqp_server.storage.records import decode_block, encode_runs
from tmqp_server.storage.stored_runs import unrolled
from tmqp_server.storage.writes import (
    block_size,
    decode_groups,
    decode_notes,
    encode_groups,
    encode_notes,
)

__all__ = [
    "BEGIN",
    "END",
    "MOST_WRITE_BYTES",
    "WRITE",
    "LogReader",
    "Logged",
    "encode_begin",
    "encode_end",
    "encode_logged",
    "payload_of",
]

#: Kinds of entries.
WRITE: Final = 1
BEGIN: Final = 2
END: Final = 3

#: A larger write is refused: every server of the group holds one in memory as a whole.
MOST_WRITE_BYTES: Final = 256 << 20

_MAGIC: Final = b"TMQW"
_VERSION: Final = 2
_HEAD: Final = struct.Struct("<4sHBBIIQQQII")
_CRC_AT: Final = 12
_BEHIND_CRC: Final = 16
_CRC: Final = struct.Struct("<I")
_COUNTS: Final = struct.Struct("<6I")
_USED: Final = struct.Struct("<QQ")


class Logged:
    """The content of an entry, or of several entries that are the parts of one write.

    ``number`` is that of the last part, ``first`` that of the first one.  ``used`` has the highest
    sequence of queues whose last messages are transient.  ``node``, ``address`` and ``store`` are
    those of a ``BEGIN``.
    """

    __slots__ = (
        "address",
        "batch",
        "epoch",
        "first",
        "kind",
        "node",
        "now_us",
        "number",
        "store",
        "used",
    )

    def __init__(self, kind: int, epoch: int, first: int, number: int, now_us: int) -> None:
        self.kind = kind
        self.epoch = epoch
        self.first = first
        self.number = number
        self.now_us = now_us
        self.batch = StoreBatch()
        self.used: dict[int, int] = {}
        self.node = ""
        self.address = ""
        self.store = ""


# --- Writing -------------------------------------------------------------------------------------


def payload_of(batch: StoreBatch) -> bytes:
    """Encode a batch as a logged write; staged portions must have been loaded.

    :raises ValueError: when a message or a number does not fit the format, sequences do not
        increase, or the write is too large.
    """
    used: dict[int, int] = {}
    blocks: list[bytes] = []
    for key, singles in batch.appended.items():
        runs = batch.runs.get(key)
        blocks += _blocks(key, unrolled(singles, runs) if runs else singles, used)
    for key, runs in batch.runs.items():
        if key in batch.appended or not runs:
            continue
        if any(run.flags & FLAG_TRANSIENT for run in runs):
            blocks += _blocks(key, unrolled(None, runs), used)
        else:
            blocks.append(encode_runs(key, runs))
    portions: list[bytes] = []
    for portion in batch.portions:
        portions += _blocks(portion.key, portion.messages(), used)
    groups, count = encode_groups(batch.settled)
    changes = encode_changes(batch.changes)
    try:
        counts = _COUNTS.pack(
            len(changes), len(blocks), len(portions), count, len(batch.notes), len(used)
        )
        parts = [counts, changes, *blocks, *portions, groups, encode_notes(batch.notes)]
        parts += [_USED.pack(key, sequence) for key, sequence in used.items()]
    except struct.error as error:
        raise ValueError(f"a number does not fit the format: {error}") from None
    payload = b"".join(parts)
    if len(payload) > MOST_WRITE_BYTES:
        raise ValueError(
            f"{len(payload)} bytes at once are more than the {MOST_WRITE_BYTES} that are replicated"
        )
    return payload


def _blocks(key: int, messages: list[StoredMessage], used: dict[int, int]) -> list[bytes]:
    """A block for each queue, of its messages that are not transient, if it has any."""
    if not messages:
        return []
    kept = [each for each in messages if not each.flags & FLAG_TRANSIENT]
    last = messages[-1].sequence
    if (not kept or kept[-1].sequence != last) and last > used.get(key, 0):
        used[key] = last
    return [encode_block(key, kept)] if kept else []


def encode_logged(
    number: int, epoch: int, now_us: int, payload: bytes, most_bytes: int = MOST_ENTRY_BYTES
) -> list[LogEntry]:
    """Encode the entries of a write, from a first number on, each of at most a size."""
    room = most_bytes - _HEAD.size
    pieces = [payload[at : at + room] for at in range(0, len(payload), room)]
    return [
        _entry(WRITE, number + part, epoch, now_us, part, len(pieces), piece)
        for part, piece in enumerate(pieces)
    ]


def encode_begin(
    number: int, epoch: int, now_us: int, node: str, address: str, store: str
) -> LogEntry:
    """The entry with which a leader begins."""
    told = json.dumps({"node": node, "address": address, "store": store}).encode()
    return _entry(BEGIN, number, epoch, now_us, 0, 1, told)


def encode_end(number: int, epoch: int, now_us: int) -> LogEntry:
    """The entry with which a leader stops cleanly."""
    return _entry(END, number, epoch, now_us, 0, 1, b"")


def _entry(
    kind: int, number: int, epoch: int, now_us: int, part: int, parts: int, body: bytes
) -> LogEntry:
    size = _HEAD.size + len(body)
    head = _HEAD.pack(_MAGIC, _VERSION, kind, 0, size, 0, number, epoch, now_us, part, parts)
    crc = crc32(body, crc32(head[_BEHIND_CRC:], crc32(head[:_CRC_AT])))
    data = b"".join([head[:_CRC_AT], _CRC.pack(crc), head[_BEHIND_CRC:], body])
    return LogEntry(number, data)


# --- Reading -------------------------------------------------------------------------------------


class LogReader:
    """Reads the entries of a log in order.

    :param number: the last entry that need not be read again.
    :param epoch: the epoch that this entry belongs to; 0 for none.

    Attributes: ``number``, the last entry that was read; ``applied``, the last one that need not be
    read again, which is less while parts of a write are missing; ``epoch``, the newest one;
    ``store``, the id of the group's store, if a ``BEGIN`` was read.
    """

    def __init__(self, number: int = 0, epoch: int = 0) -> None:
        self.number = number
        self.applied = number
        self.epoch = epoch
        self._parts: list[bytes] = []

    def read(self, entry: LogEntry) -> Logged | None:
        """Read the next entry.  Return its content, or the write that it completes; None while
        parts are missing.

        :raises DamageError: when it is not the next entry, or not one that a leader wrote.
        """
        if entry.number != self.number + 1:
            raise DamageError(f"entry {entry.number} of the log follows entry {self.number}")
        kind, epoch, now_us, part, parts, body = _opened(entry)
        if epoch < self.epoch or (epoch > self.epoch) != (kind == BEGIN):
            raise DamageError(
                f"entry {entry.number} of the log has the epoch {epoch}, behind {self.epoch}"
            )
        if kind == BEGIN:
            self._parts = []  # of a leader that has ended
        if part != len(self._parts):
            raise DamageError(f"entry {entry.number} of the log is part {part} of a write")
        self.number = entry.number
        self.epoch = epoch
        self._parts.append(body)
        if part + 1 < parts:
            return None
        payload = b"".join(self._parts)
        self._parts = []
        self.applied = entry.number
        found = Logged(kind, epoch, entry.number - part, entry.number, now_us)
        if kind == WRITE:
            _read_payload(payload, found)
        elif kind == BEGIN:
            _read_begin(payload, found)
        return found

    def wrote(self, number: int) -> None:
        """Skip the entries up to a number: this server itself wrote them."""
        self.number = self.applied = number


def _opened(entry: LogEntry) -> tuple[int, int, int, int, int, bytes]:
    """Read an entry: its kind, epoch, time, part, number of parts, and content.

    :raises DamageError: when it is damaged.
    """
    data = entry.data
    name = f"entry {entry.number} of the log"
    if len(data) < _HEAD.size or data[:4] != _MAGIC:
        raise DamageError(f"{name} is not one of this server")
    _, version, kind, _, size, crc, number, epoch, now_us, part, parts = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise DamageError(f"{name} has version {version} of the format: a newer server wrote it")
    body = data[_HEAD.size :]
    found = crc32(body, crc32(data[_BEHIND_CRC : _HEAD.size], crc32(data[:_CRC_AT])))
    if size != len(data) or number != entry.number or crc != found:
        raise DamageError(f"{name} is damaged")
    if kind not in (WRITE, BEGIN, END) or part >= parts or (kind != WRITE and parts != 1):
        raise DamageError(f"{name} is of a kind that is not known here")
    return kind, epoch, now_us, part, parts, body


def _read_begin(payload: bytes, found: Logged) -> None:
    try:
        told = json.loads(payload)
        found.node, found.address = str(told["node"]), str(told["address"])
        found.store = str(told["store"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamageError(f"entry {found.number} of the log cannot be read: {error}") from None


def _read_payload(payload: bytes, found: Logged) -> None:
    """Decode a write into ``found``.

    :raises DamageError: when it is damaged.
    """
    batch = found.batch
    try:
        changes, blocks, portions, groups, notes, used = _COUNTS.unpack_from(payload)
        at = _COUNTS.size
        batch.changes = decode_changes(payload[at : at + changes])
        at += changes
        for place in range(blocks + portions):
            size = block_size(payload, at, len(payload))
            block = decode_block(payload[at : at + size])
            if place < blocks:
                batch.appended[block.key] = block.messages()
            else:
                batch.portions.append(Sealed(block.key, block.messages()))
            at += size
        at = decode_groups(payload, at, groups, batch.settled)
        at = decode_notes(payload, at, notes, batch.notes)
        for _ in range(used):
            key, sequence = _USED.unpack_from(payload, at)
            found.used[key] = sequence
            at += _USED.size
    except struct.error as error:
        raise DamageError(f"entry {found.number} of the log is cut off: {error}") from None
    if at != len(payload):
        raise DamageError(f"entry {found.number} of the log has a wrong length")
