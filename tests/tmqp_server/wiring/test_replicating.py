"""Servers of a group in one process: they stand by, lead, refuse and end; over a log in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx
import pytest
import zmq

from tests.project import ROOT
from tests.tmqp_server.replication.shared_logs import Shared, Way
from tests.tmqp_server.test_openwire_door import Program
from tests.tmqp_server.test_small_doors import port_of
from tests.tmqp_server.test_throttr import insert
from tests.tmqp_server.zmtp_sockets import sockets
from tests.waiting import until
from tmqp.models import QueueOptions
from tmqp_client import ConnectFailed, ConnectRefused, NegativeAcknowledge, OperationFailed, connect
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.hub.recovery import restoring
from tmqp_server.storage.log import Claim, Keep, Leader, Led, ListMembers, Members, Resign
from tmqp_server.storage.port import Recovered
from tmqp_server.storage.sqlite import SqliteStore, back_up
from tmqp_server.storage.sqlite.replicated import ReplicatedStore
from tmqp_server.wiring import replicating
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.replicating import GroupMember
from tmqp_server.wiring.running import running
from tmqp_wires.throttr.requests import encode_request

pytestmark = pytest.mark.cold

#: What does not wait for a thread is the same on every event loop.
ASYNCIO = pytest.mark.parametrize("anyio_backend", ["asyncio"])

DURABLE = QueueOptions(durable=True, request_acknowledge=True)


class Group:
    """A log, and the servers that share it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = Shared()
        self.ways: dict[str, Way] = {}
        self.over: dict[str, str] = {}
        #: Long enough for a loaded machine.
        self.lease_s = 5
        self._folder = folder
        self.leader = LEADER
        monkeypatch.setattr(replicating, "join", self._join)

    def _join(self, config: ServerConfig, _store: object) -> GroupMember:
        assert config.replication is not None
        name = config.replication.node
        way = self.ways[name] = Way(self.log)
        return GroupMember(config, partial(self.over.__setitem__, name), way)

    def config(self, name: str, **more: Any) -> ServerConfig:
        return ServerConfig(
            **read_config(
                {
                    "listen": ["tmq://127.0.0.1:0"],
                    "data": str(self._folder / name),
                    "storage": {"floor_bytes": 1},
                    "replication": {"log": "etcd://e:1/g", "node": name, "lease_s": self.lease_s},
                    "admin": {"listen": ["127.0.0.1:0"]},
                    "shutdown_timeout_s": 2.0,
                    **more,
                }
            )
        )

    @asynccontextmanager
    async def server(self, name: str, **more: Any) -> AsyncIterator[Server]:
        async with running(self.config(name, **more)) as server:
            yield server


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Group:
    return Group(tmp_path, monkeypatch)


def leads(server: Server) -> Callable[[], bool]:
    def check() -> bool:
        view = server.world.group
        return view is not None and view().role == "leader" and not server.world.problems()

    return check


def admin_url(server: Server) -> str:
    (place,) = server.door_addresses("admin")
    return "http://" + place.split("://", 1)[1]


#: Who leads elsewhere.
LEADER = Leader("z", "tmq://z:1", "token", 0, 0)


@asynccontextmanager
async def standby(group: Group, **more: Any) -> AsyncIterator[Server]:
    """A server that knows that another one leads."""
    claimed = group.log.ask(Claim(LEADER.node, LEADER.address, LEADER.token, 1e9))
    assert isinstance(claimed, Led)
    assert claimed.leader is not None
    group.leader = claimed.leader
    async with group.server("a", **more) as server:
        view = server.world.group
        assert view is not None
        await until(lambda: view().leader == LEADER.address and bool(view().members[1:]))
        await until(lambda: server.leader_address == LEADER.address)
        yield server


async def hand_over(first: Server, second: Server, messages: int) -> None:
    """Stop a leader; another server has all its messages, which are numbered."""
    first.stop()
    await first.wait_until_over()
    await until(leads(second))
    async with (
        connect(str(second.addresses[0])) as client,
        client.consume("c", 1) as owed,
    ):
        found = [int((await owed.get()).payload) for _ in range(messages)]
    assert found == list(range(messages))


async def test_what_a_leader_has_confirmed_is_served_by_the_next_one(group: Group) -> None:
    async with group.server("a") as first:
        await until(leads(first))
        async with group.server("b") as second:
            async with connect(str(first.addresses[0])) as client:
                await client.create_queue("c", 1, DURABLE, status="push")
                for number in range(20):
                    await client.push("c", 1, b"%d" % number)
            assert not leads(second)()
            await hand_over(first, second, 20)
    assert group.over == {}


@ASYNCIO
async def test_a_standby_tells_clients_where_the_leader_is(group: Group) -> None:
    async with standby(group) as server:
        # It goes there at once.
        with pytest.raises(ConnectFailed, match=f"cannot connect to {LEADER.address}"):
            async with connect(str(server.addresses[0]), reconnect=None):
                raise AssertionError("it is let in")


POST = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
#: What each protocol's clients say first, and what a standby answers before it closes.
GREETINGS = {
    "nsq": (b"  V2SUB c q\n", b"E_INVALID this server is a standby"),
    "stomp": (b"CONNECT\naccept-version:1.2\nhost:x\n\n\0", b"this server is a standby"),
    "http": (POST % b"/api/v1/channels/c/queues/1/messages", b"Node-Address: tmq://z:1"),
    "nsqd-http": (POST % b"/pub?topic=t", b'{"message":"STANDBY"}'),
    "smq": (b"S\n", b""),
    "goms": (b'{"type":"register","topics":["news"]}\n', b""),
    "throttr": (encode_request(insert(b"k"), 2), b""),
}


@ASYNCIO
async def test_a_standby_refuses_each_protocol_in_its_own_way(group: Group) -> None:
    doors: list[dict[str, Any]] = [
        {"protocol": name, "listen": ["127.0.0.1:0"]} for name in (*GREETINGS, "openwire")
    ]
    doors[list(GREETINGS).index("goms")]["options"] = {"topics": ["news"]}
    async with standby(group, doors=doors) as server:
        for name, (said, answer) in GREETINGS.items():
            async with await anyio.connect_tcp("127.0.0.1", port_of(server, name)) as stream:
                await stream.send(said)
                heard = b""
                with anyio.fail_after(10.0):
                    async for data in stream:
                        heard += data
            assert answer in heard, (name, heard)
            assert answer or not heard, (name, heard)
        port = port_of(server, "openwire")
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            program = Program(stream)
            # A fail-over transport goes on to the next address when the connection ends; an
            # exception would end the program's connection for good.
            with pytest.raises(anyio.EndOfStream):
                await program.begin(None, None)


@ASYNCIO
async def test_sockets_of_zeromq_wait_at_a_standby_and_are_served_when_it_leads(
    group: Group,
) -> None:
    async with standby(group, doors=[{"protocol": "zmtp", "listen": ["127.0.0.1:0"]}]) as server:
        with sockets(port_of(server, "zmtp")) as made:
            producer = made.make(zmq.PUSH)
            await anyio.to_thread.run_sync(producer.send, b"x")
            group.log.ask(Resign(group.leader))
            await until(leads(server))
            async with (
                connect(str(server.addresses[0])) as client,
                client.consume("zeromq.queue") as messages,
            ):
                assert (await messages.get(timeout_s=10.0)).payload == b"x"


@ASYNCIO
async def test_operators_see_a_standby_and_cannot_change_its_queues(group: Group) -> None:
    async with standby(group) as server, httpx.AsyncClient(base_url=admin_url(server)) as client:
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.text) == (503, "standby\n")
        assert (await client.get("/readyz?role=any")).status_code == 200
        assert (await client.get("/healthz")).status_code == 200
        health = (await client.get("/api/v1/server/health")).json()
        assert (health["role"], health["problems"]) == ("standby", ["standby"])
        nodes = (await client.get("/api/v1/nodes")).json()["items"]
        assert [(each["id"], each["role"]) for each in nodes] == [("z", "leader"), ("a", "standby")]
        metrics = (await client.get("/metrics")).text
        assert 'tmqp_replication_role{role="standby"} 1' in metrics
        assert 'tmqp_replication_role{role="leader"} 0' in metrics
        assert "tmqp_replication_epoch 1" in metrics
        assert "tmqp_replication_applied 0" in metrics
        assert "tmqp_replication_behind 0" in metrics
        made = await client.put("/api/v1/channels/c", json={})
        assert made.status_code == 503
        listed = await client.get("/api/v1/channels")
        assert listed.status_code == 503


def slow_store(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Have stores read what they hold when they may; the first event says that one wants to."""
    reads, may_read = threading.Event(), threading.Event()
    recover = ReplicatedStore.recover

    def slow(store: ReplicatedStore) -> Recovered:
        reads.set()
        assert may_read.wait(60.0)
        return recover(store)

    monkeypatch.setattr(ReplicatedStore, "recover", slow)
    return reads, may_read


@ASYNCIO
async def test_a_server_that_begins_to_lead_answers_while_its_store_is_read(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, may_read = slow_store(monkeypatch)
    async with (
        group.server("a") as server,
        httpx.AsyncClient(base_url=admin_url(server)) as probe,
    ):
        await until(reads.is_set)
        kept = group.log.asked[Keep]
        assert (await probe.get("/healthz")).status_code == 200
        assert (await probe.get("/readyz")).text == "standby\n"
        with pytest.raises(ConnectRefused, match=r"the server is a standby$"):
            async with connect(str(server.addresses[0]), reconnect=None):
                raise AssertionError("it is let in")
        await until(lambda: group.log.asked[Keep] > kept)
        may_read.set()
        await until(leads(server))
    assert group.over == {}


@ASYNCIO
async def test_a_server_that_is_stopped_while_its_store_is_read_gives_it_back_as_it_was(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, may_read = slow_store(monkeypatch)
    async with group.server("a") as server:
        await until(reads.is_set)
        server.stop(at_once=True)
        await until(lambda: server.world.draining)
        may_read.set()
        await server.wait_until_over()
    assert group.over == {}
    async with group.server("a") as server:
        await until(leads(server))


@ASYNCIO
async def test_others_have_their_turn_between_slices_of_what_is_restored(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with group.server("a") as server:
        await until(leads(server))
        async with connect(str(server.addresses[0])) as client:
            for number in range(1, 21):
                await client.create_queue(f"c{number}", 1, DURABLE, status="push")
                await client.push(f"c{number}", 1, b"%d" % number)
    steps = 0
    longest: list[int] = []
    checkpoint = anyio.lowlevel.checkpoint

    def counted(*arguments: Any) -> Iterator[None]:
        nonlocal steps
        for _ in restoring(*arguments):
            steps += 1
            yield

    async def counts() -> None:
        nonlocal steps
        if steps:
            longest.append(steps)
            steps = 0
        await checkpoint()

    monkeypatch.setattr(replicating, "restoring", counted)
    monkeypatch.setattr(replicating, "_STEPS_PER_SLICE", 4)
    monkeypatch.setattr(anyio.lowlevel, "checkpoint", counts)
    async with group.server("a") as server:
        await until(leads(server))
        assert len(longest) == 15  # 20 channels, their queues, and the feeds of each
        assert max(longest) == 4
        async with connect(str(server.addresses[0])) as client:
            for number in range(1, 21):
                async with client.consume(f"c{number}") as messages:
                    assert (await messages.get()).payload == b"%d" % number
    assert group.over == {}


@ASYNCIO
async def test_nodes_are_listed_with_what_they_have(group: Group) -> None:
    async with group.server("a") as first:
        await until(leads(first))
        async with group.server("b") as second:
            await until(lambda: second.leader_address == str(first.addresses[0]))
            async with connect(str(first.addresses[0])) as client:
                await client.create_queue("c", 1, DURABLE, status="push")
                await client.push("c", 1, b"x")
                node = (await client.nodes())[0]
                with anyio.fail_after(10.0):
                    while (node.applied or 0) < 3:
                        await anyio.sleep(0.05)
                        node = (await client.nodes())[0]
            assert (node.role, node.behind, node.shard) == ("leader", 0, 0)
            assert (node.id, node.host) == ("a", str(first.addresses[0]))
            assert node.epoch


@ASYNCIO
async def test_a_leader_that_cannot_keep_its_claim_ends_and_confirms_nothing(group: Group) -> None:
    group.lease_s = 1
    async with group.server("a") as server:
        await until(leads(server))
        async with connect(str(server.addresses[0]), reconnect=None) as client:
            await client.create_queue("c", 1, DURABLE, status="push")
            group.ways["a"].is_cut = True
            with anyio.move_on_after(20.0):
                with pytest.raises(NegativeAcknowledge):
                    await client.push("c", 1, b"x", timeout_s=15.0)
                # The command's process has ended before that word.
                assert "could not be kept for 1 s" in group.over["a"]
            await until(lambda: bool(group.over))
    assert "could not be kept for 1 s" in group.over["a"]


@ASYNCIO
async def test_a_log_without_room_is_told_to_producers_and_heals(group: Group) -> None:
    async with (
        group.server("a") as server,
        httpx.AsyncClient(base_url=admin_url(server)) as probe,
    ):
        await until(leads(server))
        async with (
            connect(str(server.addresses[0])) as client,
            connect(str(server.addresses[0])) as other,
        ):
            await client.create_queue("c", 1, DURABLE, status="push")
            group.ways["a"].is_full = True
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.push, "c", 1, b"waits")
                await until(lambda: not server.world.saves())
                with pytest.raises(OperationFailed, match="503"):
                    await other.push("c", 1, b"refused")
                assert (await probe.get("/readyz")).status_code == 503
                group.ways["a"].is_full = False
            await until(server.world.saves)
            await other.push("c", 1, b"taken")
    assert group.over == {}


def test_without_a_group_nothing_of_it_is_imported() -> None:
    code = (
        "import sys, tmqp_server.__main__, tmqp_server.wiring.running;"
        "print([each for each in sys.modules if 'grpc' in each or 'etcd' in each"
        " or 'tmqp_server.wiring.replicating' == each or 'sqlite.replicated' in each"
        " or each == 'tmqp_server.io.replica'])"
    )
    paths = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=paths)
    assert done.stdout == "[]\n"


def reported(group: Group) -> int:
    """The last entry that the only server has on its disk."""
    found = group.log.ask(ListMembers())
    assert isinstance(found, Members)
    return found.members[0].applied if found.members else 0


@ASYNCIO
async def test_a_server_that_has_lost_too_much_joins_with_a_copy_of_another_one(
    group: Group, tmp_path: Path
) -> None:
    async with group.server("a") as first:
        await until(leads(first))
        async with connect(str(first.addresses[0])) as client:
            await client.create_queue("c", 1, DURABLE, status="push")
            for number in range(20):
                await client.push("c", 1, b"%d" % number)
            await until(lambda: reported(group) > 1)
            group.log.server.first = reported(group) + 1  # nobody else was waited for
            async with group.server("b"):
                await until(lambda: "b" in group.over)
            assert "the log begins with entry" in group.over.pop("b")
            await client.push("c", 1, b"20")
            await anyio.to_thread.run_sync(back_up, tmp_path / "a", tmp_path / "copy")
            await client.push("c", 1, b"21")
        shutil.rmtree(tmp_path / "b")
        (tmp_path / "copy").rename(tmp_path / "b")
        async with group.server("b") as second:
            await hand_over(first, second, 22)
    assert group.over == {}
    # What the tool had left beside the copy did not fit to it any more: others refused it.
    with closing(SqliteStore(tmp_path / "b", floor_bytes=0)) as store:
        assert len(store.recover(looking=True).queues) == 1
