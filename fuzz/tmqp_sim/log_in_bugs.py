"""The bugs that are planted in the pauses of log-ins, and in slow turns; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.access.gate import Question
from tmqp_server.shell.log_ins import LogIns
from tmqp_server.shell.pulse import Pulse, SlowTurn
from tmqp_server.shell.refusals import Refusals

__all__ = ["LOG_IN_BUGS"]


def _asks_about_all(original: Any) -> Any:
    def begin(self: LogIns, host: str, question: Question, now: float) -> bool:
        original(self, host, question, now)
        return True

    return begin


def _in_nobodys_turn(original: Any) -> Any:
    def take_ready(self: LogIns, now: float) -> tuple[list[Question], list[Question]]:
        _, late = original(self, now)
        return [], late

    return take_ready


def _pauses_do_not_grow(original: Any) -> Any:
    def refused(self: LogIns, host: str, session: int, now: float) -> float:
        pause_s: float = original(self, host, session, now)
        for attempts in self._addresses.values():
            attempts.refusals = min(attempts.refusals, 1)
        return pause_s

    return refused


def _blames_the_last(original: Any) -> Any:
    def end(self: Pulse, now: float) -> SlowTurn | None:
        number = self.number
        found: SlowTurn | None = original(self, now)
        if found is not None:
            found.session = number
        return found

    return end


def _logs_them_all(original: Any) -> Any:
    def note(self: Refusals, host: str, now: float) -> int:
        return max(int(original(self, host, now)), 0)

    return note


LOG_IN_BUGS: Final = (
    (
        "log-ins-together", "an address that was refused may try as often as it likes",
        LogIns, "begin", _asks_about_all,
    ),
    (
        "log-in-never-its-turn", "who waits for the pause of another is never asked about",
        LogIns, "take_ready", _in_nobodys_turn,
    ),
    (
        "log-in-pauses-stay", "the pauses of an address that is refused do not grow",
        LogIns, "refused", _pauses_do_not_grow,
    ),
    (
        "slow-turn-of-another", "the last connection served is blamed for a slow turn",
        Pulse, "end", _blames_the_last,
    ),
    (
        "slow-turns-all-logged", "the log has a line about each of many slow turns",
        Refusals, "note", _logs_them_all,
    ),
)  # fmt: skip
