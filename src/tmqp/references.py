"""References to blocks, which a server sends to a reader that opens the server's database itself.

Theory of operation.  A server keeps blocks (:mod:`tmqp.blocks`) in the table ``bodies`` of a SQLite
database; a block is never changed there, only deleted.  So a server can send *references* to a
reader on the same machine and of the same user, which fetches the blocks from the database.  The
server still decides which messages exist, who may read them, and which are still in its log of
recent writes.  If a block no longer exists when it is fetched, the reader requests it again.

A reference has the size of a block's head, and common fields have the same positions::

    0  4  magic "TMQR"
    4  u16  version, 1
    6  u16  flags, 0
    8  u32  count
    12 u32  0
    16 u64  key of the queue
    24 u64  first sequence
    32 u64  last sequence
    40 u64  size of all bodies
    48 u64  number of the row in ``bodies``
    56 u32  mark of the database (:func:`database_mark`)
    60 u32  CRC-32 of what precedes

This module also defines everything that a reader must know about the database.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from tmqp.blocks import HEAD_SIZE, BlockError

__all__ = [
    "APPLICATION_ID",
    "DATABASE_NAME",
    "FORMAT_VERSION",
    "OLDEST_VERSION",
    "REFERENCE_SIZE",
    "BlockReference",
    "database_mark",
    "encode_reference",
    "is_reference",
    "read_reference",
]

DATABASE_NAME: Final = "messages.sqlite3"
#: "TMQP", so that `file` and others can tell what it is.
APPLICATION_ID: Final = 0x544D5150
#: Incremented whenever an older program could misread what a newer one writes.  Format 1 has no
#: tally, no generations and no witness; it is upgraded with the first write.
FORMAT_VERSION: Final = 2
OLDEST_VERSION: Final = 1

REFERENCE_SIZE: Final = HEAD_SIZE
_MAGIC: Final = b"TMQR"
_VERSION: Final = 1
_REFERENCE: Final = struct.Struct("<4sHHIIQQQQQI")
_CRC: Final = struct.Struct("<I")


class BlockReference:
    """The location of a block: ``number`` is its row in the database with this ``mark``; the other
    fields are from its head."""

    __slots__ = ("body_size", "count", "first", "key", "last", "mark", "number")

    def __init__(
        self, number: int, mark: int, key: int, first: int, last: int, count: int, body_size: int
    ) -> None:
        self.number = number
        self.mark = mark
        self.key = key
        self.first = first
        self.last = last
        self.count = count
        self.body_size = body_size

    def __repr__(self) -> str:
        return f"<BlockReference {self.number}: {self.first} to {self.last} of queue {self.key}>"


def encode_reference(
    number: int, mark: int, key: int, first: int, last: int, count: int, body_size: int
) -> bytes:
    """Encode a reference; the arguments are those of :class:`BlockReference`."""
    data = _REFERENCE.pack(_MAGIC, _VERSION, 0, count, 0, key, first, last, body_size, number, mark)
    return data + _CRC.pack(crc32(data))


def is_reference(data: bytes | memoryview, start: int) -> bool:
    """Whether a reference begins at ``start``, and not a block."""
    return bytes(data[start : start + 4]) == _MAGIC


def read_reference(data: bytes | memoryview, start: int) -> BlockReference:
    """Read the reference that begins at ``start``.

    :raises BlockError: if it is invalid or damaged.
    """
    part = bytes(data[start : start + REFERENCE_SIZE])
    if len(part) < REFERENCE_SIZE:
        raise BlockError(f"a reference to a block was cut short to {len(part)} bytes")
    magic, version, _, count, _, key, first, last, size, number, mark = _REFERENCE.unpack_from(part)
    if magic != _MAGIC or version != _VERSION:
        raise BlockError(f"no reference of version {_VERSION} begins here")
    if crc32(part[: -_CRC.size]) != _CRC.unpack_from(part, REFERENCE_SIZE - _CRC.size)[0]:
        raise BlockError("the checksum of a reference to a block does not match")
    return BlockReference(number, mark, key, first, last, count, size)


def database_mark(store_id: str, device: int, inode: int) -> int:
    """Return the mark that distinguishes a database file from others that a reader could mistake
    for it.

    A copy of a store, such as a backup, has the same store id, but is another file.

    :param store_id: the value of that name in the table ``meta``.
    :param device: ``st_dev`` of the file, with ``inode`` its ``st_ino``.
    """
    return crc32(f"{store_id}:{device}:{inode}".encode())
