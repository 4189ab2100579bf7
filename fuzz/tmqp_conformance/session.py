"""A run from its beginning to its files: events as they happen, then the reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

import tmqp
from tmqp.testing.conformance import FAILURES, Result, Verdict
from tmqp_conformance.compare import Changes
from tmqp_conformance.html import as_html
from tmqp_conformance.junit import as_junit, as_markdown
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.records import FORMAT, case_record
from tmqp_conformance.report import Report
from tmqp_conformance.suite import SUITE_VERSION
from tmqp_conformance.wires import write_wire

__all__ = ["FORMS", "Session", "write_reports"]

#: The forms of a report and the files they are written to.
FORMS: Final = {
    "json": "report.json",
    "html": "report.html",
    "junit": "junit.xml",
    "md": "summary.md",
}
_RUN: Final = "run.jsonl"
_WIRE: Final = "wire"


@dataclass(slots=True)
class Session:
    """One run: call ``record`` for each result and ``finish`` at the end, then read the report.

    ``out`` is the directory for the files; None to write none.  ``pack`` is the pack of the run.
    """

    target: str
    role: str
    run: str
    options: dict[str, Any]
    capabilities: Iterable[str]
    name: str = ""
    out: Path | None = None
    pack: Pack | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    _file: TextIO | None = None

    def begin(self) -> None:
        """Write the record that a run begins with.

        :raises OSError: when the directory cannot be written.
        """
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            self._file = (self.out / _RUN).open("w", encoding="utf-8")
        self._add(
            {
                "event": "begin",
                "format": FORMAT,
                "suite": SUITE_VERSION,
                "protocol": "TMQP/2.0" if self.pack is None else self.pack.title,
                "pack": "" if self.pack is None else self.pack.name,
                "tool": tmqp.__version__,
                "target": self.target,
                "name": self.name,
                "role": self.role,
                "run": self.run,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "options": self.options,
                "capabilities": sorted(self.capabilities),
            }
        )

    def follow(self, results: Iterable[tuple[Result, str]]) -> Iterator[dict[str, Any]]:
        """Record each result; yields the records."""
        for result, excuse in results:
            record = case_record(result, excuse, self.pack)
            self._add(record)
            verdict = Verdict(record["verdict"])
            if self.out is not None and verdict in FAILURES and record["wire"]:
                write_wire(self.out / _WIRE, record)
            yield record

    def finish(self) -> Report:
        """Write the record that a run ends with; returns the report."""
        self._add({"event": "end"})
        self.close()
        return Report.of(self.records)

    def close(self) -> None:
        """Close the file; the run may go unfinished."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _add(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        if self._file is not None:
            self._file.write(json.dumps(record, ensure_ascii=True) + "\n")
            self._file.flush()


def write_reports(
    reports: list[Report], out: Path, forms: Iterable[str], changes: Changes | None = None
) -> list[Path]:
    """Write reports in these forms; returns the files.

    :raises OSError: when that fails.
    """
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for form in forms:
        path = out / FORMS[form]
        if form == "json":
            made = [report.as_json() for report in reports]
            text = json.dumps(made[0] if len(made) == 1 else made, indent=1) + "\n"
        elif form == "html":
            text = as_html(reports, changes)
        elif form == "junit":
            text = as_junit(reports)
        else:
            text = as_markdown(reports)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths
