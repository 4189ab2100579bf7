"""The register of slugs: every id that a case ever had, and since which version of the suite.

A slug never changes its meaning and is never used again.  A case that gets another id has an entry
in ``renames``, so that old deviations, patterns, reports and commands still find it; one that is
removed has an entry in ``retired``, with the reason.  ``python -m tools.make_register`` writes
new cases into the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

__all__ = [
    "NATIVE",
    "Move",
    "Register",
    "current",
    "former",
    "parse_register",
    "register",
    "retirement",
]

#: What the register calls the cases about TMQP; the others have the names of their packs.
NATIVE: Final = "tmqp"
_KEYS: Final = frozenset({"cases", "renames", "retired"})


@dataclass(frozen=True, slots=True)
class Move:
    """What happened to an id: its new id (``to``), or the reason for its removal; and the suite's
    version."""

    suite: str
    to: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Register:
    """The register: of each pack the suite in which each id appeared; and what happened to some."""

    since: Mapping[str, Mapping[str, str]]
    renames: Mapping[str, Move]
    retired: Mapping[str, Move]


def parse_register(text: str) -> Register:
    """Read a register.

    :raises ValueError: if the text is invalid.
    """
    table: Any = json.loads(text)
    if not isinstance(table, dict) or set(table) != _KEYS:
        raise ValueError(f"a register has {', '.join(sorted(_KEYS))}")
    try:
        renames = {
            name: Move(each["suite"], to=each["to"]) for name, each in table["renames"].items()
        }
        retired = {
            name: Move(each["suite"], reason=each["reason"])
            for name, each in table["retired"].items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an entry of the register lacks a part: {error!r}") from error
    return Register(table["cases"], renames, retired)


@cache
def register() -> Register:
    """The register of this suite."""
    return parse_register(
        files("tmqp_conformance").joinpath("register.json").read_text(encoding="utf-8")
    )


def current(name: str) -> str:
    """The id that a case has today: the same, unless it was renamed."""
    renames = register().renames
    seen = {name}
    while name in renames and renames[name].to not in seen:
        name = renames[name].to
        seen.add(name)
    return name


def former(name: str) -> tuple[str, ...]:
    """The ids that a case had before."""
    return tuple(old for old in register().renames if current(old) == name)


def retirement(name: str) -> str:
    """Why there is no case with this id any more; empty if it was not retired."""
    move = register().retired.get(current(name))
    return "" if move is None else f"{name} was retired in suite {move.suite}: {move.reason}"
