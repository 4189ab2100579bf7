"""What a reader sees of a comparison of brokers: tables, verdicts, data."""

from __future__ import annotations

import platform
from typing import Any, Final

from tmqp_bench.broker.comparison import Aim, Cost, Workload
from tmqp_bench.broker.suite import BrokerResults, Figures, chosen
from tmqp_bench.broker.workloads import WORKLOADS
from tmqp_bench.report import Verdict, ending, machine, table

__all__ = ["as_json", "as_text", "verdicts"]

#: From this share of interpreted speed on the interpreted build counts as usable.
_INTERPRETED_SHARE: Final = 0.25
_HEAD: Final = (
    *("", "deliveries/s", "server CPU ns", "kernel", "load", "p50 us", "p99 us", "p99.9 us"),
    *("memory MB", "spread", "tmqp is"),
)
#: From this share of its core on the load may be what limits a row, which is marked.
_BUSY: Final = 0.95
_LIMITED: Final = "!"


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:,.0f}"


def _row(title: str, figures: Figures, ours: Figures | None, *, latency: bool) -> list[str]:
    ratio = "-"
    if ours is not None and ours is not figures:
        ratio = f"{ours.rate / figures.rate:.2f} x"
    shares = [figures.latency_s(share) if latency else None for share in (0.5, 0.99, 0.999)]
    return [
        title,
        f"{figures.rate:,.0f}",
        f"{figures.cpu_ns:,.0f}",
        f"{figures.kernel_ns:,.0f}",
        f"{figures.load_share:.0%}{_LIMITED if figures.load_share >= _BUSY else ''}",
        *[_us(share) for share in shares],
        f"{max(figures.memory_bytes) / 1e6:,.0f}",
        f"{figures.spread:.2f}",
        ratio,
    ]


def _rows(results: BrokerResults, workload: Workload) -> list[list[str]]:
    ours = results.of(workload, workload.contenders[0].title)
    latency = len(workload.contenders) > 0 and workload.consumers == 1
    rows: list[list[str]] = []
    for contender in workload.contenders:
        figures = results.of(workload, contender.title)
        if figures is not None:
            rows.append(_row(contender.title, figures, ours, latency=latency))
    return rows


def _judge(results: BrokerResults, workload: Workload, aim: Aim) -> Verdict:
    ours = results.of(workload, workload.contenders[0].title)
    peer = results.of(workload, aim.peer)
    if aim.latency:
        text = f"{workload.title}: p50 at most {aim.times:g} x {aim.peer}"
        here = None if ours is None else ours.latency_s(0.5)
        there = None if peer is None else peer.latency_s(0.5)
        if here is None or there is None:
            return Verdict(text, "not measured", None)
        return Verdict(text, f"{here / there:.2f} x", here <= aim.times * there)
    text = f"{workload.title}: {aim.times:g} x {aim.peer}"
    if ours is None or peer is None:
        return Verdict(text, "not measured", None)
    return Verdict(text, f"{ours.rate / peer.rate:.2f} x", ours.rate >= aim.times * peer.rate)


def _judge_cost(results: BrokerResults, workload: Workload, cost: Cost) -> Verdict:
    (other,) = [each for each in WORKLOADS if each.name == cost.workload]
    text = f"{workload.title}: at most {cost.times:g} x {other.title}"
    here = results.of(workload, workload.contenders[0].title)
    there = results.of(other, other.contenders[0].title)
    if here is None or there is None:
        return Verdict(text, "not measured", None)
    times = there.rate / here.rate
    return Verdict(text, f"{times:.2f} x", times <= cost.times)


def verdicts(results: BrokerResults) -> list[Verdict]:
    """The aims of the workloads measured, and what was reached."""
    found: list[Verdict] = []
    for workload in chosen(results.plan):
        found.extend([_judge(results, workload, aim) for aim in workload.aims])
        found.extend([_judge_cost(results, workload, cost) for cost in workload.costs])
        compiled, second = workload.contenders[:2]
        fast, slow = results.of(workload, compiled.title), results.of(workload, second.title)
        interpreted = second.setting.startswith("interpreted")
        if interpreted and fast is not None and slow is not None:
            share = slow.rate / fast.rate
            text = f"{workload.title}: interpreted {_INTERPRETED_SHARE:g} x compiled"
            found.append(Verdict(text, f"{share:.2f} x", share >= _INTERPRETED_SHARE))
    return found


def as_text(results: BrokerResults) -> str:
    """The whole comparison for a terminal."""
    plan = results.plan
    place = "each broker on one core, the load on another" if results.pinned else "on one core"
    lines = [
        f"{machine()}; Python {platform.python_version()}; {place}.",
        ", ".join([f"{name} {version}" for name, version in results.versions.items()]),
        f"Medians of {plan.rounds} rounds of {plan.seconds:g} s, in turn.",
        f"load: how much of its core the load generator took; {_LIMITED} marks what it may limit.",
    ]
    for workload in chosen(plan):
        rows = _rows(results, workload)
        if rows:
            lines.extend(["", f"{workload.title} ({workload.name}), {workload.payload_bytes:,} B"])
            lines.extend(["", *table(_HEAD, rows)])
    lines.extend(ending("aim", verdicts(results), results.missing))
    return "\n".join(lines)


def as_json(results: BrokerResults) -> dict[str, Any]:
    """The same as data."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "versions": results.versions,
        "rounds": results.plan.rounds,
        "seconds": results.plan.seconds,
        "figures": [
            {
                "workload": workload,
                "contender": contender,
                "deliveries_per_s": [sample.rate for sample in figures.samples],
                "server_cpu_ns": [sample.cpu_ns for sample in figures.samples],
                "server_kernel_ns": [sample.kernel_ns for sample in figures.samples],
                "load_share": [sample.load_share for sample in figures.samples],
                "p50_s": figures.latency_s(0.5),
                "p99_s": figures.latency_s(0.99),
                "memory_bytes": figures.memory_bytes,
            }
            for (workload, contender), figures in results.figures.items()
        ],
        "aims": [
            {"aim": verdict.aim, "reached": verdict.reached, "passed": verdict.passed}
            for verdict in verdicts(results)
        ],
        "missing": results.missing,
    }
