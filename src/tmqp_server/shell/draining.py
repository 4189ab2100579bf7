"""The end of a server that is asked to go: it takes no more, and waits for what is in hand.

*Draining.*  Clients that come are refused, pushes are answered with 503, nothing more is delivered;
acknowledges are taken until nothing is unacknowledged, or for ``bound_s`` seconds.  Then it is
*drained*: clients hear the end, and what is unacknowledged waits in its queue for the next start,
without a further put-back counted.
"""

from __future__ import annotations

import math
from typing import Final, final

from tmqp_server.shell.world import (
    INFO,
    WARNING,
    DrainEnded,
    Log,
    StopListening,
    WorldEffect,
)

__all__ = ["DRAINED", "DRAINING", "SERVING", "Draining"]

#: States: it serves; it waits for what is in hand; clients have been told to go.
SERVING: Final = 0
DRAINING: Final = 1
DRAINED: Final = 2

#: How often it is looked at what is in hand, and how often a line says so; seconds.
_LOOK_S: Final = 0.05
_LINE_S: Final = 5.0


@final
class Draining:
    """One server's way out.

    :param world: gets what is to be done, and lines for the log.

    Attributes: ``state``; ``stops``, whether the process is to end; ``in_flight``, what was
    unacknowledged when it was last looked at; ``bound_s``, how long it waits at most.
    """

    def __init__(self, world: list[WorldEffect]) -> None:
        self.state: int = SERVING
        self.stops = False
        self.in_flight = 0
        self.bound_s = 30.0
        self._world = world
        self._began = 0.0
        self._until = math.inf
        self._next_line = math.inf
        self._due = math.inf

    def begin(self, in_flight: int, stops: bool, now: float) -> bool:
        """Begin, or hear once more that it is wanted; True if it begins.

        :param stops: the process is to end when it has drained; once said, that stays.
        """
        if stops and not self.stops:
            self.stops = True
            if self.state == DRAINED:
                self._world.append(DrainEnded(True))
        if self.state != SERVING:
            return False
        self.state = DRAINING
        self.in_flight = in_flight
        self._began = now
        self._until = now + self.bound_s
        self._next_line = now + _LINE_S
        self._due = now
        self._world.append(StopListening())
        text = f"draining: {in_flight} deliveries are unacknowledged; {self.bound_s:g} s at most"
        self._say(INFO, text)
        return True

    def due(self) -> float:
        """When :meth:`look` is to be called; infinity for never."""
        return self._due

    def look(self, in_flight: int, now: float) -> bool:
        """See how much is in hand, when that is due; True when it is time for clients to hear the
        end, once."""
        self.in_flight = in_flight
        if in_flight and now < self._until:
            self._due = min(now + _LOOK_S, self._until)
            if now >= self._next_line:
                self._next_line = now + _LINE_S
                left_s = self._until - now
                self._say(INFO, f"draining: {in_flight} unacknowledged, {left_s:.0f} s left")
            return False
        self.state = DRAINED
        self._due = math.inf
        took_s = now - self._began
        if in_flight:
            text = f"drained: after {took_s:.1f} s {in_flight} deliveries were unacknowledged"
            self._say(WARNING, f"{text}; their messages go back")
        else:
            self._say(INFO, f"drained: after {took_s:.1f} s nothing is unacknowledged")
        return True

    def ended(self) -> None:
        """Clients have been told."""
        self._world.append(DrainEnded(self.stops))

    def _say(self, level: int, text: str) -> None:
        self._world.append(Log(level, text, topic="drain"))
