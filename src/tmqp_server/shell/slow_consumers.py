"""Decides which slow consumers are logged.

Even deliveries to a fast consumer are often held back for a moment.  A consumer is slow when its
deliveries have been held back for a second; then one line is logged, and another one when it reads
again.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.shell.outbound import Outbound
from tmqp_server.shell.refusals import Refusals
from tmqp_server.shell.world import INFO, WARNING, Log, WorldEffect

__all__ = ["SLOW_S", "SlowConsumers"]

#: A peer is slow after its deliveries were held back for this many seconds.
SLOW_S: Final = 1.0


@final
class SlowConsumers:
    """The slow consumers of one server.

    :param world: gets the lines.

    Attributes: ``count``, how many there have been; ``lines`` about them.
    """

    def __init__(self, world: list[WorldEffect]) -> None:
        self.count = 0
        self._world = world
        self.lines = Refusals()
        #: Since when deliveries are held back, and whether a line has said so.
        self._since: dict[int, tuple[float, bool]] = {}

    def since(self) -> dict[int, float]:
        """The slow sessions, and since when their deliveries are held back; without those that were
        not checked yet.
        """
        return {number: since for number, (since, told) in self._since.items() if told}

    def blocked(self, number: int, now: float) -> None:
        """Note that deliveries to a session are held back from now on."""
        self._since[number] = (now, False)

    def look(self, out: Outbound, now: float) -> None:
        """Check a session whose peer is behind; called once a second."""
        since = self._since.get(out.number)
        if since is None or since[1] or now - since[0] < SLOW_S:
            return
        self.count += 1
        suppressed = self.lines.note(out.host, now)
        self._since[out.number] = (since[0], True)
        if suppressed >= 0:
            text = f"reads slowly: {out.bytes} bytes wait, its deliveries are held back"
            if suppressed:
                text += f" ({suppressed} more from this address were not logged)"
            self._say(WARNING, text, out.number)

    def freed(self, number: int, now: float) -> None:
        """Note that a session's peer reads again, or that the session has ended."""
        since = self._since.pop(number, None)
        if since is not None and since[1]:
            text = f"its deliveries were held back for {now - since[0]:.1f} s"
            self._say(INFO, text, number)

    def _say(self, level: int, text: str, number: int) -> None:
        self._world.append(Log(level, text, number, topic="slow"))
