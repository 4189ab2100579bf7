"""Three real servers as a cluster on loopback: what a slave is told, its masters know."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.ports import free_port
from tests.project import ROOT
from tmqp.models import NodeInformation
from tmqp_client import Client, ConnectFailed, connect

pytestmark = [pytest.mark.anyio, pytest.mark.cold]

PATIENCE_S = 30.0
TOKEN = "a secret"


class Cluster:
    """Servers by their names, each on a port that stays its own."""

    def __init__(self, folder: Path, backend: str) -> None:
        self._folder = folder
        self._backend = backend
        self._ports: dict[str, int] = {}
        self._running: dict[str, subprocess.Popen[str]] = {}

    def port(self, name: str) -> int:
        """The server's port, chosen before it starts: others must know it."""
        if name not in self._ports:
            self._ports[name] = free_port()
        return self._ports[name]

    def address(self, name: str) -> str:
        return f"tmq://127.0.0.1:{self.port(name)}"

    def start(self, name: str, role: str, *masters: str, more: str = "", token: str = "") -> None:
        """Start a server and wait until it is ready."""
        places = ", ".join(f'"{self.address(each)}"' for each in masters)
        path = self._folder / f"{name}.toml"
        path.write_text(
            f'[cluster]\nname = "{name}"\ntoken = "{token or TOKEN}"\nrole = "{role}"\n'
            f"masters = [{places}]\nreconnect_min_s = 0.1\nreconnect_max_s = 0.5\n{more}\n"
        )
        with (self._folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tmqp_server", "--config", str(path)),
                    *("-l", self.address(name), "--backend", self._backend),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        self._running[name] = process
        assert process.stdout is not None
        assert " ready on " in process.stdout.readline(), self.log(name)

    def log(self, name: str) -> str:
        """What the server has said so far."""
        return (self._folder / f"{name}.log").read_text()

    def kill(self, name: str) -> None:
        """End a server without a chance to say goodbye."""
        self._running[name].kill()
        self._end(name)

    def _end(self, name: str) -> int:
        process = self._running.pop(name)
        code = process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()
        return code

    def stop(self) -> dict[str, int]:
        """Stop all politely; their exit codes."""
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        return {name: self._end(name) for name in list(self._running)}

    def kill_all(self) -> None:
        for name in list(self._running):
            self.kill(name)


@pytest.fixture
def cluster(tmp_path: Path, anyio_backend_name: str) -> Iterator[Cluster]:
    made = Cluster(tmp_path, anyio_backend_name)
    try:
        yield made
    finally:
        made.kill_all()


async def connected(client: Client, count: int) -> list[NodeInformation]:
    """Wait until a server has so many connections with nodes, in either direction."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            nodes = await client.nodes()
            if sum(node.connected for node in nodes) == count:
                return nodes
            await anyio.sleep(0.02)


async def consume(client: Client, channel: str, count: int) -> list[str]:
    """The texts of so many messages, and of whatever comes in a moment more."""
    texts: list[str] = []
    async with client.consume(channel, 1) as messages:
        with anyio.move_on_after(PATIENCE_S) as scope:
            async for message in messages:
                texts.append(message.text)
                if len(texts) == count:
                    scope.deadline = anyio.current_time() + 0.3
    return texts


async def test_a_message_sent_to_a_slave_is_consumed_from_its_master(cluster: Cluster) -> None:
    cluster.start("master", "master")
    cluster.start("slave", "slave", "master")
    cluster.start("end", "slave", "slave")  # "slave" takes nobody: it is no master
    async with (
        connect(cluster.address("slave")) as slave,
        connect(cluster.address("master")) as master,
    ):
        (node,) = await connected(master, 1)
        assert (node.id, node.name, node.slave) == ("slave", "slave", True)
        assert node.host == socket.gethostname()
        (node,) = await connected(slave, 1)
        assert (node.id, node.slave) == (cluster.address("master"), False)
        await slave.push("orders", 1, "one pizza")
        await master.push("orders", 1, "stays here")
        assert sorted(await consume(master, "orders", 2)) == ["one pizza", "stays here"]
        assert await consume(slave, "orders", 1) == ["one pizza"]
    assert cluster.stop() == dict.fromkeys(("master", "slave", "end"), 0)
    assert "does not take this token" in cluster.log("end")


async def test_where_all_are_masters_and_slaves_nothing_goes_round(cluster: Cluster) -> None:
    names = ("a", "b", "c")
    for name in names:
        cluster.start(name, "both", *[other for other in names if other != name])
    got: dict[str, list[str]] = {}

    async def listen(name: str, client: Client) -> None:
        got[name] = await consume(client, "news", 60)

    async with (
        connect(cluster.address("a")) as a,
        connect(cluster.address("b")) as b,
        connect(cluster.address("c")) as c,
    ):
        clients = dict(zip(names, (a, b, c), strict=True))
        for client in clients.values():
            await connected(client, 4)
            await client.create_queue("news", 1, status="push")
        async with anyio.create_task_group() as tasks:
            for name, client in clients.items():
                tasks.start_soon(listen, name, client)
            for number in range(20):
                for name, client in clients.items():
                    await client.push("news", 1, f"{name}{number}")
    expected = sorted(f"{name}{number}" for name in names for number in range(20))
    assert {name: sorted(texts) for name, texts in got.items()} == dict.fromkeys(names, expected)
    assert cluster.stop() == dict.fromkeys(names, 0)


async def test_a_master_that_was_killed_gets_what_it_missed(cluster: Cluster) -> None:
    cluster.start("master", "master")
    cluster.start("slave", "slave", "master")
    async with connect(cluster.address("slave")) as slave:
        await connected(slave, 1)
        cluster.kill("master")
        await connected(slave, 0)
        for number in range(5):
            await slave.push("orders", 1, f"m{number}")
        with pytest.raises(ConnectFailed):
            async with connect(cluster.address("master")):
                pass
        cluster.start("master", "master")
        await connected(slave, 1)
        async with connect(cluster.address("master")) as master:
            assert await consume(master, "orders", 5) == [f"m{number}" for number in range(5)]
    assert cluster.stop() == {"master": 0, "slave": 0}
    log = cluster.log("slave")
    assert log.count(": connected\n") == 2
    assert re.search(r"Connection refused.*; next try in \d\.\d seconds", log), log


async def test_decisions_are_shared_between_processes(cluster: Cluster) -> None:
    more = "share_decisions = true"
    cluster.start("a", "both", "b", more=more)
    cluster.start("b", "both", "a", more=more)
    async with connect(cluster.address("a")) as a, connect(cluster.address("b")) as b:
        for client in (a, b):
            await connected(client, 2)
        await a.push("orders", 1, "one pizza")
        assert await consume(b, "orders", 1) == ["one pizza"]
        await b.ping()
        await a.push("orders", 1, "another")
        assert await consume(a, "orders", 1) == ["another"]
    assert cluster.stop() == {"a": 0, "b": 0}
