"""The report as one HTML file: a matrix of cases and targets, and a part for each failure.

Nothing in it needs a script, another file or the network.  Everything that a peer has sent is
escaped: its bytes are hostile, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from tmqp.testing.conformance import FAILURES, Level, Verdict
from tmqp_conformance.compare import Changes
from tmqp_conformance.junit import badge
from tmqp_conformance.report import LETTERS, Report
from tmqp_conformance.rules import Rule, rules

__all__ = ["as_html"]

_COLOURS: Final = {
    Verdict.PASS: "#1a7f37",
    Verdict.INFORMATIONAL: "#0969da",
    Verdict.NON_STRICT: "#4d7c0f",
    Verdict.EXCUSED: "#6e7781",
    Verdict.UNIMPLEMENTED: "#656d76",
    Verdict.UNCLEAN: "#9a6700",
    Verdict.WRONG_CODE: "#bc4c00",
    Verdict.FAIL: "#cf222e",
    Verdict.HANG: "#8250df",
    Verdict.CRASH: "#82071e",
    Verdict.ERROR: "#24292f",
}
_STYLE: Final = """
body { --ink: #1f2328; --paper: #fff; --line: #d0d7de; --pale: #f6f8fa; --quiet: #57606a;
  --sent: #ddf4ff; --received: #fff8c5; color-scheme: light dark;
  font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { --ink: #e6edf3; --paper: #0d1117; --line: #3d444d;
  --pale: #151b23; --quiet: #9198a1; --sent: #0c2d4a; --received: #3a2d0a; } }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; } h3 { font-size: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1rem; }
th, td { border: 1px solid var(--line); padding: .2rem .55rem; text-align: left;
  vertical-align: top; }
th { background: var(--pale); overflow-wrap: normal; }
code, pre { font: 12.5px/1.45 ui-monospace, monospace; }
pre { background: var(--pale); padding: .6rem; margin: .3rem 0 .8rem; white-space: pre-wrap; }
.v { display: inline-block; color: #fff; padding: 0 .45rem; margin: .1rem 0;
  border-radius: .3rem; font-weight: 600; text-decoration: none; white-space: nowrap; }
p a { color: inherit; }
a.v { text-decoration: underline; text-underline-offset: .15em; }
details { margin: .35rem 0; } summary { cursor: pointer; }
.wire td { font: 12px/1.4 ui-monospace, monospace; }
.wire td:nth-child(-n+3) { white-space: nowrap; }
.wire td:nth-child(n+4) { min-width: 14rem; }
.sent { background: var(--sent); } .received { background: var(--received); }
.note { color: var(--quiet); }
.case { border-left: 4px solid var(--line); padding-left: 1rem; margin: 1.4rem 0; }
.case:target { border-left-color: #0969da; }
.case p { margin: .4rem 0; }
"""
_SHOWN_HEX: Final = 512
_BAD: Final = frozenset({*FAILURES, Verdict.ERROR})
_CODE: Final = re.compile(r"`([^`]+)`")


def as_html(reports: Sequence[Report], changes: Changes | None = None) -> str:
    """The page.

    :param changes: what differs from an earlier report of the first target.
    """
    protocols = dict.fromkeys(report.begin["protocol"] for report in reports)
    title = f"{', '.join(protocols)} conformance: " + ", ".join(report.title for report in reports)
    body = [f"<h1>{escape(title)}</h1>"]
    for report in reports:
        body += _head(report)
    if changes is not None:
        body += _changes(changes)
    body.append("<h2>Verdicts</h2>")
    body.append("<p>" + " ".join(_sign(each, each.value) for each in LETTERS) + "</p>")
    body += _matrix(reports)
    for number, report in enumerate(reports):
        body += _details(report, number)
    style = _STYLE + "".join(
        f".v-{verdict} {{ background: {colour}; }}\n" for verdict, colour in _COLOURS.items()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
        " style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _sign(verdict: Verdict, text: str = "", link: str = "", title: str = "") -> str:
    shown = LETTERS[verdict] + (f" {escape(text)}" if text else "")
    hint = f' title="{escape(title)}"' if title else ""
    if link:
        return f'<a class="v v-{verdict}" href="#{escape(link)}"{hint}>{shown}</a>'
    return f'<span class="v v-{verdict}"{hint}>{shown}</span>'


def _head(report: Report) -> list[str]:
    begin = report.begin
    coverage = report.coverage()
    rows = {
        "target": begin["target"],
        "suite": f"{begin['suite']} (tool {begin['tool']}, protocol {begin['protocol']})",
        "started": begin["started"],
        "run": begin["run"],
        "options": " ".join(f"{key}={value}" for key, value in begin["options"].items()),
        "capabilities": " ".join(begin["capabilities"]),
        "rules tried": f"{coverage['tried']} of {coverage['rules']}",
        "against conformance": ", ".join(
            f"{sum(report.is_obstacle(each, (level,)) for each in report.cases)} of level {level}"
            for level in (Level.MUST, Level.SHOULD)
        ),
    }
    lines = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
        for key, value in rows.items()
    )
    counts = " ".join(
        _sign(Verdict(name), f"{name} {count}") for name, count in report.verdict_counts.items()
    )
    interrupted = "<p><strong>The run was interrupted.</strong></p>" if report.interrupted else ""
    return [
        f"<h2>{escape(report.title)}</h2>",
        f"<p><strong>{escape(badge(report))}</strong></p>{interrupted}<p>{counts}</p>",
        f"<table>{lines}</table>",
    ]


def _changes(changes: Changes) -> list[str]:
    parts = ["<h2>Changes since the earlier report</h2>"]
    for name, rows in (
        ("Regressions", changes.regressions),
        ("Fixes", changes.fixes),
        ("Other changes", changes.others),
    ):
        if rows:
            cells = "<tr><th>case</th><th>before</th><th>after</th></tr>" + "".join(
                f"<tr><td><code>{escape(case)}</code></td><td>{_sign(Verdict(old), old)}</td>"
                f"<td>{_sign(Verdict(new), new)}</td></tr>"
                for case, old, new in rows
            )
            parts.append(f"<h3>{name}</h3><table>{cells}</table>")
    for name, ids in (("New cases", changes.added), ("Cases no longer run", changes.removed)):
        if ids:
            parts.append(f"<p>{name}: {len(ids)}</p>")
    if len(parts) == 1:
        parts.append("<p>None.</p>")
    return parts


def _matrix(reports: Sequence[Report]) -> list[str]:
    groups: dict[str, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for number, report in enumerate(reports):
        for record in report.cases:
            cases = groups.setdefault(f"{record['role']}.{record['group']}", {})
            cases.setdefault(record["id"], {})[number] = record
    parts = ["<h2>Cases</h2>"]
    for group, cases in groups.items():
        verdicts = [Verdict(record["verdict"]) for row in cases.values() for record in row.values()]
        bad = any(verdict in _BAD for verdict in verdicts)
        heads = "".join(f"<th>{escape(report.title)}</th>" for report in reports)
        rows = []
        # Faults come first, so that they need not be searched for among a hundred rows.
        for name, row in sorted(cases.items(), key=lambda pair: not _is_bad(pair[1])):
            cells = "".join(_cell(row.get(number), number) for number in range(len(reports)))
            first = next(iter(row.values()))
            rows.append(
                f"<tr><td><code>{escape(name)}</code><br>{escape(first['title'])}</td>"
                f"<td>{escape(first['level'])}</td>{cells}</tr>"
            )
        parts.append(
            f"<details{' open' if bad else ''}><summary><strong>{escape(group)}</strong>:"
            f" {_passed(cases, len(reports))} {_others(verdicts)}</summary><div class=wide><table>"
            f"<tr><th>case</th><th>level</th>{heads}</tr>{''.join(rows)}</table></div></details>"
        )
    return parts


def _is_bad(row: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return whether a target fails this case."""
    return any(Verdict(record["verdict"]) in _BAD for record in row.values())


def _passed(cases: Mapping[str, Mapping[int, Mapping[str, Any]]], targets: int) -> str:
    """How many cases of a group each target passes."""
    texts = []
    for number in range(targets):
        found = [row[number]["verdict"] for row in cases.values() if number in row]
        texts.append(f"{found.count(Verdict.PASS)} of {len(found)}")
    return f"{', '.join(texts)} pass"


def _others(verdicts: Sequence[Verdict]) -> str:
    """The verdicts of a group that are not PASS, with their numbers."""
    counts = {each: verdicts.count(each) for each in LETTERS if each is not Verdict.PASS}
    return " ".join(_sign(each, str(count)) for each, count in counts.items() if count)


def _cell(record: Mapping[str, Any] | None, number: int) -> str:
    if record is None:
        return "<td>not run</td>"
    verdict = Verdict(record["verdict"])
    link = "" if verdict is Verdict.PASS else f"t{number}-{record['id']}"
    return f"<td>{_sign(verdict, record['verdict'], link, record['message'])}</td>"


def _details(report: Report, number: int) -> list[str]:
    records = [each for each in report.cases if each["verdict"] != Verdict.PASS]
    if not records:
        return []
    parts = [f"<h2>Details: {escape(report.title)}</h2>"]
    untried = [each for each in records if each["verdict"] == Verdict.UNIMPLEMENTED]
    for record in records:
        if record not in untried or record["wire"]:
            parts.append(_case(record, number, rules(report.pack)))
    parts += _not_tried([each for each in untried if not each["wire"]], number)
    return parts


def _not_tried(records: Sequence[Mapping[str, Any]], number: int) -> list[str]:
    """The cases that were not run, because the peer lacks a feature that they need."""
    if not records:
        return []
    rows = "".join(
        f'<tr id="t{number}-{escape(record["id"])}"><td><code>{escape(record["id"])}</code></td>'
        f"<td>{escape(record['title'])}</td><td>{escape(record['message'])}</td></tr>"
        for record in records
    )
    title = f"<h3>{_sign(Verdict.UNIMPLEMENTED)} Not tried</h3>"
    heads = "<tr><th>case</th><th>title</th><th>why</th></tr>"
    return [f"{title}<div class=wide><table>{heads}{rows}</table></div>"]


def _case(record: Mapping[str, Any], number: int, known: Mapping[str, Rule]) -> str:
    verdict = Verdict(record["verdict"])
    texts = "".join(
        f"<li><strong>{escape(name)}</strong> {_with_code(known[name].text)}</li>"
        for name in record["requires"]
        if name in known
    )
    parts = [
        f'<div class="case" id="t{number}-{escape(record["id"])}">',
        f"<h3>{_sign(verdict)} <code>{escape(record['id'])}</code> {escape(record['title'])}</h3>",
        f"<p>{escape(record['why'])}</p>",
        _judgement(record),
    ]
    if record["excuse"]:
        parts.append(f"<p>The implementer explains: {_with_link(record['excuse'])}</p>")
    if record["step"]:
        parts.append(
            f"<p>Step {record['step']}: <code>{escape(record['step_text'])}</code></p>"
            f"<p>Acceptable:</p><pre>{escape(record['expected'])}</pre>"
            f"<p>Seen:</p><pre>{escape(chr(10).join(record['seen']) or 'nothing')}</pre>"
        )
    parts.append(f"<details><summary>Rules</summary><ul>{texts}</ul></details>")
    if record["wire"]:
        rows = "".join(_entry(entry) for entry in record["wire"])
        parts.append(
            "<details><summary>On the wire</summary><div class=wide><table class=wire>"
            "<tr><th>s</th><th>line</th><th>what</th><th>bytes</th><th>messages</th></tr>"
            f"{rows}</table></div></details>"
        )
    parts.append("</div>")
    return "\n".join(parts)


def _with_code(text: str) -> str:
    """Return a text with words in backquotes as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _with_link(text: str) -> str:
    """An explanation; the address at its end as a link."""
    reason, _, link = text.rpartition(" ")
    if not link.startswith(("https://", "http://")):
        return escape(text)
    return f'{escape(reason)} <a rel="noreferrer" href="{escape(link)}">{escape(link)}</a>'


def _judgement(record: Mapping[str, Any]) -> str:
    level, behaviour, closing, message = (
        escape(record[key]) for key in ("level", "behaviour", "closing", "message")
    )
    return (
        f"<p>Level {level}; behaviour {behaviour}, closing {closing}."
        f" <strong>{message}</strong></p>"
    )


def _entry(entry: Mapping[str, Any]) -> str:
    if "hex" not in entry:
        return (
            f"<tr class=note><td>{entry['t']:.3f}</td><td>{escape(entry['line'])}</td>"
            f"<td colspan=3>{escape(entry['note'])}</td></tr>"
        )
    kind = escape(entry["kind"])
    shown = escape(entry["hex"][:_SHOWN_HEX])
    text = " ".join(shown[place : place + 2] for place in range(0, len(shown), 2))
    if entry["size"] * 2 > len(shown):
        text += f" ... ({entry['size']} bytes)"
    messages = "<br>".join(escape(message) for message in entry["messages"])
    note = f" ({escape(entry['note'])})" if entry["note"] else ""
    return (
        f"<tr class={kind}><td>{entry['t']:.3f}</td><td>{escape(entry['line'])}</td>"
        f"<td>{kind}{note}</td><td>{text}</td><td>{messages}</td></tr>"
    )
