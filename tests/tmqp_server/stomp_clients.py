"""Servers with a door of STOMP, and clients of stomp.py, for tests."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import stomp
from stomp.exception import NotConnectedException

from tests.tmqp_server.test_small_doors import port_of
from tmqp.address import Address
from tmqp_server import ServerConfig, running
from tmqp_server.config import read_config

__all__ = [
    "CLASSES",
    "Clients",
    "StompPy",
    "clients",
    "config",
    "in_thread",
    "port_of",
    "with_clients",
]

#: Clients of each version.
CLASSES: Final = {
    "1.0": stomp.Connection10,
    "1.1": stomp.Connection11,
    "1.2": stomp.Connection12,
}
_PATIENCE_S: Final = 10.0

_Result = TypeVar("_Result")


def config(data: Path | None = None, port: int = 0, **values: Any) -> ServerConfig:
    """A server with a door of STOMP."""
    access = values.pop("access", None)
    door = {"protocol": "stomp", "listen": [f"127.0.0.1:{port}"], **values}
    tables: dict[str, Any] = {"doors": [door]}
    if access is not None:
        tables["access"] = access
    where = None if data is None else str(data)
    return ServerConfig(
        **{**read_config(tables), "listen": (Address("127.0.0.1", 0),), "data": where}
    )


class StompPy(stomp.ConnectionListener):
    """A client of stomp.py, and all that it hears."""

    def __init__(self, port: int, version: str, **options: Any) -> None:
        self.version = version
        self.messages: queue.Queue[Any] = queue.Queue()
        self.receipts: queue.Queue[str] = queue.Queue()
        self.errors: queue.Queue[Any] = queue.Queue()
        self.beats = 0
        self.connection = CLASSES[version]([("127.0.0.1", port)], **options)
        self.connection.set_listener("", self)

    def connect(self, *names: str, **headers: str) -> None:
        """Be let in, or raise ``ConnectFailedException``."""
        self.connection.connect(*names, wait=True, headers=headers)

    def on_message(self, frame: Any) -> None:
        """A MESSAGE."""
        self.messages.put(frame)

    def on_receipt(self, frame: Any) -> None:
        """A RECEIPT."""
        self.receipts.put(frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        """An ERROR."""
        self.errors.put(frame)

    def on_heartbeat(self) -> None:
        """A heart-beat."""
        self.beats += 1

    def take(self) -> Any:
        """The next message."""
        return self.messages.get(timeout=_PATIENCE_S)

    def error(self) -> Any:
        """The next ERROR."""
        return self.errors.get(timeout=_PATIENCE_S)

    def receipt(self) -> str:
        """The next receipt."""
        return self.receipts.get(timeout=_PATIENCE_S)

    def send(self, destination: str, body: bytes | str, receipt: str = "", **headers: str) -> None:
        """Send, and wait for a receipt if one is named."""
        more = {"receipt": receipt} if receipt else {}
        self.connection.send(destination, body, headers={**headers, **more})
        if receipt:
            assert self.receipt() == receipt

    def subscribe(
        self, destination: str, name: str = "1", ack: str = "auto", **headers: str
    ) -> None:
        """Subscribe, and wait for the receipt."""
        self.connection.subscribe(
            destination, id=name, ack=ack, headers={"receipt": f"subscribed {name}", **headers}
        )
        assert self.receipt() == f"subscribed {name}"

    def ack(self, frame: Any, *, positive: bool = True, **headers: str) -> None:
        """Answer for a message, as the version does it."""
        word = self.connection.ack if positive else self.connection.nack
        headers = {"receipt": "answered", **headers}
        if self.version == "1.2":
            word(frame.headers["ack"], **headers)
        elif self.version == "1.1":
            word(frame.headers["message-id"], frame.headers["subscription"], **headers)
        else:
            word(frame.headers["message-id"], **headers)
        assert self.receipt() == "answered"


class Clients:
    """Clients of one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._made: list[StompPy] = []

    def make(self, version: str = "1.2", **options: Any) -> StompPy:
        """A client that is connected."""
        found = self.unconnected(version, **options)
        found.connect()
        return found

    def unconnected(self, version: str = "1.2", **options: Any) -> StompPy:
        """A client that is not."""
        found = StompPy(self.port, version, **options)
        self._made.append(found)
        return found

    def end(self) -> None:
        """Close all of them."""
        for made in self._made:
            if made.connection.is_connected():
                # The server may close it at this moment: after an error, for example.
                with suppress(OSError, NotConnectedException):
                    made.connection.disconnect()


@contextmanager
def clients(port: int) -> Iterator[Clients]:
    """Clients that are closed at the end."""
    found = Clients(port)
    try:
        yield found
    finally:
        found.end()


async def in_thread(work: Callable[[Clients], _Result], port: int) -> _Result:
    """Do something with clients, in a thread."""

    def run() -> _Result:
        with clients(port) as found:
            return work(found)

    with anyio.fail_after(60):
        return await anyio.to_thread.run_sync(run)


async def with_clients(
    work: Callable[[Clients], _Result], settings: ServerConfig | None = None
) -> _Result:
    """The same while a server runs."""
    async with running(settings or config()) as server:
        return await in_thread(work, port_of(server, "stomp"))
