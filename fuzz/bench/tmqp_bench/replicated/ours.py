"""Servers of this project: one with a disk of its own, and three of a group on three of etcd."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import anyio

from tmqp.models import QueueOptions
from tmqp_bench.broker.processes import free_port
from tmqp_bench.codec import PLACES, ROOT
from tmqp_bench.replicated.load import PAYLOAD, Push
from tmqp_bench.replicated.nodes import Node, wait_for_ports
from tmqp_client import FAIL_OVER, connect

__all__ = ["Ours", "etcd_cluster", "group", "one_server"]

_WAIT_S: Final = 60.0
#: Those of docs/guides/high-availability.md.
_ETCD: Final = (
    "--snapshot-count=500",
    "--snapshot-catchup-entries=200",
    "--heartbeat-interval=50",
    "--election-timeout=500",
    "--log-level=error",
)


class Ours:
    """One server, or a group; see ``Contender``."""

    gap_s = 8.0

    def __init__(self, name: str, servers: dict[str, Node]) -> None:
        self.name = name
        self._servers = servers
        self._leads = ""

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Push]:
        """A client with a queue, as soon as somebody takes clients."""
        with anyio.fail_after(_WAIT_S):
            async with connect(list(self._servers), reconnect=FAIL_OVER) as client:
                options = QueueOptions(durable=True, request_acknowledge=False)
                await client.create_queue("bench", 1, options, status="pull")
        async with connect(list(self._servers), reconnect=FAIL_OVER) as client:

            async def push() -> None:
                await client.push("bench", 1, PAYLOAD)

            self._leads = str(client.address)
            yield push

    def kill_leader(self) -> None:
        """Kill the server that the last client was at first."""
        self._servers[self._leads].kill()

    def revive(self) -> None:
        """Start again what was killed."""
        for each in self._servers.values():
            each.revive()


@contextmanager
def _server(folder: Path, build: str, name: str, log: str = "") -> Iterator[tuple[str, Node]]:
    address = f"tmq://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "tmqp_server", "-l", address, "--data", str(folder / name)]
    environment = {"PYTHONPATH": str(ROOT / PLACES[build])}
    if log:
        command += ["--replicate", log]
        environment["TMQP_SERVER_REPLICATION__NODE"] = name
    node = Node(command, folder / f"{name}.log", environment)
    try:
        yield address, node
    finally:
        node.kill()


@contextmanager
def one_server(folder: Path, build: str) -> Iterator[Ours]:
    """One server with a data directory."""
    with _server(folder, build, "local") as (address, node):
        yield Ours(f"one server, {build}", {address: node})


@contextmanager
def group(folder: Path, build: str, etcd: str) -> Iterator[Ours]:
    """Three servers on three of etcd.

    :param etcd: the program.
    """
    with ExitStack() as on:
        log = f"etcd://{','.join(on.enter_context(etcd_cluster(etcd, folder)))}/bench"
        servers = [on.enter_context(_server(folder, build, each, log)) for each in "abc"]
        yield Ours(f"a group on etcd, {build}", dict(servers))


@contextmanager
def etcd_cluster(program: str, folder: Path) -> Iterator[list[str]]:
    """Three servers of etcd; their addresses."""
    ports = [(free_port(), free_port()) for _ in range(3)]
    members = ",".join(f"n{at}=http://127.0.0.1:{peer}" for at, (_, peer) in enumerate(ports))
    nodes = []
    for at, (client, peer) in enumerate(ports):
        urls = (f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}")
        command = [program, f"--name=n{at}", f"--data-dir={folder / f'etcd{at}'}", *_ETCD]
        command += [f"--listen-client-urls={urls[0]}", f"--advertise-client-urls={urls[0]}"]
        command += [f"--listen-peer-urls={urls[1]}", f"--initial-advertise-peer-urls={urls[1]}"]
        command.append(f"--initial-cluster={members}")
        nodes.append(Node(command, folder / f"etcd{at}.log"))
    try:
        wait_for_ports([client for client, _ in ports], _WAIT_S)
        yield [f"127.0.0.1:{client}" for client, _ in ports]
    finally:
        for each in nodes:
            each.kill()
