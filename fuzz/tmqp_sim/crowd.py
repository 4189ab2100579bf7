"""A crowd: more connections than the server takes, which say nothing and leave at once.

They come in waves, several of each host.  Each is one more than the server has to forget: its time,
its place among the connections of its host and of all.
"""

from __future__ import annotations

from typing import Final

from tmqp_sim.network import Link
from tmqp_sim.stage import Stage

__all__ = ["Crowd"]

#: How many waves come, how often, of how many connections; and how many are of one host.
_WAVES: Final = 12
_EVERY_S: Final = 0.15
_AT_ONCE: Final = 45
_OF_A_HOST: Final = 3


class Crowd:
    """It comes once, and retires."""

    def __init__(self, simulation: Stage, name: str) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.retired = False
        self._waves = 0
        self._random = self.world.child(name)

    def connect(self) -> None:
        """A wave comes, and after it the next one."""
        if self.retired or self._waves == _WAVES:
            return
        self._waves += 1
        self.world.mark("raw client: crowd")
        for number in range(_AT_ONCE):
            link = self.simulation.network.open()
            link.host = f"{self.name} {self._waves} {number // _OF_A_HOST}"
            self.world.after(0.0, self.simulation.server.accept, link)
            self.world.after(0.02 + self._random.random() * 0.1, self._leave, link)
        self.world.after(_EVERY_S, self.connect)

    def _leave(self, link: Link) -> None:
        if self._random.random() < 0.5:
            link.client.closed = True
            link.cut(0.0, 0.0, "the crowd is gone")
        else:
            link.client.close()

    def retire(self) -> None:
        """No more of them come."""
        self.retired = True
