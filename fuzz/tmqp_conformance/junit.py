"""Reports for CI: JUnit's XML, and a summary in Markdown for a job's page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from xml.etree import ElementTree as ET

from tmqp.testing.conformance import FAILURES, Verdict
from tmqp_conformance.report import LETTERS, Report

__all__ = ["as_junit", "as_markdown", "badge"]

#: Characters that XML 1.0 cannot contain, in any form.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Characters with a meaning in Markdown or HTML.
_MARKS: Final = re.compile(r"[\\`*_{}\[\]<>|!#&~]")
_SHOWN_ENTRIES: Final = 12
_SHOWN_HEX: Final = 64


def as_junit(reports: Iterable[Report]) -> str:
    """The reports as JUnit's XML: a suite for each group of cases.

    Failures are failures; cases about missing features and explained deviations are skipped; errors
    of the tool are errors.
    """
    root = ET.Element("testsuites")
    for report in reports:
        groups: dict[str, list[dict[str, Any]]] = {}
        for record in report.cases:
            groups.setdefault(record["group"], []).append(record)
        for group, records in groups.items():
            _suite(root, report, group, records)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _suite(root: ET.Element, report: Report, group: str, records: list[dict[str, Any]]) -> None:
    verdicts = [Verdict(record["verdict"]) for record in records]
    skipped = (Verdict.UNIMPLEMENTED, Verdict.EXCUSED)
    suite = ET.SubElement(
        root,
        "testsuite",
        name=f"{report.begin['role']}.{group}",
        tests=str(len(records)),
        failures=str(sum(verdict in FAILURES for verdict in verdicts)),
        errors=str(verdicts.count(Verdict.ERROR)),
        skipped=str(sum(verdict in skipped for verdict in verdicts)),
        time=f"{sum(record['duration_s'] for record in records):.3f}",
    )
    for record, verdict in zip(records, verdicts, strict=True):
        case = ET.SubElement(
            suite,
            "testcase",
            name=record["id"],
            classname=record["role"],
            time=f"{record['duration_s']:.3f}",
        )
        message = _xml(record["message"])
        if verdict in FAILURES:
            failure = ET.SubElement(case, "failure", message=message, type=str(verdict))
            failure.text = _xml("\n".join(_lines(record)))
        elif verdict in skipped:
            ET.SubElement(case, "skipped", message=_xml(record["excuse"]) or message)
        elif verdict is Verdict.ERROR:
            ET.SubElement(case, "error", message=message, type="error")


def _lines(record: dict[str, Any]) -> Iterable[str]:
    yield f"{record['title']}: {record['message']}"
    yield f"step {record['step']}: {record['step_text']}"
    yield f"rules: {' '.join(record['requires'])}"
    for entry in record["wire"][-_SHOWN_ENTRIES:]:
        what = entry["hex"][:_SHOWN_HEX] if "hex" in entry else entry["note"]
        yield f"{entry['t']:.3f} {entry['line']} {entry['kind']} {what}"
        yield from (f"    {message}" for message in entry.get("messages", ()))


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def badge(report: Report) -> str:
    """One line for a README."""
    state = "strict" if report.strict else "conformant" if report.conformant else "not conformant"
    passed = report.verdict_counts.get(Verdict.PASS, 0)
    about = f"{report.begin['protocol']} {report.begin['role']}"
    return f"{about}: {state}, {passed} of {len(report.cases)} cases pass"


def as_markdown(reports: Iterable[Report]) -> str:
    """A summary of the reports for the page of a CI job."""
    parts = []
    for report in reports:
        parts += [f"## {_cell(report.title)}", "", f"**{badge(report)}**", ""]
        if report.interrupted:
            parts += ["The run was interrupted: the report is not complete.", ""]
        groups = report.counts_by("group")
        verdicts = list(report.verdict_counts)
        parts.append("| group | " + " | ".join(verdicts) + " |")
        parts.append("|---" * (len(verdicts) + 1) + "|")
        for group, counts in groups.items():
            cells = [str(counts.get(verdict, "")) for verdict in verdicts]
            parts.append(f"| {group} | " + " | ".join(cells) + " |")
        failures = report.failures
        if failures:
            parts += [
                "",
                "| case | level | verdict | what is wrong | rules |",
                "|---|---|---|---|---|",
            ]
        for record in failures:
            letter = LETTERS[Verdict(record["verdict"])]
            parts.append(
                f"| `{record['id']}` | {record['level']} | {letter} {record['verdict']} |"
                f" {_cell(record['message'])} | {' '.join(record['requires'])} |"
            )
        coverage = report.coverage()
        parts += [
            "",
            _tried(report.begin["suite"], coverage),
            "",
        ]
    return "\n".join(parts)


def _tried(suite: str, coverage: dict[str, Any]) -> str:
    return f"Suite {suite}; the cases try {coverage['tried']} of {coverage['rules']} rules."


def _cell(text: str) -> str:
    """Escape a text for a table in Markdown, so that a peer cannot inject markup."""
    shown = text.encode("unicode_escape").decode()
    return _MARKS.sub(lambda found: f"&#{ord(found[0])};", shown)
