"""Plots lines over time as SVG, without any library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import escape

__all__ = ["Panel", "nice_step", "plot_svg"]

_WIDTH: Final = 960
_LEFT: Final = 80
_RIGHT: Final = 190
_TOP: Final = 36
_HEIGHT: Final = 180
_GAP: Final = 56
#: Colours that colour-blind people can distinguish (Okabe and Ito).
_COLOURS: Final = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#f0e442",
)
#: More lines than this cannot be distinguished; the largest are drawn.
_MOST_LINES: Final = len(_COLOURS)
_TICKS: Final = 4


class Panel:
    """One of several plots: its title, and its lines by name, each a list of (seconds since 1970,
    value)."""

    __slots__ = ("lines", "title")

    def __init__(self, title: str, lines: dict[str, list[tuple[float, float]]]) -> None:
        self.title = title
        self.lines = lines


def plot_svg(title: str, panels: Sequence[Panel]) -> str:
    """Draw the panels below each other, with a common time axis."""
    height = _TOP + len(panels) * (_HEIGHT + _GAP)
    points = [point for panel in panels for line in panel.lines.values() for point in line]
    first = min((at for at, _ in points), default=0.0)
    last = max((at for at, _ in points), default=1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="15">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        top = _TOP + number * (_HEIGHT + _GAP) + 18
        parts += _panel(panel, top, first, last)
    parts.append("</g></svg>")
    return "\n".join(parts) + "\n"


def _panel(panel: Panel, top: int, first: float, last: float) -> list[str]:
    most = max((value for line in panel.lines.values() for _, value in line), default=0.0)
    step = nice_step(most)
    ceiling = max(step, math.ceil(most / step) * step)
    bottom, right = top + _HEIGHT, _WIDTH - _RIGHT
    parts = [f'<text x="{_LEFT}" y="{top - 6}" fill="#444">{escape(panel.title)}</text>']
    for tick in range(round(ceiling / step) + 1):
        y = bottom - _HEIGHT * tick * step / ceiling
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick * step:,.6g}</text>'
        )
    span = last - first
    for tick in range(_TICKS + 1):
        at = first + span * tick / _TICKS
        x = _LEFT + (right - _LEFT) * tick / _TICKS
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_clock(at, span)}</text>'
        )
    largest = sorted(panel.lines, key=lambda name: -sum(value for _, value in panel.lines[name]))[
        :_MOST_LINES
    ]
    for number, name in enumerate(sorted(largest)):
        colour = _COLOURS[number]
        places = [
            f"{_LEFT + (right - _LEFT) * ((at - first) / span if span else 0.5):.1f},"
            f"{bottom - _HEIGHT * value / ceiling:.1f}"
            for at, value in panel.lines[name]
        ]
        if len(places) == 1:
            across, _, down = places[0].partition(",")
            parts.append(f'<circle cx="{across}" cy="{down}" r="3" fill="{colour}"/>')
        else:
            parts.append(
                f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}"'
                ' stroke-width="1.5"/>'
            )
        y_name = top + 12 + number * 18
        parts.append(
            f'<rect x="{right + 14}" y="{y_name - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{right + 30}" y="{y_name}">{escape(name[:22])}</text>'
        )
    return parts


def nice_step(most: float) -> float:
    """Return a round step, so that at most six steps reach the largest value."""
    if most <= 0:
        return 1.0
    rough = most / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1, 2, 5):
        if rough <= factor * power:
            return factor * power
    return 10 * power


def _clock(at: float, span: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    if span > 2 * 86_400:
        return moment.strftime("%d %b")
    return moment.strftime("%H:%M" if span > 600 else "%H:%M:%S")
