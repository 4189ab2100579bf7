"""What clients of Simple MQ and goMS have in common: they speak lines, and their protocols have no
heartbeat, so it is the kernels that notice a connection in which nothing arrives any more."""

from __future__ import annotations

from typing import Final

from tmqp_sim.speakers import KEEPALIVE_S, Speaker
from tmqp_sim.stage import Stage

__all__ = ["LineClient"]

_LOOK_EVERY_S: Final = 0.2


class LineClient(Speaker):
    """One client.

    :param restless: how likely it is in a second that it ends its connection.
    :param room: what a connection has room for, in bytes.
    :param pace_s: how long it waits before it reads on, at most.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        host: str,
        protocol: str,
        restless: float,
        room: int,
        pace_s: float = 0.0,
    ) -> None:
        super().__init__(simulation, name, host, protocol)
        self._restless = restless
        self._room = room
        self.pace_s = pace_s
        #: It closes its connection as soon as all is sent.
        self.lingers = False

    # -- what subclasses do ---------------------------------------------------------------------

    def work(self) -> None:
        """Time has passed."""

    def closes(self) -> None:
        """All is sent, and the connection is about to be closed."""

    # -- its life -------------------------------------------------------------------------------

    def begins(self) -> None:
        """A new connection."""
        self.link.narrow(self._room)
        self.lingers = False
        self.world.mark(f"{self._protocol} client connected")

    def greets(self) -> None:
        """Look at the connection from time to time."""
        self.later(_LOOK_EVERY_S * (0.5 + self.random.random()), self._look)

    def _look(self) -> None:
        self.later(_LOOK_EVERY_S * (0.5 + self.random.random()), self._look)
        if self.link.dead:
            if self.world.now - self.heard_at > KEEPALIVE_S:
                self.world.mark(f"{self._protocol} client's kernel gave the server up")
                self._crash(silently=True)
        elif self.lingers:
            if not self.unsent:
                self.closes()
                self.close()
        elif not self.simulation.healed and self.random.random() < self._restless * _LOOK_EVERY_S:
            self.go()
        else:
            self.work()

    def go(self) -> None:
        """End the connection: send what there is and close it, or be gone, with a word to the
        server or without, maybe in the middle of a line."""
        if self.random.random() < 0.4:
            self.lingers = True
            return
        if self.unsent:
            self.world.mark(f"{self._protocol} client left in the middle of a line")
        self._crash(silently=self.random.random() < 0.4)

    def _crash(self, *, silently: bool) -> None:
        if silently:
            self.forget(self.link)
        self.leave(silently=silently)
