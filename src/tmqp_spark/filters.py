"""Filters that are applied at the source: on channel, queue, sequence and time.

Spark drops a filter that a source accepts, so only those are accepted that are applied exactly:
comparisons of one column with a value, for columns that are never null.  Filters on channels and
queues select the requested queues, those on sequences the range, and those on times skip messages
when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from tmqp_spark.arrow import Portion

__all__ = ["Filters"]

_NEVER_NULL: Final = ("channel", "queue", "seq", "timestamp")
_LAST: Final = 2**63 - 1


class Filters:
    """The accepted filters: ``channels`` and ``queues`` are None for all; the bounds of sequences
    and times (microseconds of Unix time) are inclusive."""

    __slots__ = ("channels", "first", "last", "queues", "since_us", "until_us")

    def __init__(self) -> None:
        self.channels: frozenset[str] | None = None
        self.queues: frozenset[int] | None = None
        self.first = 0
        self.last = _LAST
        self.since_us = -_LAST
        self.until_us = _LAST

    def accept(self, column: str, comparison: str, value: Any) -> bool:
        """Accept one filter; return False if Spark must apply it.

        :param comparison: ``=``, ``<``, ``<=``, ``>``, ``>=``, ``in`` or ``not null``.
        """
        if column not in _NEVER_NULL:
            return False
        if comparison == "not null":
            return True
        values = value if comparison == "in" else (value,)
        if column == "channel":
            return self._accept_channel(comparison, values)
        numbers: list[int] = []
        for each in values:
            number = _microseconds(each) if column == "timestamp" else each
            if isinstance(number, bool) or not isinstance(number, int):
                return False
            numbers.append(number)
        if column == "queue":
            if comparison not in ("=", "in"):
                return False
            chosen = frozenset(numbers)
            self.queues = chosen if self.queues is None else self.queues & chosen
            return True
        if comparison == "in":
            return False
        low, high = _interval(comparison, numbers[0])
        if column == "seq":
            self.first, self.last = max(self.first, low), min(self.last, high)
        else:
            self.since_us, self.until_us = max(self.since_us, low), min(self.until_us, high)
        return True

    def _accept_channel(self, comparison: str, values: Iterable[Any]) -> bool:
        names = list(values)
        if comparison not in ("=", "in") or not all(isinstance(name, str) for name in names):
            return False
        chosen = frozenset(names)
        self.channels = chosen if self.channels is None else self.channels & chosen
        return True

    def covers(self, channel: str, queue: int) -> bool:
        """Whether a queue can have messages that pass."""
        if self.channels is not None and channel not in self.channels:
            return False
        return self.queues is None or queue in self.queues

    @property
    def by_time(self) -> bool:
        """Whether there is a filter on times."""
        return self.since_us > -_LAST or self.until_us < _LAST

    def apply(self, portion: Portion) -> Portion:
        """Return the messages of a portion that pass the filter on times."""
        if not self.by_time:
            return portion
        time = portion.entry["timestamp"]
        return portion.select((time >= self.since_us) & (time <= self.until_us))


def _interval(comparison: str, value: int) -> tuple[int, int]:
    if comparison == "=":
        return value, value
    if comparison in ("<", "<="):
        return -_LAST, value - (comparison == "<")
    return value + (comparison == ">"), _LAST


def _microseconds(value: Any) -> int | None:
    """Convert a time to microseconds of Unix time; None if it has no time zone, or is no time."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    since = value.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
