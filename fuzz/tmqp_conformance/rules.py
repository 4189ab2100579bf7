"""The rules that cases are about, and their coverage.

The rules of TMQP are in ``rules.json``; those of another protocol are in its pack.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from tmqp.testing.conformance import Case
from tmqp_conformance.packs import PACKS

__all__ = ["WITHOUT_CASE", "Coverage", "Rule", "coverage", "rules"]

#: Rules that no case is about, each with its reason.
WITHOUT_CASE: Final = {
    "F20": "says what the protocol does not have",
    "F39": "allows everything",
    "F59": "concerns nodes of a cluster, which a single server does not show",
    "F63": "concerns messages between nodes of a cluster",
    "F66": "concerns the configuration of the server: --admin decides what is tested",
    "F89": "needs a delivery handler that allows no consumer",
    "F118": "concerns libraries and not the wire",
    "F133": "concerns nodes of a cluster",
    "F134": "concerns nodes of a cluster",
    "rule-name-limit": "needs a configured limit below 255 bytes",
    "rule-unexpected-message": "a client sends its preamble before it can receive anything",
    "x-messages-of-other-protocols": "needs another protocol beside this one",
    "x-readers": "tested with the client of this project only, so far",
    "x-transactions": "tested with the client of this project only, so far",
    "x-batches": "tested with the client of this project only, so far",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its stable id, its place on the page that it is on, and its text.

    The page is docs/protocol.md, or the one about a pack's door.
    """

    id: str
    anchor: str
    section: str
    text: str
    page: str = "docs/protocol.md"

    @property
    def place(self) -> str:
        """Where it is found."""
        return f"{self.page}#{self.anchor}" if self.anchor else self.page


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which rules have cases: rule -> ids of cases; and which have none, without a reason."""

    covered: dict[str, list[str]]
    uncovered: list[str]
    known: int

    @property
    def share(self) -> float:
        """The part of the rules that have a case or a reason, from 0 to 1."""
        return (self.known - len(self.uncovered)) / self.known if self.known else 1.0


@cache
def rules(pack: str = "") -> dict[str, Rule]:
    """Every rule of TMQP, or of a pack, by its id, in the order of the register."""
    if pack:
        about = PACKS[pack]
        texts = about.facts.items()
        return {name: Rule(name, "", about.title, text, about.page) for name, text in texts}
    text = files("tmqp_conformance").joinpath("rules.json").read_text(encoding="utf-8")
    found = [Rule(**entry) for entry in json.loads(text)["rules"]]
    return {rule.id: rule for rule in found}


def coverage(cases: Iterable[Case], pack: str = "") -> Coverage:
    """Which rules of TMQP, or of a pack, these cases are about."""
    covered: dict[str, list[str]] = {}
    for case in cases:
        for rule in case.requires:
            covered.setdefault(rule, []).append(case.id)
    known = rules(pack)
    uncovered = [rule for rule in known if rule not in covered and rule not in WITHOUT_CASE]
    return Coverage(covered, uncovered, len(known))
