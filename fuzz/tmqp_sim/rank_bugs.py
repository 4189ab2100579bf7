"""The bugs that are planted where ten priorities order a queue; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp.frames import Frame
from tmqp_server.doors.letter import REGULAR_PRIORITY, TOP_PRIORITY
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.model.levels import LevelGauge, Levels
from tmqp_server.engine.model.message import Message

__all__ = ["RANK_BUGS"]


def _all_of_one_level(original: Any) -> Any:
    def level_of(self: LevelGauge, message: Message) -> int:
        return REGULAR_PRIORITY

    return level_of


def _first_of_all(original: Any) -> Any:
    def put_first(self: Levels, message: Message) -> None:
        self._first -= 1
        self.put((1 << 48) + self._first, message)

    return put_first


def _by_flag_alone(original: Any) -> Any:
    def priority_of(self: LetterWires, message: Message) -> int:
        if isinstance(message.wire, Frame):
            return TOP_PRIORITY if message.high_priority else REGULAR_PRIORITY
        found: int = original(self, message)
        return found

    return priority_of


#: What makes each of them: name, text, owner, attribute, and the change.
RANK_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "ten-priorities-are-one", "a message goes behind those that came before, whatever they are",
        LevelGauge, "level_of", _all_of_one_level,
    ),
    (
        "put-back-before-all", "what is put back goes before what has a higher priority",
        Levels, "put_first", _first_of_all,
    ),
    (
        "priority-unread", "what a TMQP message says of its priority is not read",
        LetterWires, "priority_of", _by_flag_alone,
    ),
)  # fmt: skip
