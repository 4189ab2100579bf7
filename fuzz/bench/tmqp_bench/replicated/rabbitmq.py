"""A cluster of three RabbitMQ nodes with a quorum queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tmqp_bench.broker.processes import free_port
from tmqp_bench.broker.servers import version_of
from tmqp_bench.replicated.load import PAYLOAD, Push
from tmqp_bench.replicated.nodes import Node, wait_for_ports

__all__ = ["rabbitmq"]

_SCRIPT: Final = "/usr/lib/rabbitmq/bin/rabbitmq-server"
_START_S: Final = 180.0
_QUEUE: Final = "bench"
_MOST_S: Final = 5.0


class _Link:
    """A connection with confirms, made again at the next node when it fails."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._aio_pika = import_module("aio_pika")
        self._connection: Any = None
        self._exchange: Any = None
        self._lock = asyncio.Lock()

    async def connect(self) -> None:
        """Go to the first node that takes it and has the queue."""
        failure: Exception = ConnectionError("there is no node")
        for port in self._ports:
            try:
                self._connection = await self._aio_pika.connect(
                    f"amqp://guest:guest@127.0.0.1:{port}/", timeout=_MOST_S
                )
                channel = await self._connection.channel(publisher_confirms=True)
                await channel.declare_queue(
                    _QUEUE, durable=True, arguments={"x-queue-type": "quorum"}, timeout=_MOST_S
                )
            except Exception as error:  # noqa: BLE001 - the next one may do
                failure = error
            else:
                self._exchange = channel.default_exchange
                return
        raise failure

    async def push(self) -> None:
        """Publish until it is confirmed."""
        exchange = self._exchange
        mode = self._aio_pika.DeliveryMode.PERSISTENT
        try:
            message = self._aio_pika.Message(PAYLOAD, delivery_mode=mode)
            await exchange.publish(message, _QUEUE, timeout=_MOST_S)
        except Exception:
            async with self._lock:
                if self._exchange is exchange:
                    await self.connect()
            raise

    async def close(self) -> None:
        """Say goodbye."""
        await self._connection.close()


class _RabbitMq:
    gap_s = 12.0

    def __init__(self, name: str, nodes: dict[int, Node]) -> None:
        self.name = name
        self._nodes = nodes

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Push]:
        """The queue's leader is the node where it is declared first: the first one."""
        link = _Link(list(self._nodes))
        await link.connect()
        yield link.push
        await link.close()

    def kill_leader(self) -> None:
        """Kill the first node."""
        next(iter(self._nodes.values())).kill()

    def revive(self) -> None:
        """Start again what was killed."""
        for each in self._nodes.values():
            each.revive()


@contextmanager
def rabbitmq(folder: Path) -> Iterator[_RabbitMq]:
    """Three nodes that find each other."""
    ports = [free_port() for _ in range(3)]
    names = [f"bench{port}@localhost" for port in ports]
    nodes: dict[int, Node] = {}
    cookie = folder / ".erlang.cookie"
    cookie.write_text("bench")
    cookie.chmod(0o400)
    try:
        for port, name in zip(ports, names, strict=True):
            place = folder / name
            place.mkdir()
            lines = [f"listeners.tcp.1 = 127.0.0.1:{port}"]
            lines += ["cluster_formation.peer_discovery_backend = classic_config"]
            lines += [
                f"cluster_formation.classic_config.nodes.{at} = {each}"
                for at, each in enumerate(names, 1)
            ]
            (place / "rabbitmq.conf").write_text("\n".join(lines) + "\n")
            (place / "enabled_plugins").write_text("[].\n")
            environment = {
                "HOME": str(folder),
                "RABBITMQ_NODENAME": name,
                "RABBITMQ_DIST_PORT": str(free_port()),
                "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq"),
                "RABBITMQ_MNESIA_BASE": str(place / "mnesia"),
                "RABBITMQ_LOG_BASE": str(place / "logs"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "enabled_plugins"),
            }
            nodes[port] = Node([_SCRIPT], place / "out", environment)
        wait_for_ports(ports, _START_S)
        yield _RabbitMq(f"RabbitMQ {version_of('rabbitmq')}, quorum queue", nodes)
    finally:
        for each in nodes.values():
            each.kill()
