"""How much of the event loop's time the requests of operators take.

Theory of operation.  While the loop is idle, these requests delay nobody, whatever they take.  So
their allowance grows by the time for which the loop was idle, and in addition by their share of all
time, which is all that they get of a loop that is never idle.  A step may overdraw the allowance;
then nothing begins or continues until the debt is paid.

A session's work is what it does itself, and the broker's work on its commands: from sending them to
the effects that answer them at the same moment.  The little that the broker does for others in
between is counted as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

__all__ = ["LoopShare"]

#: Seconds of work that may be saved up.
_BURST_S: Final = 0.1
#: The shortest time over which the loop's idle time is measured, in seconds.
_LOOK_S: Final = 0.005
#: The shortest pause, and a debt that is ignored; seconds.
_SHORTEST_S: Final = 0.002
_SMALL_S: Final = 1e-6
_ALL: Final = 100


@final
class LoopShare:
    """The allowance of one door.

    :param percent: the share of the loop's time; 100 for no limit.
    :param clock: a clock in seconds, with any starting point.
    :param busy: returns for how many seconds in all the loop was busy until a time; below 0 if that
        is not measured.

    Attributes: ``spent_s``, the seconds taken so far; ``pauses``, how often a request had to wait.
    """

    def __init__(
        self, percent: int, clock: Callable[[], float], busy: Callable[[float], float]
    ) -> None:
        self._unbounded = percent >= _ALL
        self._share = percent / _ALL
        self._clock = clock
        self._busy = busy
        self.spent_s = 0.0
        self.pauses = 0
        self._level = _BURST_S
        #: By how much the allowance grows a second.
        self._rate = self._share
        self._at = 0.0
        self._was_busy_s = -1.0
        self._began = 0.0
        #: When the last step ended, by the clock, and when it asked the broker, in engine time.
        self._ended = 0.0
        self._asked_at = -1.0

    # -- what is taken --------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Begin a step of a session."""
        self._began = self._ended if now == self._asked_at else self._clock()

    def end(self, now: float, *, asks: bool) -> None:
        """End the step; ``asks`` says that the session now waits for an answer of the broker."""
        self._ended = self._clock()
        took_s = self._ended - self._began
        self.spent_s += took_s
        self._level -= took_s
        self._asked_at = now if asks else -1.0

    # -- what is allowed ------------------------------------------------------------------------

    def resumes(self, now: float) -> float:
        """When a request may begin or continue; not later than *now* if it may at once."""
        self._grow(now)
        if self._level > -_SMALL_S or self._unbounded:
            return 0.0
        self.pauses += 1
        return now + max(-self._level / self._rate, _SHORTEST_S)

    def _grow(self, now: float) -> None:
        passed_s = now - self._at
        if passed_s < _LOOK_S:
            return
        busy_s = self._busy(now)
        idle_s = 0.0
        if busy_s >= 0.0 and self._was_busy_s >= 0.0:
            idle_s = min(max(passed_s - (busy_s - self._was_busy_s), 0.0), passed_s)
        self._rate = self._share + idle_s / passed_s
        self._level = min(self._level + passed_s * self._rate, _BURST_S)
        self._at = now
        self._was_busy_s = busy_s
