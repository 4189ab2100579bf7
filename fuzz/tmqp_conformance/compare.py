"""Find the changes between two reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tmqp.testing.conformance import FAILURES, Verdict
from tmqp_conformance.register import current

__all__ = ["Changes", "compare_reports"]

_BAD: Final = {*FAILURES, Verdict.ERROR}


@dataclass(slots=True)
class Changes:
    """Cases whose verdicts differ: (id, before, after) each; and cases that only one has."""

    regressions: list[tuple[str, str, str]] = field(default_factory=list)
    fixes: list[tuple[str, str, str]] = field(default_factory=list)
    others: list[tuple[str, str, str]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def compare_reports(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """Compare two reports, case by case; a renamed case is the same case."""
    old = {current(case["id"]): case["verdict"] for case in before["cases"]}
    new = {current(case["id"]): case["verdict"] for case in after["cases"]}
    changes = Changes()
    for name, verdict in new.items():
        was = old.get(name)
        if was is None:
            changes.added.append(name)
        elif was != verdict:
            change = (name, was, verdict)
            if verdict in _BAD and was not in _BAD:
                changes.regressions.append(change)
            elif was in _BAD and verdict not in _BAD:
                changes.fixes.append(change)
            else:
                changes.others.append(change)
    changes.removed = [name for name in old if name not in new]
    return changes
