"""Make ``docs/metrics.md`` from the catalogue of metrics.

    python -m tools.make_metrics            write the page
    python -m tools.make_metrics --check    only tell whether it is up to date

Names, texts and labels are those of ``tmqp_server.admin.metrics.catalogue``; the text around them
is in ``tools/metrics.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tmqp_server.admin.metrics.catalogue import CATALOGUE, HISTOGRAM, Metric
from tmqp_server.engine.model.histograms import BOUNDS_US
from tools.generated import write_or_check

__all__ = ["PAGE", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "metrics.md"

_TEMPLATE: Final = ROOT / "tools" / "metrics.md"

#: The sections, and the metric that each begins with.
_GROUPS: Final = (
    ("The process", "build_info"),
    ("Connections", "connections"),
    ("Messages and clients", "sessions"),
    ("Queues", "channels"),
    ("Memory and limits", "memory_used_bytes"),
    ("Storage", "storage_saving"),
    ("Others", "events_lost"),
)


def _row(metric: Metric) -> str:
    labels = ", ".join([f"`{label}`" for label in metric.labels])
    return f"| `{metric.full_name}` | {metric.kind} | {labels} | {metric.text} |"


def render() -> str:
    """Return the text of the page."""
    starts = {first: title for title, first in _GROUPS}
    missing = set(starts) - {metric.name for metric in CATALOGUE}
    if missing:
        raise ValueError(f"groups begin with metrics that are not there: {sorted(missing)}")
    lines: list[str] = []
    for metric in CATALOGUE:
        if metric.name in starts:
            lines += ["", f"## {starts[metric.name]}", "", "| name | kind | labels | meaning |"]
            lines.append("|---|---|---|---|")
        lines.append(_row(metric))
    bounds = ", ".join([f"{bound / 1_000_000:g}" for bound in BOUNDS_US])
    names = ", ".join([f"`{each.full_name}`" for each in CATALOGUE if each.kind == HISTOGRAM])
    lines += [
        "",
        "## Buckets",
        "",
        f"Buckets of durations end at {bounds} seconds; those of writes, reads and the event loop",
        f"at 10 seconds. Histograms are {names}.",
    ]
    template = _TEMPLATE.read_text(encoding="utf-8")
    return template.replace("@METRICS@", "\n".join(lines).strip())


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it; 1 if it is out of date."""
    return write_or_check({PAGE: render()}, arguments, "make_metrics")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
