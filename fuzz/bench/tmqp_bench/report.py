"""What a reader sees of a comparison: the tables, the verdicts on the aims, the JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tmqp_bench.codec import BUILDS, Outcome
from tmqp_bench.work import OUR_TITLES, PEER_TITLES

__all__ = [
    "AIM_PAYLOAD_BYTES",
    "Verdict",
    "as_json",
    "as_text",
    "ending",
    "machine",
    "table",
    "verdicts",
]

#: The aims are about messages of this size.
AIM_PAYLOAD_BYTES: Final = 100


@dataclass(frozen=True)
class Verdict:
    """One aim: ``reached`` is None where it could not be judged."""

    aim: str
    reached: str
    passed: bool | None


def machine() -> str:
    """The processor and the system, without names or paths of this machine."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _at_most(aim: str, ns: float | None, bound: float) -> Verdict:
    if ns is None:
        return Verdict(aim, "not measured", None)
    return Verdict(aim, f"{ns:,.0f} ns", ns <= bound)


def _times(aim: str, slower: float | None, ours: float | None, bound: float) -> Verdict:
    """Whether ours is ``bound`` times as fast."""
    if slower is None or ours is None:
        return Verdict(aim, "not measured", None)
    return Verdict(aim, f"{slower / ours:.1f} x", slower / ours >= bound)


def verdicts(outcome: Outcome) -> list[Verdict]:
    """The aims and what was reached, for messages of 100 bytes; none if they were not measured."""
    size = AIM_PAYLOAD_BYTES
    if size not in outcome.plan.payload_sizes:
        return []
    fast = outcome.ns("compiled", "decode", size)
    fast_read = outcome.ns("compiled", "decode-read", size)
    slow = outcome.ns("interpreted", "decode", size)
    slow_read = outcome.ns("interpreted", "decode-read", size)
    found = [
        _times("compiled: 5 x interpreted, read lazily", slow, fast, 5),
        _times("compiled: 5 x interpreted, everything read", slow_read, fast_read, 5),
        _at_most("compiled: at most 100 ns, read lazily", fast, 100),
        _at_most("compiled: at most 180 ns, everything read", fast_read, 180),
    ]
    for case, times in (("websockets", 12), ("nats-py", 9), ("wsproto", 33), ("pamqp", 55)):
        found.append(
            _times(f"compiled: {times} x {case}", outcome.ns("peers", case, size), fast, times)
        )
    found.append(_at_most("interpreted: at most 1,000 ns, read lazily", slow, 1_000))
    for case in ("websockets", "nats-py", "pamqp"):
        peer = outcome.ns("peers", case, size)
        found.append(_times(f"interpreted: ahead of {case}", peer, slow, 1))
    return found


def ending(head: str, judged: Sequence[Verdict], missing: Mapping[str, str]) -> list[str]:
    """The last lines of a report: what became of the aims, and what could not be measured."""
    lines: list[str] = []
    if judged:
        words = {True: "reached", False: "MISSED", None: "not judged"}
        rows = [[each.aim, each.reached, words[each.passed]] for each in judged]
        lines += ["", *table([head, "measured", "verdict"], rows)]
    if missing:
        lines += ["", "Missing:", *[f"  {name}: {why}" for name, why in missing.items()]]
    return lines


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; the first to the left, all others to the right."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = []
    for row in (head, ["-" * width for width in widths], *rows):
        cells = [row[0].ljust(widths[0])]
        cells.extend([cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)])
        lines.append("  ".join(cells).rstrip())
    return lines


def _ns(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{1e9 / value:,.0f}"


def _ratio(slower: float | None, faster: float | None) -> str:
    return "-" if slower is None or faster is None else f"{slower / faster:.1f}"


def _ours(outcome: Outcome, size: int) -> list[str]:
    rows: list[list[str]] = []
    for case, title in OUR_TITLES.items():
        fast, slow = (outcome.ns(build, case, size) for build in BUILDS)
        ratio = _ratio(slow, fast)
        rows.append([title, _ns(fast), _rate(fast), _ns(slow), _rate(slow), ratio])
    head = ["tmqp", "compiled ns", "frames/s", "interpreted ns", "frames/s", "times as fast"]
    return table(head, rows)


def _peers(outcome: Outcome, size: int) -> list[str]:
    rows: list[list[str]] = []
    for case, title in PEER_TITLES.items():
        peer = outcome.ns("peers", case, size)
        row = [title, _ns(peer), _rate(peer)]
        for build in BUILDS:
            row.append(_ratio(peer, outcome.ns(build, "decode", size)))
            row.append(_ratio(peer, outcome.ns(build, "decode-read", size)))
        rows.append(row)
    head = ["peer", "ns", "frames/s", "C lazily", "C read", "I lazily", "I read"]
    return table(head, rows)


def _spread(outcome: Outcome) -> str:
    """How far the rounds of a case lie apart, in the middle of all cases."""
    spreads = sorted([max(rounds) / min(rounds) for rounds in outcome.samples.values()])
    if not spreads:
        return "nothing was measured"
    return (
        f"slowest round over fastest: {spreads[len(spreads) // 2]:.2f} in the middle case, "
        f"{spreads[-1]:.2f} in the worst"
    )


def as_text(outcome: Outcome) -> str:
    """The whole comparison for a terminal."""
    plan = outcome.plan
    lines = [
        f"{machine()}; Python {outcome.python or platform.python_version()}",
        ", ".join([f"{name} {version}" for name, version in outcome.versions.items()]),
        f"Medians of {plan.rounds} rounds, processor time, collector off; {_spread(outcome)}.",
    ]
    for size in plan.payload_sizes:
        lines.extend(["", f"Payload {size:,} bytes, in chunks of 64 KiB: nanoseconds a message"])
        lines.extend(["", *_ours(outcome, size), "", *_peers(outcome, size)])
        lines.append("(C, I: how many times as fast the compiled and the interpreted tmqp decode)")
    judged = verdicts(outcome)
    if judged:
        words = {True: "reached", False: "MISSED", None: "not judged"}
        rows = [[verdict.aim, verdict.reached, words[verdict.passed]] for verdict in judged]
        head = [f"aim, {AIM_PAYLOAD_BYTES} bytes", "measured", "verdict"]
        lines.extend(["", *table(head, rows)])
    if outcome.missing:
        lines.extend(["", "Missing:"])
        lines.extend([f"  {name}: {why}" for name, why in outcome.missing.items()])
    return "\n".join(lines)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """The same as data: every sample, in nanoseconds a message."""
    return {
        "machine": machine(),
        "python": outcome.python,
        "versions": outcome.versions,
        "rounds": outcome.plan.rounds,
        "samples": [
            {"group": group, "case": case, "payload_bytes": size, "ns": rounds}
            for (group, case, size), rounds in outcome.samples.items()
        ],
        "aims": [
            {"aim": verdict.aim, "reached": verdict.reached, "passed": verdict.passed}
            for verdict in verdicts(outcome)
        ],
        "missing": outcome.missing,
    }
