"""What the store knows of its blocks without reading them: extents, and queues of extents.

Theory of operation.  An *extent* describes one block in the database.  Bit masks say which of its
messages exist, are not settled, have high priority or are transient, bit 0 being the sequence
``first``: so settling a message changes one bit, and counting counts bits.  An extent spans at most
``MAX_SPAN`` sequences, so that a mask is small even if few of the sequences exist.

Extents of a queue are in the order of their first sequence.  They may overlap, because a message
may be saved later than one that follows it; so the search for a sequence looks back as far as a
span can reach.

A queue's *floor* is where retention begins: settled messages of extents that end before it are
dropped, those of the others are kept.  A queue without retention has its floor at infinity.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from struct import Struct
from typing import Final
from zlib import crc32

from tmqp_server.storage.port import DamageError, KeepQueue

__all__ = [
    "INFINITY",
    "MAX_SPAN",
    "Extent",
    "QueueState",
    "Row",
    "below",
    "extent_of",
    "retains",
    "row_of",
    "span",
]

#: The most sequences from the first to the last message of a block.
MAX_SPAN: Final = 16_384
#: Above every sequence.
INFINITY: Final = 1 << 63

_FIXED: Final = Struct("<QQQQQQq")
_NOTE: Final = Struct("<QHH")

#: A row of the table ``blocks``: id, key, first, last, count, size, newest_us, four masks, notes,
#: checksum.
Row = tuple[
    int,
    int,
    int,
    int,
    int,
    int,
    int,
    bytes | None,
    bytes | None,
    bytes | None,
    bytes | None,
    bytes | None,
    int,
]


def span(count: int) -> int:
    """A mask with the lowest ``count`` bits set."""
    return (1 << count) - 1


def below(first: int, sequence: int) -> int:
    """A mask of the sequences from ``first`` up to, but not including, ``sequence``."""
    return (1 << (sequence - first)) - 1 if sequence > first else 0


class Extent:
    """One block: its place, its masks, and the notes about single messages.

    ``size`` is the size of all bodies in the block, ``count`` the number of messages when it was
    written, ``crc`` the checksum of its row in the database, -1 if it has no row yet.
    """

    __slots__ = (
        "id",
        "key",
        "first",
        "last",
        "count",
        "size",
        "weight",
        "newest_us",
        "present",
        "owed",
        "high",
        "transient",
        "notes",
        "damaged",
        "crc",
    )

    def __init__(
        self,
        id: int,
        key: int,
        first: int,
        last: int,
        count: int,
        size: int,
        newest_us: int,
        present: int,
        owed: int,
        high: int,
        transient: int,
    ) -> None:
        self.id = id
        self.key = key
        self.first = first
        self.last = last
        self.count = count
        self.size = size
        self.weight = size
        self.newest_us = newest_us
        self.present = present
        self.owed = owed
        self.high = high
        self.transient = transient
        self.notes: dict[int, tuple[int, int]] | None = None
        self.damaged = False
        self.crc = -1

    def __lt__(self, other: Extent) -> bool:
        return self.first < other.first

    @property
    def words(self) -> str:
        """Describe it in an error message."""
        return f"messages {self.first} to {self.last} of queue {self.key}"

    def why(self, error: Exception) -> str:
        """Say what is wrong with it, without :meth:`words`."""
        return str(error).removeprefix(f"{self.words}: ")

    def owed_of(self, priority: int) -> int:
        """The mask of the owed messages of a priority (0 any, 1 high, 2 regular)."""
        if priority == 0:
            return self.owed
        return self.owed & self.high if priority == 1 else self.owed & ~self.high

    def within(self, first: int, last: int) -> int:
        """The mask of the sequences from ``first`` to ``last`` that are within the span."""
        mask = below(self.first, min(last, self.last) + 1)
        return mask & ~below(self.first, first) if first > self.first else mask


class QueueState:
    """A queue: its stored options, its extents, and where its retention begins.

    ``bytes`` is the size of all extents, ``forgotten`` that of those which end before the floor.
    ``stored`` is the sequence in the table of counters, 0 if none.
    """

    __slots__ = ("queue", "sequence", "stored", "extents", "floor", "bytes", "forgotten", "cursors")

    def __init__(self, queue: KeepQueue, sequence: int) -> None:
        self.queue = queue
        self.sequence = sequence
        self.stored = sequence
        self.extents: list[Extent] = []
        self.floor = 0 if retains(queue) else INFINITY
        self.bytes = 0
        self.forgotten = 0
        self.cursors: dict[str, int] = {}

    def add(self, extent: Extent) -> None:
        """Insert an extent at its place."""
        extents = self.extents
        if not extents or extents[-1].first <= extent.first:
            extents.append(extent)
        else:
            insort(extents, extent)
        self.bytes += extent.weight
        if extent.last < self.floor:
            self.forgotten += extent.weight

    def remove(self, extent: Extent) -> None:
        """Remove an extent."""
        index = self.place(extent)
        del self.extents[index]
        self.bytes -= extent.weight
        if extent.last < self.floor:
            self.forgotten -= extent.weight

    def place(self, extent: Extent) -> int:
        """The index of an extent; -1 if it was removed."""
        index = bisect_left(self.extents, extent)
        while index < len(self.extents) and self.extents[index].first == extent.first:
            if self.extents[index] is extent:
                return index
            index += 1
        return -1

    def find(self, sequence: int) -> Extent | None:
        """The extent that has a sequence; None if there is none."""
        index = bisect_right(self.extents, sequence, key=_first) - 1
        while index >= 0:
            extent = self.extents[index]
            if extent.first + MAX_SPAN <= sequence:
                break
            if extent.last >= sequence and extent.present >> (sequence - extent.first) & 1:
                return extent
            index -= 1
        return None

    def begin(self, sequence: int) -> int:
        """The index of the first extent that may have this sequence or a later one."""
        return bisect_left(self.extents, sequence - MAX_SPAN + 1, key=_first)

    def is_kept(self, extent: Extent) -> bool:
        """Whether retention keeps the settled messages of an extent."""
        return extent.last >= self.floor

    def visible(self, extent: Extent) -> int:
        """The mask of the messages that readers see."""
        return extent.present if extent.last >= self.floor else extent.owed

    def raise_floor(self, extent: Extent) -> None:
        """Move the floor to the end of an extent: its settled messages are no longer retained."""
        floor = extent.last + 1
        if floor <= self.floor:
            return
        for each in self.extents[self.begin(self.floor) :]:
            if each.first >= floor:
                break
            if self.floor <= each.last < floor:
                self.forgotten += each.weight
        self.floor = floor


def retains(queue: KeepQueue) -> bool:
    """Whether a queue keeps settled messages at all."""
    retention = queue.retention
    return bool(retention.retain_bytes or retention.retain_time_ms or retention.retain_for_readers)


def _first(extent: Extent) -> int:
    return extent.first


# --- Rows ----------------------------------------------------------------------------------------


def row_of(extent: Extent) -> Row:
    """An extent as a row; masks that can be derived are left out."""
    full = span(extent.last - extent.first + 1)
    present = None if extent.present == full else _mask_bytes(extent.present)
    owed = None if extent.owed == extent.present else _mask_bytes(extent.owed)
    high = _mask_bytes(extent.high) if extent.high else None
    transient = _mask_bytes(extent.transient) if extent.transient else None
    notes = None
    if extent.notes:
        notes = b"".join([_NOTE.pack(sequence, *n) for sequence, n in extent.notes.items()])
    fixed = (
        extent.id,
        extent.key,
        extent.first,
        extent.last,
        extent.count,
        extent.size,
        extent.newest_us,
    )
    crc = _row_crc(fixed, present, owed, high, transient, notes)
    return (*fixed, present, owed, high, transient, notes, crc)


def extent_of(row: Row) -> Extent:
    """Read an extent from its row.

    :raises DamageError: when the row is damaged.
    """
    number, key, first, last, count, size, newest_us, *values, crc = row
    present, owed, high, transient, notes = values
    fixed = (number, key, first, last, count, size, newest_us)
    try:
        good = crc == _row_crc(fixed, present, owed, high, transient, notes)
    except Exception:  # noqa: BLE001 - a damaged value may have any type
        good = False
    if not good:
        raise DamageError(
            f"messages {first} to {last} of queue {key}: the record of unsettled messages (block "
            f"{number}) does not match its checksum"
        )
    there = span(last - first + 1) if present is None else _mask(present)
    extent = Extent(
        number,
        key,
        first,
        last,
        count,
        size,
        newest_us,
        there,
        there if owed is None else _mask(owed),
        _mask(high),
        _mask(transient),
    )
    extent.crc = crc
    if notes:
        extent.notes = {
            sequence: (attempts, put_backs)
            for sequence, attempts, put_backs in _NOTE.iter_unpack(notes)
        }
    return extent


def _row_crc(fixed: tuple[int, ...], *masks: bytes | None) -> int:
    crc = crc32(_FIXED.pack(*fixed))
    for number, mask in enumerate(masks):
        if mask is not None:
            crc = crc32(mask, crc32(b"%d:%d:" % (number, len(mask)), crc))
    return crc


def _mask_bytes(mask: int) -> bytes:
    return mask.to_bytes((mask.bit_length() + 7) // 8, "little")


def _mask(value: bytes | None) -> int:
    return 0 if value is None else int.from_bytes(value, "little")
