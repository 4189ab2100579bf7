"""What clients of protocols without a client machine have in common: a connection at the end of a
simulated link, which they lose, end now and then, and open again.

A subclass says what it does when it comes, with the bytes that it reads, and when its connection is
over.  What is to be sent goes out as far as there is room; the rest follows when there is more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp_sim.network import End, Link
from tmqp_sim.stage import Stage

__all__ = ["KEEPALIVE_S", "Speaker"]

#: When kernels give up a connection in which nothing arrives, in seconds.
KEEPALIVE_S: Final = 6.0
#: What the network takes at the most until the server is notified of a connection, in seconds.
_ACCEPT_S: Final = 0.02
#: What a client waits at the least before it comes back, and what it may wait beyond that.
_LEAST_PAUSE_S: Final = 0.05
_PAUSE_S: Final = 0.6
#: How late the server learns of a client that is gone.
_NOTICE_S: Final = 0.3


class Speaker:
    """One client; it comes back whenever its connection is over.

    :param host: how the hosts of those begin who speak its protocol (``host.py``).
    :param protocol: its name, for the reason of a broken connection.
    """

    def __init__(self, simulation: Stage, name: str, host: str, protocol: str) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.random = self.world.child(name)
        self.end: End | None = None
        #: Counts connections, so that what belongs to an earlier one is known.
        self.connection = 0
        #: When the server was last heard.
        self.heard_at = 0.0
        self.unsent = b""
        #: How long it waits before it reads on, at most, until the world is healed.
        self.pace_s = 0.0
        self._rests = False
        self._host = host
        self._protocol = protocol

    # -- what subclasses do ---------------------------------------------------------------------

    def begins(self) -> None:
        """A connection is opened: make a new machine, before the server is notified of it."""

    def greets(self) -> None:
        """The server is about to be notified of it: say the first words."""

    def more(self) -> bytes:
        """What is to be sent next, when all else was taken."""
        return b""

    def hears(self, data: bytes) -> None:
        """Bytes have come."""

    def lost(self) -> None:
        """The connection is over."""

    # -- its life -------------------------------------------------------------------------------

    @property
    def link(self) -> Link:
        """The link it is connected by."""
        assert self.end is not None
        return self.end.link

    def connect(self) -> None:
        """Open a connection, if there is none."""
        if self.end is not None:
            return
        link = self.simulation.network.open()
        self.hold(link)
        self.world.after(self.random.random() * _ACCEPT_S, self.simulation.server.accept, link)
        self.greets()
        self.flush()

    def hold(self, link: Link) -> None:
        """Have a new connection, whoever has opened it."""
        link.host = f"{self._host}{self.name} {link.number}"
        link.client.owner = self
        self.end = link.client
        self.connection += 1
        self.unsent = b""
        self._rests = False
        self.heard_at = self.world.now
        self.begins()

    def reconnect_soon(self) -> None:
        """Come back after a while."""
        self.world.after(_LEAST_PAUSE_S + self.random.random() * _PAUSE_S, self.connect)

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        """Do something on this connection after a while, if it still stands then."""
        self.world.after(delay_s, self._if_same, self.connection, call)

    def _if_same(self, connection: int, call: Callable[[], None]) -> None:
        if self.connection == connection and self.end is not None:
            call()

    def leave(self, *, silently: bool) -> None:
        """The client is gone; the server is told, or not."""
        if self.end is None:
            return
        link = self.link
        self.end.closed = True
        if silently:
            link.dead = True
        else:
            late_s = self.random.random() * _NOTICE_S
            link.cut(0.0, late_s, f"the client of {self._protocol} is gone")
        self.over()

    def close(self) -> None:
        """End the connection from this side, as far as everything was sent."""
        if self.end is not None:
            self.end.close()
            if self.link.dead:
                self.forget(self.link)  # that it has closed does not arrive either (seed 22924)
            self.over()

    def forget(self, link: Link) -> None:
        """The server's kernel gives a connection up, for nothing arrives in it."""
        self.world.after(KEEPALIVE_S, link.reset, link.server, "connection timed out")

    def over(self) -> None:
        """There is no connection any more."""
        self.end = None
        self.lost()
        self.reconnect_soon()

    # -- as the owner of its end ----------------------------------------------------------------

    def flush(self) -> None:
        """Send what is queued as far as there is room."""
        while self.end is not None:
            self.unsent = self.unsent or self.more()
            if not self.unsent:
                return
            self.unsent = self.end.send_all(self.unsent)
            if self.unsent:
                return

    def writable(self) -> None:
        """There is room."""
        self.flush()

    def broken(self, reason: str) -> None:
        """The connection broke."""
        if self.end is not None:
            self.over()

    def readable(self) -> None:
        """Read, now or after a while."""
        if not self.pace_s or self.simulation.healed:
            self._read()
        elif not self._rests:
            self._rests = True
            self.later(self.pace_s * self.random.random(), self._read_on)

    def _read_on(self) -> None:
        self._rests = False
        self._read()

    def _read(self) -> None:
        """Read all that is there."""
        while self.end is not None:
            data = self.end.read()
            if data is None:
                return
            if not data:
                self.close()
                return
            self.heard_at = self.world.now
            self.hears(data)
