"""Links to masters in the event loop: masters that are away, strange or slow, and stopping."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from tests.tmqp_server.peers import greeting, push
from tests.tmqp_server.wires import serving, wire
from tests.waiting import until
from tmqp.address import Address
from tmqp.constants import MessageType, Operation
from tmqp_server.access.auth import Access, Applicant, Identity
from tmqp_server.cluster.filters import NodeFilter, Passing
from tmqp_server.cluster.link import LinkState
from tmqp_server.config import OutboundLimits, ServerConfig
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.cluster import ClusterConfig
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.clustering import Membership, load_filter
from tmqp_server.wiring.running import running

pytestmark = pytest.mark.anyio

NOBODY = Address("127.0.0.1", 9)
TOKEN = "secret"


def cluster(name: str, *masters: Address, **more: Any) -> ClusterConfig:
    role = "both" if masters else "master"
    more.setdefault("reconnect_min_s", 0.05)
    more.setdefault("reconnect_max_s", 0.1)
    return ClusterConfig(name=name, token=TOKEN, role=role, masters=masters, **more)


def membership(server: Server) -> Membership:
    assert server.cluster is not None
    return server.cluster


async def test_two_servers_over_tcp_and_a_unix_socket(tmp_path: Path) -> None:
    place = Address(socket_path=str(tmp_path / "s"))
    async with (
        serving(cluster=cluster("m"), listen=(Address("127.0.0.1", 0), place)) as master,
        serving(cluster=cluster("tcp", master.addresses[0])) as one,
        serving(cluster=cluster("unix", place)) as two,
        wire(master, "far", "c") as far,
        wire(one, "a") as a,
        wire(two, "b") as b,
    ):
        links = [membership(server).links[0] for server in (one, two)]
        await until(lambda: all(each.state == LinkState.UP for each in links))
        await a.say(push("c", 1, "tcp", b"x" * 500_000))
        await b.say(push("c", 1, "unix"))
        got = [await far.hear(), await far.hear()]
        assert {(f.message_id, f.source) for f in got} == {("tcp", "a"), ("unix", "b")}
        body = (await far.ask(Operation.INSTANCE_LIST)).payload
        assert body.count(b'"Connected":true') == 2
        await until(lambda: links[0].outbox.written == 1)
    assert all(each.state == LinkState.CLOSED for each in links)


class Nobody(Access):
    """Lets nobody in, and nobody do anything."""


class Pushers(Access):
    """Lets everybody in, who may push into one channel only."""

    async def authenticate(self, applicant: Applicant) -> bool:
        return True

    async def may_join(self, who: Identity, channel: str) -> bool:
        return True

    async def may_push(self, who: Identity, channel: str, queue_id: int) -> bool:
        return channel == "c"


async def test_a_node_needs_no_right_but_the_token_and_passes_on_what_its_clients_may_do() -> None:
    async with (
        serving(cluster=cluster("m"), asking=Nobody()) as master,
        serving(cluster=cluster("s", master.addresses[0]), asking=Pushers()) as slave,
        wire(slave, "a", "c") as client,
        wire(master) as stranger,
    ):
        (node,) = membership(slave).links
        await until(lambda: node.state == LinkState.UP)
        await stranger.say(greeting("x"))
        assert (await stranger.hear()).content_type == 401
        await client.say(push("forbidden", 1, "no"), push("c", 1, "m"))
        assert (await client.hear()).content_type == 401
        assert (await client.hear()).message_id == "m"
        await until(lambda: master.broker.statistics().messages == 1)
        assert node.outbox.written == 1
        assert membership(slave).relay.statistics.forwarded == 1


async def test_a_master_that_is_away_is_tried_again_and_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(cluster=cluster("s", NOBODY)) as server, wire(server, "a") as client:
        (node,) = membership(server).links
        await until(lambda: node.failures >= 3)
        body = (await client.ask(Operation.INSTANCE_LIST)).payload
        assert b'"Connected":false' in body
    lines = [r.getMessage() for r in caplog.records if r.name == "tmqp_server.cluster"]
    assert "tmq://127.0.0.1:9: Connection refused; next try in 0." in lines[0]


async def _answers(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        await stream.receive()
        await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def _hangs(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        await anyio.sleep_forever()


async def test_a_place_where_nobody_speaks_tmqp() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, _answers)
            async with serving(cluster=cluster("s", Address("127.0.0.1", port))) as server:
                (node,) = membership(server).links
                await until(lambda: node.failures >= 2)
                assert "not TMQP" in node.problem
            tasks.cancel_scope.cancel()


async def test_a_master_that_never_answers_does_not_hold_the_server() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, _hangs)
            async with serving(cluster=cluster("s", Address("127.0.0.1", port))) as server:
                (node,) = membership(server).links
                await until(lambda: node.state == LinkState.HANDSHAKING)
                began = anyio.current_time()
            assert anyio.current_time() - began < 5.0
            tasks.cancel_scope.cancel()


async def _welcomes(stream: anyio.abc.SocketStream) -> None:
    """Accept the node, and then read nothing."""
    async with stream:
        await stream.receive()
        accepted = b"TMQP/2.0" + bytes.fromhex("90 10 00 00 01 ca 00 00") + b"s"
        await stream.send(accepted)
        await anyio.sleep_forever()


async def test_a_master_that_reads_nothing_is_given_up_and_costs_no_more_than_the_buffer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    limits = OutboundLimits(stall_timeout_s=0.3, flush_timeout_s=0.1)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, _welcomes)
            part = cluster("s", Address("127.0.0.1", port), buffer_bytes=2_000_000)
            async with (
                serving(cluster=part, outbound=limits) as server,
                wire(server, "a") as client,
            ):
                (node,) = membership(server).links
                outbox = node.outbox
                await until(lambda: node.state == LinkState.UP)
                for number in range(30):
                    await client.say(push("c", 1, f"m{number}", b"x" * 500_000))
                await client.ask(Operation.CLIENT_LIST)
                assert outbox.waiting_bytes <= 2_000_000
                await until(lambda: outbox.dropped > 0 and node.failures > 0)
            tasks.cancel_scope.cancel()
    lines = [r.getMessage() for r in caplog.records]
    assert any("messages given up: the buffer is full" in line for line in lines)
    assert any("it took nothing for 0.3 seconds" in line for line in lines)


class Broken(NodeFilter):
    """Fails."""

    def forwards(self, passing: Passing) -> bool:
        raise ValueError("no idea")


class Strange:
    """Is no filter."""


class Picky(NodeFilter):
    """Cannot be made."""

    def __init__(self) -> None:
        raise ValueError("not today")


HERE = __name__


async def test_a_filter_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    loaded = load_filter("tests.tmqp_server.io.test_node_link:Broken")
    assert type(loaded).__name__ == "Broken"
    part = cluster("s", NOBODY, filter="tests.tmqp_server.io.test_node_link:Broken")
    async with serving(cluster=part) as server, wire(server, "a", "c") as client:
        await client.say(push("c", 1, "m"))
        assert (await client.hear()).type == MessageType.QUEUE_MESSAGE
        assert membership(server).relay.statistics.filter_errors >= 1
    assert "the filter of the cluster failed" in caplog.text
    assert "no idea" in caplog.text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"filter": "nocolon"}, "filter must be module:Class"),
        ({"filter": "no_such_module:X"}, "no_such_module:X cannot be imported"),
        ({"filter": "tests.tmqp_server.io.test_node_link:Strange"}, "not a NodeFilter"),
        ({"filter": "tests.tmqp_server.io.test_node_link:Nothing"}, "the module has no Nothing"),
        ({"filter": "tests.tmqp_server.io.test_node_link:Picky"}, "not today"),
        ({"forward": ["a/99999"]}, "forward: 'a/99999': a queue is a number 0..65535"),
        ({"accept": [""]}, "accept: '': a pattern must be channel or channel/queue"),
        ({"accept_kinds": ["mail"]}, "accept: 'mail' is not one of queue, router"),
    ],
)
async def test_what_cannot_be_used_is_said_before_anything_is_opened(
    settings: dict[str, Any], words: str
) -> None:
    config = ServerConfig(
        listen=(Address("127.0.0.1", 0),), cluster=cluster("s", NOBODY, **settings)
    )
    with pytest.raises(ConfigError) as caught:
        async with running(config):
            raise AssertionError("it must not run")
    assert words in str(caught.value)
