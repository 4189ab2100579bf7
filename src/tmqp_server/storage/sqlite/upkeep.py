"""Maintenance in portions with each write: retention, merging, deleting, shrinking.

Theory of operation.  It runs inside the transaction of the write, so a crash cannot leave it half
done, and it needs no sync of its own.  Every portion is bounded, whatever the size of the queues;
the next writes do the rest.

*Merging.*  A block with fewer than 16 messages has level 0, one with fewer than 256 (and not many
bytes) level 1, any other level 2.  Sixteen neighbours of level 0 become one block; neighbours of
level 1 which together have 256 messages become one.  So a message that is pushed alone is rewritten
at most twice. If less than an eighth of a block is still kept, only that part counts, so that a few
messages do not occupy the space of many.
"""

from __future__ import annotations

from typing import Final

from tmqp.blocks import StoredMessage
from tmqp_server.storage.port import DamageError
from tmqp_server.storage.sqlite.extents import INFINITY, MAX_SPAN, Extent, QueueState
from tmqp_server.storage.sqlite.shelf import MAX_BLOCK_BYTES, MAX_BLOCK_COUNT, Shelf, bits, noted

__all__ = ["advance_floor", "is_outside", "merge_some", "replace", "set_floor", "shrink", "sweep"]

#: The messages and bytes from which a block has level 1 and level 2.
_LEVEL_COUNTS: Final = (16, 256)
_LEVEL_BYTES: Final = (8_192, 65_536)
#: Neighbours of level 0 that are merged.
_FAN_IN: Final = 16
#: How far to look for neighbours.
_REACH: Final = 64
#: How many extents one write examines for merging, and how many bytes it moves.
_MOST_SUSPECTS: Final = 32
_MOST_BYTES: Final = 1 << 20
#: Settled extents that one write takes from a queue whose floor has risen.
_MOST_SWEPT: Final = 1_024
#: The file is made smaller when more than this many pages, and half of all, are free.
_FREE_PAGES: Final = 4_096
_PAGES_AT_ONCE: Final = 128


# --- Retention -----------------------------------------------------------------------------------


def set_floor(queue: QueueState, floor: int) -> None:
    """Move the floor of a queue."""
    queue.floor = floor
    queue.forgotten = sum([each.weight for each in queue.extents if each.last < floor])


def is_outside(queue: QueueState, extent: Extent, passed: int, now_us: int | None) -> bool:
    """Whether nothing of an extent is retained; ``passed`` is the size of it and of all before it.

    If ``now_us`` is None, no message is too old.
    """
    retention = queue.queue.retention
    large = bool(retention.retain_bytes) and queue.bytes - passed >= retention.retain_bytes
    old = (
        bool(retention.retain_time_ms)
        and now_us is not None
        and extent.newest_us <= now_us - retention.retain_time_ms * 1_000
    )
    if retention.retain_for_readers:
        cursors = queue.cursors
        return not cursors or extent.last <= min(cursors.values()) or large or old
    return (large or not retention.retain_bytes) and (old or not retention.retain_time_ms)


def advance_floor(shelf: Shelf, queue: QueueState, now_us: int | None) -> None:
    """Move a queue's floor past what retention no longer keeps; drop settled extents there."""
    if queue.floor == INFINITY:
        return
    start = queue.begin(queue.floor)
    passed: list[Extent] = []
    for extent in queue.extents[start : start + _MOST_SWEPT]:
        if extent.last >= queue.floor:
            if not is_outside(queue, extent, queue.forgotten + extent.weight, now_us):
                break
            queue.raise_floor(extent)
        passed.append(extent)
    for extent in passed:
        if not extent.owed and extent.last < queue.floor:
            shelf.drop(queue, extent)


def sweep(shelf: Shelf, queue: QueueState) -> None:
    """Drop all extents of a queue that are settled and not retained, at once."""
    kept: list[Extent] = []
    for extent in queue.extents:
        if extent.owed or queue.is_kept(extent):
            kept.append(extent)
        else:
            queue.bytes -= extent.weight
            queue.forgotten -= extent.weight
            shelf.forget(extent)
    queue.extents = kept


# --- Merging -------------------------------------------------------------------------------------


def replace(shelf: Shelf, queue: QueueState, messages: list[StoredMessage]) -> None:
    """Remove messages that are about to be appended again, so that they exist only once."""
    for message in messages:
        if message.sequence > queue.sequence:
            return
        extent = queue.find(message.sequence)
        if extent is not None:
            bit = 1 << (message.sequence - extent.first)
            extent.present &= ~bit
            shelf.mark(extent, bit)
            if not extent.present:
                shelf.drop(queue, extent)


def merge_some(shelf: Shelf) -> None:
    """Merge small neighbours near extents that were recently stored or emptied."""
    moved = 0
    for _ in range(_MOST_SUSPECTS):
        if not shelf.suspects or moved >= _MOST_BYTES:
            return
        extent = shelf.suspects.pop(next(iter(shelf.suspects)))
        queue = shelf.queues.get(extent.key)
        if queue is not None:
            moved += _merge_near(shelf, queue, extent)


def _level(queue: QueueState, extent: Extent) -> int:
    """The level of an extent: 0 and 1 are worth merging, 2 is not."""
    if extent.damaged:
        return 2
    count, size = extent.count, extent.size
    held = queue.visible(extent).bit_count()
    if held * 8 < count:
        size = size * held // count
        count = held
    if count < _LEVEL_COUNTS[0] and size < _LEVEL_BYTES[0]:
        return 0
    return 1 if count < _LEVEL_COUNTS[1] and size < _LEVEL_BYTES[1] else 2


def _merge_near(shelf: Shelf, queue: QueueState, extent: Extent) -> int:
    """Merge the neighbours of an extent, if there are enough; return the bytes that were moved."""
    place = queue.place(extent)
    if place < 0:
        return 0
    level = _level(queue, extent)
    if level == 2:
        return 0
    run = _run(queue, place, level)
    if level == 0 and len(run) < _FAN_IN:
        level = 1
        run = _run(queue, place, level)
    if level == 1 and not _is_enough(queue, run):
        return 0
    size = sum([each.size for each in run])
    _merge(shelf, queue, run)
    return size


def _run(queue: QueueState, place: int, level: int) -> list[Extent]:
    """The neighbours of up to a level on both sides of an index, all on one side of the floor."""
    extents = queue.extents
    kept = queue.is_kept(extents[place])
    begin = end = place
    while begin > 0 and place - begin < _REACH:
        each = extents[begin - 1]
        if queue.is_kept(each) != kept or _level(queue, each) > level:
            break
        begin -= 1
    while end + 1 < len(extents) and end - place < _REACH:
        each = extents[end + 1]
        if queue.is_kept(each) != kept or _level(queue, each) > level:
            break
        end += 1
    run = extents[begin : end + 1]
    while len(run) > 1 and run[-1].first - run[0].first >= MAX_SPAN:
        # What cannot be in one block is left to itself; the far side goes first.
        del run[0 if run[0] is not extents[place] else -1]
    return run


def _is_enough(queue: QueueState, run: list[Extent]) -> bool:
    """Whether a run of level 1 is enough for a block of level 2."""
    if len(run) < 2:
        return False
    held = sum([queue.visible(each).bit_count() for each in run])
    return held >= _LEVEL_COUNTS[1] or sum([_held_size(queue, e) for e in run]) >= _LEVEL_BYTES[1]


def _held_size(queue: QueueState, extent: Extent) -> int:
    return extent.size * queue.visible(extent).bit_count() // extent.count


def _merge(shelf: Shelf, queue: QueueState, run: list[Extent]) -> None:
    """Write the kept messages of some extents as new blocks."""
    messages: list[StoredMessage] = []
    settled: set[int] = set()
    read: list[Extent] = []
    for extent in run:
        try:
            block = shelf.block(extent)
        except DamageError:
            continue  # who asks for it will be told; writing continues
        if block is None:
            continue
        visible = queue.visible(extent)
        for sequence in bits(extent.first, visible):
            messages.append(noted(extent, block.message(block.find(sequence))))
        settled.update(bits(extent.first, visible & ~extent.owed))
        read.append(extent)
        if len(messages) >= MAX_BLOCK_COUNT // 2 or sum([e.size for e in read]) >= MAX_BLOCK_BYTES:
            break
    if len(read) < 2:
        return
    messages.sort(key=_sequence)
    for extent in read:
        shelf.drop(queue, extent)
    shelf.append(queue, messages, settled)


def _sequence(message: StoredMessage) -> int:
    return message.sequence


# --- Space ---------------------------------------------------------------------------------------


def shrink(shelf: Shelf) -> None:
    """Return some pages to the system if much of the file is free."""
    (free,) = shelf.db.execute("PRAGMA freelist_count").fetchone()
    if free > _FREE_PAGES:
        (pages,) = shelf.db.execute("PRAGMA page_count").fetchone()
        if free * 2 > pages:
            # Python takes one step of a statement without columns, and each step frees one page.
            for _ in range(_PAGES_AT_ONCE):
                shelf.db.execute("PRAGMA incremental_vacuum(1)")
