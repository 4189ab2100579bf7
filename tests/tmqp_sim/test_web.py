"""Clients that speak HTTP under test: which refusals they have to put up with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tmqp_sim.network import End, Network, Shape
from tmqp_sim.overseers import Overseer
from tmqp_sim.stage import Stage
from tmqp_sim.web import WEB_LIMITS, HttpLine, open_line
from tmqp_sim.world import Violation, World

pytestmark = pytest.mark.cold

_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 2\r\n\r\n{}"
_HEAD_S = WEB_LIMITS.head_timeout_s
_BODY_S = WEB_LIMITS.body_timeout_s


class Server:
    """Reads all that comes, and gives it up when it is told to."""

    def __init__(self, end: End) -> None:
        self.end = end
        end.owner = self

    def readable(self) -> None:
        while self.end.read() is not None:
            pass

    def writable(self) -> None:
        """Whatever it sends has room."""

    def broken(self, reason: str) -> None:
        raise AssertionError(reason)

    def give_up(self) -> None:
        self.end.send(_TOO_LATE)


def opened(room: int = 65_536) -> tuple[World, HttpLine, Server]:
    """A connection to a server that reads; so many bytes are under way to it at a time."""
    world = World(1)
    network = Network(world, Shape(0.001, 0.002, 65_536, 0))
    stage: Any = SimpleNamespace(
        world=world, network=network, server=SimpleNamespace(accept=lambda _link: None)
    )
    line = open_line(cast("Stage", stage), "slow", lambda: None)
    line.link.up.narrow(room)
    return world, line, Server(line.link.server)


def ask(line: HttpLine, body: bytes | None = None) -> list[int]:
    """Send a request; return where the status of its answer will stand."""
    heard: list[int] = []
    line.ask("/", body, None, lambda status, _body: heard.append(status), 20.0)
    return heard


def test_a_request_that_came_whole_is_not_answered_with_408() -> None:
    world, line, server = opened()
    ask(line, b"body")
    world.after(_HEAD_S + _BODY_S, server.give_up)
    with pytest.raises(Violation, match="408 answers what came in time"):
        world.run(20.0)


@pytest.mark.parametrize(("room", "waits_s"), [(20, _HEAD_S), (70, _BODY_S)], ids=["head", "body"])
def test_a_request_that_comes_too_slowly_may_be_answered_with_408(
    room: int, waits_s: float
) -> None:
    """The network is clogged behind its first byte, or behind its head (seed 31338)."""
    world, line, server = opened(room)
    heard = ask(line, b"b" * 100)
    line.link.up.clogged_by = waits_s
    world.after(waits_s + 0.1, server.give_up)
    world.run(20.0)
    assert heard == [408]


@pytest.mark.parametrize("room", [20, 70], ids=["head", "body"])
def test_a_request_is_not_given_up_before_its_time(room: int) -> None:
    world, line, server = opened(room)
    ask(line, b"b" * 100)
    line.link.up.clogged_by = 20.0
    world.after(_HEAD_S - 0.1, server.give_up)
    with pytest.raises(Violation, match="408 answers what came in time"):
        world.run(20.0)


def test_an_overseer_asks_again_later_when_its_request_came_too_slowly() -> None:
    """It took 408 for a wrong answer to its question (seed 31338)."""
    world, line, server = opened(20)
    stage: Any = SimpleNamespace(world=world)
    Overseer(stage, "overseer")._page(line, "clients", "limit=5", lambda: None)
    line.link.up.clogged_by = _HEAD_S
    world.after(_HEAD_S + 0.1, server.give_up)
    world.run(4.0)
    assert not line.asked
