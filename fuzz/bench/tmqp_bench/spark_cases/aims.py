"""What a measurement comes to: figures, aims, and whether each aim is reached.

A ratio compares two things that were measured in turn, round by round, in one run on one machine,
so what else the machine did falls on both; the median of the rounds counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, Final

from tmqp_bench.spark_cases.processes import Spent

__all__ = ["MISSED", "NOT_MEASURED", "REACHED", "Aim", "Figure", "Record", "ratios"]

REACHED: Final = "reached"
MISSED: Final = "MISSED"
NOT_MEASURED: Final = "not measured"


class Figure:
    """What one of those compared needed for ``count`` messages of ``bytes`` payload together:
    medians of the rounds.  ``worst`` is the slowest round's wall time over the fastest's."""

    __slots__ = ("broker_ns", "bytes", "count", "jvm_ns", "python_ns", "variant", "wall_s", "worst")

    def __init__(self, variant: str, count: int, bytes: int, rounds: Sequence[Spent]) -> None:
        self.variant = variant
        self.count = count
        self.bytes = bytes
        walls = [each.wall_s for each in rounds]
        self.wall_s = median(walls)
        self.worst = max(walls) / min(walls) if min(walls) > 0 else 1.0
        self.jvm_ns = _each([each.jvm_s for each in rounds], count)
        self.python_ns = _each([each.python_s for each in rounds], count)
        self.broker_ns = _each([each.broker_s for each in rounds], count)

    @property
    def per_s(self) -> float:
        """How many a second."""
        return self.count / self.wall_s

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "variant": self.variant,
            "count": self.count,
            "per_s": round(self.per_s),
            "mb_per_s": round(self.bytes / self.wall_s / 1e6, 1),
            "jvm_ns": _rounded(self.jvm_ns),
            "python_ns": _rounded(self.python_ns),
            "broker_ns": _rounded(self.broker_ns),
            "spread": round(self.worst, 2),
        }


class Aim:
    """What was wanted and what was measured.

    :param text: what, for people.
    :param unit: of both numbers: ``x`` for a ratio.
    :param bound: what is wanted: as much at least, or as little if ``at_most``.
    :param values: one a round; none if it could not be measured.
    """

    __slots__ = ("at_most", "bound", "case", "measured", "text", "unit")

    def __init__(
        self,
        case: str,
        text: str,
        unit: str,
        bound: float,
        values: Sequence[float | None],
        *,
        at_most: bool = False,
    ) -> None:
        self.case = case
        self.text = text
        self.unit = unit
        self.bound = bound
        self.at_most = at_most
        known = [value for value in values if value is not None]
        self.measured = median(known) if known and len(known) == len(values) else None

    @property
    def verdict(self) -> str:
        """Whether it is reached, in a word."""
        if self.measured is None:
            return NOT_MEASURED
        ok = self.measured <= self.bound if self.at_most else self.measured >= self.bound
        return REACHED if ok else MISSED

    @property
    def wanted(self) -> str:
        """The target, for people."""
        return f"{'<=' if self.at_most else '>='} {_shown(self.bound, self.unit)}"

    @property
    def got(self) -> str:
        """What was measured, for people."""
        return NOT_MEASURED if self.measured is None else _shown(self.measured, self.unit)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "case": self.case,
            "aim": self.text,
            "unit": self.unit,
            "at_most" if self.at_most else "at_least": self.bound,
            "measured": None if self.measured is None else round(self.measured, 4),
            "verdict": self.verdict,
        }


class Record:
    """What a case found: ``figures`` and ``aims``, in order, and ``notes`` for people."""

    def __init__(self, case: str, title: str) -> None:
        self.case = case
        self.title = title
        self.figures: list[Figure] = []
        self.aims: list[Aim] = []
        self.notes: list[str] = []

    def figure(self, variant: str, count: int, bytes: int, rounds: Sequence[Spent]) -> None:
        """Keep what one of those compared needed."""
        self.figures.append(Figure(variant, count, bytes, rounds))

    def at_least(
        self, text: str, bound: float, values: Iterable[float | None], unit: str = "x"
    ) -> None:
        """An aim that is reached by ``bound`` or more."""
        self.aims.append(Aim(self.case, text, unit, bound, list(values)))

    def at_most(
        self, text: str, bound: float, values: Iterable[float | None], unit: str = "x"
    ) -> None:
        """An aim that is reached by ``bound`` or less."""
        self.aims.append(Aim(self.case, text, unit, bound, list(values), at_most=True))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "case": self.case,
            "title": self.title,
            "figures": [each.to_json() for each in self.figures],
            "aims": [each.to_json() for each in self.aims],
            "notes": self.notes,
        }


def ratios(
    over: Sequence[Spent], under: Sequence[Spent], what: str = "wall_s"
) -> list[float | None]:
    """One thing's cost by another's, round by round; None where it is not known.

    :param what: which cost, an attribute of :class:`Spent`.
    """
    found: list[float | None] = []
    for one, other in zip(over, under, strict=True):
        above, below = getattr(one, what), getattr(other, what)
        found.append(above / below if above is not None and below else None)
    return found


def _each(seconds: Sequence[float | None], count: int) -> float | None:
    known = [value for value in seconds if value is not None]
    return median(known) / count * 1e9 if known and count else None


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _shown(value: float, unit: str) -> str:
    digits = 0 if value == int(value) or abs(value) >= 1_000 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()
