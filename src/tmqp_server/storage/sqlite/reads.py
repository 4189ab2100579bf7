"""Reads the owed messages of a queue from its blocks."""

from __future__ import annotations

from tmqp.blocks import Block, StoredMessage
from tmqp_server.storage.port import RecoveredQueue
from tmqp_server.storage.sqlite.extents import Extent, QueueState
from tmqp_server.storage.sqlite.shelf import Shelf, noted

__all__ = ["fetch", "recovered"]


def fetch(
    shelf: Shelf,
    state: QueueState,
    after: int,
    last: int,
    limit: int,
    max_bytes: int,
    priority: int,
) -> list[StoredMessage]:
    """Return the first owed messages of a queue, as :meth:`.port.Store.fetch`."""
    found: list[StoredMessage] = []
    total = 0
    current: Extent | None = None
    block: Block | None = None
    for sequence, extent in shelf.sequences(state, after + 1, last, priority):
        if extent is not current:
            current = extent
            block = shelf.block(extent)
        if block is None:
            continue
        message = noted(extent, block.message(block.find(sequence)))
        total += len(message.body)
        if found and total > max_bytes:
            break
        found.append(message)
        if len(found) >= limit:
            break
    return found


def recovered(shelf: Shelf, state: QueueState) -> RecoveredQueue:
    """Describe a queue after a restart: how many messages it owes."""
    high = regular = size = high_size = 0
    for extent in state.extents:
        owed = extent.owed & ~extent.transient
        if owed:
            of_high = (owed & extent.high).bit_count()
            high_size += shelf.size_of(extent, owed & extent.high)
            high += of_high
            regular += owed.bit_count() - of_high
            size += shelf.size_of(extent, owed)
    return RecoveredQueue(state.queue, state.sequence, high, regular, size, high_size)
