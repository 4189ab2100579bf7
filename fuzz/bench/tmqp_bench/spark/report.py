"""What a reader sees of a comparison of connectors: the table, the verdicts, the data."""

from __future__ import annotations

import platform
from statistics import median
from typing import Any, Final

from tmqp_bench.report import Verdict, ending, machine, table
from tmqp_bench.spark.suite import WORKLOADS, SparkResults

__all__ = ["as_json", "as_text", "verdicts"]

_HEAD: Final = ("", "rows/s", "Spark ns", "broker ns", "spread", "tmqp is", "by CPU")
_PEER: Final = "Kafka"
_OURS: Final = "tmqp"
_PLAIN: Final = "tmqp, at least once"


def verdicts(results: SparkResults) -> list[Verdict]:
    """Level with Kafka's connector, in each workload."""
    found: list[Verdict] = []
    for size in results.plan.rows:
        for workload in results.plan.workloads:
            ours, peer = (results.figures.get((workload, size, who)) for who in (_OURS, _PEER))
            aim = f"{WORKLOADS[workload]}, {size:,} B: 1 x {_PEER}"
            if ours is None or peer is None:
                found.append(Verdict(aim, "not measured", None))
            else:
                times = ours.rate / peer.rate
                found.append(Verdict(aim, f"{times:.2f} x", times >= 1))
    return found


def _rows(results: SparkResults, size: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for workload in results.plan.workloads:
        ours = results.figures.get((workload, size, _OURS))
        for who in (_OURS, _PLAIN, _PEER):
            figures = results.figures.get((workload, size, who))
            if figures is None:
                continue
            ratios = ["-", "-"]
            if ours is not None and ours is not figures:
                ratios = [
                    f"{ours.rate / figures.rate:.2f} x",
                    f"{figures.cpu_ns / ours.cpu_ns:.2f} x",
                ]
            row = [f"{WORKLOADS[workload]}: {who}", f"{figures.rate:,.0f}"]
            row += [f"{median(each):,.0f}" for each in (figures.spark_ns, figures.broker_ns)]
            row.append(f"{max(figures.rates) / min(figures.rates):.2f}")
            rows.append(row + ratios)
    return rows


def as_text(results: SparkResults) -> str:
    """The whole comparison for a terminal."""
    plan = results.plan
    lines = [
        f"{machine()}; Python {platform.python_version()}; tmqp {plan.build}.",
        ", ".join([f"{name} {version}" for name, version in results.versions.items()]),
        f"Medians of {plan.rounds} rounds, in turn, after {plan.warm_up} that do not count.",
    ]
    for size, count in plan.rows.items():
        title = f"{count:,} rows of {size:,} bytes; processor time for a row in ns"
        lines.extend(["", title, ""])
        lines.extend(table(_HEAD, _rows(results, size)))
    lines.extend(ending("aim", verdicts(results), results.missing))
    return "\n".join(lines)


def as_json(results: SparkResults) -> dict[str, Any]:
    """The same as data: every round."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "versions": results.versions,
        "build": results.plan.build,
        "rounds": results.plan.rounds,
        "figures": [
            {
                "workload": workload,
                "payload_bytes": size,
                "contender": who,
                "rows_per_s": figures.rates,
                "spark_cpu_ns": figures.spark_ns,
                "broker_cpu_ns": figures.broker_ns,
            }
            for (workload, size, who), figures in results.figures.items()
        ],
        "aims": [
            {"aim": verdict.aim, "reached": verdict.reached, "passed": verdict.passed}
            for verdict in verdicts(results)
        ],
        "missing": results.missing,
    }
