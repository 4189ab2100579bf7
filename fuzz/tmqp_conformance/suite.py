"""The suite: all cases, and the choice of some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from tmqp.testing.conformance import Case, Level
from tmqp.testing.conformance.clients import CLIENT_CASES
from tmqp.testing.conformance.servers import SERVER_CASES

__all__ = ["ALL_CASES", "LEVELS", "SUITE_VERSION", "chosen", "find"]

#: Changes when a case is added, or judges otherwise.
SUITE_VERSION: Final = "1.0"
ALL_CASES: Final[tuple[Case, ...]] = (*SERVER_CASES, *CLIENT_CASES)
#: What --level means: the levels of the cases that are run.
LEVELS: Final = {
    "must": (Level.MUST,),
    "should": (Level.MUST, Level.SHOULD),
    "all": tuple(Level),
}


def chosen(
    cases: Iterable[Case],
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    level: str = "all",
) -> list[Case]:
    """The cases that these patterns (globs of ids) and this level choose, in order."""
    levels = LEVELS[level]
    return [
        case
        for case in cases
        if case.level in levels
        and (not only or any(_fits(case.id, pattern) for pattern in only))
        and not any(_fits(case.id, pattern) for pattern in skip)
    ]


def _fits(name: str, pattern: str) -> bool:
    """A glob of the whole id; without a wildcard also of its beginning (``server.frame``)."""
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern}.")


def find(name: str) -> Case | None:
    """The case with this id."""
    return next((case for case in ALL_CASES if case.id == name), None)
