"""A cluster of three NATS servers with a stream of three copies, synced at every write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import anyio

from tmqp_bench.broker.processes import free_port
from tmqp_bench.broker.servers import found_program, version_of
from tmqp_bench.replicated.load import PAYLOAD, Push
from tmqp_bench.replicated.nodes import Node, wait_for_ports

__all__ = ["jetstream"]

_START_S: Final = 60.0
_STREAM: Final = "bench"
_MOST_S: Final = 5.0


class _JetStream:
    gap_s = 12.0

    def __init__(self, name: str, nodes: dict[str, Node], ports: list[int]) -> None:
        self.name = name
        self._nodes = nodes
        self._ports = ports
        self._leader = ""

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Push]:
        """A client of all three, and the stream."""
        nats = import_module("nats")
        client = await nats.connect(
            [f"nats://127.0.0.1:{port}" for port in self._ports],
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.05,
            error_cb=_ignore,
        )
        stream = client.jetstream(timeout=_MOST_S)
        info: Any = None
        with anyio.fail_after(_START_S):
            while info is None:
                try:
                    info = await stream.add_stream(
                        name=_STREAM, subjects=[_STREAM], num_replicas=3, retention="workqueue"
                    )
                except Exception:  # noqa: BLE001 - the cluster is not complete yet
                    await anyio.sleep(0.2)
        self._leader = info.cluster.leader

        async def push() -> None:
            await stream.publish(_STREAM, PAYLOAD, timeout=_MOST_S)

        yield push
        await client.close()

    def kill_leader(self) -> None:
        """Kill the leader of the stream, as it was when the client came."""
        self._nodes[self._leader].kill()

    def revive(self) -> None:
        """Start again what was killed."""
        for each in self._nodes.values():
            each.revive()


async def _ignore(_error: Exception) -> None:
    """The client connects again by itself."""


@contextmanager
def jetstream(folder: Path) -> Iterator[_JetStream]:
    """Three servers that know each other."""
    ports, routes = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
    known = ", ".join(f'"nats://127.0.0.1:{route}"' for route in routes)
    program = found_program("nats-server") or "nats-server"
    nodes: dict[str, Node] = {}
    try:
        for port, route in zip(ports, routes, strict=True):
            name = f"n{port}"
            store = f'store_dir: "{folder / name}", max_mem: 1G, max_file: 8G'
            lines = [f"server_name: {name}", f"listen: 127.0.0.1:{port}"]
            lines += [f"jetstream {{ {store}, sync_interval: always }}"]
            lines += [f"cluster {{ name: bench, listen: 127.0.0.1:{route}, routes: [{known}] }}"]
            config = folder / f"{name}.conf"
            config.write_text("\n".join(lines) + "\n")
            nodes[name] = Node([program, "-c", str(config)], folder / f"{name}.log")
        wait_for_ports(ports, _START_S)
        version = version_of("nats")
        yield _JetStream(f"JetStream {version}, R3, sync_interval: always", nodes, ports)
    finally:
        for each in nodes.values():
            each.kill()
