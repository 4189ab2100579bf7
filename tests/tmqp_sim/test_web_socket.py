"""Clients of TMQP that come by WebSocket in the simulation."""

from __future__ import annotations

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, Pong, Request

from tmqp_sim.network import End, Network, Shape
from tmqp_sim.plan import draw_plan
from tmqp_sim.simulation import run
from tmqp_sim.web_socket import speak_through_web_socket
from tmqp_sim.world import Violation, World

pytestmark = pytest.mark.cold

#: Seeds whose plans have such clients.
SEEDS = (15, 182)
PIECES = [bytes([number]) * size for number, size in enumerate((1, 5, 125, 126, 3_000, 70_000))]


class Client:
    """Sends all pieces as far as there is room, and reads until the end."""

    def __init__(self, end: End) -> None:
        self.end = end
        end.owner = self
        self.unsent = b"".join(PIECES)
        self.got = b""
        self.ended = False

    def writable(self) -> None:
        while self.unsent and (sent := self.end.send(self.unsent[:80_000])):
            self.unsent = self.unsent[sent:]

    def readable(self) -> None:
        while not self.ended and (data := self.end.read()) is not None:
            self.got += data
            self.ended = data == b""

    def broken(self, reason: str) -> None:
        raise AssertionError(reason)


class Echo:
    """A server that pings, sends back what it gets, and closes behind the last byte."""

    def __init__(self, end: End, code: int = 1000) -> None:
        self.end = end
        end.owner = self
        self.code = code
        self.pongs = 0
        self.closed_with: list[int] = []
        self._machine = WSConnection(ConnectionType.SERVER)
        self._left = len(b"".join(PIECES))
        self._unsent = b""

    def readable(self) -> None:
        while (data := self.end.read()) is not None:
            self._machine.receive_data(data or None)
            for event in self._machine.events():
                self._hear(event)
            self.writable()
            if not data:
                return

    def _hear(self, event: object) -> None:
        say = self._machine.send
        if isinstance(event, Request):
            assert event.subprotocols == ["tmqp"]
            self._unsent += say(AcceptConnection(subprotocol="tmqp")) + say(Ping(payload=b"there?"))
        elif isinstance(event, Ping):
            self._unsent += say(event.response())
        elif isinstance(event, Pong):
            assert event.payload == b"there?"
            self.pongs += 1
        elif isinstance(event, BytesMessage):
            self._unsent += say(BytesMessage(data=bytes(event.data)))
            self._left -= len(event.data)
            if not self._left:
                self._unsent += say(CloseConnection(code=self.code))
        elif isinstance(event, CloseConnection):
            self.closed_with.append(event.code)

    def writable(self) -> None:
        self._unsent = self.end.send_all(self._unsent)

    def broken(self, reason: str) -> None:
        raise AssertionError(reason)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_said_comes_back_however_it_is_cut(seed: int) -> None:
    world = World(seed)
    link = Network(world, Shape(0.001, 0.02, 2_048, 500)).open()
    client = Client(speak_through_web_socket(link, "someone"))
    server = Echo(link.server)
    world.run(120.0)
    assert (client.unsent, client.got, client.ended) == (b"", b"".join(PIECES), True)
    assert (server.pongs, server.closed_with) == (1, [1000])


def test_a_server_that_blames_the_client_is_noticed() -> None:
    world = World(1)
    link = Network(world, Shape(0.001, 0.02, 65_536, 500)).open()
    Client(speak_through_web_socket(link, "someone"))
    Echo(link.server, code=1002)
    with pytest.raises(Violation, match="closed with 1002"):
        world.run(120.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_befalls_them_nothing_is_lost(seed: int) -> None:
    assert draw_plan(seed).web_sockets
    result = run(seed)
    assert not result.failed, result.text
    assert result.marks["client came by WebSocket"] > 0
