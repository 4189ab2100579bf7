"""The network under test: bytes in order whatever happens, and every way a link can end."""

from __future__ import annotations

import pytest

from tmqp_sim.network import Broken, End, Link, Network, Shape
from tmqp_sim.world import World


class Reader:
    """Holds an end; reads all that comes unless it is told to wait."""

    def __init__(self, end: End) -> None:
        self.end = end
        end.owner = self
        self.got: list[bytes] = []
        self.reads = True
        self.room = 0
        self.reason = ""

    def readable(self) -> None:
        while self.reads:
            data = self.end.read()
            if data is None:
                return
            self.got.append(data)
            if not data:
                return

    def writable(self) -> None:
        self.room += 1

    def broken(self, reason: str) -> None:
        self.reason = reason


def linked(seed: int = 1, shape: Shape | None = None) -> tuple[World, Link, Reader, Reader]:
    """A world with one link, and somebody at each end."""
    world = World(seed)
    network = Network(world, Shape(0.001, 0.2, 65_536, 500) if shape is None else shape)
    link = network.open()
    return world, link, Reader(link.client), Reader(link.server)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_in_order_however_they_are_cut(seed: int) -> None:
    world, link, _, server = linked(seed)
    said = b""
    for number in range(50):
        piece = f"<{number}>".encode() * (number % 7 + 1)
        assert link.client.send(piece) == len(piece)
        said += piece
    link.client.close()
    world.run(60.0)
    assert b"".join(server.got) == said
    assert server.got[-1] == b"", "the end comes last"
    assert server.got.count(b"") == 1


def test_pieces_are_cut_and_delayed() -> None:
    world, link, _, server = linked(shape=Shape(0.1, 0.2, 65_536, 1_000))
    link.client.send(b"0123456789")
    world.run(0.05)
    assert server.got == []
    world.run(1.0)
    assert len(server.got) == 2


def test_who_does_not_read_stops_who_writes() -> None:
    world, link, client, server = linked(shape=Shape(0.001, 0.002, 100, 0))
    server.reads = False
    assert link.client.send(b"x" * 150) == 100
    assert link.client.send(b"x") == 0
    world.run(1.0)
    assert link.client.send(b"x") == 0
    assert client.room == 0
    server.reads = True
    server.readable()
    world.run(2.0)
    assert client.room == 1
    assert link.client.send(b"y" * 50) == 50


def test_silence_keeps_bytes_back_and_loses_none() -> None:
    world, link, _, server = linked()
    link.up.silent = True
    link.client.send(b"one")
    world.run(5.0)
    assert server.got == []
    link.client.send(b"two")
    link.up.speak()
    link.client.send(b"three")
    world.run(10.0)
    assert b"".join(server.got) == b"onetwothree"


def test_silence_is_one_way() -> None:
    world, link, client, server = linked()
    link.up.silent = True
    link.server.send(b"down")
    link.client.send(b"up")
    world.run(5.0)
    assert b"".join(client.got) == b"down"
    assert server.got == []


def test_a_cut_is_told_to_both_ends_each_in_its_time() -> None:
    world, link, client, server = linked()
    link.client.send(b"under way")
    link.cut(0.5, 0.1, "cut")
    world.run(0.2)
    assert (client.reason, server.reason) == ("", "cut")
    world.run(1.0)
    assert (client.reason, server.reason) == ("cut", "cut")
    assert server.got == [], "what was under way is gone"
    with pytest.raises(Broken):
        link.client.send(b"more")


def test_half_open_is_told_to_nobody() -> None:
    world, link, client, server = linked(shape=Shape(0.001, 0.002, 100, 0))
    link.dead = True
    assert link.client.send(b"x" * 200) == 100, "until there is no room"
    world.run(100.0)
    assert (client.reason, server.reason) == ("", "")
    assert server.got == []
    assert link.client.send(b"x") == 0


def test_who_sends_to_one_that_has_closed_is_reset() -> None:
    world, link, client, server = linked()
    link.server.close()
    link.client.send(b"anybody there?")
    world.run(1.0)
    assert client.reason == "reset by peer"
    assert server.got == []


def test_healing_ends_silence_and_not_death() -> None:
    world = World(1)
    network = Network(world, Shape(0.001, 0.002, 100, 0))
    silent, dead = network.open(), network.open()
    ends = Reader(silent.server), Reader(dead.server)
    silent.up.silent = True
    dead.dead = True
    for link in (silent, dead):
        link.client.send(b"x")
    world.run(1.0)
    network.heal()
    world.run(2.0)
    assert [reader.got for reader in ends] == [[b"x"], []]


def test_links_that_are_over_are_forgotten() -> None:
    world = World(1)
    network = Network(world, Shape(0.001, 0.002, 100, 0))
    links = [network.open() for _ in range(4)]
    links[0].cut(0.0, 0.0)
    links[1].client.close()
    links[1].server.close()
    links[2].dead = True
    assert network.living() == [links[3]]
    assert sorted(network.links) == [3, 4], "a half-open one is still held by somebody"
