"""Clients for tests of the running server: real sockets, bytes, and no patience."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
import anyio.abc

from tests.tmqp_server.peers import greeting, operation
from tmqp.address import Address
from tmqp.codec import FrameDecoder
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.access.auth import Access
from tmqp_server.access.custom import MessageHook
from tmqp_server.config import ServerConfig
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.running import running

__all__ = ["Wire", "dial", "serving", "settled", "wire"]

_ANY = Limits(max_payload_bytes=1 << 40)


class Wire:
    """One connection to a server."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self.preamble = b""
        self._decoder = FrameDecoder(_ANY)
        self._frames: deque[Frame] = deque()
        self._asked = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await anyio.aclose_forcefully(self.stream)

    async def say(self, *parts: bytes | Frame) -> None:
        """Send, as one write."""
        await self.stream.send(b"".join([p if isinstance(p, bytes) else p.raw for p in parts]))

    async def hear(self) -> Frame:
        """The next message.

        :raises anyio.EndOfStream: when the server has closed.
        :raises anyio.BrokenResourceError: when it has reset the connection.
        """
        while not self._frames:
            data = await self.stream.receive()
            if len(self.preamble) < 8:
                missing = 8 - len(self.preamble)
                self.preamble += data[:missing]
                data = data[missing:]
            self._frames.extend(self._decoder.feed(data))
            assert self._decoder.error is None
        return self._frames.popleft()

    async def hear_to_the_end(self) -> list[Frame]:
        """Everything the server says until it closes."""
        said = []
        try:
            while True:
                said.append(await self.hear())
        except anyio.EndOfStream:
            return said

    async def greet(self, client_id: str = "") -> Wire:
        """Connect as a client."""
        await self.say(greeting(client_id))
        accepted = await self.hear()
        assert (accepted.type, accepted.content_type) == (MessageType.SERVER, 202)
        return self

    async def ask(self, number: int, target: str = "", payload: bytes = b"", **more: Any) -> Frame:
        """Ask for an operation; the Response, what came before it aside."""
        self._asked += 1
        name = f"ask-{self._asked}"
        await self.say(operation(number, target, payload, message_id=name, **more))
        while True:
            frame = await self.hear()
            if frame.type == MessageType.RESPONSE and frame.message_id == name:
                return frame

    async def join(self, *channels: str) -> Wire:
        """Join channels."""
        for channel in channels:
            answer = await self.ask(Operation.JOIN, channel)
            assert answer.content_type == 0
        return self

    def reset(self) -> None:
        """When it is closed, break the connection off with a reset."""
        sock: Any = self.stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


async def dial(address: Address) -> Wire:
    """A connection on which nothing was said yet."""
    if address.socket_path:
        return Wire(await anyio.connect_unix(address.socket_path))
    return Wire(await anyio.connect_tcp(address.host, address.port))


@asynccontextmanager
async def wire(server: Server, client_id: str | None = None, *join: str) -> AsyncIterator[Wire]:
    """A connection, closed at the end: under this id if one is given, with channels joined."""
    connection = await dial(server.addresses[0])
    async with connection:
        if client_id is not None:
            await connection.greet(client_id)
            await connection.join(*join)
        yield connection


@asynccontextmanager
async def serving(
    within_s: float = 20.0,
    *,
    asking: Access | None = None,
    custom: MessageHook | None = None,
    **settings: Any,
) -> AsyncIterator[Server]:
    """A server on a free loopback port, everything bounded by ``within_s``."""
    settings.setdefault("listen", (Address("127.0.0.1", 0),))
    with anyio.fail_after(within_s):
        config = ServerConfig(**settings)
        async with running(config, access=asking, custom_messages=custom) as server:
            yield server


async def settled(server: Server, sessions: int) -> None:
    """Wait until the server has so many sessions."""
    while server.sessions != sessions:  # noqa: ASYNC110 - the caller's time is bounded
        await anyio.sleep(0.002)
