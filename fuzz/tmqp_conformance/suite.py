"""The suite: all cases, and the choice of some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from tmqp.testing.conformance import Case, Level
from tmqp.testing.conformance.clients import CLIENT_CASES
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.packs import PACKS
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.register import current, former

__all__ = ["ALL_CASES", "LEVELS", "SUITE_VERSION", "chosen", "find", "pack_of"]

#: Changes with the first case that is added, or judges otherwise, behind a released version; the
#: register has the version in which each case appeared.
SUITE_VERSION: Final = "1.2"
#: Every case about TMQP; those about other protocols are in packs.
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
    """A glob of the whole id; without a wildcard also of its beginning (``server.frame``).

    What fits an id that the case had before, fits the case.
    """
    return any(
        fnmatchcase(each, pattern) or each.startswith(f"{pattern}.")
        for each in (name, *former(name))
    )


def find(name: str) -> Case | None:
    """The case that has this id, or had it before; of a pack or about TMQP."""
    name = current(name)
    pack = pack_of(name)
    cases = ALL_CASES if pack is None else pack.cases
    return next((case for case in cases if case.id == name), None)


def pack_of(name: str) -> Pack | None:
    """The pack that the case with this id belongs to; None for cases about TMQP."""
    found = (pack for pack in PACKS.values() if any(case.id == name for case in pack.cases))
    return next(found, None)
