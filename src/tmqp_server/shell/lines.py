"""Bounded lines of calls to code outside: HTTP calls and channels' event handlers.

Theory of operation.  A limited number of calls runs concurrently, a limited number waits, and each
has a time limit.  If the wait counts (because a caller waits for the answer), the time begins with
the request; otherwise with the start of the work.  A late call is abandoned; when it ends, it only
makes room for the next one.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, Generic, TypeVar, final

__all__ = ["Line", "Waiter"]

_T = TypeVar("_T")

_NEVER: Final = math.inf


@final
class Waiter(Generic[_T]):
    """One item in a line: ``until`` is its deadline; ``over`` is true once it was given up."""

    __slots__ = ("item", "over", "until")

    def __init__(self, item: _T, until: float) -> None:
        self.item = item
        self.until = until
        self.over = False


@final
class Line(Generic[_T]):
    """The items that wait for one target outside.

    :param at_once: how many run concurrently.
    :param waiting: how many more may wait; 0 for no limit.
    :param timeout_s: the time limit of each, in seconds; with *wait_counts*, it begins with the
        wait. Attributes: ``lost``, how many were dropped for lack of room.
    """

    def __init__(self, at_once: int, waiting: int, timeout_s: float, *, wait_counts: bool) -> None:
        self.lost = 0
        self._at_once = at_once
        self._most = waiting
        self._timeout_s = timeout_s
        self._wait_counts = wait_counts
        self._waiting: deque[Waiter[_T]] = deque()
        self._at_work: list[Waiter[_T]] = []

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being done."""
        return not self._waiting and not self._at_work

    def join(self, item: _T, now: float) -> bool:
        """Add an item to the line; return False, and count it, if there is no room."""
        if self._most and len(self._waiting) >= self._most:
            self.lost += 1
            return False
        self._waiting.append(Waiter(item, now + self._timeout_s if self._wait_counts else _NEVER))
        return True

    def start(self, now: float) -> Waiter[_T] | None:
        """Start the next item; return None if there is none, or too many run."""
        if not self._waiting or len(self._at_work) >= self._at_once:
            return None
        place = self._waiting.popleft()
        if not self._wait_counts:
            place.until = now + self._timeout_s
        self._at_work.append(place)
        return place

    def done(self, item: _T) -> bool:
        """Note the end of the work on an item; return False if it was given up before."""
        for place in self._at_work:
            if place.item is item:
                self._at_work.remove(place)
                return not place.over
        return False

    def due(self) -> float:
        """When the first item is late; infinity for never."""
        first = _NEVER
        for place in self._at_work:
            if not place.over:
                first = min(first, place.until)
        if self._wait_counts and self._waiting:
            first = min(first, self._waiting[0].until)
        return first

    def take_late(self, now: float) -> Waiter[_T] | None:
        """Remove a late item; return None if there is none.  If it is running, it keeps its place
        until :meth:`done`."""
        for place in self._at_work:
            if not place.over and place.until <= now:
                place.over = True
                return place
        if self._wait_counts and self._waiting and self._waiting[0].until <= now:
            return self._waiting.popleft()
        return None
