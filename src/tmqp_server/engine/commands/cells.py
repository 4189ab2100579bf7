"""The commands about cells, counters and values with a time to live, and their answers.

A cell is identified by its space and its key, which is bytes.  It ends at its deadline, for all
clients: every command treats the key of an ended cell as free.  A time to live is a number of
units; a cell remembers its unit, for protocols that have no other.
"""

from __future__ import annotations

from typing import Final

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands.base import SessionCommand
from tmqp_server.engine.model.cells import MILLISECONDS, MOST_COUNT, Cell
from tmqp_server.engine.records import Record

__all__ = [
    "CELL_COUNT",
    "CELL_TTL",
    "CellCommand",
    "CellPortion",
    "CellSnapshot",
    "ChangeCell",
    "DescribeCell",
    "DropCell",
    "ListCells",
    "MakeCounter",
    "PutValue",
    "ReadCell",
]

#: Which part of a cell is changed.
CELL_COUNT: Final = 0
CELL_TTL: Final = 1


@mypyc_attr(acyclic=True)
class CellCommand(SessionCommand):
    """A command about one cell of a space."""

    __slots__ = ("request", "space", "key")

    def __init__(self, session: int, request: object, space: str, key: bytes) -> None:
        self.session = session  # not by super(): there are many of these
        self.request = request
        self.space = space
        self.key = key


@mypyc_attr(acyclic=True)
class MakeCounter(CellCommand):
    """Make a counter that lives for ``ttl`` units; with a ttl of 0 it ends immediately.

    481 if the key is in use, 400 for an invalid count or unit, 482, 503.
    """

    __slots__ = ("count", "ttl", "unit")

    def __init__(
        self,
        session: int,
        request: object,
        space: str,
        key: bytes,
        count: int,
        ttl: int,
        unit: int = MILLISECONDS,
    ) -> None:
        super().__init__(session, request, space, key)
        self.count = count
        self.ttl = ttl
        self.unit = unit


@mypyc_attr(acyclic=True)
class PutValue(CellCommand):
    """Store bytes under a key for ``ttl`` units, replacing the value that the key had.

    A replaced value keeps its position in lists and its statistics.  406 if the key has a counter,
    400 for an invalid unit, 482, 503.
    """

    __slots__ = ("value", "ttl", "unit")

    def __init__(
        self,
        session: int,
        request: object,
        space: str,
        key: bytes,
        value: bytes,
        ttl: int,
        unit: int = MILLISECONDS,
    ) -> None:
        super().__init__(session, request, space, key)
        self.value = value
        self.ttl = ttl
        self.unit = unit


@mypyc_attr(acyclic=True)
class ReadCell(CellCommand):
    """Answered with a CellSnapshot, and counted as a read.

    404; 406 if the cell is not of this ``kind``, COUNTER or VALUE; a ``kind`` below 0 accepts both.
    """

    __slots__ = ("kind",)

    def __init__(
        self, session: int, request: object, space: str, key: bytes, kind: int = -1
    ) -> None:
        super().__init__(session, request, space, key)
        self.kind = kind


@mypyc_attr(acyclic=True)
class ChangeCell(CellCommand):
    """Set a counter or a time to live, add to it, or subtract from it; all or nothing.

    ``what`` is CELL_COUNT or CELL_TTL, ``change`` SET, ADD or SUBTRACT, ``amount`` in ``unit`` if
    it is a time, 0 for the cell's own unit.  A counter is at most MOST_COUNT; with a ``modulus`` it
    wraps around to 0 there.  SET makes a time to live begin now; ADD and SUBTRACT move the
    deadline, and a cell whose deadline is moved into the past has ended.

    If CELL_COUNT finds no cell and ``initial`` is not below 0, a counter of ``initial`` that lives
    for ``ttl`` units of ``ttl_unit`` is made first; both happen or neither.  With ``tells``, the
    answer is a CellSnapshot of the result.

    404; 406 if more is subtracted than there is, if the sum is too large, or if CELL_COUNT finds a
    value; 400 for an invalid change or unit, 482, 503.
    """

    __slots__ = (
        "what",
        "change",
        "amount",
        "unit",
        "modulus",
        "initial",
        "ttl",
        "ttl_unit",
        "tells",
    )

    def __init__(
        self,
        session: int,
        request: object,
        space: str,
        key: bytes,
        what: int,
        change: int,
        amount: int,
        unit: int = 0,
        modulus: int = 0,
        initial: int = -1,
        ttl: int = 0,
        ttl_unit: int = MILLISECONDS,
        tells: bool = True,
    ) -> None:
        super().__init__(session, request, space, key)
        self.what = what
        self.change = change
        self.amount = amount
        self.unit = unit
        self.modulus = modulus
        self.initial = initial
        self.ttl = ttl
        self.ttl_unit = ttl_unit
        self.tells = tells


@mypyc_attr(acyclic=True)
class DropCell(CellCommand):
    """Remove a cell.  404."""

    __slots__ = ()


@mypyc_attr(acyclic=True)
class DescribeCell(CellCommand):
    """Answered with a CellSnapshot with statistics; this does not count as a read.  404."""

    __slots__ = ()


class ListCells(SessionCommand):
    """Answered with a CellPortion: up to ``limit`` cells of a space from the number ``first`` on,
    in the order of creation; a missing space is answered with an empty portion.

    With ``figures``, each has its statistics.  There are at most ``max_cells_listed``, whatever
    ``limit`` says.
    """

    __slots__ = ("request", "space", "first", "limit", "figures")

    def __init__(
        self,
        session: int,
        request: object,
        space: str,
        first: int = 0,
        limit: int = MOST_COUNT,
        figures: bool = False,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.space = space
        self.first = first
        self.limit = limit
        self.figures = figures


class CellSnapshot(Record):
    """A cell at one moment; ``left_ns`` is its remaining time to live, ``due_ns`` its deadline,
    both in nanoseconds of the engine's clock.

    The statistics are 0 unless they were requested.
    """

    __slots__ = (
        "key",
        "number",
        "kind",
        "count",
        "value",
        "unit",
        "left_ns",
        "due_ns",
        "reads",
        "writes",
        "reads_per_minute",
        "writes_per_minute",
    )

    def __init__(self, cell: Cell, now_ns: int, figures: bool = False) -> None:
        self.key = cell.key
        self.number = cell.number
        self.kind = cell.kind
        self.count = cell.amount
        self.value = cell.value
        self.unit = cell.unit
        self.left_ns = cell.due_ns - now_ns
        self.due_ns = cell.due_ns
        self.reads = 0
        self.writes = 0
        self.reads_per_minute = 0
        self.writes_per_minute = 0
        if figures:
            self.reads = cell.reads
            self.writes = cell.writes
            self.reads_per_minute = cell.reads_per_minute(now_ns)
            self.writes_per_minute = cell.writes_per_minute(now_ns)


class CellPortion(Record):
    """Some cells of a space, and the counts of all its cells; ``following`` is the number from
    which the next portion continues, 0 if there is none.

    The counts may include cells that have ended less than a quarter of a second ago.
    """

    __slots__ = ("cells", "following", "counters", "values", "value_bytes")

    def __init__(
        self,
        cells: list[CellSnapshot],
        following: int,
        counters: int,
        values: int,
        value_bytes: int,
    ) -> None:
        self.cells = cells
        self.following = following
        self.counters = counters
        self.values = values
        self.value_bytes = value_bytes
