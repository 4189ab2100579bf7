"""A proxy between a client and a server that can cut, stall and half-close connections."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import anyio.abc

__all__ = ["Proxy", "proxied"]

_CHUNK: Final = 4_096
_RESET: Final = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards each connection until it is told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        self.address = ""
        self.accepted = 0
        self.refusing = False
        self._target = (host, port)
        self._pairs: dict[anyio.abc.SocketStream, anyio.abc.SocketStream] = {}
        self._ghosts: list[anyio.abc.SocketStream] = []
        self._flowing = anyio.Event()
        self._flowing.set()

    async def serve(self, near: anyio.abc.SocketStream) -> None:
        """Forward one connection, both ways."""
        if self.refusing:
            await anyio.aclose_forcefully(near)
            return
        self.accepted += 1
        far = await anyio.connect_tcp(*self._target)
        self._pairs[near] = far
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._forward, near, far, tasks)
                tasks.start_soon(self._forward, far, near, tasks)
        finally:
            self._pairs.pop(near, None)
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(near)
                if far not in self._ghosts:
                    await anyio.aclose_forcefully(far)

    async def _forward(
        self,
        source: anyio.abc.SocketStream,
        sink: anyio.abc.SocketStream,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                data = await source.receive(_CHUNK)
                await self._flowing.wait()
                await sink.send(data)
        tasks.cancel_scope.cancel()

    async def cut(self, *, reset: bool = False, half: bool = False) -> None:
        """Close all connections: in order, by a reset, or (``half``) without telling the server."""
        for near, far in list(self._pairs.items()):
            if reset:
                raw = near.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - no Django
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            if half:
                self._ghosts.append(far)
            await anyio.aclose_forcefully(near)

    async def bury(self) -> None:
        """Let the server know of the connections that were cut by half."""
        for ghost in self._ghosts:
            await anyio.aclose_forcefully(ghost)
        self._ghosts.clear()

    def stall(self) -> None:
        """Let nothing through."""
        self._flowing = anyio.Event()

    def flow(self) -> None:
        """Let everything through again."""
        self._flowing.set()


@asynccontextmanager
async def proxied(address: str) -> AsyncIterator[Proxy]:
    """A proxy in front of a server on loopback."""
    host, _, port = address.removeprefix("tmq://").rpartition(":")
    proxy = Proxy(host, int(port))
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    place = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no Django
    proxy.address = f"tmq://127.0.0.1:{place}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy.serve)
        try:
            yield proxy
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await proxy.bury()
