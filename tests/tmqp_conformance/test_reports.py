"""The reports of the conformance tool: every verdict, hostile bytes, and what CI reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.browser import CHROMIUM, browser
from tests.project import ROOT
from tests.tmqp_conformance.schema import violations
from tmqp.testing.conformance import FAILURES, Entry, Kind, Result, Verdict
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.compare import compare_reports
from tmqp_conformance.html import as_html
from tmqp_conformance.junit import as_junit, as_markdown, badge
from tmqp_conformance.records import RecordError, as_recording, read_run
from tmqp_conformance.report import Report
from tmqp_conformance.session import FORMS, Session, write_reports

SCHEMA = json.loads((ROOT / "fuzz/tmqp_conformance/report.schema.json").read_text("utf-8"))
HOSTILE = "<script>alert(1)</script>\x00\x1b[31m&\"'|`"


def session(out: Path | None = None) -> Session:
    """A run in which each verdict occurs once, with a hostile message."""
    made = Session("tmq://127.0.0.1:1", "server", "ab", {"level": "all"}, ["pull"], HOSTILE, out)
    made.begin()
    results = []
    for verdict, case in zip(Verdict, SERVER_CASES, strict=False):
        log = [
            Entry(0.0, "a", Kind.NOTE, b"", "open"),
            Entry(0.1, "a", Kind.SENT, b"TMQP/2.0" + bytes.fromhex("8910000000000000"), ""),
            Entry(0.2, "a", Kind.RECEIVED, b"TMQP/2.0" + HOSTILE.encode(), ""),
        ]
        result = Result(case, behaviour=verdict, message=HOSTILE, expected="x", step=1, log=log)
        results.append((result, "known" if verdict is Verdict.EXCUSED else ""))
    for _ in made.follow(results):
        pass
    return made


@pytest.fixture(scope="module")
def report() -> Report:
    return session().finish()


def test_every_verdict_occurs(report: Report) -> None:
    assert report.verdict_counts == {str(verdict): 1 for verdict in Verdict}
    assert not report.conformant
    assert badge(report) == "TMQP/2.0 server: not conformant, 1 of 11 cases pass"


def test_the_json_report_keeps_to_its_schema(report: Report) -> None:
    made = json.loads(json.dumps(report.as_json()))
    assert violations(made, SCHEMA) == []
    made["cases"][0]["verdict"] = "good"
    del made["run"]
    assert len(violations(made, SCHEMA)) == 2


def test_junit_tells_failures_from_skips_and_errors(report: Report) -> None:
    root = ET.fromstring(as_junit([report]))  # noqa: S314 - our own
    (suite,) = root
    assert suite.attrib["tests"] == "11"
    counts = [suite.attrib[name] for name in ("failures", "skipped", "errors")]
    assert counts == ["5", "2", "1"]
    kinds = {case.attrib["name"]: [child.tag for child in case] for case in suite}
    by_verdict = {record["verdict"]: kinds[record["id"]] for record in report.cases}
    assert by_verdict == {
        **{key: [] for key in ("pass", "informational", "non-strict")},
        **{key: ["failure"] for key in ("fail", "hang", "crash", "wrong-code", "unclean")},
        **{key: ["skipped"] for key in ("excused", "unimplemented")},
        "error": ["error"],
    }


def test_no_report_lets_the_peer_write_in_it(report: Report) -> None:
    page = as_html([report])
    assert "<script" not in page
    assert "\x1b" not in as_junit([report])
    assert "\x1b" not in as_markdown([report])
    assert "<script" not in as_markdown([report])


def test_the_page_has_what_is_wrong_first_and_counts_each_target(report: Report) -> None:
    page = as_html([report, report])
    group = page[page.index("<h2>Cases") : page.index("<h2>Details")]
    # A row begins with its case; what passes is after everything that is wrong.
    rows = re.findall(r"<tr><td><code>([^<]+)", group)
    verdicts = {record["id"]: Verdict(record["verdict"]) for record in report.cases}
    wrong = [verdicts[name] in {*FAILURES, Verdict.ERROR} for name in rows]
    assert wrong == sorted(wrong, reverse=True)
    assert {*rows} == {*verdicts}
    assert "1 of 11, 1 of 11 pass" in group
    assert "<th>against conformance</th><td>" in page


@pytest.mark.parametrize(
    ("excuse", "shown"),
    [
        ("known https://a.org/x", '<a rel="noreferrer" href="https://a.org/x">'),
        ('known https://"><script>', 'href="https://&quot;&gt;&lt;script&gt;"'),
        ("known javascript:alert(1)", "explains: known javascript:alert(1)<"),
        ("docs/differences.md", "explains: docs/differences.md<"),
    ],
)
def test_only_an_address_is_a_link(excuse: str, shown: str) -> None:
    made = session()
    for record in made.records:
        if record["event"] == "case":
            record["excuse"] = excuse
    page = as_html([made.finish()])
    assert shown in page
    assert "<script" not in page


def test_an_interrupted_run_has_a_report(tmp_path: Path) -> None:
    made = session(tmp_path)
    made.close()
    path = tmp_path / "run.jsonl"
    path.write_text(path.read_text("utf-8") + '{"event": "ca', encoding="utf-8")
    report = Report.of(read_run(path))
    assert report.interrupted
    assert not report.conformant
    assert len(report.cases) == 11
    assert "interrupted" in as_html([report])


def test_every_failure_has_a_wire_log_that_can_be_replayed(tmp_path: Path) -> None:
    made = session(tmp_path)
    made.finish()
    logs = sorted(path.stem for path in (tmp_path / "wire").iterdir())
    failures = sorted(record["id"] for record in Report.of(made.records).failures)
    assert logs == failures
    steps = json.loads((tmp_path / "wire" / f"{failures[0]}.json").read_text("utf-8"))
    assert [(step["dir"], step["conn"]) for step in steps] == [("c2s", 1), ("s2c", 1)]


def test_a_cut_entry_says_so() -> None:
    entry = {"t": 0.0, "line": "a", "kind": "sent", "note": "", "size": 9, "hex": "00"}
    (step,) = as_recording([entry], "client")
    assert (step["dir"], step["truncated"], step["total_bytes"]) == ("s2c", True, 9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a run of this version"),
        ("[]\n[]\n", "line 1 is not a record"),
        ("x\n{}\n", "line 1 is not JSON"),
        ('{"event": "begin", "format": 99}\n', "not a run of this version"),
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        read_run(path)


def test_two_reports_are_compared(report: Report) -> None:
    def changed(**verdicts: str) -> dict[str, Any]:
        cases = [{"id": name, "verdict": verdict} for name, verdict in verdicts.items()]
        return {"cases": cases}

    changes = compare_reports(
        changed(a="pass", b="fail", c="pass", d="pass"),
        changed(a="hang", b="pass", c="non-strict", e="pass"),
    )
    assert changes.regressions == [("a", "pass", "hang")]
    assert changes.fixes == [("b", "fail", "pass")]
    assert changes.others == [("c", "pass", "non-strict")]
    assert (changes.added, changes.removed) == (["e"], ["d"])
    page = as_html([report], changes)
    assert "Regressions" in page
    assert "<th>before</th><th>after</th>" in page


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.long
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    made = session(tmp_path)
    write_reports([made.finish()], tmp_path, FORMS)
    page = (tmp_path / FORMS["html"]).as_uri()
    with browser() as shown:
        for width, dark in ((1280, False), (390, True)):
            shown.screen(width, 900, dark=dark)
            shown.open(page)
            shown.until(f"document.querySelectorAll('.case').length === {len(Verdict) - 1}")
            assert shown.run("document.scripts.length") == 0
            shown.run("document.querySelectorAll('details').forEach((each) => each.open = true)")
            # Wide tables scroll by themselves: the page is not wider than the window.
            assert shown.run("document.documentElement.scrollWidth") <= width
            paper = shown.run("getComputedStyle(document.body).backgroundColor")
            assert paper == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
        # Each sign that is not a pass leads to the case's own part.
        assert shown.run(
            "[...document.querySelectorAll('a.v')].every("
            "(each) => document.getElementById(each.hash.slice(1)))"
        )
        assert "<script>alert(1)</script>" in shown.text(), "as text"
        assert shown.complaints == []
        assert {*shown.asked} == {page}
