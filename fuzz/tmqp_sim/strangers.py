"""The strangers: peers that say anything, at any moment, and go as they came."""

from __future__ import annotations

from tmqp.testing.generate import Seeded, client_bytes, damage
from tmqp_sim.network import Broken, End
from tmqp_sim.stage import Stage

__all__ = ["Stranger"]


class Stranger:
    """Connects, says what a generator of traffic makes, damaged or not, reads or not, and goes."""

    def __init__(self, simulation: Stage, name: str) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.random = self.world.child(name)
        self.draw = Seeded(self.random.getrandbits(32))
        self.end: End | None = None
        self.retired = False
        self._left = b""
        self._reads = True

    def connect(self) -> None:
        """Open a connection and begin to talk."""
        if self.retired or self.end is not None:
            return
        link = self.simulation.network.open()
        self.end = link.client
        link.client.owner = self
        data = client_bytes(self.draw, 12)
        if self.random.random() < 0.5:
            data = damage(self.draw, data)
        self._left = data
        self._reads = self.random.random() < 0.7
        self.world.mark("stranger connected")
        self.world.after(0.0, self.simulation.server.accept, link)
        self.world.after(0.01, self._say, link.number)
        self.world.after(0.2 + self.random.random() * 4.0, self._go, link.number)

    def _say(self, number: int) -> None:
        end = self.end
        if end is None or end.link.number != number or not self._left:
            return
        size = self.random.randrange(1, 200)
        piece, self._left = self._left[:size], self._left[size:]
        try:
            sent = end.send(piece)
        except Broken:
            return
        self._left = piece[sent:] + self._left
        self.world.after(self.random.random() * 0.1, self._say, number)

    def _go(self, number: int) -> None:
        end = self.end
        if end is None or end.link.number != number:
            return
        self.end = None
        if self.random.random() < 0.3:
            end.link.dead = True  # it is never heard of again
        elif self.random.random() < 0.5:
            end.closed = True
            end.link.cut(0.0, 0.05, "the stranger is gone")
        else:
            end.close()
        self.world.after(self.random.random() * 3.0, self.connect)

    def retire(self) -> None:
        """Come back no more."""
        self.retired = True
        if self.end is not None:
            self._go(self.end.link.number)

    def readable(self) -> None:
        """Read and forget, or do not read at all."""
        while self._reads and self.end is not None:
            data = self.end.read()
            if data is None:
                return
            if not data:
                self._go(self.end.link.number)

    def writable(self) -> None:
        """There is room: what is left is said by and by."""
        if self.end is not None:
            self.world.after(0.0, self._say, self.end.link.number)

    def broken(self, reason: str) -> None:
        """The server had enough."""
        self.world.mark("stranger cut off")
        self.end = None
        self.world.after(self.random.random() * 3.0, self.connect)
