"""End-to-end latency of NSQ's channels, from publishing to FIN: percentiles over the last minutes.

Theory of operation.  A channel counts its latencies in buckets, 64 for each power of two.  So a
percentile is correct within 0.8 % or one microsecond, for all latencies, and a channel takes at
most 40 kB.  It counts in two halves of the window: when the newer half is over, the older one is
forgotten, as in the original.  The percentiles of a topic are those of its channels together.

Nothing here is called unless percentiles are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, final

__all__ = ["Counts", "Latencies", "Latency", "shown"]

#: A unit is 1,024 nanoseconds.
_UNIT_BITS: Final = 10
#: Row 0 has a bucket for each of the first 128 units; row n has 64 for those that are 2**n apart.
_ROW_BITS: Final = 6
_BUCKETS: Final = 1 << _ROW_BITS
_ROWS: Final = 36
_MOST_UNITS: Final = (1 << (_ROW_BITS + _ROWS)) - 1
_NS_PER_MS: Final = 1_000_000
_ROUNDING: Final = 1e-9


@final
class Counts:
    """The number of latencies in each bucket; a row of buckets is created when it is first
    needed."""

    __slots__ = ("rows", "total")

    def __init__(self) -> None:
        self.total: int = 0
        self.rows: list[list[int] | None] = [None] * _ROWS

    def add(self, latency_ns: int, count: int) -> None:
        """Count a latency *count* times; a negative number takes counts back."""
        units = min(max(latency_ns, 0) >> _UNIT_BITS, _MOST_UNITS)
        row = max(0, units.bit_length() - _ROW_BITS - 1)
        place = units >> row
        if row:
            place -= _BUCKETS
        buckets = self.rows[row]
        if buckets is None:
            buckets = self.rows[row] = [0] * (_BUCKETS if row else 2 * _BUCKETS)
        buckets[place] += count
        self.total += count


@final
class Latency:
    """The latencies of one channel in the window.

    :param half_ns: half of the window.
    """

    __slots__ = ("_half_ns", "_moved_ns", "newer", "older")

    def __init__(self, half_ns: int, now_ns: int) -> None:
        self._half_ns = half_ns
        self._moved_ns = now_ns
        self.newer = Counts()
        self.older = Counts()

    def note(self, latency_ns: int, now_ns: int) -> Counts:
        """Count a latency; returns the counts to which it was added."""
        self.move(now_ns)
        self.newer.add(latency_ns, 1)
        return self.newer

    def move(self, now_ns: int) -> None:
        """Forget latencies that are older than the window."""
        halves = (now_ns - self._moved_ns) // self._half_ns
        if halves <= 0:
            return
        self._moved_ns += halves * self._half_ns
        self.older = self.newer if halves == 1 else Counts()
        self.newer = Counts()


@final
class Latencies:
    """The latencies of all channels.

    :param percentiles: the percentiles to report, above 0 and up to 1; empty if nothing is
        measured.
    :param window_ms: the window over which they are measured.
    :param most: the largest number of channels; beyond it, the one without new latencies for the
        longest time is forgotten.
    """

    __slots__ = ("_found", "_half_ns", "_most", "_order", "percentiles", "window_ms")

    def __init__(self, percentiles: tuple[float, ...], window_ms: int, most: int) -> None:
        self.percentiles = percentiles
        self.window_ms = window_ms
        self._most = most
        self._half_ns: int = max(1, window_ms * _NS_PER_MS // 2)
        #: All latencies by topic and channel, and in the order of their last use.
        self._found: dict[bytes, dict[bytes, Latency]] = {}
        self._order: dict[tuple[bytes, bytes], Latency] = {}

    @property
    def measures(self) -> bool:
        """Whether anything is measured."""
        return bool(self.percentiles)

    def of(self, topic: bytes, channel: bytes, now_ns: int) -> Latency:
        """The latencies of a channel, created if missing; the caller must be about to note one."""
        names = (topic, channel)
        latency = self._order.pop(names, None)
        if latency is None:
            if len(self._order) >= self._most:
                self.forget(*next(iter(self._order)))
            latency = Latency(self._half_ns, now_ns)
            self._found.setdefault(topic, {})[channel] = latency
        self._order[names] = latency
        return latency

    def forget(self, topic: bytes, channel: bytes = b"") -> None:
        """Forget a removed channel, or without *channel* a removed topic with all its channels."""
        channels = self._found.get(topic)
        if channels is None:
            return
        for each in [channel] if channel else list(channels):
            channels.pop(each, None)
            self._order.pop((topic, each), None)
        if not channels:
            del self._found[topic]

    def told(self, topic: bytes, channel: bytes, now_ns: int) -> dict[str, object]:
        """The statistics of a channel, or of all channels of a topic together (N125)."""
        if not self.percentiles:
            return {"count": 0, "percentiles": None}
        counts: list[Counts] = []
        total = 0
        for name, each in self._found.get(topic, {}).items():
            if not channel or name == channel:
                each.move(now_ns)
                counts += (each.older, each.newer)
                total += each.older.total + each.newer.total
        values = _values(counts, total, self.percentiles)
        rows: list[dict[str, object]] = []
        for place, percentile in enumerate(self.percentiles):
            rows.append({"quantile": _short(percentile), "value": values[place]})
        return {"count": total, "percentiles": rows}


def _short(number: float) -> object:
    """A number in the original's form: whole numbers without a fraction."""
    return int(number) if number.is_integer() else number


def _values(counts: Sequence[Counts], total: int, percentiles: Sequence[float]) -> list[int]:
    """The latency at each percentile, in nanoseconds: the middle of its bucket; 0 if none was
    counted."""
    found = [0] * len(percentiles)
    if not total:
        return found
    # So many latencies are not above it; a product such as 7.000000000000001 is 7.
    ranks = [max(1, ceil(each * total - _ROUNDING)) for each in percentiles]
    left = sorted([(rank, place) for place, rank in enumerate(ranks)])
    passed = 0
    for row in range(_ROWS):
        rows = [each.rows[row] for each in counts]
        buckets = [each for each in rows if each is not None]
        if not buckets:
            continue
        for at in range(len(buckets[0])):
            for each in buckets:
                passed += each[at]
            while passed >= left[0][0]:
                found[left.pop(0)[1]] = _middle(row, at)
                if not left:
                    return found
    return found


def _middle(row: int, place: int) -> int:
    """The middle of a bucket, in nanoseconds."""
    first = place if not row else (place + _BUCKETS) << row
    return (2 * first + (1 << row)) << (_UNIT_BITS - 1)


def shown(told: dict[str, object]) -> str:
    """The percentiles as text for people: ``1.5ms, 20.0us``."""
    rows = told["percentiles"]
    if not isinstance(rows, list):
        return ""
    return ", ".join([_time(each["value"]) for each in rows])


def _time(ns: int) -> str:
    for size, unit in ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")):
        if ns > size:
            return f"{ns / size:.1f}{unit}"
    return f"{ns:.1f}ns"
