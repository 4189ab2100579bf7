"""The report of a run, from its records alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tmqp.testing.conformance import ACCEPTED, FAILURES, Level, Verdict
from tmqp_conformance.records import FORMAT, RecordError
from tmqp_conformance.rules import WITHOUT_CASE, rules

__all__ = ["LETTERS", "Report", "read_report"]

#: One letter for each verdict: colour is never the only sign.
LETTERS: Final = {
    Verdict.PASS: "P",
    Verdict.INFORMATIONAL: "I",
    Verdict.NON_STRICT: "N",
    Verdict.EXCUSED: "X",
    Verdict.UNIMPLEMENTED: "-",
    Verdict.UNCLEAN: "U",
    Verdict.WRONG_CODE: "W",
    Verdict.FAIL: "F",
    Verdict.HANG: "H",
    Verdict.CRASH: "C",
    Verdict.ERROR: "E",
}


@dataclass(slots=True)
class Report:
    """The results of a run.

    ``begin`` is the record that the run began with, ``cases`` the records of its cases,
    ``interrupted`` whether the run did not come to its end.
    """

    begin: dict[str, Any]
    cases: list[dict[str, Any]]
    interrupted: bool

    @classmethod
    def of(cls, records: Sequence[dict[str, Any]]) -> Report:
        """The report of a run's records."""
        cases = [record for record in records if record["event"] == "case"]
        return cls(records[0], cases, records[-1]["event"] != "end")

    @property
    def title(self) -> str:
        """A description of the target."""
        name = self.begin.get("name") or self.begin["target"]
        return f"{name} ({self.begin['role']})"

    @property
    def pack(self) -> str:
        """The pack that was run; empty for the cases about TMQP."""
        return str(self.begin.get("pack", ""))

    def is_obstacle(self, record: Mapping[str, Any], levels: Iterable[Level]) -> bool:
        """Return whether a case prevents conformance at these levels."""
        if record["level"] not in {str(level) for level in levels}:
            return False
        verdict = Verdict(record["verdict"])
        if verdict is Verdict.UNIMPLEMENTED:
            return not record["needs"]
        return verdict not in ACCEPTED

    @property
    def conformant(self) -> bool:
        """Whether no must-level case fails, and the run is complete."""
        return self._free((Level.MUST,))

    @property
    def strict(self) -> bool:
        """Whether no should-level case fails either."""
        return self._free((Level.MUST, Level.SHOULD))

    def _free(self, levels: tuple[Level, ...]) -> bool:
        done = bool(self.cases) and not self.interrupted
        return done and not any(self.is_obstacle(record, levels) for record in self.cases)

    @property
    def verdict_counts(self) -> dict[str, int]:
        """How many cases have each verdict, in the order of verdicts."""
        counts = Counter(record["verdict"] for record in self.cases)
        return {str(each): counts[each] for each in Verdict if counts[each]}

    def counts_by(self, key: str) -> dict[str, dict[str, int]]:
        """Return how many cases have each verdict, for each value of a field in order of
        appearance."""
        found: dict[str, Counter[str]] = {}
        for record in self.cases:
            found.setdefault(record[key], Counter())[record["verdict"]] += 1
        return {
            value: {str(each): counts[each] for each in Verdict if counts[each]}
            for value, counts in found.items()
        }

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The records of the cases that count against the peer."""
        return [record for record in self.cases if Verdict(record["verdict"]) in FAILURES]

    def coverage(self) -> dict[str, Any]:
        """The rules that the cases of this run cover."""
        tried = {
            rule
            for record in self.cases
            if record["verdict"] not in (Verdict.UNIMPLEMENTED, Verdict.ERROR)
            for rule in record["requires"]
        }
        known = rules(self.pack)
        missing = [rule for rule in known if rule not in tried and rule not in WITHOUT_CASE]
        return {"rules": len(known), "tried": len(tried), "not_tried": missing}

    def as_json(self) -> dict[str, Any]:
        """The report as JSON (see ``report.schema.json``), wire logs left out."""
        begin = self.begin
        return {
            "format": FORMAT,
            "suite": begin["suite"],
            "protocol": begin["protocol"],
            "pack": self.pack,
            "tool": begin["tool"],
            "target": {"address": begin["target"], "name": begin["name"], "role": begin["role"]},
            "run": begin["run"],
            "started": begin["started"],
            "options": begin["options"],
            "capabilities": begin["capabilities"],
            "interrupted": self.interrupted,
            "conformant": self.conformant,
            "strict": self.strict,
            "totals": {
                "verdicts": self.verdict_counts,
                "levels": self.counts_by("level"),
                "groups": self.counts_by("group"),
            },
            "coverage": self.coverage(),
            "figures": {
                record["id"]: record["duration_s"]
                for record in self.cases
                if record["group"] == "perf" and record["verdict"] == Verdict.INFORMATIONAL
            },
            "cases": [
                {key: value for key, value in record.items() if key not in ("event", "wire")}
                for record in self.cases
            ],
        }


def read_report(path: Path) -> dict[str, Any]:
    """Read a ``report.json``.

    :raises RecordError: if it is invalid.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT or "cases" not in found:
        raise RecordError(f"{path}: not a report of this version (format {FORMAT})")
    return found
