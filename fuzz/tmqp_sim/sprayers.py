"""Those who send datagrams from many source addresses: nonsense, for the most part."""

from __future__ import annotations

from typing import Final

from tmqp.testing.generate import Seeded, client_bytes, damage
from tmqp_sim.stage import Stage

__all__ = ["SPRAYER", "Sprayer"]

#: The role of those who come by datagrams.
SPRAYER: Final = "sprayer"
#: How many waves come, how often, and of how many hosts and sources they are.
_WAVES: Final = 25
_EVERY_S: Final = 0.4
_HOSTS: Final = 6
_PORTS: Final = 6


class Sprayer:
    """Sends datagrams from many addresses: nonsense, in and out of order, and some of it twice."""

    def __init__(self, simulation: Stage, name: str) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.retired = False
        self._random = self.world.child(name)
        self._draw = Seeded(self._random.getrandbits(32))
        self._waves = 0

    def connect(self) -> None:
        """A wave comes, and after it the next one."""
        if self.retired or self._waves == _WAVES:
            return
        self._waves += 1
        random = self._random
        self.world.mark("datagrams sprayed")
        for _ in range(random.randrange(1, 6)):
            source = f"host{random.randrange(_HOSTS)}:{random.randrange(_PORTS)}"
            data = client_bytes(self._draw, 6)
            if random.random() < 0.3:
                data = damage(self._draw, data)
            size = random.choice((40, 400, 4_000))
            parts = [data[at : at + size] for at in range(0, len(data), size)]
            if random.random() < 0.2:
                parts = [b"", *parts[::-1], *parts]
            for part in parts[:16]:
                delay_s = random.choice((0.0, 0.0, 0.02, random.random()))
                self.world.after(delay_s, self._arrive, source, part)
        self.world.after(_EVERY_S, self.connect)

    def _arrive(self, source: str, data: bytes) -> None:
        server = self.simulation.server
        if server.up and server.udp is not None:
            number = self.simulation.network.draw_number()
            udp = server.udp
            server.hear_in(server.lives, lambda: udp.take(source, number, data))

    def retire(self) -> None:
        """No more of them come."""
        self.retired = True
