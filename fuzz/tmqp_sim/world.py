"""Time and chance: one heap of events, one seed, and the record of what happened.

Theory of operation.  Time passes only from one event to the next, so a minute costs what happens in
it.  Events of the same time happen in the order in which they were asked for.  Each subsystem draws
from a generator of its own (:meth:`World.child`), made from the seed and the subsystem's name: one
more draw in the network leaves the clients' plans as they were.

Everything that matters is fed to a running digest, so that two runs can be compared by one number,
and noted in a short memory, from which a failure tells what came last.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from random import Random
from typing import Any, Final

__all__ = ["Runaway", "Violation", "World"]

#: Events after which a run is not going anywhere.
MAX_EVENTS: Final = 400_000
#: What a failure shows of the end of the history.
REMEMBERED: Final = 60


class Violation(Exception):  # noqa: N818 - it is what the checkers are for, not a fault of theirs
    """A promise was broken: ``checker`` says which kind, the text what happened."""

    def __init__(self, checker: str, text: str) -> None:
        super().__init__(f"{checker}: {text}")
        self.checker = checker
        self.text = text


class Runaway(Violation):
    """The history does not end."""


class World:
    """Virtual time and chance.

    :param seed: all chance comes from it.

    Attributes: ``now`` in seconds; ``events``, how many there were; ``marks``, how often each rare
    branch was reached; ``memory``, the last notes.
    """

    def __init__(self, seed: int, remembered: int = REMEMBERED) -> None:
        self.seed = seed
        self.now = 0.0
        self.events = 0
        self.marks: dict[str, int] = {}
        self.memory: deque[tuple[float, str, tuple[object, ...]]] = deque(maxlen=remembered)
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0
        self._digest = blake2b(digest_size=16)

    # -- chance ---------------------------------------------------------------------------------

    def child(self, name: str) -> Random:
        """A generator for one subsystem; the same for the same seed and name."""
        return Random(f"{self.seed}/{name}")

    # -- time -----------------------------------------------------------------------------------

    def at(self, when: float, call: Callable[..., None], *args: Any) -> None:
        """Have something happen at a time, now at the earliest."""
        self._order += 1
        heapq.heappush(self._heap, (max(when, self.now), self._order, call, args))

    def after(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        """Have something happen after so many seconds."""
        self._order += 1
        heapq.heappush(self._heap, (self.now + delay, self._order, call, args))

    def run(self, until: float, done: Callable[[], bool] | None = None) -> bool:
        """Let time pass up to ``until``, or to the first moment that is ``done``.

        :returns: whether it was done.
        :raises Runaway: when there is no end of events.
        """
        heap = self._heap
        pop = heapq.heappop
        while heap and heap[0][0] <= until:
            when, _, call, args = pop(heap)
            if when > self.now:
                # Everything of the moment before has happened.
                if done is not None and done():
                    heapq.heappush(heap, (when, 0, call, args))
                    return True
                self.now = when
            self.events += 1
            if self.events > MAX_EVENTS:
                raise Runaway("runaway", f"more than {MAX_EVENTS} events by {self.now:.3f} s")
            call(*args)
        self.now = max(self.now, until)
        return done is not None and done()

    # -- the record -----------------------------------------------------------------------------

    def mark(self, name: str) -> None:
        """A rare branch was reached."""
        self.marks[name] = self.marks.get(name, 0) + 1

    def note(self, kind: str, *parts: object) -> None:
        """Remember what happened, for people; costs little, as nothing is written out yet."""
        self.memory.append((self.now, kind, parts))

    def absorb(self, data: bytes) -> None:
        """Let something count for the digest."""
        self._digest.update(data)

    def digest(self) -> str:
        """What happened up to now, in one word."""
        copy = self._digest.copy()
        copy.update(f"{self.now!r} {self.events}".encode())
        return copy.hexdigest()

    def recent(self) -> list[str]:
        """The last notes, as lines."""
        return [
            f"{when:10.4f}  {kind:<12} {' '.join(str(part) for part in parts)}"
            for when, kind, parts in self.memory
        ]
