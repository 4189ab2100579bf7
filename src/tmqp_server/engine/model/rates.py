"""How often something happened in the last minute, in two numbers.

The minute is divided into six slots of ten seconds: the current one and the five before it count.
All slots are parts of one number; the current one is the lowest part.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Rate", "slot_at", "sum_of", "turned"]

_SLOT_NS: Final = 10_000_000_000
_SLOTS: Final = 6
_SLOT_BITS: Final = 48
_SLOT_MASK: Final = (1 << _SLOT_BITS) - 1
_ALL_BITS: Final = (1 << (_SLOTS * _SLOT_BITS)) - 1


def slot_at(now_ns: int) -> int:
    """The number of the slot at a time."""
    return now_ns // _SLOT_NS


def turned(slots: int, steps: int) -> int:
    """The counts after so many changes of the slot."""
    if steps >= _SLOTS:
        return 0
    return (slots << (_SLOT_BITS * steps)) & _ALL_BITS


def sum_of(slots: int) -> int:
    """The sum of all slots."""
    total = 0
    while slots:
        total += slots & _SLOT_MASK
        slots >>= _SLOT_BITS
    return total


class Rate:
    """Counts something, in total and in the last minute."""

    __slots__ = ("total", "_recent", "_slot")

    def __init__(self) -> None:
        self.total = 0
        self._recent = 0
        self._slot = 0

    def add(self, count: int, now_ns: int) -> None:
        """Add *count*."""
        self._turn(now_ns)
        self.total += count
        self._recent += count

    def per_minute(self, now_ns: int) -> int:
        """The count of the last minute."""
        self._turn(now_ns)
        return sum_of(self._recent)

    def _turn(self, now_ns: int) -> None:
        slot = slot_at(now_ns)
        if slot != self._slot:
            self._recent = turned(self._recent, slot - self._slot)
            self._slot = slot
