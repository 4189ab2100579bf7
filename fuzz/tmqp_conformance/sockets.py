"""The stage of cases for servers: real connections over TCP, Unix sockets and TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Callable
from typing import Final

from tmqp.address import Address
from tmqp.testing.conformance import Case, UnreachableError

__all__ = ["ServerStage", "SocketWire", "connect_socket"]

_READ_BYTES: Final = 65_536
#: How long connecting, and sending to a peer that does not read, may take.
_CONNECT_S: Final = 10.0
_SEND_S: Final = 10.0


class SocketWire:
    """A connection over a socket; :class:`tmqp.testing.conformance.Wire`."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._closed = False
        if sock.family != socket.AF_UNIX:
            # A case that sends pieces means pieces.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def closed(self) -> bool:
        """The peer has closed it, or it is broken."""
        return self._closed

    def send(self, data: bytes) -> None:
        """Send bytes; that the peer has closed is noticed by :meth:`receive`."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(_SEND_S)
            self._socket.sendall(data)

    def receive(self, wait_s: float) -> bytes:
        """Return the next bytes; empty if none arrive in this time, or the peer has closed."""
        if self._closed:
            return b""
        try:
            self._socket.settimeout(max(wait_s, 0.000_1))
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._closed = True
        return data

    def close(self, how: str) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            if how == "half":
                # That of an SSLSocket would stop decrypting what still comes.
                socket.socket.shutdown(self._socket, socket.SHUT_WR)
                return
            if how == "abort":
                linger = struct.pack("ii", 1, 0)
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._socket.close()
        self._closed = True


def connect_socket(address: Address, tls: ssl.SSLContext | None = None) -> socket.socket:
    """Connect to a server.

    :param tls: how TLS is spoken, if the address says that it is.
    :raises OSError: when that fails.
    """
    if address.socket_path:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(_CONNECT_S)
        try:
            sock.connect(address.socket_path)
        except OSError:
            sock.close()
            raise
        return sock
    sock = socket.create_connection((address.host, address.port), _CONNECT_S)
    if not address.tls:
        return sock
    try:
        return (tls or ssl.create_default_context()).wrap_socket(sock, server_hostname=address.host)
    except BaseException:
        sock.close()
        raise


class ServerStage:
    """Plays cases against the server at an address.

    :param restart: kills the server, starts it again and returns when it answers.
    """

    def __init__(
        self,
        address: Address,
        tls: ssl.SSLContext | None = None,
        restart: Callable[[], None] | None = None,
    ) -> None:
        self.address = address
        self._tls = tls
        self._restart = restart

    def open(self, line: str, case: Case) -> SocketWire:
        """Connect.

        :raises UnreachableError: when that fails.
        """
        try:
            return SocketWire(connect_socket(self.address, self._tls))
        except OSError as error:
            raise UnreachableError(f"cannot connect to {self.address}: {error}") from error

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def restart(self) -> None:
        """Kill and restart the server.

        :raises UnreachableError: if there is no command for this, or the server does not start.
        """
        if self._restart is None:
            raise UnreachableError("no command restarts the server")
        self._restart()
