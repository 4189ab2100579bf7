"""Who is let in: the real counting of connections, and another one that judges it."""

from __future__ import annotations

from typing import Final

from tmqp_server.shell.admitting import Connected
from tmqp_sim.world import Violation, World

__all__ = ["Admission"]

#: Connections in all, and of one host: as many as good clients need, fewer than bad ones try.
_MOST: Final = 50
_MOST_PER_HOST: Final = 2


class Admission:
    """The connections of one server, held back or not."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._hosts: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        """A life begins, with the limits that it was given."""
        self._hosts.clear()
        self._most, self._most_per_host = _MOST, _MOST_PER_HOST
        self._connected = Connected(_MOST, _MOST_PER_HOST)

    def limit_to(self, most: int = _MOST, most_per_host: int = _MOST_PER_HOST) -> None:
        """Let in no more than so many from now on; whoever is there stays."""
        self._most, self._most_per_host = most, most_per_host
        self._connected.limit_to(most, most_per_host)

    def admits(self, host: str, *, has_room: bool) -> bool:
        """Whether a connection is let in.

        :raises Violation: when it should not be, or should.
        """
        count, here = sum(self._hosts.values()), self._hosts.get(host, 0)
        reason = self._connected.admit(host, is_local=False, has_room=has_room)
        may = has_room and count < self._most and here < self._most_per_host
        if may == bool(reason):
            what = f"the connection {here + 1} of {host} and {count + 1} in all"
            text = f"{what} is answered with {reason!r}, room {has_room}"
            raise Violation("admission", f"{text}, limits {self._most} and {self._most_per_host}")
        if reason:
            self._world.mark("connection refused: too many")
            return False
        self._hosts[host] = here + 1
        return True

    def leaves(self, host: str) -> None:
        """A connection that was let in is over."""
        self._hosts[host] -= 1
        self._connected.leave(host)
