"""Which peers that read slowly are worth a line in the log.

Deliveries to a fast consumer are held back for a moment all the time.  One whose deliveries have
been held back for a second is slow: a line says so, and another when it is over.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.shell.outbound import Outbound
from tmqp_server.shell.refusals import Refusals
from tmqp_server.shell.world import INFO, WARNING, Log, WorldEffect

__all__ = ["SLOW_S", "SlowConsumers"]

#: Seconds of holding back after which a peer is slow.
SLOW_S: Final = 1.0


@final
class SlowConsumers:
    """The slow peers of one server.

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
        """The sessions whose deliveries are held back for long enough to be slow, and since when;
        those that were not looked at yet are not among them."""
        return {number: since for number, (since, told) in self._since.items() if told}

    def blocked(self, number: int, now: float) -> None:
        """Deliveries to a session are held back from now on."""
        self._since[number] = (now, False)

    def look(self, out: Outbound, now: float) -> None:
        """Check a session that is behind; called once a second."""
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
        """A session reads again, or has ended."""
        since = self._since.pop(number, None)
        if since is not None and since[1]:
            text = f"its deliveries were held back for {now - since[0]:.1f} s"
            self._say(INFO, text, number)

    def _say(self, level: int, text: str, number: int) -> None:
        self._world.append(Log(level, text, number, topic="slow"))
