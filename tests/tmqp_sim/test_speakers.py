"""Connections of clients without a client machine: who finds out that one is half-open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tmqp_sim.faults import Target, inject
from tmqp_sim.network import Link, Network, Shape
from tmqp_sim.planned import Fault
from tmqp_sim.speakers import KEEPALIVE_S, Speaker
from tmqp_sim.world import World


class Server:
    """Holds the server's end of each connection, and learns how it ends."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def accept(self, link: Link) -> None:
        link.server.owner = self

    def readable(self) -> None:
        self.ends.append("closed")

    def writable(self) -> None:
        pass

    def broken(self, reason: str) -> None:
        self.ends.append(reason)


def connected() -> tuple[World, Target, Speaker, Server]:
    """A client at a server; what is sent takes a second."""
    world, server = World(1), Server()
    stage: Any = SimpleNamespace(
        world=world,
        network=Network(world, Shape(1.0, 1.0, 65_536, 0)),
        server=server,
        healed=False,
    )
    client = Speaker(stage, "client", "host ", "a protocol")
    client.connect()
    world.run(0.5)
    return world, cast("Target", stage), client, server


def half_open() -> Fault:
    """The oldest connection becomes so."""
    return Fault("half-open 0", "half-open", 0.0, 1.0, 0.0)


def test_the_kernel_gives_up_what_became_half_open_while_its_end_was_on_its_way() -> None:
    """The client was refused for ever, for its own old session had its id (seeds 33907, 37366)."""
    world, target, client, server = connected()
    client.close()
    inject(target, half_open())
    world.run(0.5 + 0.99 * KEEPALIVE_S)
    assert server.ends == []
    world.run(0.5 + KEEPALIVE_S)
    assert server.ends == ["connection timed out"]


def test_the_kernel_gives_up_what_was_half_open_when_its_client_closed_it() -> None:
    """Seed 22924."""
    world, target, client, server = connected()
    inject(target, half_open())
    client.close()
    world.run(0.5 + KEEPALIVE_S)
    assert server.ends == ["connection timed out"]


def test_the_peers_of_a_half_open_connection_must_find_that_out() -> None:
    world, target, _, server = connected()
    inject(target, half_open())
    world.run(100.0)
    assert server.ends == []
