"""A UDP socket in the event loop: carries datagrams between its sources and the turn.

It decides nothing: :class:`~tmqp_server.shell.datagrams.Datagrams` says which sources have a
session.  A datagram that the kernel does not accept at once is lost, as can happen to any datagram.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel

from tmqp.address import Address
from tmqp_server.io.listener import ListenError
from tmqp_server.io.transport import Bytes, Transport
from tmqp_server.shell.datagrams import Datagrams
from tmqp_server.shell.turn import Turn

__all__ = ["DatagramCarrier", "DatagramListener", "Source", "open_datagrams"]

logger = logging.getLogger("tmqp_server.datagrams")

#: More than the longest datagram.
_READ_BYTES: Final = 65_536
#: Datagrams that are read in a row before others get their turn.
_BURST: Final = 64
#: The requested size of the kernel's buffer, for bursts of datagrams.
_BUFFER_BYTES: Final = 4_194_304


class DatagramCarrier(Protocol):
    """Runs the turn in the event loop."""

    turn: Turn
    #: The time, as the event loop tells it.
    now: Callable[[], float]

    def joined(self, source: Source) -> None:
        """Begin the session of a source."""

    def gone(self, connection: Source) -> None:
        """Handle the end of a source's session."""

    def attend(self) -> None:
        """Carry out the effects of the turn."""


class _DatagramTransport(Transport):
    """One source of a socket: each send is one datagram."""

    def __init__(self, listener: DatagramListener, place: Any, peer: str) -> None:
        self._listener = listener
        self._place = place
        self.peer = peer
        self.secure = False
        self.waited = True

    def send(self, data: Bytes) -> int:
        """Send a datagram, or lose it: nothing ever waits."""
        self._listener.send(data, self._place)
        return len(data)


class Source:
    """A source that has a session; the counterpart of a connection.

    Attributes: ``number``, that of its session; ``transport``; ``host``; ``reason``, why it was
    closed.
    """

    def __init__(self, number: int, transport: Transport, host: str, on: DatagramListener) -> None:
        self.number = number
        self.transport = transport
        self.host = host
        self.reason = ""
        self._listener = on

    def close(self, reason: str) -> None:
        """End the session immediately."""
        self.reason = reason
        self._listener.end(self)

    def resume(self) -> None:
        """Continue reading the session's datagrams."""
        self._listener.resume(self.number)

    async def write(self, scope: anyio.CancelScope) -> None:
        """Do nothing: everything has been sent."""

    def upgrade(self) -> None:
        """End the session: there is no TLS over UDP."""
        self._listener.refuse_tls(self.number)


class DatagramListener:
    """One bound socket.

    :param address: the address to which it is bound.
    """

    def __init__(self, sock: socket.socket, address: Address) -> None:
        self._socket = sock
        self._scope = anyio.CancelScope()
        self._datagrams: Datagrams
        self._shell: DatagramCarrier
        self.address = address

    async def serve(
        self,
        shell: DatagramCarrier,
        datagrams: Datagrams,
        new_number: Callable[[], int],
        allows: Callable[[str], bool],
        acts_as: str,
    ) -> None:
        """Read until closed.

        :param new_number: returns the number of a new session.
        :param allows: whether a host may have a session.
        :param acts_as: see ``Transport.acts_as``.
        """
        self._shell = shell
        self._datagrams = datagrams
        with self._scope:
            while True:
                await anyio.wait_readable(self._socket)
                for _ in range(_BURST):
                    try:
                        data, place = self._socket.recvfrom(_READ_BYTES)
                    except (BlockingIOError, InterruptedError):
                        break
                    except OSError as error:
                        # An error that an earlier datagram met on its way, such as a closed port.
                        logger.debug("%s: %s", self.address, error.strerror)
                        continue
                    self._take(data, place, new_number, allows, acts_as)
                shell.attend()
                await anyio.lowlevel.checkpoint()

    def _take(
        self,
        data: bytes,
        place: Any,
        new_number: Callable[[], int],
        allows: Callable[[str], bool],
        acts_as: str,
    ) -> None:
        datagrams = self._datagrams
        host = place[0]
        name = f"{host}:{place[1]}"
        now = self._shell.now()
        if not datagrams.number_of(name):
            if not allows(host):
                datagrams.refuse("the door does not allow its address", now)
                return
            if not datagrams.admits(host, Address(host).is_local, now):
                return
            transport = _DatagramTransport(self, place, f"{name} (udp)")
            transport.acts_as = acts_as
            source = Source(new_number(), transport, host, self)
            self._shell.joined(source)
            datagrams.opened(name, host, source.number, transport, now)
            self._shell.attend()
            if not datagrams.number_of(name):
                return  # it was refused at once: the server stops
        datagrams.received(name, data, now)
        self._shell.attend()

    def send(self, data: Bytes, place: Any) -> None:
        """Send one datagram, or lose it."""
        try:
            self._socket.sendto(data, place)
        except OSError:
            self._datagrams.drop(self._shell.now())

    def resume(self, number: int) -> None:
        """Continue reading a session's datagrams."""
        self._datagrams.resumed(number, self._shell.now())

    def refuse_tls(self, number: int) -> None:
        """Refuse TLS, which does not exist for datagrams."""
        self._shell.turn.broken(number, "TLS cannot begin here", self._shell.now())

    def end(self, source: Source) -> None:
        """End a session."""
        self._datagrams.closed(source.number)
        self._shell.gone(source)

    def close(self) -> None:
        """Stop reading; sessions can still say goodbye."""
        self._scope.cancel()

    def shut(self) -> None:
        """Close the socket."""
        self._scope.cancel()
        self._socket.close()


async def open_datagrams(address: Address) -> DatagramListener:
    """Bind an address; for port 0, a free port, which is then in the listener's address.

    :raises ListenError: when it cannot be bound.
    """
    try:
        infos = await anyio.getaddrinfo(
            address.host, address.port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _name, place = infos[0]
        sock = socket.socket(family, kind, protocol)
        try:
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            sock.setblocking(False)
            sock.bind(place)
        except BaseException:
            sock.close()
            raise
        return DatagramListener(sock, Address(address.host, sock.getsockname()[1]))
    except OSError as error:
        text = f"cannot listen on udp://{address.host}:{address.port}: {error.strerror or error}"
        raise ListenError(text) from error
