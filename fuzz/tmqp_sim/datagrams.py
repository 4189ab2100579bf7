"""The server's UDP socket, which the datagrams of many source addresses reach.

The socket decides nothing: it gives what comes to the shell's table of sources and carries out what
the turn wants for their sessions.  What is checked is told from outside: how many have a session,
what is held for them, and that nobody who is quiet keeps one.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.shell.datagrams import DatagramMarks, Datagrams
from tmqp_server.shell.world import INTERNAL_ERROR, Wire
from tmqp_sim.host import Host
from tmqp_sim.world import Violation

__all__ = ["UdpSocket", "marks_of_sources"]

#: Sources that have a session, those of one host, bytes held for one, and the idle time.
_MOST: Final = 8
_MOST_PER_HOST: Final = 4
_HELD_BYTES: Final = 3_000
_IDLE_S: Final = 2.0
#: What rounding and the order of events of one moment may cost, in seconds.
_SLACK_S: Final = 0.001


def marks_of_sources() -> DatagramMarks:
    """What the sources of a simulated server may cost."""
    return DatagramMarks(_MOST, _MOST_PER_HOST, _HELD_BYTES, _IDLE_S)


class _Wire(Wire):
    """Whatever is sent leaves, or is lost on its way."""

    def __init__(self, server: Host, number: int) -> None:
        self._server = server
        self._number = number

    def send(self, data: bytes) -> int:
        """One datagram leaves."""
        world = self._server.world
        world.absorb(f"D{self._number} {world.now!r} ".encode() + data)
        world.mark("datagram sent")
        return len(data)


class UdpSocket:
    """The socket of one life of a server."""

    def __init__(self, server: Host, datagrams: Datagrams, lateness_s: float) -> None:
        self.datagrams = datagrams
        self._server = server
        #: After so much silence a session must be over.
        self._late_s = _IDLE_S + lateness_s + _SLACK_S
        self._names: dict[int, str] = {}
        self._heard_at: dict[int, float] = {}

    def take(self, name: str, number: int, data: bytes) -> None:
        """A datagram has come; its session has this number if it needs a new one."""
        datagrams = self.datagrams
        server = self._server
        host = name.partition(":")[0]
        if not datagrams.number_of(name):
            if not datagrams.admits(host, False, server.now):
                server.world.mark("source refused")
                return
            self._names[number] = name
            server.world.mark("source admitted")
            datagrams.opened(name, host, number, _Wire(server, number), server.now)
        number = datagrams.number_of(name)
        if number:
            self._heard_at[number] = server.now
            datagrams.received(name, data, server.now)

    def has(self, number: int) -> bool:
        """Whether a session is one of a source."""
        return number in self._names

    def resume(self, number: int) -> None:
        """A session is read again."""
        self._server.world.mark("source read again")
        self.datagrams.resumed(number, self._server.now)

    def secure(self, number: int) -> None:
        """A session wants TLS, which there is not."""
        server = self._server
        server.turn.broken(number, "TLS cannot begin here", server.now)

    def close(self, number: int, reason: str) -> None:
        """A session is over.

        :raises Violation: when it ended for a fault.
        """
        if reason == INTERNAL_ERROR:
            raise Violation("fault", f"session {number} of a source ended for a fault")
        if reason.startswith("no datagram"):
            self._server.world.mark("quiet source ended")
        del self._names[number]
        self._heard_at.pop(number, None)
        self.datagrams.closed(number)

    def check(self) -> None:
        """Look at everything, after a turn.

        :raises Violation: when something is unbounded, late or forgotten.
        """
        datagrams = self.datagrams
        server = self._server
        if datagrams.count > _MOST or datagrams.count != len(self._names):
            text = f"{datagrams.count} sources have a session, and {len(self._names)} are open"
            raise Violation("datagrams", text)
        hosts = [name.partition(":")[0] for name in self._names.values()]
        for host in dict.fromkeys(hosts):
            if hosts.count(host) > _MOST_PER_HOST:
                raise Violation("datagrams", f"{hosts.count(host)} sources of {host} are served")
        held = 0
        for number, source in datagrams._by_number.items():
            held += source.held_bytes
            if source.held_bytes > _HELD_BYTES:
                raise Violation("datagrams", f"{source.held_bytes} bytes wait for {number}")
            stopped = server.hub.has_more(number) or server.goes_on
            out = server.turn.outbound(number)
            stopped = stopped or not server.hub.reads(number)
            stopped = stopped or (out is not None and out.throttled)  # by a rate (seed 12636)
            if source.waits and not stopped and not source.over:
                raise Violation("datagrams", f"session {number} is not read, for no reason")
            if source.held and not source.waits:
                raise Violation("datagrams", f"session {number} is read, and datagrams wait")
        if held != datagrams.held_bytes:
            raise Violation("datagrams", f"{held} bytes wait, not {datagrams.held_bytes}")
        for number, heard_at in self._heard_at.items():
            if server.now - heard_at > self._late_s:
                raise Violation("datagrams", f"session {number} is quiet, and not ended")
