"""Servers with a door of ZeroMQ, and sockets of libzmq, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import zmq

from tests.tmqp_server.test_small_doors import port_of
from tmqp.address import Address
from tmqp_server import Server, ServerConfig, running
from tmqp_server.config import read_config

__all__ = [
    "PATIENCE_MS",
    "Sockets",
    "address_of",
    "bind",
    "config",
    "in_thread",
    "messages",
    "port_of",
    "sockets",
    "with_sockets",
]

#: Parts of a message whose sizes are where the form of a frame, or of a chunk, changes.
SIZES: Final = (0, 1, 255, 256, 8_191, 8_192, 1_048_576)
MULTIPART: Final = (b"topic", b"", bytes(300))
PATIENCE_MS: Final = 10_000

_Result = TypeVar("_Result")


def config(data: Path | None = None, port: int = 0, **values: Any) -> ServerConfig:
    """A server with a door of ZeroMQ."""
    access = values.pop("access", None)
    door = {"protocol": "zmtp", "listen": [f"127.0.0.1:{port}"], **values}
    tables: dict[str, Any] = {"doors": [door]}
    if access is not None:
        tables["access"] = access
    where = None if data is None else str(data)
    return ServerConfig(
        **{**read_config(tables), "listen": (Address("127.0.0.1", 0),), "data": where}
    )


class Sockets:
    """Sockets of one process, connected to a port."""

    def __init__(self, port: int) -> None:
        self.address = f"tcp://127.0.0.1:{port}"
        self._context = zmq.Context()
        self._made: list[zmq.Socket[bytes]] = []

    def make(self, kind: int, **options: Any) -> zmq.Socket[bytes]:
        """A socket that is patient, with these options, connected."""
        socket = self.unconnected(kind, **options)
        socket.connect(self.address)
        return socket

    def unconnected(self, kind: int, **options: Any) -> zmq.Socket[bytes]:
        """The same before it connects."""
        socket = self._context.socket(kind)
        self._made.append(socket)
        socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        socket.setsockopt(zmq.SNDTIMEO, PATIENCE_MS)
        for name, value in options.items():
            socket.setsockopt(getattr(zmq, name), value)
        return socket

    def send(self, kind: int, parts: list[bytes], **options: Any) -> None:
        """Send a message by a socket that lingers until it has left."""
        socket = self.make(kind, **options)
        socket.send_multipart(parts)
        socket.close(linger=PATIENCE_MS)

    def end(self) -> None:
        """Close all of them."""
        for made in self._made:
            if not made.closed:
                made.disable_monitor()
                made.close(linger=0)
        self._context.term()


@contextmanager
def sockets(port: int) -> Iterator[Sockets]:
    """Sockets that are closed at the end."""
    found = Sockets(port)
    try:
        yield found
    finally:
        found.end()


async def with_sockets(
    work: Callable[[Sockets], _Result], settings: ServerConfig | None = None
) -> _Result:
    """Do something with sockets, in a thread, while a server runs."""
    async with running(settings or config()) as server:
        return await in_thread(work, port_of(server, "zmtp"))


async def in_thread(work: Callable[[Sockets], _Result], port: int) -> _Result:
    def run() -> _Result:
        with sockets(port) as found:
            return work(found)

    with anyio.fail_after(60):
        return await anyio.to_thread.run_sync(run)


def messages() -> list[list[bytes]]:
    """One message of each size, alone and as one of several parts."""
    alone = [[bytes(size)] for size in SIZES]
    return alone + [[*MULTIPART, bytes(size), b"end"] for size in SIZES]


def address_of(server: Server) -> str:
    """Where sockets connect."""
    return f"tcp://127.0.0.1:{port_of(server, 'zmtp')}"


def bind(made: zmq.Socket[bytes], port: int) -> None:
    """Bind a port that another socket has had, which takes a moment to go."""
    for _ in range(100):
        try:
            made.bind(f"tcp://127.0.0.1:{port}")
        except zmq.ZMQError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"port {port} stays taken")
