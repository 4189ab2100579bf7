"""Reads on behalf of a queue's readers: ranges of blocks, and answers that need no blocks.

Theory of operation.  The extents are used first; if they do not suffice, the head and index of a
block are read, and nothing behind them.

A range is answered with blocks.  If a whole block is requested, and nothing was noted about its
messages since, it is sent as it is on disk: only its head is compared with the extent, and the
reader checks the checksums.  Other blocks are read and checked, and the requested messages are
written as a new one.  A reader that opens the database itself gets references instead of whole
blocks: then nothing of them is read here.

Extents overlap if a message was saved late.  Overlapping extents form a *cluster*, whose messages
are taken one by one, in order; nearly always it has one extent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tmqp.block_writing import encode_block
from tmqp.blocks import (
    AS_COLUMNS,
    AS_INDEXES,
    AS_REFERENCES,
    ENTRY_SIZE,
    HEAD_SIZE,
    Block,
    StoredMessage,
    index_end,
)
from tmqp.references import REFERENCE_SIZE, encode_reference
from tmqp_server.storage.port import QueueOffsets, StoredPart
from tmqp_server.storage.records import columns_of, in_form
from tmqp_server.storage.sqlite.extents import Extent, QueueState
from tmqp_server.storage.sqlite.shelf import Shelf, bits, noted

__all__ = ["find", "offsets", "read", "split"]

#: A block with more bytes than this is not cut for the rest of an answer.
_CUT_BYTES: Final = 65_536


# --- Ranges --------------------------------------------------------------------------------------


def read(
    shelf: Shelf,
    queue: QueueState,
    wanted: tuple[int, int],
    bounds: tuple[int, int],
    form: int,
) -> list[bytes]:
    """Return blocks with the kept messages from the first to the last ``wanted`` sequence.

    ``bounds`` are the largest number of messages and of bytes; at least one message is returned.
    ``form`` is one of ``tmqp.blocks``: with ``AS_INDEXES``, blocks end where their bodies would
    begin; with ``AS_REFERENCES``, whole blocks are replaced by references; with ``AS_COLUMNS``, by
    columns.

    :raises DamageError: when a block that must be examined is damaged.
    :raises StoreError: when the store cannot be read.
    """
    first, last = wanted
    reading = _Reading(shelf, bounds[0], bounds[1], form)
    extents = queue.extents
    place = queue.begin(first)
    while place < len(extents) and extents[place].first <= last:
        if extents[place].last < first:
            place += 1  # it could have reached as far, and does not
            continue
        cluster, place = _cluster(queue, place, first, last)
        if len(cluster) == 1 and _is_whole(*cluster[0]):
            extent = cluster[0][0]
            if reading.fits(extent.count, extent.size):
                reading.add_whole(extent)
                continue
            if extent.size > _CUT_BYTES and reading.is_enough(extent.count):
                break
        if not reading.add_some(cluster):
            break
    return reading.blocks


def _is_whole(extent: Extent, mask: int) -> bool:
    """Whether all messages of a block are wanted, and unchanged since it was written."""
    return mask.bit_count() == extent.count and not extent.notes


class _Reading:
    """A range that is being read, up to a number of messages and of bytes."""

    __slots__ = ("_bytes_left", "_count_left", "_form", "_half", "_shelf", "blocks")

    def __init__(self, shelf: Shelf, limit: int, max_bytes: int, form: int) -> None:
        self.blocks: list[bytes] = []
        self._form = form
        self._shelf = shelf
        self._count_left = limit
        self._bytes_left = max_bytes
        self._half = limit // 2

    def fits(self, count: int, size: int) -> bool:
        """Whether a block with this many messages and bytes of bodies fits."""
        if self._form == AS_REFERENCES:
            whole = REFERENCE_SIZE
        else:
            whole = index_end(count) + (0 if self._form == AS_INDEXES else size)
        return count <= self._count_left and whole <= self._bytes_left

    def is_enough(self, count: int) -> bool:
        """Whether to stop instead of cutting the next block, which has this many messages.

        A block is never cut to use up the bytes, and only cut to reach half of the number of
        messages.
        """
        return bool(self.blocks) and (count <= self._count_left or self._count_left <= self._half)

    def add_whole(self, extent: Extent) -> None:
        """Add a block as it is."""
        data: bytes | None
        if self._form >= AS_COLUMNS:
            block = self._shelf.block(extent)
            data = None if block is None else columns_of(block, self._form)
        elif self._form != AS_REFERENCES:
            data = self._shelf.whole(extent, self._form == AS_INDEXES)
        elif extent.damaged and self._shelf.skip:
            data = None
        else:
            data = encode_reference(
                extent.id,
                self._shelf.identity,
                extent.key,
                extent.first,
                extent.last,
                extent.count,
                extent.size,
            )
        if data is not None:
            self._take(data, extent.count)

    def add_some(self, cluster: list[tuple[Extent, int]]) -> bool:
        """Add messages of several blocks; return False if not all of them fit."""
        for extent, messages in self._runs(cluster):
            count, size = 0, HEAD_SIZE
            for message in messages:
                size += ENTRY_SIZE if self._form == AS_INDEXES else ENTRY_SIZE + len(message.body)
                is_first = not count and not self.blocks
                if not is_first and (count >= self._count_left or size > self._bytes_left):
                    break
                count += 1
            if count:
                data = encode_block(extent.key, messages[:count])
                self._take(in_form(data, count, self._form), count)
            if count < len(messages):
                return False
        return True

    def _take(self, data: bytes, count: int) -> None:
        self.blocks.append(data)
        self._count_left -= count
        self._bytes_left -= len(data)

    def _runs(
        self, cluster: list[tuple[Extent, int]]
    ) -> Iterator[tuple[Extent, list[StoredMessage]]]:
        """The messages of a cluster in order, in lists from the same block."""
        places = [(sequence, part[0]) for part in cluster for sequence in _sequences(part)]
        if len(cluster) > 1:
            places.sort(key=_first)
        run: list[StoredMessage] = []
        current: Extent | None = None
        block: Block | None = None
        for sequence, extent in places:
            # No more is decoded than has room, whatever the size of the block.
            if extent is not current or len(run) > self._count_left:
                if run and current is not None:
                    yield current, run
                run = []
                current = extent
                block = self._shelf.block(extent)
            if block is not None:
                run.append(noted(extent, block.message(block.find(sequence))))
        if run and current is not None:
            yield current, run


def _sequences(part: tuple[Extent, int]) -> list[int]:
    """The sequences in an extent's mask."""
    return bits(part[0].first, part[1])


def _first(pair: tuple[int, Extent]) -> int:
    return pair[0]


def _cluster(
    queue: QueueState, place: int, first: int, last: int
) -> tuple[list[tuple[Extent, int]], int]:
    """The extents from an index on that overlap, with the mask of the wanted messages of each; and
    the index of the next extent.
    """
    extents = queue.extents
    found: list[tuple[Extent, int]] = []
    end = extents[place].last
    while place < len(extents) and extents[place].first <= end:
        extent = extents[place]
        end = max(end, extent.last)
        mask = queue.visible(extent)
        if extent.first < first or extent.last > last:
            mask &= extent.within(first, last)
        place += 1
        if mask:
            found.append((extent, mask))
    return found, place


# --- Without bodies ------------------------------------------------------------------------------


def offsets(shelf: Shelf, queue: QueueState | None) -> QueueOffsets:
    """The readable sequences of a queue; zeros if there are none.

    :raises StoreError: when the store cannot be read.
    """
    earliest = latest = count = size = oldest_us = 0
    oldest: Extent | None = None
    for extent in queue.extents if queue is not None else ():
        visible = queue.visible(extent) if queue is not None else 0
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


def find(shelf: Shelf, queue: QueueState, timestamp_us: int) -> int:
    """The first kept sequence that arrived at a time or later; 0 if there is none.

    :raises DamageError: when an index that must be read is damaged.
    :raises StoreError: when the store cannot be read.
    """
    found = 0
    for extent in queue.extents:
        if found and extent.first > found:
            break
        if extent.newest_us < timestamp_us:
            continue
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


class _Parts:
    """The parts of a queue while they are collected."""

    __slots__ = ("found", "_full", "_limit", "_max_bytes", "_most")

    def __init__(self, limit: int, max_bytes: int, most: int) -> None:
        self.found: list[StoredPart] = []
        self._full = False
        self._limit = limit
        self._max_bytes = max_bytes
        self._most = most

    def is_full(self) -> bool:
        """Whether another part was needed but exceeds the largest number of parts."""
        return self._full

    def fits(self, count: int, size: int) -> bool:
        """Whether this many messages and bytes fit into one part."""
        return (not self._limit or count <= self._limit) and (
            not self._max_bytes or size <= self._max_bytes
        )

    def add(self, first: int, last: int, count: int, size: int) -> None:
        """Add messages to the last part, or to a new one."""
        if self.found:
            part = self.found[-1]
            if self.fits(part.count + count, part.bytes + size):
                part.last = last
                part.count += count
                part.bytes += size
                return
            if len(self.found) >= self._most:
                self._full = True
                return
        self.found.append(StoredPart(first, last, count, size))


def split(
    shelf: Shelf,
    queue: QueueState,
    wanted: tuple[int, int],
    bounds: tuple[int, int],
    most_parts: int,
) -> list[StoredPart]:
    """Split the kept messages into parts; the arguments are those of :meth:`Store.split`.

    A block is put into one part as a whole if possible.

    :raises DamageError: when an index that must be read is damaged.
    :raises StoreError: when the store cannot be read.
    """
    first, last = wanted
    parts = _Parts(bounds[0], bounds[1], most_parts)
    extents = queue.extents
    place = queue.begin(first)
    while place < len(extents) and extents[place].first <= last and not parts.is_full():
        if extents[place].last < first:
            place += 1
            continue
        cluster, place = _cluster(queue, place, first, last)
        if len(cluster) == 1:
            extent, mask = cluster[0]
            count = mask.bit_count()
            size = shelf.size_of(extent, mask)
            if count and parts.fits(count, size):
                begin = extent.first + (mask & -mask).bit_length() - 1
                parts.add(begin, extent.first + mask.bit_length() - 1, count, size)
                continue
        for sequence, size in _sizes(shelf, cluster):
            parts.add(sequence, sequence, 1, size)
            if parts.is_full():
                break
    return parts.found


def _sizes(shelf: Shelf, cluster: list[tuple[Extent, int]]) -> list[tuple[int, int]]:
    """The sequences of a cluster in order, with the size of each message."""
    found: list[tuple[int, int]] = []
    for extent, mask in cluster:
        block = shelf.index(extent)
        if block is not None:
            for sequence in _sequences((extent, mask)):
                found.append((sequence, block.size(block.find(sequence))))
    found.sort()
    return found
