"""``Exemplars``: examples of messages that have waited, with their traces.

A histogram tells how many messages waited how long; an exemplar leads from one of its buckets to
the trace of such a message.  Each bucket has one, which is replaced after a minute: so few messages
are examined, whatever their number.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.model.message import Message, Wires

__all__ = ["Exemplar", "Exemplars"]

#: Seconds for which a bucket keeps its exemplar at least.
_KEPT_S: Final = 60.0


class Exemplar:
    """A message: the id of its ``trace``, 32 hexadecimal digits, how many ``seconds`` it waited,
    and the end of the wait, ``at``, in the engine's time."""

    __slots__ = ("at", "seconds", "trace")

    def __init__(self, trace: str, seconds: float, at: float) -> None:
        self.trace = trace
        self.seconds = seconds
        self.at = at


class Exemplars:
    """The exemplars of one histogram; ``last`` has the exemplar of each bucket, or None.

    :param buckets: the number of buckets.
    :param wires: reads the trace of a message.
    """

    __slots__ = ("_looked", "_wires", "last")

    def __init__(self, buckets: int, wires: Wires) -> None:
        self.last: list[Exemplar | None] = [None] * buckets
        self._looked: list[float] = [-_KEPT_S] * buckets
        self._wires = wires

    def note(self, bucket: int, message: Message, seconds: float, now: float) -> None:
        """Note that a message of this bucket was seen; it becomes the exemplar if the present one
        is old."""
        if now - self._looked[bucket] < _KEPT_S:
            return
        self._looked[bucket] = now
        trace = self._wires.trace_of(message)
        if trace:
            self.last[bucket] = Exemplar(trace, seconds, now)
