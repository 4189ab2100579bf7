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

#: What of a cell is changed.
CELL_COUNT: Final = 0
CELL_TTL: Final = 1


@mypyc_attr(acyclic=True)
class CellCommand(SessionCommand):
    """Something asked about one cell of a space."""

    __slots__ = ("request", "space", "key")

    def __init__(self, session: int, request: object, space: str, key: bytes) -> None:
        self.session = session  # not by super(): there are many of these
        self.request = request
        self.space = space
        self.key = key


@mypyc_attr(acyclic=True)
class MakeCounter(CellCommand):
    """Make a counter that lives for ``ttl`` units; one that lives for 0 has ended at once.

    481 when the key has a cell, 400 for a count or a unit that there is not, 482, 503.
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
    """Put bytes under a key for ``ttl`` units, in the place of what it had.

    A value that is replaced keeps its place in lists and its figures.  406 when the key has a
    counter, 400 for a unit that there is not, 482, 503.
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

    404; 406 when the cell is not of this ``kind``, COUNTER or VALUE, unless that is below 0.
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
    begins at 0 again there.  A time to live is set from now on, and otherwise moves the deadline;
    what is moved into the past has ended.

    Where there is no cell and ``initial`` is not below 0, a counter of ``initial`` is made first,
    which lives for ``ttl`` units of ``ttl_unit``; both happen or neither.  With ``tells`` it is
    answered with a CellSnapshot of what there is then.

    404; 406 when less is there than is to be subtracted, when the sum is too large, or when a value
    is to be counted; 400 for a change that there is not, 482, 503.
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
    """Answered with a CellSnapshot that has the figures; that is no read.  404."""

    __slots__ = ()


class ListCells(SessionCommand):
    """Answered with a CellPortion: up to ``limit`` cells of a space from the number ``first`` on,
    in the order in which they were made; of a space that there is not, an empty one.

    With ``figures`` each has its figures.  No more than ``max_cells_listed``, whatever the limit.
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
    """A cell at a moment; ``left_ns`` is how long it lives from then on, and ``due_ns``
    until when, both in nanoseconds, of the engine's clock.

    The figures are 0 where nobody asked for them.
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
    """Some cells of a space, and how many it has; ``following`` is the number from which the next
    portion continues, 0 when there is none.

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
