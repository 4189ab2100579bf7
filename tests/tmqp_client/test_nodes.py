"""The list of nodes through the client and the command, with real servers, on each loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from tests.tmqp_client.server import running_server
from tmqp.models import NodeInformation
from tmqp_client import connect
from tmqp_client.cli import cli


def part(folder: Path, name: str, role: str, masters: str = "") -> str:
    """A configuration file of a node."""
    path = folder / f"{name}.toml"
    path.write_text(
        f'[cluster]\nname = "{name}"\ntoken = "t"\nrole = "{role}"\nmasters = [{masters}]\n'
        "reconnect_min_s = 0.05\nreconnect_max_s = 0.1\n"
    )
    return str(path)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A master, and a slave of it."""
    folder = tmp_path_factory.mktemp("cluster")
    with running_server("--config", part(folder, "master", "master")) as (master, _):
        more = part(folder, "slave", "slave", f'"{master}", "tmq://127.0.0.1:9"')
        with running_server("--config", more) as (slave, _):
            yield master, slave


async def connected(place: str) -> list[NodeInformation]:
    nodes: list[NodeInformation] = []
    async with connect(place) as client:
        with anyio.fail_after(20):
            while not any(node.connected for node in nodes):
                await anyio.sleep(0.02)
                nodes = await client.nodes()
    return nodes


async def test_nodes(places: tuple[str, str]) -> None:
    master, slave = places
    (of_master,) = await connected(master)
    assert (of_master.id, of_master.name, of_master.slave) == ("slave", "slave", True)
    assert of_master.lifetime_ms >= 0
    up, down = await connected(slave)
    assert (up.id, up.host, up.slave, up.connected) == (master, "127.0.0.1", False, True)
    assert (down.id, down.connected, down.lifetime_ms) == ("tmq://127.0.0.1:9", False, 0)


async def test_events_of_nodes(places: tuple[str, str], tmp_path: Path) -> None:
    master, _ = places
    await connected(master)
    async with (
        connect(master) as client,
        client.events("NodeConnected") as events,
        client.events("NodeDisconnected") as gone,
    ):
        with anyio.fail_after(20):
            more = part(tmp_path, "other", "slave", f'"{master}"')
            other = running_server("--config", more)
            await anyio.to_thread.run_sync(other.__enter__)
            try:
                event = await anext(events)
                assert isinstance(event, NodeInformation)
                assert (event.id, event.slave, event.connected) == ("other", True, True)
            finally:
                await anyio.to_thread.run_sync(other.__exit__, None, None, None)
            event = await anext(gone)
            assert isinstance(event, NodeInformation)
            assert (event.id, event.connected) == ("other", False)


def test_the_command(places: tuple[str, str]) -> None:
    master, slave = places
    anyio.run(connected, slave)
    lines = CliRunner().invoke(cli, ["nodes", "-a", slave]).output.splitlines()
    assert lines[0].startswith(f"{master}  master  127.0.0.1  connected ")
    assert lines[1] == "tmq://127.0.0.1:9  master  127.0.0.1  not connected"
    (line,) = CliRunner().invoke(cli, ["nodes", "-a", master]).output.splitlines()
    assert line.startswith("slave  slave  ")
