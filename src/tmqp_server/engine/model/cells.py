"""Cells: counters and values with a time to live, in spaces, in the order of their creation.

Theory of operation.  A cell is not a message: it is not consumed, and it has a key.  It ends
exactly at its deadline, for every request; times are whole nanoseconds, so that adding to a
deadline and subtracting again leaves no difference.

*The wheel* only frees memory.  It files cells by the tick in which they end, in coarser ticks for
later ends, so there are few ticks however many cells there are; a cell that is dropped or extended
is removed from it immediately.  When a coarse tick begins, its cells are filed again; the cells of
a finest tick are freed when it is over.

*Order.* Each cell of a space has a number, and cells are listed by it in portions: they are in
blocks of some hundred numbers, so that the next portion is found without examining all cells.

*Statistics.* Reads and writes of the last minute are counted as in ``rates.py``; both share one
slot, so that a cell stays small.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from typing import Final
from zlib import crc32

from tmqp_server.engine.model.rates import slot_at, sum_of, turned
from tmqp_server.engine.model.timers import Sleeper
from tmqp_server.engine.model.times import NEVER

__all__ = [
    "ADD",
    "COUNTER",
    "HOURS",
    "MICROSECONDS",
    "MILLISECONDS",
    "MINUTES",
    "MOST_COUNT",
    "NANOSECONDS",
    "SECONDS",
    "SECOND_NS",
    "SET",
    "SUBTRACT",
    "UNIT_NS",
    "VALUE",
    "Cell",
    "CellTimer",
    "CellWheel",
    "Space",
]

#: The kinds of cells.
COUNTER: Final = 0
VALUE: Final = 1

#: The units of a time to live; ``UNIT_NS`` has their nanoseconds.
NANOSECONDS: Final = 1
MICROSECONDS: Final = 2
MILLISECONDS: Final = 3
SECONDS: Final = 4
MINUTES: Final = 5
HOURS: Final = 6
UNIT_NS: Final[tuple[int, ...]] = (
    0,
    1,
    1_000,
    1_000_000,
    1_000_000_000,
    60_000_000_000,
    3_600_000_000_000,
)

#: What a change does to a number.
SET: Final = 0
ADD: Final = 1
SUBTRACT: Final = 2

#: The largest counter.
MOST_COUNT: Final = 2**64 - 1
SECOND_NS: Final = 1_000_000_000

#: Of the wheel: the finest tick, how much coarser each next one is, and how many of a kind are used
#: before the next one is.
_TICK_NS: Final = 125_000_000
_COARSER: Final = 8
_TICKS: Final = 512
#: Entries of the order of ticks that may be stale.
_SPARE_TICKS: Final = 64

#: Tables of a space, by key: one large table would take too long to grow in a step.
_TABLES: Final = 64
#: A block has this number of bits of a cell's number.
_BLOCK_BITS: Final = 9
#: Cells in a part of a tick.
_PART_CELLS: Final = 512
#: When so few are left in a block or a part, it is rebuilt: a table keeps its size when it shrinks.
_SHRINK_AT: Final = (128, 32, 8, 0)


class Cell:
    """A counter or a value.

    Attributes: ``number``, its position in its space; ``amount`` of a counter, ``value`` of a
    value; ``due_ns``, its deadline in nanoseconds of the engine's clock; ``unit``, that of the time
    to live when it was made; ``tick`` and ``part``, its place in the wheel; ``memory``, its charge
    in the books.
    """

    __slots__ = (
        "space",
        "key",
        "number",
        "kind",
        "amount",
        "value",
        "due_ns",
        "unit",
        "tick",
        "part",
        "memory",
        "reads",
        "writes",
        "_recent_reads",
        "_recent_writes",
        "_slot",
    )

    def __init__(self, space: Space, key: bytes, kind: int) -> None:
        self.space = space
        self.key = key
        self.number = 0
        self.kind = kind
        self.amount = 0
        self.value = b""
        self.due_ns = 0
        self.unit = SECONDS
        self.tick = 0
        self.part = 0
        self.memory = 0
        self.reads = 0
        self.writes = 0
        self._recent_reads = 0
        self._recent_writes = 0
        self._slot = 0

    def note_read(self, now_ns: int) -> None:
        """Count a read of the cell."""
        self._turn(now_ns)
        self.reads += 1
        self._recent_reads += 1

    def note_write(self, now_ns: int) -> None:
        """Count a write of the cell."""
        self._turn(now_ns)
        self.writes += 1
        self._recent_writes += 1

    def reads_per_minute(self, now_ns: int) -> int:
        """The number of reads in the last minute."""
        self._turn(now_ns)
        return sum_of(self._recent_reads)

    def writes_per_minute(self, now_ns: int) -> int:
        """The number of writes in the last minute."""
        self._turn(now_ns)
        return sum_of(self._recent_writes)

    def _turn(self, now_ns: int) -> None:
        """Make the current slot the lowest one."""
        slot = slot_at(now_ns)
        steps = slot - self._slot
        if steps:
            self._slot = slot
            self._recent_reads = turned(self._recent_reads, steps)
            self._recent_writes = turned(self._recent_writes, steps)


class Space:
    """The cells under one name: ``count`` of them, of which ``counters`` are counters;
    ``value_bytes`` is the size of all values."""

    __slots__ = (
        "name",
        "count",
        "counters",
        "value_bytes",
        "memory",
        "_tables",
        "_blocks",
        "_next",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.counters = 0
        self.value_bytes = 0
        self.memory = 0
        self._tables: list[dict[bytes, Cell]] = [{} for _ in range(_TABLES)]
        self._blocks: dict[int, dict[int, Cell]] = {}
        self._next = 1

    def find(self, key: bytes) -> Cell | None:
        """The cell of a key, or None."""
        return self._tables[crc32(key) % _TABLES].get(key)

    def add(self, cell: Cell) -> None:
        """Add a new cell after all others; its key must be free."""
        number = self._next
        self._next = number + 1
        cell.number = number
        self._tables[crc32(cell.key) % _TABLES][cell.key] = cell
        self.count += 1
        if cell.kind == COUNTER:
            self.counters += 1
        else:
            self.value_bytes += len(cell.value)
        block = self._blocks.get(number >> _BLOCK_BITS)
        if block is None:
            block = self._blocks[number >> _BLOCK_BITS] = {}
        block[number] = cell

    def remove(self, cell: Cell) -> None:
        """Remove a cell."""
        del self._tables[crc32(cell.key) % _TABLES][cell.key]
        self.count -= 1
        if cell.kind == COUNTER:
            self.counters -= 1
        else:
            self.value_bytes -= len(cell.value)
        place = cell.number >> _BLOCK_BITS
        block = self._blocks[place]
        del block[cell.number]
        left = len(block)
        if left == 0:
            del self._blocks[place]
        elif left in _SHRINK_AT:
            self._blocks[place] = dict(block.items())

    def put(self, cell: Cell, value: bytes) -> None:
        """Replace the contents of a value."""
        self.value_bytes += len(value) - len(cell.value)
        cell.value = value

    def listed(self, first: int, limit: int) -> list[Cell]:
        """Up to *limit* cells from the number *first* on, in the order of creation."""
        found: list[Cell] = []
        places = list(self._blocks)
        at = bisect_left(places, first >> _BLOCK_BITS)
        while at < len(places) and len(found) < limit:
            for number, cell in self._blocks[places[at]].items():
                if number >= first:
                    found.append(cell)
                    if len(found) == limit:
                        break
            at += 1
        return found


class CellTimer(Sleeper):
    """Wakes ``Cells`` to free cells that have ended."""

    __slots__ = ()


class _Tick:
    """The cells of one tick, ``count`` of them, in parts: one large table would take too long to
    grow in a step."""

    __slots__ = ("count", "_parts")

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[dict[Cell, None]] = [{}]

    def add(self, cell: Cell) -> None:
        """Add a cell."""
        part = self._parts[-1]
        if len(part) >= _PART_CELLS:
            part = {}
            self._parts.append(part)
        cell.part = len(self._parts) - 1
        part[cell] = None
        self.count += 1

    def remove(self, cell: Cell) -> None:
        """Remove a cell."""
        part = self._parts[cell.part]
        del part[cell]
        self.count -= 1
        if len(part) in _SHRINK_AT:
            self._parts[cell.part] = dict(part.items())

    def pop(self) -> Cell:
        """Remove and return any cell; there must be one."""
        while not self._parts[-1]:
            self._parts.pop()
        self.count -= 1
        return self._parts[-1].popitem()[0]


class CellWheel:
    """Cells by the tick in which they must be examined."""

    __slots__ = ("_order", "_ticks")

    def __init__(self) -> None:
        self._ticks: dict[int, _Tick] = {}
        #: A heap of ticks; one that ``_ticks`` no longer has is skipped.
        self._order: list[int] = []

    def add(self, cell: Cell, now_ns: int) -> None:
        """Have a cell examined: when its tick is over, or, long before, to be filed again."""
        due_ns = cell.due_ns
        left = due_ns - now_ns
        size = _TICK_NS
        while left > _TICKS * size:
            size *= _COARSER
        tick = (due_ns // size) * size
        if size == _TICK_NS:
            tick += size
        cell.tick = tick
        there = self._ticks.get(tick)
        if there is None:
            there = self._ticks[tick] = _Tick()
            if len(self._order) > _SPARE_TICKS + 2 * len(self._ticks):
                self._order = sorted(self._ticks)
            else:
                heapq.heappush(self._order, tick)
        there.add(cell)

    def remove(self, cell: Cell) -> None:
        """Remove a cell; it must be in the wheel."""
        tick = self._ticks[cell.tick]
        tick.remove(cell)
        if not tick.count:
            del self._ticks[cell.tick]

    def next_due_ns(self) -> int:
        """When the next cell must be examined; -1 for never."""
        order = self._order
        while order:
            tick = order[0]
            if tick in self._ticks:
                return tick
            heapq.heappop(order)
        return -1

    def next_due(self) -> float:
        """The same in seconds, never too early; NEVER for never."""
        due_ns = self.next_due_ns()
        # A microsecond is more than what is lost between whole nanoseconds and seconds.
        return NEVER if due_ns < 0 else (due_ns + 1_000) / SECOND_NS

    def take(self, now_ns: int, limit: int) -> list[Cell]:
        """Remove and return up to *limit* cells that must be examined now."""
        found: list[Cell] = []
        while len(found) < limit:
            due_ns = self.next_due_ns()
            if due_ns < 0 or due_ns > now_ns:
                break
            tick = self._ticks[due_ns]
            while tick.count and len(found) < limit:
                found.append(tick.pop())
            if not tick.count:
                del self._ticks[due_ns]
        return found
