"""Owns a scripted server: the real protocol on real sockets, with a test deciding each answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.abc
import anyio.lowlevel

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

__all__ = ["Peer", "Script", "ack_of", "broker", "delivery", "response_to", "serve"]

_E = TypeVar("_E", bound=Event)
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


class Peer:
    """The server's end of one connection."""

    def __init__(self, stream: anyio.abc.ByteStream, limits: Limits | None = None) -> None:
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

    async def handle(stream: anyio.abc.ByteStream) -> None:
        async with stream:
            await script(Peer(stream))

    if path is None:
        listener: anyio.abc.Listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        address = f"tmq://127.0.0.1:{port}"
    else:
        listener = await anyio.create_unix_listener(path)
        address = f"unix:{path}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        await anyio.lowlevel.checkpoint()
        yield address
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
