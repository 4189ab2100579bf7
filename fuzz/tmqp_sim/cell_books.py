"""What the cells of one client must hold, told from its requests and their answers.

Theory of operation.  Nobody else changes these cells, and the client asks for one thing at a time,
so each answer is known beforehand: its code, what the cell holds, how often it was read and
written.  When something was carried out is only known to lie between the request and its answer, so
a deadline is known as an interval; of a cell that is asked for within it nobody knows whether it is
there, and it is dropped before it is used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes

from tmqp.constants import RESULT_DUPLICATE, RESULT_NOT_FOUND, RESULT_OK, RESULT_UNACCEPTABLE
from tmqp.extensions import (
    CELL_COUNTER,
    CELL_VALUE,
    CHANGE_ADD,
    CHANGE_ADD_TIMEOUT,
    CHANGE_SET,
    CHANGE_SET_TIMEOUT,
    CHANGE_SUBTRACT,
    CHANGE_SUBTRACT_TIMEOUT,
    HEADER_CELL_KIND,
    HEADER_TIMEOUT,
    OP_CHANGE_CELL,
    OP_DESCRIBE_CELL,
    OP_DROP_CELL,
    OP_MAKE_COUNTER,
    OP_PUT_VALUE,
    OP_READ_CELL,
)
from tmqp.frames import Frame
from tmqp.models import CellInformation
from tmqp_sim.world import Violation

__all__ = ["COUNTS", "TIMES", "CellBooks", "CellRequest"]

#: Changes of a counter, and of a deadline.
COUNTS: Final = (CHANGE_SET, CHANGE_ADD, CHANGE_SUBTRACT)
TIMES: Final = (CHANGE_SET_TIMEOUT, CHANGE_ADD_TIMEOUT, CHANGE_SUBTRACT_TIMEOUT)
_MOST: Final = 2**64 - 1
#: Times are told in whole milliseconds.
_SLACK_S: Final = 0.0011
#: What a cell holds: a count or a value.
_Content: TypeAlias = int | bytes


class CellRequest:
    """One request about a cell; ``initial`` is negative where it says none, and ``value`` is empty
    but for a value to put."""

    __slots__ = ("amount", "change", "initial", "key", "operation", "ttl_s", "value")

    def __init__(self, operation: int, key: bytes) -> None:
        self.operation = operation
        self.key = key
        self.amount = 0
        self.change = ""
        self.initial = -1
        self.ttl_s = 0.0
        self.value = b""

    def __repr__(self) -> str:
        what = f"{self.operation} {self.change} of {self.key!r}"
        return f"{what} by {self.amount} from {self.initial} for {self.ttl_s} s"


class _Cell:
    """What is known of one; its deadline lies between ``due`` and ``late``."""

    __slots__ = ("content", "due", "late", "reads", "writes")

    def __init__(self, content: _Content, due: float, late: float) -> None:
        self.content = content
        self.due = due
        self.late = late
        self.reads = 0
        self.writes = 1

    @property
    def kind(self) -> str:
        """The word for what it is."""
        return CELL_COUNTER if isinstance(self.content, int) else CELL_VALUE


class CellBooks:
    """The cells of one client, on one connection.

    Attributes: ``doubtful`` keys, which are to be dropped before they are used again.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._cells: dict[bytes, _Cell] = {}
        self.doubtful: set[bytes] = set()

    def answered(
        self, request: CellRequest, code: int, answer: Frame | None, asked_at: float, now: float
    ) -> None:
        """A request is answered.

        :param answer: None for a refusal.
        :raises Violation: when it must be answered otherwise.
        """
        key = request.key
        if request.operation == OP_DROP_CELL and key in self.doubtful:
            self.doubtful.discard(key)
            self._expect(request, code in (RESULT_OK, RESULT_NOT_FOUND), f"with {code}")
            return
        self._look(key, asked_at, now)
        if key in self.doubtful:
            return
        expected = self._expected(request, asked_at, now)
        self._expect(request, code == expected, f"with {code}, not {expected}")
        if code == RESULT_OK and answer is not None:
            self._check_answer(request, answer, asked_at, now)

    def listed(self, found: Sequence[CellInformation], asked_at: float, now: float) -> None:
        """All own cells of a space are listed, in this order.

        :raises Violation: when others must be, or they hold something else.
        """
        for key in list(self._cells):
            self._look(key, asked_at, now)
        there = {unquote_to_bytes(each.key): each for each in found}
        numbers = [each.number for each in found]
        wrong = ""
        if len(there) != len(found) or numbers != sorted(numbers):
            wrong = "twice, or in another order"
        elif any(key not in self._cells and key not in self.doubtful for key in there):
            wrong = "though some have ended"
        elif not there.keys() >= self._cells.keys():
            wrong = "and some are missing"
        if wrong:
            keys = f"{[each.key for each in found]} of {list(self._cells)}"
            raise Violation("cells", f"{self._name}: {keys} are listed, {wrong}")
        for key, cell in self._cells.items():
            self._check_figures(there[key], cell, asked_at, now)

    # -- what answers must be -------------------------------------------------------------------

    def _look(self, key: bytes, asked_at: float, now: float) -> None:
        """Forget a cell that has ended, and doubt one that may have."""
        cell = self._cells.get(key)
        if cell is None or now < cell.due - _SLACK_S:
            return
        del self._cells[key]
        if asked_at < cell.late + _SLACK_S:
            self.doubtful.add(key)

    def _expected(self, request: CellRequest, asked_at: float, now: float) -> int:
        """The code of an answer; the books are changed as it says."""
        cell = self._cells.get(request.key)
        operation = request.operation
        if operation == OP_MAKE_COUNTER:
            if cell is not None:
                return RESULT_DUPLICATE
            self._make(request, request.amount, asked_at, now)
        elif operation == OP_PUT_VALUE:
            return self._put(cell, request, asked_at, now)
        elif operation == OP_CHANGE_CELL and request.change in COUNTS:
            return self._count(cell, request, asked_at, now)
        elif cell is None:
            return RESULT_NOT_FOUND
        elif operation == OP_CHANGE_CELL:
            self._move(cell, request, asked_at, now)
        elif operation == OP_READ_CELL:
            cell.reads += 1
        elif operation == OP_DROP_CELL:
            del self._cells[request.key]
        return RESULT_OK

    def _make(self, request: CellRequest, content: _Content, asked_at: float, now: float) -> None:
        span_s = request.ttl_s
        self._cells[request.key] = _Cell(content, asked_at + span_s, now + span_s)

    def _put(self, cell: _Cell | None, request: CellRequest, asked_at: float, now: float) -> int:
        if cell is None:
            self._make(request, request.value, asked_at, now)
            return RESULT_OK
        if isinstance(cell.content, int):
            return RESULT_UNACCEPTABLE
        cell.content = request.value
        cell.due, cell.late = asked_at + request.ttl_s, now + request.ttl_s
        cell.writes += 1
        return RESULT_OK

    def _count(self, cell: _Cell | None, request: CellRequest, asked_at: float, now: float) -> int:
        if cell is None and request.initial < 0:
            return RESULT_NOT_FOUND
        before = request.initial if cell is None else cell.content
        if not isinstance(before, int):
            return RESULT_UNACCEPTABLE
        count = request.amount
        if request.change == CHANGE_ADD:
            count = before + request.amount
        elif request.change == CHANGE_SUBTRACT:
            count = before - request.amount
        if not 0 <= count <= _MOST:
            return RESULT_UNACCEPTABLE
        if cell is None:
            self._make(request, count, asked_at, now)
        else:
            cell.content = count
            cell.writes += 1
        return RESULT_OK

    def _move(self, cell: _Cell, request: CellRequest, asked_at: float, now: float) -> None:
        """Another deadline; one that has passed ends the cell."""
        span_s = request.ttl_s
        cell.writes += 1
        if request.change == CHANGE_SET_TIMEOUT:
            cell.due, cell.late = asked_at + span_s, now + span_s
        else:
            span_s = span_s if request.change == CHANGE_ADD_TIMEOUT else -span_s
            cell.due += span_s
            cell.late += span_s
        self._look(request.key, asked_at, now)

    def _check_answer(
        self, request: CellRequest, answer: Frame, asked_at: float, now: float
    ) -> None:
        """What is reported about a cell is what it holds."""
        cell = self._cells.get(request.key)
        if cell is None:
            return
        if request.operation == OP_DESCRIBE_CELL:
            told = CellInformation.from_json(answer.payload)
            self._check_figures(told, cell, asked_at, now)
            figures = (told.reads, told.writes)
            expected = (cell.reads, cell.writes)
            self._expect(request, figures == expected, f"with {figures}, not {expected}")
        elif request.operation in (OP_READ_CELL, OP_CHANGE_CELL):
            content = cell.content
            payload = str(content).encode() if isinstance(content, int) else content
            holds = (answer.header(HEADER_CELL_KIND), bytes(answer.payload))
            wanted = (cell.kind, payload)
            self._expect(request, holds == wanted, f"with {holds}, not {wanted}")
            left_s = int(answer.header(HEADER_TIMEOUT) or -1) / 1_000
            self._check_left(request.key, cell, left_s, asked_at, now)

    def _check_figures(
        self, told: CellInformation, cell: _Cell, asked_at: float, now: float
    ) -> None:
        content = cell.content
        figures = (told.kind, told.count, told.bytes)
        count, size = (content, 0) if isinstance(content, int) else (0, len(content))
        expected = (cell.kind, count, size)
        if figures != expected:
            text = f"{told.key} is told to be {figures}, and is {expected}"
            raise Violation("cells", f"{self._name}: {text}")
        self._check_left(told.key.encode(), cell, told.timeout_ms / 1_000, asked_at, now)

    def _check_left(
        self, key: bytes, cell: _Cell, left_s: float, asked_at: float, now: float
    ) -> None:
        """A cell is told to live for so long."""
        least_s, most_s = cell.due - now - _SLACK_S, cell.late - asked_at + _SLACK_S
        if not least_s <= left_s <= most_s:
            text = f"{key!r} lives for {left_s} s, and must for {least_s:.3f} to {most_s:.3f} s"
            raise Violation("cells", f"{self._name}: {text}")

    def _expect(self, request: CellRequest, right: bool, text: str) -> None:
        if not right:
            raise Violation("cells", f"{self._name}: {request!r} is answered {text}")
