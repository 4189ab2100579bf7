"""Reads a pushed block of similar messages as message sets, quickly.

Theory of operation.  A producer that pushes in transactions sends thousands of messages with the
same head in one block: same type, flags and time to live, same source, channel and queue, no header
block.  Only the end of each of them must be found, so no object is made for a message.  Their bytes
stay together, with their sizes and offsets, from which the storage writes blocks.

If a message is different or doubtful, the whole block is left to the general code
(``transactions.py``), which reports what is wrong with it, if anything.
"""

from __future__ import annotations

from array import array
from typing import Final, final

from tmqp._compat import i64
from tmqp.bits import HAS_HEADER, HEAD_BYTES, HIGH_PRIORITY, TIER_U16, TIER_U32, TYPE_BITS
from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.limits import Limits
from tmqp_server.engine.commands import MessageSet

__all__ = ["quick_message_sets"]

#: Fewer in a row that are not all of the block are not worth the look at them.
_FEWEST: Final = 16


def quick_message_sets(
    block: bytes, client_id: str, door: str, limits: Limits
) -> list[MessageSet] | None:
    """The messages of a block as message sets, in order; the messages of each have the same head.

    None when that is impossible or not worthwhile; the block may still be valid then.
    """
    message_sets: list[MessageSet] = []
    source = client_id.encode()
    is_ascii = block.isascii()
    pos: i64 = 0
    end: i64 = len(block)
    while pos < end:
        message_set = _run_at(block, pos, source, door, limits, is_ascii)
        if message_set is None:
            return None
        pos += message_set.size
        if message_set.count < _FEWEST and pos < end:
            return None
        message_sets.append(message_set)
    return message_sets


@final
class _Layout:
    """The sizes and payload offsets of consecutive messages: one of each while all are equal."""

    __slots__ = ("count", "largest", "offset", "offsets", "size", "sizes")

    def __init__(self) -> None:
        self.count: i64 = 0
        self.largest: i64 = 0
        self.size: i64 = 0
        self.offset: i64 = 0
        self.sizes: list[int] = []
        self.offsets: list[int] = []

    def add(self, size: i64, offset: i64) -> None:
        """Add a message whose payload begins at ``offset``."""
        if self.count == 0:
            self.size = size
            self.offset = offset
            self.largest = size
        elif self.sizes or size != self.size or offset != self.offset:
            if not self.sizes:
                count: int = self.count
                self.sizes = [self.size] * count
                self.offsets = [self.offset] * count
            self.sizes.append(size)
            self.offsets.append(offset)
            self.largest = max(self.largest, size)
        self.count += 1

    def packed_sizes(self) -> bytes:
        """As a message set has them."""
        return array("I", self.sizes or [self.size]).tobytes()

    def packed_offsets(self) -> bytes:
        """As a message set has them."""
        return array("I", self.offsets or [self.offset]).tobytes()


def _run_at(
    block: bytes, begin: i64, source: bytes, door: str, limits: Limits, is_ascii: bool
) -> MessageSet | None:
    """The longest set of similar messages from ``begin`` on; None if the first is unsuitable."""
    end: i64 = len(block)
    last = end - HEAD_BYTES
    if begin > last:
        return None
    b0: i64 = block[begin]
    b1: i64 = block[begin + 1]
    source_len: i64 = block[begin + 3]
    target_len: i64 = block[begin + 4]
    low: i64 = block[begin + 5]
    high: i64 = block[begin + 6]
    max_payload: i64 = limits.max_payload_bytes
    max_name: i64 = limits.max_name_bytes
    if b0 & TYPE_BITS != TYPE_QUEUE_MESSAGE or b1 & HAS_HEADER or target_len > max_name:
        return None
    names = b""
    layout = _Layout()
    pos = begin
    while pos <= last:
        if (
            block[pos] != b0
            or block[pos + 1] != b1
            or block[pos + 3] != source_len
            or block[pos + 4] != target_len
            or block[pos + 5] != low
            or block[pos + 6] != high
        ):
            break
        payload: i64 = block[pos + 7]
        id_at = pos + HEAD_BYTES
        if payload >= TIER_U16:
            id_at += 2 if payload == TIER_U16 else 4
            payload = _wide_payload(block, pos, end)
        id_len: i64 = block[pos + 2]
        names_at = id_at + id_len
        body = names_at + source_len + target_len
        stop = body + payload
        if stop > end or not 0 <= payload <= max_payload or not 0 < id_len <= max_name:
            break
        if layout.count == 0:
            names = block[names_at:body]
        elif block[names_at:body] != names:
            break
        if not is_ascii and not _is_text(block[id_at:names_at]):
            break
        layout.add(stop - pos, body - pos)
        pos = stop
    target = names[source_len:]
    if layout.count == 0 or names[:source_len] != source or not source or not _is_text(target):
        return None
    return MessageSet(
        door,
        target.decode(),
        low | high << 8,
        block if begin == 0 and pos == end else block[begin:pos],
        layout.count,
        layout.count if b0 & HIGH_PRIORITY else 0,
        pos - begin,
        layout.largest,
        None,
        layout.packed_sizes(),
        layout.packed_offsets(),
    )


def _wide_payload(block: bytes, pos: i64, end: i64) -> i64:
    """A payload length of two or four bytes after a head (F4); -1 if it is incomplete or of another
    kind."""
    at = pos + HEAD_BYTES
    if block[pos + 7] == TIER_U16:
        if at + 2 > end:
            return -1
        low: i64 = block[at]
        return low | block[at + 1] << 8
    if block[pos + 7] != TIER_U32 or at + 4 > end:
        return -1
    low = block[at]
    return low | block[at + 1] << 8 | block[at + 2] << 16 | block[at + 3] << 24


def _is_text(name: bytes) -> bool:
    """Whether a name is UTF-8."""
    if name.isascii():
        return True
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
