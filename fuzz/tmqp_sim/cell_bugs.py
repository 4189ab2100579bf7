"""The bugs that are planted in counters and values with a time to live; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp.extensions import HEADER_CELL_KEY
from tmqp.frames import Frame
from tmqp_server.doors.native import cells
from tmqp_server.engine.commands import (
    CELL_TTL,
    SUBTRACT,
    ChangeCell,
    Command,
    DropCell,
    ListCells,
    MakeCounter,
)
from tmqp_server.engine.model.cells import Cell, Space
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.operations.cells import Cells

__all__ = ["CELL_BUGS"]

_LATE_NS: Final = 60_000_000_000


def _drops_in_words(_original: Any) -> Any:
    def drop(self: Cells, command: Command, session: Session) -> None:
        assert isinstance(command, DropCell)
        found = self._find(command.space, command.key, self._now_ns())
        self._core.reply(session, command.request, 404 if found is None else 0)

    return drop


def _makes_it_again(original: Any) -> Any:
    def make_counter(self: Cells, command: Command, session: Session) -> None:
        assert isinstance(command, MakeCounter)
        found = self._find(command.space, command.key, self._now_ns())
        if found is not None:
            self._free(found)
        original(self, command, session)

    return make_counter


def _leaves_the_last_out(original: Any) -> Any:
    def listed(self: Space, first: int, limit: int) -> list[Cell]:
        found: list[Cell] = original(self, first, limit)
        return found[:-1]

    return listed


def _ends_late(original: Any) -> Any:
    def due_ns(self: Cells, ttl: int, unit: int, now_ns: int) -> int:
        due: int = original(self, ttl, unit, now_ns)
        return due + _LATE_NS

    return due_ns


def _begins_unchanged(original: Any) -> Any:
    def make_and_change(self: Cells, command: ChangeCell, session: Session, now_ns: int) -> None:
        if command.change == SUBTRACT:
            command.amount = 0
        original(self, command, session, now_ns)

    return make_and_change


def _takes_keys_literally(_original: Any) -> Any:
    def key_of(frame: Frame) -> bytes:
        return (frame.header(HEADER_CELL_KEY) or "").encode()

    return key_of


def _lists_from_the_second(original: Any) -> Any:
    def list_cells(self: Cells, command: Command, session: Session) -> None:
        assert isinstance(command, ListCells)
        command.first += command.first > 0
        original(self, command, session)

    return list_cells


def _counts_no_changes(original: Any) -> Any:
    def changed(self: Cells, command: ChangeCell, cell: Cell, now_ns: int) -> int:
        writes = cell.writes
        code: int = original(self, command, cell, now_ns)
        cell.writes = writes
        return code

    return changed


def _shorter_by_twice_as_much(original: Any) -> Any:
    def changed(self: Cells, command: ChangeCell, cell: Cell, now_ns: int) -> int:
        if command.what == CELL_TTL and command.change == SUBTRACT:
            command.amount *= 2
        code: int = original(self, command, cell, now_ns)
        return code

    return changed


CELL_BUGS: Final = (
    (
        "cell-dropped-in-words", "a cell that was removed is still there",
        Cells, "drop", _drops_in_words,
    ),
    (
        "counter-made-again", "a counter that is there is made anew",
        Cells, "make_counter", _makes_it_again,
    ),
    (
        "list-of-cells-too-short", "a list of cells leaves the last one out",
        Space, "listed", _leaves_the_last_out,
    ),
    (
        "cell-ends-late", "a cell lives for a minute longer than it may",
        Cells, "_due_ns", _ends_late,
    ),
    (
        "counter-begins-unchanged", "a counter that a change makes is not changed by it",
        Cells, "_make_and_change", _begins_unchanged,
    ),
    (
        "key-taken-literally", "the percent signs of a key stay in it",
        cells, "_key_of", _takes_keys_literally,
    ),
    (
        "cells-between-portions", "the next portion of a list of cells leaves its first one out",
        Cells, "list_cells", _lists_from_the_second,
    ),
    (
        "cell-changes-uncounted", "a change of a cell does not count as one",
        Cells, "_changed", _counts_no_changes,
    ),
    (
        "cell-shortened-twice", "a cell whose time is shortened loses twice as much of it",
        Cells, "_changed", _shorter_by_twice_as_much,
    ),
)  # fmt: skip
