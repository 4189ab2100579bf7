"""The deadlines of all sessions, in one heap.

A session's deadline moves with every byte that it receives, nearly always to a later time.  So an
entry is checked again only when it is due, or when the deadline becomes nearer.
"""

from __future__ import annotations

import heapq
import math
from typing import Final, final

__all__ = ["Timers"]

#: Entries of the dead beyond this number, and beyond those of the living, are swept out.
_SPARE: Final = 256


@final
class Timers:
    """The times of sessions, by number."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}

    def due(self, number: int) -> float:
        """When a session is examined next; infinity for never."""
        return self._due.get(number, math.inf)

    def earliest(self) -> float:
        """When the first is, or was before it went away; infinity for never."""
        return self._heap[0][0] if self._heap else math.inf

    def put(self, due: float, number: int) -> None:
        """Look at a session then, and not before."""
        self._due[number] = due
        heapq.heappush(self._heap, (due, number))
        if len(self._heap) > 2 * len(self._due) + _SPARE:
            # Entries of ended sessions would stay until they are due.
            self._heap = [(at, each) for each, at in self._due.items()]
            heapq.heapify(self._heap)

    def forget(self, number: int) -> None:
        """A session needs no time any more."""
        self._due.pop(number, None)

    def take_due(self, now: float) -> list[int]:
        """The sessions whose time has come, each to be given another; one that is given a time in
        the past comes up at the next call."""
        heap = self._heap
        found: list[int] = []
        while heap and heap[0][0] <= now:
            due, number = heapq.heappop(heap)
            if self._due.get(number) == due:
                del self._due[number]
                found.append(number)
        return found
