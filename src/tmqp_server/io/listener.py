"""The listening sockets: opens them, accepts connections, and pauses after errors."""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from tmqp.address import Address

__all__ = ["ListenError", "Listener", "open_listener"]

logger = logging.getLogger("tmqp_server.listener")

_BACKLOG = 1_024
#: Pause after a failure that time heals: no descriptor or memory left, or an error of the network
#: or the firewall about one connection, which the kernel reports as accept's own.
_PAUSE_S = 0.1
#: Permanent errors: this is not a listening socket.
_HOPELESS = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EOPNOTSUPP)
#: Connections accepted in a row before others get their turn.
_ACCEPT_BURST = 64


class ListenError(Exception):
    """The server cannot listen on an address; the message names the address and the reason."""


class Listener:
    """One listening socket."""

    def __init__(self, sock: socket.socket, address: Address) -> None:
        self._socket = sock
        self._scope = anyio.CancelScope()
        self._serving = False
        self._closed = False
        self.address = address

    async def serve(self, handle: Callable[[socket.socket], None]) -> None:
        """Accept until closed; ``handle`` gets each connected socket and must not wait."""
        self._serving = True
        try:
            with self._scope:
                while not self._closed:
                    await anyio.wait_readable(self._socket)
                    await self._accept(handle)
        finally:
            self._serving = False
            if self._closed:
                self._socket.close()

    async def _accept(self, handle: Callable[[socket.socket], None]) -> None:
        """Accept a limited number of waiting connections; pause after an error."""
        for _ in range(_ACCEPT_BURST):
            try:
                connected, _peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _HOPELESS:
                    raise
                logger.error("%s: cannot accept: %s", self.address, error.strerror)
                await anyio.sleep(_PAUSE_S)
                return
            handle(connected)

    def close(self) -> None:
        """Stop listening; a Unix socket's file is removed.

        If a task waits for the socket, the task closes it a moment later: otherwise the next socket
        could get its number while the event loop still watches it.
        """
        if self._closed:
            return
        self._closed = True
        self._scope.cancel()
        if not self._serving:
            self._socket.close()
        if self.address.socket_path:
            Path(self.address.socket_path).unlink(missing_ok=True)


async def open_listener(address: Address) -> Listener:
    """Listen on an address; for port 0, on a free port, which is then in the listener's address.

    :raises ListenError: when that is not possible.
    """
    try:
        if address.socket_path:
            return Listener(_listen_unix(address.socket_path), address)
        infos = await anyio.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _kind, _protocol, _name, place = infos[0]
        sock = _listen_tcp(socket.AddressFamily(family), place)
        bound = Address(address.host, sock.getsockname()[1], tls=address.tls)
        return Listener(sock, bound)
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror or error}") from error


def _listen_tcp(family: socket.AddressFamily, place: Any) -> socket.socket:
    try:
        sock = socket.create_server(place, family=family, backlog=_BACKLOG, reuse_port=False)
    except OSError as error:
        if error.errno is None:
            raise
        # The library adds the address, which the caller reports anyway.
        raise OSError(error.errno, os.strerror(error.errno)) from error
    sock.setblocking(False)
    return sock


def _listen_unix(path: str) -> socket.socket:
    """Bind a Unix socket.  The file of a server that has died is replaced; that of a live server is
    not.
    """
    try:
        if stat.S_ISSOCK(Path(path).stat().st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.setblocking(False)  # a live server may have no time to accept
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    Path(path).unlink()
                except BlockingIOError:
                    raise OSError(errno.EADDRINUSE, "another server listens there") from None
                else:
                    raise OSError(errno.EADDRINUSE, "another server listens there")
    except FileNotFoundError:
        pass
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
        Path(path).chmod(0o600)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
