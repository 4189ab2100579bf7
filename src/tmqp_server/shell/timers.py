"""The deadlines of all sessions, in one heap.

A session's deadline moves with every byte that it receives, nearly always to a later time.  So an
entry is checked again only when it is due, or when the deadline becomes nearer.
"""

from __future__ import annotations

import heapq
import math
from typing import Final, final

__all__ = ["Timers"]

#: Outdated entries are removed if there are more than the valid ones and this number.
_SPARE: Final = 256


@final
class Timers:
    """The times of sessions, by number."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}

    def due(self, number: int) -> float:
        """When a session is to be examined next; infinity for never."""
        return self._due.get(number, math.inf)

    def earliest(self) -> float:
        """When the first session is to be examined, or an earlier time; infinity for never."""
        return self._heap[0][0] if self._heap else math.inf

    def put(self, due: float, number: int) -> None:
        """Examine a session at this time, instead of any other time."""
        self._due[number] = due
        heapq.heappush(self._heap, (due, number))
        if len(self._heap) > 2 * len(self._due) + _SPARE:
            # Entries of ended sessions would stay until they are due.
            self._heap = [(at, each) for each, at in self._due.items()]
            heapq.heapify(self._heap)

    def forget(self, number: int) -> None:
        """Remove a session's time."""
        self._due.pop(number, None)

    def take_due(self, now: float) -> list[int]:
        """Return the sessions that are due; give each a new time.  A session with a time in the
        past is due again at the next call.
        """
        heap = self._heap
        found: list[int] = []
        while heap and heap[0][0] <= now:
            due, number = heapq.heappop(heap)
            if self._due.get(number) == due:
                del self._due[number]
                found.append(number)
        return found
