"""Counters and values with a time to live: the commands about cells.

Theory of operation.  Cells are in memory only; a restart removes them.  Each is charged to the
memory account, and each space has a bounded number, so clients cannot create an unlimited amount.
A command that finds a cell after its deadline frees it and treats it as missing; the wheel
(``model/cells.py``) frees other ended cells, some hundred at a time.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_DUPLICATE,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.books import cell_bytes, space_bytes
from tmqp_server.engine.commands import Command
from tmqp_server.engine.commands.cells import (
    CELL_COUNT,
    CELL_TTL,
    CellPortion,
    CellSnapshot,
    ChangeCell,
    DescribeCell,
    DropCell,
    ListCells,
    MakeCounter,
    PutValue,
    ReadCell,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.model.cells import (
    ADD,
    COUNTER,
    MOST_COUNT,
    SECOND_NS,
    SET,
    SUBTRACT,
    UNIT_NS,
    VALUE,
    Cell,
    CellTimer,
    CellWheel,
    Space,
)
from tmqp_server.engine.model.sessions import Session

__all__ = ["Cells"]

#: Cells that are freed together, each for one unit of work.
_MOST_FREED: Final = 256
#: How long after its deadline a cell is freed, so that few wake-ups free many cells, in seconds.
_PATIENCE_S: Final = 0.05


class Cells:
    """The cells of a broker."""

    __slots__ = ("_core", "_spaces", "_timer", "_wheel")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._spaces: dict[str, Space] = {}
        core.tables["cell_spaces"] = self._spaces
        self._wheel = CellWheel()
        self._timer = CellTimer()

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            MakeCounter: self.make_counter,
            PutValue: self.put_value,
            ReadCell: self.read,
            ChangeCell: self.change,
            DropCell: self.drop,
            ListCells: self.list_cells,
            DescribeCell: self.describe,
        }

    def charged(self) -> int:
        """The charge for all cells, recalculated."""
        total = 0
        for space in self._spaces.values():
            total += space.memory
            for cell in space.listed(0, space.count):
                total += cell.memory
        return total

    def _now_ns(self) -> int:
        return int(self._core.now * SECOND_NS)

    # --- Finding ---------------------------------------------------------------------------------

    def _find(self, space: str, key: bytes, now_ns: int) -> Cell | None:
        """The cell of a key, or None; a cell that has ended is freed."""
        found = self._spaces.get(space)
        cell = None if found is None else found.find(key)
        if cell is not None and cell.due_ns <= now_ns:
            self._free(cell)
            return None
        return cell

    def _free(self, cell: Cell) -> None:
        self._wheel.remove(cell)
        self._forget(cell)

    def _forget(self, cell: Cell) -> None:
        """Remove and refund a cell that is not in the wheel any more."""
        space = cell.space
        space.remove(cell)
        self._core.refund(cell.memory)
        if not space.count:
            del self._spaces[space.name]
            self._core.refund(space.memory)

    def wake(self) -> None:
        """Free cells that have ended, within the budget."""
        core = self._core
        limit = min(core.budget, _MOST_FREED)
        core.budget -= self._sweep(self._now_ns(), limit)
        self._arm()

    def _sweep(self, now_ns: int, limit: int) -> int:
        """Examine up to *limit* cells whose tick is due; return their number."""
        cells = self._wheel.take(now_ns, limit)
        for cell in cells:
            if cell.due_ns <= now_ns:
                self._forget(cell)
            else:
                self._wheel.add(cell, now_ns)
        return len(cells)

    def _arm(self) -> None:
        core = self._core
        due = self._wheel.next_due()
        if due > core.now:
            due += _PATIENCE_S
        core.wakeups.arm(self._timer, due)

    # --- Making ----------------------------------------------------------------------------------

    def _make(
        self, name: str, key: bytes, kind: int, value: bytes, due_ns: int, now_ns: int
    ) -> Cell | int:
        """Make a cell under a free key, or return the result code of the refusal."""
        core = self._core
        limits = core.limits
        if len(key) > limits.max_cell_key_bytes:
            return core.reached("max_cell_key_bytes")
        space = self._spaces.get(name)
        if space is not None and space.count >= limits.max_cells_per_space:
            core.work += self._sweep(now_ns, _MOST_FREED)
            space = self._spaces.get(name)
            if space is not None and space.count >= limits.max_cells_per_space:
                return core.reached("max_cells_per_space")
        size = cell_bytes(key, value)
        more = 0
        if space is None:
            if len(name.encode("utf-8", "replace")) > limits.max_name_bytes or not name:
                return RESULT_BAD_REQUEST
            if len(self._spaces) >= limits.max_cell_spaces:
                return core.reached("max_cell_spaces")
            more = space_bytes(name)
        if not core.has_room(size + more):
            return core.no_room()
        if space is None:
            space = self._spaces[name] = Space(name)
            space.memory = more
            core.charge(more)
        cell = Cell(space, key, kind)
        cell.value = value
        cell.memory = size
        cell.due_ns = due_ns
        core.charge(size)
        space.add(cell)
        self._file(cell, now_ns)
        return cell

    def _file(self, cell: Cell, now_ns: int) -> None:
        """Have a cell freed some time after its deadline."""
        self._wheel.add(cell, now_ns)
        if self._timer.wake_at > self._core.now:
            self._arm()

    def _due_ns(self, ttl: int, unit: int, now_ns: int) -> int:
        """The deadline for a time to live that begins now; -1 for an invalid unit or time."""
        if not 0 < unit < len(UNIT_NS) or ttl < 0:
            return -1
        return now_ns + ttl * UNIT_NS[unit]

    def make_counter(self, command: Command, session: Session) -> None:
        """Make a counter."""
        assert isinstance(command, MakeCounter)
        now_ns = self._now_ns()
        due_ns = self._due_ns(command.ttl, command.unit, now_ns)
        code = RESULT_OK
        if due_ns < 0 or not 0 <= command.count <= MOST_COUNT:
            code = RESULT_BAD_REQUEST
        elif self._find(command.space, command.key, now_ns) is not None:
            code = RESULT_DUPLICATE
        else:
            made = self._make(command.space, command.key, COUNTER, b"", due_ns, now_ns)
            if isinstance(made, Cell):
                made.amount = command.count
                made.unit = command.unit
                made.note_write(now_ns)
            else:
                code = made
        self._core.reply(session, command.request, code)

    def put_value(self, command: Command, session: Session) -> None:
        """Store bytes under a key."""
        assert isinstance(command, PutValue)
        self._core.reply(session, command.request, self._put(command))

    def _put(self, command: PutValue) -> int:
        core = self._core
        now_ns = self._now_ns()
        value = command.value
        due_ns = self._due_ns(command.ttl, command.unit, now_ns)
        if due_ns < 0:
            return RESULT_BAD_REQUEST
        if len(value) > core.limits.max_cell_value_bytes:
            return core.reached("max_cell_value_bytes")
        cell = self._find(command.space, command.key, now_ns)
        if cell is None:
            made = self._make(command.space, command.key, VALUE, value, due_ns, now_ns)
            if not isinstance(made, Cell):
                return made
            cell = made
        else:
            if cell.kind != VALUE:
                return RESULT_UNACCEPTABLE
            size = cell_bytes(command.key, value)
            if size > cell.memory and not core.has_room(size - cell.memory):
                return core.no_room()
            core.charge(size - cell.memory)
            cell.memory = size
            cell.space.put(cell, value)
            self._move(cell, due_ns, now_ns)
        cell.unit = command.unit
        cell.note_write(now_ns)
        return RESULT_OK

    def _move(self, cell: Cell, due_ns: int, now_ns: int) -> None:
        """Change the deadline of a cell."""
        self._wheel.remove(cell)
        cell.due_ns = due_ns
        self._file(cell, now_ns)

    # --- Reading ---------------------------------------------------------------------------------

    def read(self, command: Command, session: Session) -> None:
        """Answer with the contents of a cell."""
        assert isinstance(command, ReadCell)
        core = self._core
        now_ns = self._now_ns()
        cell = self._find(command.space, command.key, now_ns)
        if cell is None:
            core.reply(session, command.request, RESULT_NOT_FOUND)
        elif 0 <= command.kind != cell.kind:
            core.reply(session, command.request, RESULT_UNACCEPTABLE)
        else:
            cell.note_read(now_ns)
            core.reply(session, command.request, RESULT_OK, CellSnapshot(cell, now_ns))

    def describe(self, command: Command, session: Session) -> None:
        """Answer with the contents and statistics of a cell."""
        assert isinstance(command, DescribeCell)
        now_ns = self._now_ns()
        cell = self._find(command.space, command.key, now_ns)
        if cell is None:
            self._core.reply(session, command.request, RESULT_NOT_FOUND)
        else:
            snapshot = CellSnapshot(cell, now_ns, True)
            self._core.reply(session, command.request, RESULT_OK, snapshot)

    def list_cells(self, command: Command, session: Session) -> None:
        """Answer with a portion of the cells of a space, and their counts."""
        assert isinstance(command, ListCells)
        core = self._core
        now_ns = self._now_ns()
        core.work += self._sweep(now_ns, _MOST_FREED)
        space = self._spaces.get(command.space)
        if space is None:
            core.reply(session, command.request, RESULT_OK, CellPortion([], 0, 0, 0, 0))
            return
        limit = min(command.limit, core.limits.max_cells_listed)
        following = 0
        found: list[CellSnapshot] = []
        # One more than is answered shows whether there is another portion.
        cells = space.listed(command.first, limit + 1) if limit > 0 else []
        core.work += len(cells)
        if len(cells) > limit:
            following = cells.pop().number
        for cell in cells:
            if cell.due_ns > now_ns:
                found.append(CellSnapshot(cell, now_ns, command.figures))
        values = space.count - space.counters
        portion = CellPortion(found, following, space.counters, values, space.value_bytes)
        core.reply(session, command.request, RESULT_OK, portion)

    # --- Changing --------------------------------------------------------------------------------

    def drop(self, command: Command, session: Session) -> None:
        """Remove a cell."""
        assert isinstance(command, DropCell)
        cell = self._find(command.space, command.key, self._now_ns())
        if cell is not None:
            self._free(cell)
        code = RESULT_NOT_FOUND if cell is None else RESULT_OK
        self._core.reply(session, command.request, code)

    def change(self, command: Command, session: Session) -> None:
        """Change a counter or a time to live."""
        assert isinstance(command, ChangeCell)
        core = self._core
        now_ns = self._now_ns()
        cell = self._find(command.space, command.key, now_ns)
        if command.what not in (CELL_COUNT, CELL_TTL) or command.amount < 0:
            core.reply(session, command.request, RESULT_BAD_REQUEST)
        elif cell is not None:
            self._answer(command, session, cell, self._changed(command, cell, now_ns), now_ns)
        elif command.initial < 0 or command.what == CELL_TTL:
            core.reply(session, command.request, RESULT_NOT_FOUND)
        else:
            self._make_and_change(command, session, now_ns)

    def _answer(
        self, command: ChangeCell, session: Session, cell: Cell, code: int, now_ns: int
    ) -> None:
        tells = command.tells and code == RESULT_OK
        body = CellSnapshot(cell, now_ns) if tells else None
        self._core.reply(session, command.request, code, body)

    def _make_and_change(self, command: ChangeCell, session: Session, now_ns: int) -> None:
        """Make the counter with which a change begins, unless the change is refused."""
        due_ns = self._due_ns(command.ttl, command.ttl_unit, now_ns)
        if due_ns < 0 or command.initial > MOST_COUNT:
            self._core.reply(session, command.request, RESULT_BAD_REQUEST)
            return
        count = _counted(command, command.initial)
        if count < 0:
            self._core.reply(session, command.request, -count)
            return
        made = self._make(command.space, command.key, COUNTER, b"", due_ns, now_ns)
        if not isinstance(made, Cell):
            self._core.reply(session, command.request, made)
            return
        made.amount = count
        made.unit = command.ttl_unit
        made.note_write(now_ns)
        self._answer(command, session, made, RESULT_OK, now_ns)

    def _changed(self, command: ChangeCell, cell: Cell, now_ns: int) -> int:
        """Change a cell; return the result code."""
        if command.what == CELL_COUNT:
            if cell.kind != COUNTER:
                return RESULT_UNACCEPTABLE
            count = _counted(command, cell.amount)
            if count < 0:
                return -count
            cell.amount = count
            cell.note_write(now_ns)
            return RESULT_OK
        unit = command.unit or cell.unit
        if not 0 < unit < len(UNIT_NS):
            return RESULT_BAD_REQUEST
        span_ns = command.amount * UNIT_NS[unit]
        if command.change == SET:
            due_ns = now_ns + span_ns
        elif command.change == ADD:
            due_ns = cell.due_ns + span_ns
        elif command.change == SUBTRACT:
            due_ns = cell.due_ns - span_ns
        else:
            return RESULT_BAD_REQUEST
        cell.note_write(now_ns)
        if due_ns > now_ns:
            self._move(cell, due_ns, now_ns)
        else:
            self._free(cell)
            cell.due_ns = now_ns
        return RESULT_OK


def _counted(command: ChangeCell, count: int) -> int:
    """The result of a change of a count; if it is refused, the negative result code."""
    amount = command.amount
    most = command.modulus - 1 if command.modulus > 0 else MOST_COUNT
    if command.change == SUBTRACT:
        return count - amount if amount <= count else -RESULT_UNACCEPTABLE
    if command.change == SET:
        total = amount
    elif command.change == ADD:
        total = count + amount
        if command.modulus > 0:
            total %= command.modulus
    else:
        return -RESULT_BAD_REQUEST
    return total if total <= most else -RESULT_UNACCEPTABLE
