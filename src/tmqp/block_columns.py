"""Columns of blocks, which a server sends instead of blocks if a reader wants little of each
message.

Theory of operation.  A block holds whole messages and 56 bytes about each (:mod:`tmqp.blocks`).  A
reader that wants only the payloads, for example, gets them in a form that has nothing else, which
halves the bytes for payloads of 100 bytes.  It begins like a block; then each requested column is
an array, in the order below; the payloads follow one after another::

    head                                    columns
    0  4  magic "TMQC"                      u64  sequence, if bit 15 is set; else they are
    4  u16  version, 1                           consecutive, from the first on
    6  u16  which columns (bits)            i64  timestamp_us    bit 0
    8  u32  count                           u32  payload size    bit 5
    12 u32  bytes of columns a message      u16  flags           bit 1
    16 u64  key of the queue                u16  attempts        bit 2
    24 u64  first sequence                  u16  put backs       bit 3
    32 u64  last sequence                   u16  hops            bit 4
    40 u64  size of all payloads
    48 u64  0                               then
    56 u32  CRC-32 of the payloads          the payloads, if bit 5 is set
    60 u32  CRC-32 of head and columns

All numbers are little endian.  The block's checksums are checked before anything is taken out of
it, so that a new checksum does not hide damage.
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Final
from zlib import crc32

from tmqp.blocks import ENTRY_SIZE, HEAD_SIZE, MAX_COUNT, Block, BlockError, index_end

__all__ = [
    "COLUMN_ATTEMPTS",
    "COLUMN_FLAGS",
    "COLUMN_HOPS",
    "COLUMN_PUT_BACKS",
    "COLUMN_SEQUENCES",
    "COLUMN_TIMESTAMP",
    "COLUMN_VALUE",
    "ColumnBlock",
    "block_columns",
    "column_bytes",
    "is_columns",
    "read_columns",
    "split_columns",
]

COLUMN_TIMESTAMP: Final = 1
COLUMN_FLAGS: Final = 2
COLUMN_ATTEMPTS: Final = 4
COLUMN_PUT_BACKS: Final = 8
COLUMN_HOPS: Final = 16
COLUMN_VALUE: Final = 32
#: Not requested, but set in answers: the sequences have gaps, and are a column themselves.
COLUMN_SEQUENCES: Final = 1 << 15

_MAGIC: Final = b"TMQC"
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHHIIQQQQQI")
_CRC: Final = struct.Struct("<I")
#: The two-byte fields of an entry: the column's bit, and the index of the field in the entry.
_SHORTS: Final = (
    (COLUMN_FLAGS, 24),
    (COLUMN_ATTEMPTS, 25),
    (COLUMN_PUT_BACKS, 26),
    (COLUMN_HOPS, 27),
)
#: The columns in their order, and the bytes of each per message.
_WIDTHS: Final = (
    (COLUMN_SEQUENCES, 8),
    (COLUMN_TIMESTAMP, 8),
    (COLUMN_VALUE, 4),
    (COLUMN_FLAGS, 2),
    (COLUMN_ATTEMPTS, 2),
    (COLUMN_PUT_BACKS, 2),
    (COLUMN_HOPS, 2),
)


def column_bytes(columns: int) -> int:
    """Return the size of the columns for each message, without payloads."""
    size = 0
    for bit, width in _WIDTHS:
        if columns & bit:
            size += width
    return size


def block_columns(block: Block, columns: int) -> bytes:
    """Encode some columns of a block whose checksums were checked (``decode_block``).

    :raises BlockError: or the error class with which the block was read, if an entry points outside
        the bodies.
    """
    count = block.count
    start = index_end(count)
    index = memoryview(block.data)[HEAD_SIZE:start]
    longs = index.cast("Q")
    parts: list[bytes] = []
    if block.last - block.first + 1 != count:
        columns |= COLUMN_SEQUENCES
        parts.append(longs[0 :: ENTRY_SIZE // 8].tobytes())
    if columns & COLUMN_TIMESTAMP:
        parts.append(longs[1 :: ENTRY_SIZE // 8].tobytes())
    payloads = b""
    if columns & COLUMN_VALUE:
        numbers = index.cast("I")[11 :: ENTRY_SIZE // 4].tobytes()
        parts.append(numbers)
        payloads = _payloads(block, index, start)
    shorts = index.cast("H")
    for bit, place in _SHORTS:
        if columns & bit:
            parts.append(shorts[place :: ENTRY_SIZE // 2].tobytes())
    head = _HEAD.pack(
        _MAGIC,
        _VERSION,
        columns,
        count,
        column_bytes(columns),
        block.key,
        block.first,
        block.last,
        len(payloads),
        0,
        crc32(payloads),
    )
    told = b"".join(parts)
    return b"".join([head, _CRC.pack(crc32(told, crc32(head))), told, payloads])


def _payloads(block: Block, index: memoryview, start: int) -> bytes:
    """Join the payloads of a block, whose bodies begin at ``start``."""
    data = block.data
    total = block.body_size
    words = index.cast("I")
    pieces: list[bytes] = []
    stride = ENTRY_SIZE // 4
    positions = _numbers(words[8::stride].tobytes())
    sizes = _numbers(words[9::stride].tobytes())
    offsets = _numbers(words[10::stride].tobytes())
    lengths = _numbers(words[11::stride].tobytes())
    for place in range(block.count):
        position = positions[place]
        size = sizes[place]
        offset = offsets[place]
        length = lengths[place]
        if position + size > total or offset + length > size:
            block.message(place)  # raises with the reason
        at = start + position + offset
        pieces.append(data[at : at + length])
    return b"".join(pieces)


def _numbers(data: bytes) -> list[int]:
    """Read little endian numbers of 32 bits."""
    found = array("I")
    found.frombytes(data)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tolist()


# --- Reading -------------------------------------------------------------------------------------


class ColumnBlock:
    """The positions of columns in the bytes from which they were read.

    ``columns`` has the bits of the present columns; ``end`` is where the next ones begin.
    ``places`` has the offset of each column's array, by the column's bit; for ``COLUMN_VALUE``, it
    is the array of sizes, and the payloads begin at ``payloads``.
    """

    __slots__ = ("columns", "count", "end", "first", "key", "last", "payloads", "places")

    def __init__(self, columns: int, count: int, key: int, first: int, last: int) -> None:
        self.columns = columns
        self.count = count
        self.key = key
        self.first = first
        self.last = last
        self.payloads = 0
        self.end = 0
        self.places: dict[int, int] = {}


def is_columns(data: bytes | memoryview, start: int) -> bool:
    """Whether columns begin at ``start``, and not a block."""
    return bytes(data[start : start + 4]) == _MAGIC


def read_columns(
    data: bytes | memoryview, start: int, *, index: bool = True, payloads: bool = True
) -> ColumnBlock:
    """Read the columns that begin at ``start``.

    :param index: check the checksum of head and columns; ``payloads``: check that of the payloads.
    :raises BlockError: if they are invalid or damaged.
    """
    if len(data) - start < HEAD_SIZE:
        raise BlockError(f"{len(data) - start} trailing bytes are not a valid block")
    magic, version, columns, count, width, key, first, last, size, _, crc = _HEAD.unpack_from(
        data, start
    )
    if magic != _MAGIC or version != _VERSION:
        raise BlockError(f"no columns of version {_VERSION} begin here")
    if not 1 <= count <= MAX_COUNT or width != column_bytes(columns):
        raise BlockError(f"columns of {count} messages with {width} bytes each are invalid")
    if not columns & COLUMN_SEQUENCES and last - first + 1 != count:
        raise BlockError(f"{count} messages from {first} to {last} need a column of sequences")
    found = ColumnBlock(columns, count, key, first, last)
    at = start + HEAD_SIZE
    for bit, each in _WIDTHS:
        if columns & bit:
            found.places[bit] = at
            at += each * count
    found.payloads = at
    found.end = at + size
    if found.end > len(data):
        raise BlockError(f"columns of {found.end - start} bytes were cut short")
    if index:
        told = crc32(data[start + HEAD_SIZE : at], crc32(data[start : start + HEAD_SIZE - 4]))
        if told != _CRC.unpack_from(data, start + HEAD_SIZE - 4)[0]:
            raise BlockError("the checksum of head and columns does not match")
    if payloads and crc32(data[at : found.end]) != crc:
        raise BlockError("the checksum of the payloads does not match")
    return found


def split_columns(data: bytes) -> list[ColumnBlock]:
    """Read consecutive columns of blocks, such as the answer to a range read.

    :raises BlockError: if they are invalid or damaged.
    """
    found: list[ColumnBlock] = []
    start = 0
    while start < len(data):
        found.append(read_columns(data, start))
        start = found[-1].end
    return found
