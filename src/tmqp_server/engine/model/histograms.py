"""``Histogram``: how long things took, counted in buckets with fixed limits.

One observation is a search among 16 numbers and three additions, so there is one for each batch,
pass or request, and not for each message: ``weight`` is the number of messages that it represents.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BOUNDS_US", "SHORT_BOUNDS_US", "Histogram"]

#: The upper bounds of the buckets, in microseconds: half a millisecond to ten minutes.
BOUNDS_US: Final = (
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    60_000_000,
    600_000_000,
)
#: The same for what takes ten seconds at most: writes, the event loop, requests.
SHORT_BOUNDS_US: Final = BOUNDS_US[:14]


class Histogram:
    """Counts durations.

    Attributes: ``bounds``, the upper bounds of the buckets; ``counts``, the number of observations
    in each, followed by that beyond the last bound; ``total``, the sum of all, in the unit of the
    bounds, which is microseconds for durations.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[int, ...] = BOUNDS_US) -> None:
        self.bounds = bounds
        self.counts: list[int] = [0] * (len(bounds) + 1)
        self.total = 0

    def observe(self, seconds: float, weight: int = 1) -> int:
        """Count a duration, *weight* times; a negative one counts as zero.  Return the index of its
        bucket."""
        return self.count(max(int(seconds * 1_000_000), 0), weight)

    def count(self, value: int, weight: int = 1) -> int:
        """Count a value in the unit of the bounds, *weight* times; returns as :meth:`observe`."""
        place = 0
        for bound in self.bounds:
            if value <= bound:
                break
            place += 1
        self.counts[place] += weight
        self.total += value * weight
        return place

    def copy(self) -> Histogram:
        """A copy at this moment."""
        found = Histogram(self.bounds)
        found.counts = self.counts[:]
        found.total = self.total
        return found
