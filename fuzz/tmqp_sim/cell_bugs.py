"""The bugs that are planted in counters and values with a time to live; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.commands import Command, DropCell, MakeCounter
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
)  # fmt: skip
