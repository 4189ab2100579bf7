"""Transports of bytes: one small interface, several implementations.

The fast implementation is a non-blocking socket that is read and written directly, and only *waited
for* through anyio: a send that the kernel accepts immediately costs no task switch.  On asyncio and
uvloop the socket is *watched*: it is registered once, and the loop calls the reader.  The second
one wraps any anyio byte stream (a link to another server, tests), where nothing can be sent without
waiting. The third one is TLS (``tls.py``).
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, final

import anyio
import anyio.abc

from tmqp._compat import mypyc_attr
from tmqp_server.access.certificates import PeerCertificate
from tmqp_server.io.direct_loop import DirectLoop
from tmqp_server.io.event_loop import asyncio_loop, context_for_callbacks
from tmqp_server.io.read_buffer import READ_BYTES, ReadBuffer
from tmqp_server.shell.world import Wire

__all__ = [
    "Bytes",
    "SocketTransport",
    "StreamTransport",
    "Transport",
    "peer_name",
]

#: The bytes of one send: a window into a large piece, without a copy.
Bytes: TypeAlias = bytes | memoryview

#: The most bytes that a stream gets at once, so that a slow peer's progress can be seen.
_SEND_BYTES = 65_536


_buffer: Final = ReadBuffer()


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport(Wire):
    """Transports the bytes of a connection.  Errors of the connection are ``OSError``.

    ``peer`` is the peer's address, ``secure`` whether it is encrypted, ``waited`` whether the last
    :meth:`receive` let other tasks run, ``acts_as`` the entry of ``[access]`` for clients without
    credentials, ``common_name`` the name in the client's ``certificate``; both are None without
    one.
    """

    acts_as: str = ""
    common_name: str = ""
    certificate: PeerCertificate | None = None

    peer: str
    secure: bool
    waited: bool

    def watch(self, ready: Callable[[], None]) -> bool:
        """Call ``ready`` whenever bytes may have arrived, until :meth:`unwatch`; it reads them with
        :meth:`receive_now`.  Return False if that is impossible: then use :meth:`receive`."""
        raise NotImplementedError

    def unwatch(self) -> None:
        """Stop watching."""
        raise NotImplementedError

    def receive_now(self) -> bytes | None:
        """As :meth:`receive`, but without waiting: None if nothing has arrived."""
        raise NotImplementedError

    async def receive(self) -> bytes:
        """The next bytes, at most 128 KiB; empty at the end of the stream."""
        raise NotImplementedError

    async def send_some(self, data: Bytes) -> int:
        """Wait until at least one byte of ``data`` was sent; return how many were."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close at once; bytes that the kernel has accepted are still sent."""
        raise NotImplementedError


@final
class SocketTransport(Transport):
    """A connected, non-blocking TCP or Unix socket.

    :param read_bytes: the most bytes of one read.
    """

    def __init__(self, sock: socket.socket, peer: str, read_bytes: int = READ_BYTES) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._view = _buffer.view  # the thread's, as the event loop is
        self._read_bytes = read_bytes
        self._emptied = True
        #: None, or an event loop; uvloop's methods do not return what asyncio's do.
        self._loop: Any = None
        self.waited = False
        self.peer = peer
        self.secure = False
        self.is_exact = True

    def watch(self, ready: Callable[[], None]) -> bool:
        """Register the socket with asyncio's loop, which then calls ``ready`` without waking a
        task.
        """
        loop = asyncio_loop()
        if loop is None:
            return False
        try:
            context_for_callbacks().run(loop.add_reader, self._socket.fileno(), ready)
            if isinstance(loop, DirectLoop):
                loop.read_directly(self._socket.fileno(), ready)
        except (NotImplementedError, ValueError, OSError):
            return False  # a loop that watches none, or a socket that is closed already
        self._loop = loop
        return True

    def unwatch(self) -> None:
        """Stop watching."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._socket.fileno())

    def receive_now(self) -> bytes | None:
        """The next bytes; None if nothing has arrived."""
        try:
            return self._read()
        except (BlockingIOError, InterruptedError):
            return None

    def _read(self) -> bytes:
        # In two lines, because mypyc calls twice what is called in a slice.
        count = self._socket.recv_into(self._view, self._read_bytes)
        data: bytes = self._view[:count].tobytes()
        return data

    async def receive(self) -> bytes:
        """The next bytes, at most 128 KiB; empty at the end of the stream."""
        self.waited = False
        while True:
            if self._emptied:
                # The last read emptied the socket: another would only say so.
                self.waited = True
                await self._wait(anyio.wait_readable)
            try:
                data = self._read()
            except (BlockingIOError, InterruptedError):
                self._emptied = True
            else:
                self._emptied = len(data) < self._read_bytes
                return data

    def send(self, data: Bytes) -> int:
        """Send what the kernel accepts at once; return how many bytes."""
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    async def send_some(self, data: Bytes) -> int:
        """Wait until at least one byte was sent."""
        while True:
            sent = self.send(data)
            if sent:
                return sent
            await self._wait(anyio.wait_writable)

    async def _wait(self, ready: Callable[[socket.socket], Awaitable[None]]) -> None:
        try:
            await ready(self._socket)
        except (anyio.ClosedResourceError, ValueError) as error:
            # ValueError: the socket was closed while a task waited for it.
            raise ConnectionAbortedError("closed on this side") from error

    def detach(self) -> socket.socket:
        """Give the socket to another transport."""
        self.unwatch()
        return self._socket

    async def aclose(self) -> None:
        """Close at once."""
        self.unwatch()
        anyio.notify_closing(self._socket)
        self._socket.close()


@final
class StreamTransport(Transport):
    """A transport over any anyio byte stream: a link to another server, a pair of streams in a
    test.
    """

    def __init__(self, stream: anyio.abc.ByteStream, peer: str) -> None:
        self._stream = stream
        self.waited = True
        self.peer = peer
        self.secure = False

    def watch(self, ready: Callable[[], None]) -> bool:
        """Return False: a stream cannot be watched."""
        return False

    def unwatch(self) -> None:
        """Do nothing: it is never watched."""

    def receive_now(self) -> bytes | None:
        """Return None: a stream returns nothing without waiting."""
        return None

    async def receive(self) -> bytes:
        """The next bytes, at most 128 KiB; empty at the end of the stream."""
        try:
            return await self._stream.receive(READ_BYTES)
        except anyio.EndOfStream:
            return b""
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ConnectionResetError("the stream broke") from error

    def send(self, data: Bytes) -> int:
        """Return 0: a stream sends nothing without waiting."""
        return 0

    async def send_some(self, data: Bytes) -> int:
        """Send the first bytes of ``data``, and wait until all of them were sent, because a stream
        does not report partial progress.  Return how many bytes.
        """
        part = bytes(data[:_SEND_BYTES])
        try:
            await self._stream.send(part)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ConnectionResetError("the stream broke") from error
        return len(part)

    async def aclose(self) -> None:
        """Close at once."""
        await anyio.aclose_forcefully(self._stream)


def peer_name(sock: socket.socket) -> str:
    """The name of a peer for the log: ``host:port``, or ``unix`` for a Unix socket."""
    if sock.family == socket.AF_UNIX:
        return "unix"
    try:
        address = sock.getpeername()
    except OSError:
        return "unknown"
    return f"{address[0]}:{address[1]}"
