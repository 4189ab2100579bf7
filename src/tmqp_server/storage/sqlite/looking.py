"""Owns looking things up in a queue without reading what is in its messages.

What the extents know is used first; where that is not enough, head and index of a block are read,
and nothing behind them.
"""

from __future__ import annotations

from tmqp_server.storage.sqlite.extents import Extent, QueueState
from tmqp_server.storage.sqlite.shelf import Shelf

__all__ = ["find"]


def find(shelf: Shelf, queue: QueueState, timestamp_us: int) -> int:
    """The first sequence that is kept and came at a time or later; 0 if none.

    :raises DamageError: when an index that must be read is not what was written.
    :raises StoreError: when it cannot be read.
    """
    found = 0
    for extent in queue.extents:
        if found and extent.first > found:
            break
        if extent.newest_us < timestamp_us:
            continue
        # Extents overlap where a message was saved late: one that begins later may hold it.
        here = _find_in(shelf, queue, extent, timestamp_us)
        if here and (not found or here < found):
            found = here
    return found


def _find_in(shelf: Shelf, queue: QueueState, extent: Extent, timestamp_us: int) -> int:
    visible = queue.visible(extent)
    if not visible:
        return 0
    block = shelf.index(extent)
    if block is None:
        return 0
    for place in range(block.count):
        if block.timestamp_us(place) >= timestamp_us:
            sequence = block.sequence(place)
            if visible >> (sequence - extent.first) & 1:
                return sequence
    return 0
