"""The drain of a server before it stops: it accepts no new work, and waits for acknowledgements.

*Draining.* The server refuses new clients, answers pushes with 503 and delivers nothing more; it
accepts acknowledgements until nothing is unacknowledged, or for ``bound_s`` seconds.  Then it is
*drained*: clients are disconnected, and unacknowledged messages wait in their queues for the next
start, without counting a put-back.
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

#: States: it serves; it waits for acknowledgements; clients have been disconnected.
SERVING: Final = 0
DRAINING: Final = 1
DRAINED: Final = 2

#: How often the messages in flight are counted, and how often they are logged; seconds.
_LOOK_S: Final = 0.05
_LINE_S: Final = 5.0


@final
class Draining:
    """The drain of one server.

    :param world: gets effects, and lines for the log.

    Attributes: ``state``; ``stops``, whether the process ends afterwards; ``in_flight``, the last
    count of unacknowledged messages; ``bound_s``, the longest wait.
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
        """Begin, unless it has already begun; return True if it begins.

        :param stops: end the process afterwards; this cannot be withdrawn.
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
        """Count the messages in flight, when that is due; return True once, when clients must be
        disconnected."""
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
        """Note that clients have been disconnected."""
        self._world.append(DrainEnded(self.stops))

    def _say(self, level: int, text: str) -> None:
        self._world.append(Log(level, text, topic="drain"))
