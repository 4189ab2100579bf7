"""How long the turns of the event loop take, and which session caused a slow one.

A turn begins when the loop wakes up and ends when it waits again.  The code that runs the loop
reads the clock at both times, and most turns are only counted.  Within a turn, each chunk has its
time: the longest time from one chunk to the next, or to the end, is the work of the session of that
chunk.  So no further reads of the clock and no call for each chunk are needed.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from tmqp_server.engine.model.histograms import SHORT_BOUNDS_US, Histogram

__all__ = ["QUICK_S", "Pulse", "SlowTurn"]

#: A turn that takes no longer is only counted.
QUICK_S: Final = 0.0005
#: Slow turns that are remembered.
_KEPT: Final = 128


@final
class SlowTurn:
    """A turn that took too long: when it ended, and how long it took, in seconds; how long the
    slowest ``session`` in it took, 0 for the server's own work; ``peer`` is the address of that
    session.
    """

    __slots__ = ("at", "peer", "session", "session_s", "took_s")

    def __init__(self, at: float, took_s: float, session: int, session_s: float) -> None:
        self.at = at
        self.took_s = took_s
        self.session = session
        self.session_s = session_s
        self.peer = ""


@final
class Pulse:
    """Measures the turns of one event loop.

    Attributes: ``quick``, the number of quick turns, and ``quick_s``, their seconds; ``turns``, a
    histogram of the others; ``slow``, the last turns that took longer than ``slow_s``, and
    ``slow_count``, the number of all such turns.  The others describe the current turn: ``woke``,
    when it began; ``at``, when the work of the session ``number`` began; ``gap`` and ``who``, the
    longest work so far.
    """

    __slots__ = (
        "at",
        "gap",
        "number",
        "quick",
        "quick_s",
        "slow",
        "slow_count",
        "slow_s",
        "turns",
        "who",
        "woke",
    )

    def __init__(self) -> None:
        self.quick = 0
        self.quick_s = 0.0
        self.turns = Histogram(SHORT_BOUNDS_US)
        self.slow: deque[SlowTurn] = deque(maxlen=_KEPT)
        self.slow_count = 0
        self.slow_s = 0.05
        self.woke = 0.0
        self.at = 0.0
        self.number = 0
        self.gap = 0.0
        self.who = 0

    def wake(self, now: float) -> None:
        """Begin a turn."""
        self.woke = self.at = now
        self.gap = 0.0
        self.number = self.who = 0

    def end(self, now: float) -> SlowTurn | None:
        """Handle the end of a turn that was not quick; return a report if it was slow."""
        took_s = now - self.woke
        self.turns.observe(took_s)
        if took_s <= self.slow_s:
            return None
        last_s = now - self.at
        if last_s > self.gap:
            self.gap = last_s
            self.who = self.number
        self.slow_count += 1
        slow = SlowTurn(now, took_s, self.who, self.gap)
        self.slow.append(slow)
        return slow

    def busy_s(self, now: float) -> float:
        """Return for how many seconds in all the loop was busy until now; below 0 if turns are not
        measured.
        """
        if self.woke <= 0.0:
            return -1.0
        return self.turns.total / 1_000_000 + self.quick_s + max(now - self.woke, 0.0)

    def seconds(self) -> Histogram:
        """The durations of all turns."""
        found = self.turns.copy()
        found.count(0, self.quick)
        found.total += int(self.quick_s * 1_000_000)
        return found
