"""Owns the quick way from a pushed block to parcels: messages in a row that differ in little.

Theory of operation.  A producer that pushes in transactions sends thousands of messages with the
same head in one block: same type, flags and time to live, same source, channel and queue, no header
block.  Of those nothing needs to be known one by one but where each ends, so they are walked over
and no object is made for a message; their bytes stay together, and where each begins goes with
them, for the storage writes blocks of just that.

Only what is alike and beyond doubt is taken so.  At anything else the whole block is left to the
general way (``transactions.py``), which says what is wrong with it, if anything is.
"""

from __future__ import annotations

from array import array
from typing import Final

from tmqp._compat import i64
from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.limits import Limits
from tmqp_server.engine.transaction_commands import Parcel

__all__ = ["quick_parcels"]

_HEAD_BYTES: Final = 8
_TYPE_BITS: Final = 0x3F
_HIGH_PRIORITY: Final = 0x40
_HAS_HEADER: Final = 0x20
_TIER_U16: Final = 253
_TIER_U32: Final = 254
#: Fewer in a row that are not all of the block are not worth the look at them.
_FEWEST: Final = 16


def quick_parcels(block: bytes, client_id: str, door: str, limits: Limits) -> list[Parcel] | None:
    """The messages of a block as parcels, in order, each of messages that are alike.

    None when that cannot be, or does not pay; nothing is said about the block then.
    """
    parcels: list[Parcel] = []
    source = client_id.encode()
    is_ascii = block.isascii()
    pos: i64 = 0
    end: i64 = len(block)
    while pos < end:
        parcel = _run_at(block, pos, source, door, limits, is_ascii)
        if parcel is None:
            return None
        pos += parcel.size
        if parcel.count < _FEWEST and pos < end:
            return None
        parcels.append(parcel)
    return parcels


def _run_at(
    block: bytes, begin: i64, source: bytes, door: str, limits: Limits, is_ascii: bool
) -> Parcel | None:
    """As many messages from ``begin`` on as are alike; None when the first is odd."""
    end: i64 = len(block)
    if begin + _HEAD_BYTES > end:
        return None
    b0: i64 = block[begin]
    b1: i64 = block[begin + 1]
    source_len: i64 = block[begin + 3]
    target_len: i64 = block[begin + 4]
    low: i64 = block[begin + 5]
    high: i64 = block[begin + 6]
    names_len = source_len + target_len
    max_payload: i64 = limits.max_payload_bytes
    max_name: i64 = limits.max_name_bytes
    if (
        b0 & _TYPE_BITS != TYPE_QUEUE_MESSAGE
        or b1 & _HAS_HEADER
        or source_len != len(source)
        or source_len == 0
        or source_len > max_name
        or target_len > max_name
    ):
        return None
    names = b""
    sizes: list[int] = []
    offsets: list[int] = []
    first_size: i64 = 0
    first_offset: i64 = 0
    largest: i64 = 0
    count: i64 = 0
    pos = begin
    last = end - _HEAD_BYTES
    while pos <= last:
        if block[pos] != b0 or block[pos + 1] != b1:
            break
        if block[pos + 3] != source_len or block[pos + 4] != target_len:
            break
        if block[pos + 5] != low or block[pos + 6] != high:
            break
        payload: i64 = block[pos + 7]
        id_at = pos + _HEAD_BYTES
        if payload >= _TIER_U16:
            if payload == _TIER_U16:
                id_at += 2
                if id_at > end:
                    break
                payload = block[pos + 8] | block[pos + 9] << 8
            elif payload == _TIER_U32:
                id_at += 4
                if id_at > end:
                    break
                payload = (
                    block[pos + 8]
                    | block[pos + 9] << 8
                    | block[pos + 10] << 16
                    | block[pos + 11] << 24
                )
            else:
                break
        id_len: i64 = block[pos + 2]
        names_at = id_at + id_len
        body = names_at + names_len
        stop = body + payload
        if stop > end or payload > max_payload or id_len == 0 or id_len > max_name:
            break
        if count == 0:
            names = block[names_at:body]
            if names[:source_len] != source:
                return None
        elif block[names_at:body] != names:
            break
        if not is_ascii and not _is_text(block[id_at:names_at]):
            break
        size = stop - pos
        offset = body - pos
        if count == 0:
            first_size, first_offset, largest = size, offset, size
        elif sizes or size != first_size or offset != first_offset:
            if not sizes:
                sizes = [first_size] * count
                offsets = [first_offset] * count
            sizes.append(size)
            offsets.append(offset)
            largest = max(largest, size)
        count += 1
        pos = stop
    if count == 0 or not _is_text(names[source_len:]):
        return None
    if not sizes:
        sizes = [first_size]
        offsets = [first_offset]
    data = block if begin == 0 and pos == end else block[begin:pos]
    return Parcel(
        door,
        names[source_len:].decode(),
        low | high << 8,
        data,
        count,
        count if b0 & _HIGH_PRIORITY else 0,
        pos - begin,
        largest,
        None,
        array("I", sizes).tobytes(),
        array("I", offsets).tobytes(),
    )


def _is_text(name: bytes) -> bool:
    """Whether it is UTF-8."""
    if name.isascii():
        return True
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
