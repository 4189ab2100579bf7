"""The connections to a server under test: plain sockets with a bounded wait."""

from __future__ import annotations

import socket
import ssl

from tmqp.address import Address
from tmqp_conformance.sockets import connect_socket

__all__ = ["SocketLink", "connect"]

_READ_BYTES = 65_536


class SocketLink:
    """A connection over a socket; :class:`tmqp.testing.replay.Link`.

    :param patience_s: how long to wait for bytes before saying that nothing comes.
    """

    def __init__(self, sock: socket.socket, patience_s: float) -> None:
        sock.settimeout(patience_s)
        self._socket = sock
        self._closed = False

    @property
    def closed(self) -> bool:
        """The server has closed the connection."""
        return self._closed

    def send(self, data: bytes) -> None:
        """Send bytes; a server that has closed meanwhile is noticed by :meth:`receive`."""
        try:
            self._socket.sendall(data)
        except ConnectionError:
            self._closed = True

    def receive(self) -> bytes:
        """The next bytes; empty when nothing comes in time or the server has closed."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError:
            return b""
        except ConnectionError:
            data = b""
        if not data:
            self._closed = True
        return data

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def connect(address: Address, patience_s: float, tls: ssl.SSLContext | None = None) -> SocketLink:
    """Connect to a server.

    :raises OSError: when that fails.
    """
    return SocketLink(connect_socket(address, tls), patience_s)
