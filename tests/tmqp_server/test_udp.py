"""The tests' own protocol over UDP, by real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
import pytest

from tests.tmqp_server.test_doors import HTTP, TOY, config, serving
from tests.tmqp_server.toy_door import ToyKind
from tests.waiting import until
from tmqp_client import connect
from tmqp_server import ConfigError, parse_config, running

UDP = {"protocol": "toy", "listen": ["udp://127.0.0.1:0"]}


class UdpClient:
    """One source address."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("toy+udp://").rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect((host.strip("[]"), int(port)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.send(data)

    async def ask(self, **asked: Any) -> dict[str, Any]:
        self.send(json.dumps(asked).encode())
        return await self.line()

    async def line(self) -> dict[str, Any]:
        """The next datagram: one line."""
        with anyio.fail_after(20):
            await anyio.wait_readable(self._socket)
        found: dict[str, Any] = json.loads(self._socket.recv(65_536))
        return found


@asynccontextmanager
async def speaking(address: str, name: str) -> AsyncIterator[UdpClient]:
    with UdpClient(address) as client:
        assert (await client.ask(do="connect", id=name))["is"] == "accepted"
        yield client


async def exchange() -> None:
    """Two sources, a TCP client of the same protocol's door and one of TMQP."""
    async with serving(UDP, TOY) as server, connect(str(server.addresses[0])) as native:
        udp = server.door_addresses("toy")[-1]
        assert udp.startswith("toy+udp://127.0.0.1:")
        async with speaking(udp, "one") as one, speaking(udp, "two") as two:
            assert server.sessions == 3
            assert (await one.ask(do="join", channel="c"))["is"] == "reply"
            answer = await two.ask(do="push", channel="c", queue=1, id="m1", body="aGk=")
            assert (answer["is"], answer["positive"]) == ("confirm", True)
            assert (await one.line())["body"] == "aGk="
            await native.push("c", 1, b"from TMQP")
            assert (await one.line())["body"] == "ZnJvbSBUTVFQ"
            one.send(b"no JSON")
            assert (await one.line())["is"] == "bye"
            await until(lambda: server.sessions == 2)
            assert (await one.ask(do="connect", id="one"))["is"] == "accepted", "a new session"
        server.stop()
        await until(lambda: server.sessions == 0)


async def test_sources_have_sessions_and_reach_every_door() -> None:
    await exchange()


def test_the_sockets_run_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(exchange())


async def test_a_source_hears_that_the_server_stops() -> None:
    async with serving(UDP) as server, speaking(server.door_addresses()[0], "one") as one:
        server.stop()
        assert await one.line() == {"is": "bye", "reason": "the server stops"}


async def test_a_quiet_source_hears_that_its_session_ends() -> None:
    quick = {**UDP, "udp": {"idle_timeout_s": 0.2}}
    async with serving(quick) as server, speaking(server.door_addresses()[0], "one") as one:
        assert await one.line() == {"is": "bye", "reason": "no datagram for 0.2 s"}
        await until(lambda: server.sessions == 0)


async def test_a_flood_of_source_addresses_leaves_the_others_alone() -> None:
    few = {**UDP, "udp": {"max_sessions": 20, "idle_timeout_s": 1.0}}
    async with serving(few) as server, connect(str(server.addresses[0])) as native:
        address = server.door_addresses()[0]
        async with speaking(address, "good") as good:
            await good.ask(do="join", channel="c")
            await good.ask(do="push", channel="d", queue=1, id="m1")
            before = server.broker.statistics()
            for number in range(300):
                with UdpClient(address) as bad:
                    bad.send(json.dumps({"do": "connect", "id": f"bad{number}"}).encode())
                    bad.send(b"\x00" * 100 if number % 2 else b"")
                if number % 50 == 0:
                    assert (await good.ask(do="join", channel="c"))["is"] == "reply"
            await native.ping()
            assert server.sessions <= 21
            after = server.broker.statistics()
            assert after.state_bytes - before.state_bytes < 20 * 20_000
            assert (await good.ask(do="push", channel="d", queue=1, id="m2"))["is"] == "confirm"
            await until(lambda: server.sessions <= 2)
        assert server.broker.statistics().state_bytes <= before.state_bytes


async def test_a_datagram_that_is_too_long_to_be_sent_is_lost_and_nothing_else() -> None:
    async with (
        serving(UDP) as server,
        connect(str(server.addresses[0])) as native,
        speaking(server.door_addresses()[0], "one") as one,
    ):
        await one.ask(do="join", channel="c")
        await native.push("c", 1, b"x" * 100_000)
        await native.push("c", 1, b"short")
        assert (await one.line())["body"] == "c2hvcnQ="


async def test_sources_outside_of_the_allowed_networks_get_no_session() -> None:
    closed = {**UDP, "allow": ["10.0.0.0/8"]}
    async with serving(closed, TOY) as server:
        with UdpClient(server.door_addresses()[-1]) as one:
            one.send(b'{"do": "connect", "id": "one"}')
            await anyio.sleep(0.1)
            assert server.sessions == 0


async def test_an_address_that_is_taken_is_named() -> None:
    async with serving(UDP) as server:
        address = server.door_addresses()[0].removeprefix("toy+")
        taken = {**UDP, "listen": [address]}
        with pytest.raises(Exception, match=f"cannot listen on {address}"):
            async with serving(taken):
                pass


async def test_a_protocol_without_datagrams_is_not_spoken_over_udp() -> None:
    for protocol in ("http", "tmqp"):
        door = {"protocol": protocol, "listen": ["udp://127.0.0.1:1999"]}
        with pytest.raises(
            ConfigError, match=r"127\.0\.0\.1:1999: this protocol is not spoken over"
        ):
            async with running(config(door), doors=[ToyKind()]):
                pass


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ('listen = ["udp://127.0.0.1"]', "got 'udp://127.0.0.1'"),
        ('listen = ["udp://"]', "udp://HOST:PORT, got 'udp://'"),
        ('listen = ["udp://unix:/tmp/x"]', "a Unix socket does not support datagrams"),
        ('listen = ["udp://127.0.0.1:1"]\ntls = true', "cannot have tls"),
        ("udp = { max_sessions = 3 }", "no meaning without an address udp://"),
        ('listen = ["udp://[::1]:1"]\nudp = { max_session = 3 }', "mean doors.udp.max_sessions"),
        ('listen = ["udp://[::1]:1"]\nudp = { max_sessions = 0 }', "doors.udp: max_sessions must"),
    ],
)
def test_settings_that_cannot_be_are_named(lines: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(f'[[doors]]\nprotocol = "toy"\n{lines}\n')
    assert complaint in str(caught.value)


def test_datagrams_from_other_machines_need_somebody_who_authenticates() -> None:
    remote = {"protocol": "toy", "listen": ["udp://0.0.0.0:1"]}
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        config(remote)
    assert config(remote, HTTP, allow_remote=True).doors[0].listen == ()
