"""The plots of a comparison of brokers: bars of deliveries a second, a file for each group.

The same figures make the same file, byte for byte: no date is in it, and its ids are made from its
content.  Text stays text, so that a file is small and can be searched.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any, Final

from tmqp_bench.broker.comparison import Workload
from tmqp_bench.broker.suite import BrokerResults, chosen

__all__ = ["PlotError", "check", "draw"]

_OURS: Final = "#2f6f9f"
_OTHERS: Final = "#b4b4b4"
_SETTINGS: Final = {"svg.hashsalt": "tmqp", "svg.fonttype": "none", "font.family": "sans-serif"}
_BAR_INCHES: Final = 0.24
_HEAD_INCHES: Final = 0.62


class PlotError(Exception):
    """A plot cannot be drawn; the text says why."""


def check(path: Path) -> None:
    """See, before anything is measured, whether plots can be drawn there.

    :raises PlotError: when they cannot.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise PlotError("plots need matplotlib: pip install 'tmqp[bench-peers]'")
    if path.suffix not in (".svg", ".png"):
        raise PlotError(f"a plot is an .svg or a .png, not {path.name}")
    if not path.parent.is_dir():
        raise PlotError(f"there is no folder {path.parent}")


def draw(results: BrokerResults, path: Path) -> list[Path]:
    """Draw what was measured; returns the files.

    :param path: for a group ``push`` of the workloads, ``brokers.svg`` becomes
        ``brokers-push.svg``.
    :raises PlotError: when a file cannot be written.
    """
    groups: dict[str, list[Workload]] = {}
    for workload in chosen(results.plan):
        if _titles(results, workload):
            groups.setdefault(workload.group, []).append(workload)
    made: list[Path] = []
    for group, workloads in groups.items():
        place = path.with_name(f"{path.stem}-{group}{path.suffix}")
        try:
            _draw_group(results, workloads, place)
        except OSError as error:
            raise PlotError(f"{place} cannot be written: {error.strerror}") from error
        made.append(place)
    return made


def _titles(results: BrokerResults, workload: Workload) -> list[str]:
    titles = [contender.title for contender in workload.contenders]
    return [title for title in titles if results.of(workload, title) is not None]


def _draw_group(results: BrokerResults, workloads: list[Workload], path: Path) -> None:
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    heights = [_HEAD_INCHES + _BAR_INCHES * len(_titles(results, each)) for each in workloads]
    with matplotlib.rc_context(_SETTINGS):
        figure, axes = pyplot.subplots(
            len(workloads),
            1,
            figsize=(7.5, sum(heights)),
            squeeze=False,
            gridspec_kw={"height_ratios": heights},
        )
        for (axis,), workload in zip(axes, workloads, strict=True):
            _bars(axis, results, workload)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)
    if path.suffix == ".svg":
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("".join([f"{line.rstrip()}\n" for line in lines]), encoding="utf-8")


def _bars(axis: Any, results: BrokerResults, workload: Workload) -> None:
    titles = _titles(results, workload)[::-1]
    rates: list[float] = []
    for place, title in enumerate(titles):
        figures = results.of(workload, title)
        assert figures is not None
        rates.append(figures.rate)
        words = f" {figures.rate:,.0f}"
        alone = workload.window == 1 and workload.consumers == 1
        middle = figures.latency_s(0.5) if alone else None
        if middle is not None:
            words += f", p50 {middle * 1e6:,.0f} us"
        axis.text(figures.rate, place, words, va="center", fontsize=7)
    colours = [_OURS if title.startswith("tmqp") else _OTHERS for title in titles]
    axis.barh(titles, rates, color=colours)
    axis.set_xscale("log")
    axis.set_xlim(min(rates) / 4, max(rates) * 6)  # room for the figures behind the bars
    axis.set_title(f"{workload.title}: deliveries/s", fontsize=9, loc="left")
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
