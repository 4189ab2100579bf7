"""``Levels``: messages that were not examined yet, in ten levels of priority.

A queue has two lists, of messages of high priority and of the others.  With ten priorities (the
option ``priorities``), each list has its messages by level, the highest first, and those of a level
in order of arrival.  The level is read from the producer's bytes, so it is the same after a restart
and from the disk.

*Stamps* (``parking.py``) contain the level: those of one level are far from those of the next.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.model.lanes import Lane
from tmqp_server.engine.model.message import MARK_HIGH, Message, Wires

__all__ = ["NO_STAMP", "LevelGauge", "Levels", "lowest_first"]

_HIGHEST: Final = 9
_USUAL: Final = 4
_LANES: Final = _HIGHEST + 3
#: The stamps of a level differ from its base by less than half of this.
_SHIFT: Final = 48
_HALF: Final = 1 << (_SHIFT - 1)
#: Greater than every stamp.
NO_STAMP: Final = 1 << 62


class LevelGauge:
    """Tells the levels of messages, with the readers that are known at the time."""

    __slots__ = ("wires",)

    def __init__(self) -> None:
        self.wires = Wires()

    def level_of(self, message: Message) -> int:
        """The level of a message, 0 to 9."""
        try:
            level = self.wires.priority_of(message)
        except Exception:  # noqa: BLE001 - what a door cannot read has the usual one
            return _HIGHEST if message.marks & MARK_HIGH else _USUAL
        return min(max(level, 0), _HIGHEST)


class Levels:
    """The lanes of the levels that have been used.

    The first lane has stamps from before there were levels; the last lane has messages that arrive
    while priorities do not count, that is, while ``gauge`` is None.
    """

    __slots__ = ("_first", "_lanes", "_last", "gauge")

    def __init__(self) -> None:
        self.gauge: LevelGauge | None = None
        self._lanes: list[Lane | None] = [None] * _LANES
        self._last = 0
        self._first = 0

    def put_last(self, message: Message) -> None:
        """Append *message* to its level."""
        self._last += 1
        self.put(self._base(message) + self._last, message)

    def put_first(self, message: Message) -> None:
        """Put *message* before all others of its level."""
        self._first -= 1
        self.put(self._base(message) + self._first, message)

    def _base(self, message: Message) -> int:
        gauge = self.gauge
        place = _LANES - 1 if gauge is None else _HIGHEST + 1 - gauge.level_of(message)
        return place << _SHIFT

    def put(self, stamp: int, message: Message) -> None:
        """Put *message* at the position of its stamp."""
        place = _place_of(stamp)
        lane = self._lanes[place]
        if lane is None:
            lane = Lane(0, 0)
            self._lanes[place] = lane
        lane.put(stamp, message)

    def lanes(self) -> list[Lane]:
        """The lanes with messages or tombstones, the highest level first."""
        return [lane for lane in self._lanes if lane is not None and lane.stamps]

    def shed(self) -> int:
        """Drop tombstones before the first message; return their number."""
        shed = 0
        for lane in self._lanes:
            if lane is not None and lane.stamps:
                shed += lane.shed(False)
                if lane.stamps:
                    break
        return shed

    def first_stamp(self) -> int:
        """The stamp of the first message, or tombstone; ``NO_STAMP`` if there is none."""
        for lane in self._lanes:
            if lane is not None and lane.stamps:
                return lane.stamps[0]
        return NO_STAMP

    def take(self) -> Message:
        """Take out the first message; there must be one."""
        return self.lanes()[0].take()

    def clear(self) -> None:
        """Remove all messages."""
        self._lanes = [None] * _LANES


def _place_of(stamp: int) -> int:
    """The index of the lane of a stamp."""
    return (stamp + _HALF) >> _SHIFT


def lowest_first(lanes: list[Lane]) -> tuple[Lane, int] | None:
    """The oldest message of the lowest level in these lanes, as its lane and its index there; None
    if there is none."""
    last = max([lane.stamps[-1] for lane in lanes if lane.stamps], default=-1)
    if last < 0:
        return None
    lowest = (_place_of(last) << _SHIFT) - _HALF
    best: tuple[Lane, int] | None = None
    for lane in lanes:
        at = lane.place_of(lowest)
        if at < len(lane.stamps) and (best is None or lane.stamps[at] < best[0].stamps[best[1]]):
            best = (lane, at)
    return best
