"""Transports of the client: one small interface, two implementations.

The fast one is a non-blocking socket that is read and written directly and only *waited for*
through anyio: a send that the kernel accepts immediately costs no task switch, and cannot be
cancelled half-way.  The other one wraps an anyio byte stream (TLS), where nothing can be sent
without waiting.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import anyio.abc

from tmqp.address import Address
from tmqp_client._io.loop import this_asyncio_loop
from tmqp_client.errors import ConnectFailed

if TYPE_CHECKING:
    import asyncio
    import ssl

__all__ = ["READ_BYTES", "SocketTransport", "StreamTransport", "Transport", "open_transport"]

#: The size of one read; larger reads cost more for each byte.
READ_BYTES: Final = 65_536
_BACKLOG_PAUSE_S: Final = 0.01


class Transport(Protocol):
    """The interface of a connection's transport.  Its errors are ``OSError``."""

    @property
    def sending(self) -> bool:
        """Whether it holds bytes that it has taken and not sent; :meth:`wait_sendable` sends
        them."""

    def try_send(self, data: memoryview) -> int:
        """Take as many bytes as possible without waiting; return their number."""

    async def wait_sendable(self) -> None:
        """Wait until :meth:`try_send` may take more."""

    async def receive(self) -> bytes:
        """Return the next bytes, at most 64 KiB; empty at the end of the stream."""

    def watch(self, readable: Callable[[], None]) -> bool:
        """Call ``readable`` again and again while :meth:`receive_now` may find something.

        Returns False if that is not possible: then use :meth:`receive`.
        """

    def unwatch(self) -> None:
        """Stop calling ``readable``."""

    def receive_now(self) -> bytes | None:
        """Do as :meth:`receive`, but return None instead of waiting."""

    async def aclose(self) -> None:
        """Close at once; bytes that the kernel has taken are still sent."""


class SocketTransport:
    """A connected, non-blocking TCP or Unix socket."""

    __slots__ = ("_socket", "_waiting_pays", "_watching")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._watching: asyncio.AbstractEventLoop | None = None
        self._waiting_pays = True

    @property
    def sending(self) -> bool:
        return False

    def try_send(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    async def wait_sendable(self) -> None:
        await self._wait(anyio.wait_writable)

    async def receive(self) -> bytes:
        while True:
            if self._waiting_pays:
                # The last read emptied the socket, so another one would find nothing.
                await self._wait(anyio.wait_readable)
            try:
                data = self._socket.recv(READ_BYTES)
            except (BlockingIOError, InterruptedError):
                self._waiting_pays = True
            else:
                self._waiting_pays = len(data) < READ_BYTES
                return data

    def watch(self, readable: Callable[[], None]) -> bool:
        loop = this_asyncio_loop()
        if loop is None:
            return False
        try:
            loop.add_reader(self._socket, readable)
        except (NotImplementedError, ValueError):
            return False  # the proactor's loop, or a closed socket, which receive() reports
        self._watching = loop
        return True

    def unwatch(self) -> None:
        if self._watching is not None:
            self._watching.remove_reader(self._socket)
            self._watching = None

    def receive_now(self) -> bytes | None:
        try:
            return self._socket.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return None

    async def _wait(self, ready: Callable[[socket.socket], Awaitable[None]]) -> None:
        try:
            await ready(self._socket)
        except (anyio.ClosedResourceError, ValueError):
            # ValueError: this side closed the socket before the wait began.
            raise ConnectionAbortedError("closed on this side") from None

    async def aclose(self) -> None:
        self.unwatch()
        if self._socket.fileno() >= 0:
            anyio.notify_closing(self._socket)
            self._socket.close()


class StreamTransport:
    """Any anyio byte stream; it holds at most one piece of unsent bytes."""

    __slots__ = ("_piece", "_stream")

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._piece = b""

    @property
    def sending(self) -> bool:
        return len(self._piece) > 0

    def try_send(self, data: memoryview) -> int:
        if self._piece:
            return 0
        self._piece = bytes(data[:READ_BYTES])
        return len(self._piece)

    async def wait_sendable(self) -> None:
        try:
            await self._stream.send(self._piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionResetError("the stream broke") from None
        self._piece = b""

    async def receive(self) -> bytes:
        try:
            return await self._stream.receive(READ_BYTES)
        except anyio.EndOfStream:
            return b""
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionResetError("the stream broke") from None

    def watch(self, readable: Callable[[], None]) -> bool:
        return False

    def unwatch(self) -> None:
        return

    def receive_now(self) -> bytes | None:
        return None

    async def aclose(self) -> None:
        await anyio.aclose_forcefully(self._stream)


async def open_transport(
    address: Address, timeout_s: float, ssl_context: ssl.SSLContext | None = None
) -> Transport:
    """Connect to an address; if a host has several addresses, try one after the other.

    :param ssl_context: for ``tmqs://``; if None, the certificate must be for the host and from an
        authority of this system.
    :raises ConnectFailed: if that fails or takes longer than ``timeout_s`` seconds.
    """
    try:
        with anyio.fail_after(timeout_s):
            if address.socket_path:
                if not hasattr(socket, "AF_UNIX"):
                    raise OSError("this system has no Unix sockets")
                return SocketTransport(await _connect(socket.AF_UNIX, address.socket_path))
            if address.tls:
                return await _connect_tls(address, ssl_context)
            return SocketTransport(await _connect_tcp(address, timeout_s))
    except TimeoutError as error:
        # A timeout of the system's own has a text; ours has none.
        raise ConnectFailed(str(address), str(error) or f"no answer in {timeout_s:g} s") from None
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(str(address), _words(error)) from error
    except (anyio.EndOfStream, anyio.BrokenResourceError) as error:
        words = "the server ended the connection instead of speaking TLS; is it plain (tmq://)?"
        raise ConnectFailed(str(address), words) from error


async def _connect_tcp(address: Address, timeout_s: float) -> socket.socket:
    """Try each address of the host, with an equal share of the remaining time."""
    found = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    deadline = anyio.current_time() + timeout_s
    problems: list[str] = []
    for index, (family, _, _, _, place) in enumerate(found):
        share_s = (deadline - anyio.current_time()) / (len(found) - index)
        try:
            with anyio.fail_after(share_s):
                sock = await _connect(family, place)
        except TimeoutError as error:
            problems.append(str(error) or f"no answer in {share_s:.1f} s")
        except OSError as error:
            problems.append(_words(error))
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    raise OSError("; ".join(dict.fromkeys(problems)) or "the host has no address")


async def _connect(family: int, place: object) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await _finish_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


async def _finish_connect(sock: socket.socket, place: object) -> None:
    while True:
        try:
            sock.connect(place)  # type: ignore[arg-type]  # its form depends on the family
        except BlockingIOError:
            if sock.family == socket.AF_UNIX:
                # A Unix socket does not connect later: the server's backlog is full.
                await anyio.sleep(_BACKLOG_PAUSE_S)
                continue
            await anyio.wait_writable(sock)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code)) from None
        return


async def _connect_tls(address: Address, context: ssl.SSLContext | None) -> Transport:
    import ssl  # noqa: PLC0415 - for those who use TLS

    stream = await anyio.connect_tcp(
        address.host,
        address.port,
        tls=True,
        ssl_context=context or ssl.create_default_context(),
        tls_hostname=address.host,
        # The peer's end of stream is as good as its closing alert: frames say where they end.
        tls_standard_compatible=False,
    )
    return StreamTransport(stream)


def _words(error: BaseException) -> str:
    """The text of a system error, without its number."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)[:1].lower() + str(text)[1:]
