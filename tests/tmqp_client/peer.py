"""A scripted server: the real protocol on real sockets, with a test deciding each answer."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream

import tmqp_client
from tmqp import (
    Connection,
    ConnectionClosed,
    Event,
    Frame,
    HandshakeReceived,
    Limits,
    MessageType,
    QueueMessageReceived,
    ResultCode,
    Role,
    ServerMessageReceived,
)
from tmqp_client import Client

__all__ = ["Peer", "Script", "ack_of", "broker", "connect", "delivery", "response_to", "serve"]

_E = TypeVar("_E", bound=Event)


def connect(*address: Any, **options: Any) -> Client:
    """A client of one connection and no other: with a script, each connection is the test's own."""
    options.setdefault("reconnect", None)
    return tmqp_client.connect(*address, **options)


WAIT_S = 5.0


def response_to(frame: Frame, code: int = 0) -> Frame:
    """The answer to an operation, as the original sends it (F44)."""
    return Frame.build(MessageType.RESPONSE, frame.source, code, message_id=frame.message_id)


def ack_of(frame: Frame, reason: str | None = None) -> Frame:
    """The acknowledge of a push, as the original makes it (F78)."""
    return Frame.build(
        MessageType.ACKNOWLEDGE,
        frame.target,
        frame.content_type,
        message_id=frame.message_id,
        headers=() if reason is None else (("Nack-Reason", reason),),
    )


def delivery(
    channel: str,
    queue_id: int,
    payload: bytes,
    *,
    message_id: str = "m1",
    acknowledge: bool = True,
    first: bool = True,
) -> Frame:
    """A message for a consumer, as the original sends it (F76)."""
    return Frame.build(
        MessageType.QUEUE_MESSAGE,
        channel,
        queue_id,
        payload,
        message_id=message_id,
        source="producer-1",
        first_acquirer=first,
        pending_acknowledge=acknowledge,
        ttl=15,
    )


class SocketStream:
    """A socket that is read only when somebody reads, so that a peer can be truly deaf.

    (The event loop's own streams read ahead, without bound.)
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    async def receive(self) -> bytes:
        while True:
            try:
                data = self._socket.recv(65_536)
            except BlockingIOError:
                await self._wait(anyio.wait_readable)
            except OSError as error:
                raise anyio.BrokenResourceError from error
            else:
                await anyio.lowlevel.checkpoint()
                if not data:
                    raise anyio.EndOfStream
                return data

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                await self._wait(anyio.wait_writable)
            except OSError as error:
                raise anyio.BrokenResourceError from error
        await anyio.lowlevel.checkpoint()

    async def _wait(self, ready: Callable[[socket.socket], Awaitable[None]]) -> None:
        if self._socket.fileno() < 0:
            raise anyio.ClosedResourceError
        await ready(self._socket)

    async def aclose(self) -> None:
        if self._socket.fileno() >= 0:
            anyio.notify_closing(self._socket)
            self._socket.close()


class Peer:
    """The server's end of one connection."""

    def __init__(self, stream: SocketStream | ByteStream, limits: Limits | None = None) -> None:
        self.stream = stream
        self.connection = Connection(Role.SERVER, limits, now=anyio.current_time())
        self.received = bytearray()
        self.events: list[Event] = []

    async def flush(self) -> None:
        """Send what the connection has queued."""
        data = self.connection.data_to_send()
        if data:
            await self.stream.send(data)

    async def read(self) -> bool:
        """Read once; False at the end of the stream."""
        try:
            data = await self.stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self.events += self.connection.receive_eof(anyio.current_time())
            return False
        self.received += data
        self.events += self.connection.receive(data, anyio.current_time())
        await self.flush()
        return True

    async def next(self) -> Event:
        """The next event."""
        with anyio.fail_after(WAIT_S):
            while not self.events:
                assert await self.read() or self.events, "the client has closed"
        return self.events.pop(0)

    async def expect(self, kind: type[_E]) -> _E:
        """The next event of a kind; others before it are passed over."""
        while True:
            event = await self.next()
            if isinstance(event, kind):
                return event

    async def accept(self, client_id: str | None = None) -> HandshakeReceived:
        """Take the client in."""
        hello = await self.expect(HandshakeReceived)
        self.events += self.connection.accept(client_id or hello.information.client_id, "a1")
        await self.flush()
        return hello

    async def refuse(self, code: int) -> None:
        """Refuse the client and close."""
        await self.expect(HandshakeReceived)
        self.connection.refuse(code)
        await self.flush()
        await self.stream.aclose()

    async def send(self, *frames: Frame) -> None:
        """Send frames in one write."""
        for frame in frames:
            self.connection.send(frame)
        await self.flush()

    async def operation_frame(self) -> Frame:
        """Expect an operation, whichever."""
        return (await self.expect(ServerMessageReceived)).frame

    async def operation(self, number: int, code: int = 0) -> Frame:
        """Expect an operation and answer it."""
        frame = await self.operation_frame()
        assert frame.content_type == number
        await self.send(response_to(frame, code))
        return frame

    async def pushed(self) -> Frame:
        """Expect a push."""
        return (await self.expect(QueueMessageReceived)).frame

    async def until_closed(self) -> ConnectionClosed:
        """Expect the client to close, then close too."""
        event = await self.expect(ConnectionClosed)
        await self.stream.aclose()
        return event


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def serve(script: Script, *, path: Path | None = None) -> AsyncIterator[str]:
    """Listen on loopback (or on a Unix socket) and run the script for each connection; the address.

    An error in the script fails the test.
    """

    async def handle(stream: SocketStream) -> None:
        try:
            await script(Peer(stream))
        finally:
            await stream.aclose()

    async def listen() -> None:
        while True:
            await anyio.wait_readable(listener)
            tasks.start_soon(handle, SocketStream(listener.accept()[0]))

    with socket.socket(socket.AF_INET if path is None else socket.AF_UNIX) as listener:
        listener.setblocking(False)
        # Small, so that a flood fills them soon; accepted sockets inherit them.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        listener.bind(("127.0.0.1", 0) if path is None else str(path))
        listener.listen()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            if path is None:
                yield f"tmq://127.0.0.1:{listener.getsockname()[1]}"
            else:
                yield f"unix:{path}"
            tasks.cancel_scope.cancel()


async def broker(peer: Peer) -> None:
    """A small server: takes everyone in, grants every operation, acknowledges every push."""
    await peer.accept()
    while True:
        event = await peer.next()
        if isinstance(event, ConnectionClosed):
            await peer.stream.aclose()
            return
        if isinstance(event, ServerMessageReceived):
            if event.frame.pending_response:
                peer.connection.send(response_to(event.frame, ResultCode.OK))
        elif isinstance(event, QueueMessageReceived) and event.frame.pending_acknowledge:
            peer.connection.send(ack_of(event.frame))
        if not peer.events:
            await peer.flush()
