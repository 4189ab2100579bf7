"""Owns the reading of one queue's messages out of its blocks."""

from __future__ import annotations

from tmqp.blocks import Block, StoredMessage
from tmqp_server.storage.port import QueueOffsets
from tmqp_server.storage.records import encode_block
from tmqp_server.storage.sqlite.extents import Extent, QueueState
from tmqp_server.storage.sqlite.shelf import Shelf, noted

__all__ = ["fetch", "offsets_of", "read"]


def fetch(
    shelf: Shelf,
    state: QueueState,
    after: int,
    last: int,
    limit: int,
    max_bytes: int,
    priority: int,
) -> list[StoredMessage]:
    """The first messages of a queue that are owed, as :class:`.port.Store` has it."""
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


def read(
    shelf: Shelf, state: QueueState, first: int, last: int, limit: int, max_bytes: int
) -> list[bytes]:
    """What is kept of a queue, as blocks, as :class:`.port.Store` has it."""
    blocks: list[bytes] = []
    count = total = 0
    current: Extent | None = None
    block: Block | None = None
    run: list[StoredMessage] = []
    for sequence, extent in shelf.sequences(state, first, last, None):
        if extent is not current:
            _finish(blocks, run, block, current)
            run = []
            current = extent
            block = shelf.block(extent)
        if block is None:
            continue
        message = noted(extent, block.message(block.find(sequence)))
        total += len(message.body)
        if count and total > max_bytes:
            break
        run.append(message)
        count += 1
        if count >= limit:
            break
    _finish(blocks, run, block, current)
    return blocks


def offsets_of(shelf: Shelf, state: QueueState) -> QueueOffsets:
    """What can be read of a queue."""
    earliest = latest = count = size = oldest_us = 0
    oldest: Extent | None = None
    for extent in state.extents:
        visible = state.visible(extent)
        if not visible or extent.damaged:
            continue
        begin = extent.first + (visible & -visible).bit_length() - 1
        if not count or begin < earliest:
            earliest, oldest = begin, extent
        latest = max(latest, extent.first + visible.bit_length() - 1)
        count += visible.bit_count()
        size += shelf.size_of(extent, visible)
    if oldest is not None and (block := shelf.index(oldest)) is not None:
        oldest_us = block.timestamp_us(block.find(earliest))
    return QueueOffsets(earliest, latest, count, size, oldest_us)


def _finish(
    blocks: list[bytes], run: list[StoredMessage], block: Block | None, extent: Extent | None
) -> None:
    """Add a run of messages of one block to what was read, as a block."""
    if not run or block is None or extent is None:
        return
    if len(run) == block.count and extent.notes is None:
        blocks.append(block.data)
    else:
        blocks.append(encode_block(block.key, run))
