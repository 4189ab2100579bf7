"""Throttr over real sockets, beside TMQP: the same cells and the same channels for all."""

from __future__ import annotations

import socket
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import anyio.abc
import pytest

from tests.ports import free_port
from tests.tmqp_client.server import running_server
from tests.tmqp_server.all_but_one import all_but_one
from tests.tmqp_server.test_small_doors import config, port_of
from tmqp.models import QueueOptions
from tmqp_client import OperationFailed, connect
from tmqp_client.sync import connect as connect_blocking
from tmqp_server import ConfigError, Server, running
from tmqp_server.access import rights
from tmqp_wires.throttr import ClientConnection, Push, Reply, Request, words
from tmqp_wires.throttr.requests import encode_request

OLD = {"protocol": "throttr", "listen": ["127.0.0.1:0"]}
NEW = {**OLD, "options": {"dialect": "7.3"}}


class Throttr:
    """A connection that speaks Throttr."""

    def __init__(self, stream: anyio.abc.ByteStream, dialect: str) -> None:
        self._stream = stream
        self._wire = ClientConnection(dialect, 2)
        self.pushed: list[Push] = []

    @classmethod
    async def dial(cls, server: Server, dialect: str = "7.1") -> Throttr:
        return cls(await anyio.connect_tcp("127.0.0.1", port_of(server, "throttr")), dialect)

    async def ask(self, *requests: Request) -> list[Reply]:
        data = b"".join([self._wire.send(each) for each in requests])
        found: list[Reply] = []
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stream.send, data)
                while self._wire.outstanding:
                    for each in self._wire.receive(await self._stream.receive(262_144)):
                        if isinstance(each, Push):
                            self.pushed.append(each)
                        else:
                            found.append(each)
        return found

    async def push(self) -> Push:
        with anyio.fail_after(20):
            while not self.pushed:
                for each in self._wire.receive(await self._stream.receive()):
                    assert isinstance(each, Push)
                    self.pushed.append(each)
        return self.pushed.pop(0)

    async def close(self) -> None:
        await self._stream.aclose()


def insert(key: bytes, quota: int = 7, ttl: int = 60) -> Request:
    return Request(words.INSERT, key, b"", quota, words.TTL_SECONDS, ttl)


async def test_cells_are_shared_by_throttr_and_tmqp() -> None:
    async with running(config(OLD)) as server:
        peer = await Throttr.dial(server)
        await peer.ask(insert(b"k", 300), Request(words.SET, b"\xff%", b"\0data", 0, 5, 2))
        async with connect(str(server.addresses[0])) as client:
            cells = client.cells
            found = await cells.read("throttr-2", "k")
            assert found is not None
            assert (found.count, found.value) == (300, None)
            assert 50 < found.ttl_s <= 60
            other = await cells.read("throttr-2", b"\xff%")
            assert other is not None
            assert (other.count, other.value) == (None, b"\0data")
            assert [each.key async for each in cells.listed("throttr-2", limit=1)] == [
                "k",
                "%FF%25",
            ]
            assert await cells.subtract("throttr-2", "k", 298) == 2
            assert await cells.subtract("throttr-2", "k", 3) is None
            assert await cells.add("throttr-2", "k") == 3
            await cells.set_ttl("throttr-2", "k", 600)
            (reply,) = await peer.ask(Request(words.QUERY, b"k"))
            assert (reply.amount, reply.ttl_type) == (3, words.TTL_SECONDS)
            assert 590 <= reply.ttl < 600
            assert await cells.drop("throttr-2", "k")
            assert not await cells.drop("throttr-2", "k")
            assert [each.ok for each in await peer.ask(Request(words.QUERY, b"k"))] == [False]
        await peer.close()


async def test_cells_by_tmqp_alone() -> None:
    async with running(config()) as server, connect(str(server.addresses[0])) as client:
        cells = client.cells
        assert await cells.read("s", "k") is None
        assert await cells.describe("s", "k") is None
        assert await cells.make_counter("s", "k", 2**64 - 1, ttl_s=60)
        assert not await cells.make_counter("s", "k", 1, ttl_s=60)
        with pytest.raises(OperationFailed, match="406"):
            await cells.add("s", "k")
        with pytest.raises(OperationFailed, match="406"):
            await cells.put("s", "k", b"", ttl_s=1)
        await cells.set_count("s", "k", 5)
        await cells.extend("s", "k", 40)
        await cells.shorten("s", "k", 80)
        found = await cells.read("s", "k")
        assert found is not None
        assert 15 < found.ttl_s <= 20
        known = await cells.describe("s", "k")
        assert known is not None
        assert (known.kind, known.count, known.reads, known.writes) == ("counter", 5, 1, 4)
        left = [await cells.subtract("s", "calls", initial=2, ttl_s=9) for _ in range(3)]
        assert left == [1, 0, None]
        with pytest.raises(OperationFailed, match="404"):
            await cells.subtract("s", "missing")
        await cells.put("s", "gone", "text", ttl_s=0)
        assert await cells.read("s", "gone") is None
        names = [f"key {number}" for number in range(2_500)]
        for name in names[:3]:
            await cells.put("more", name, name, ttl_s=60)
        assert [each.key async for each in cells.listed("more")] == names[:3]
        assert [each.key async for each in cells.listed("none")] == []


async def test_cells_blocking() -> None:
    async with running(config()) as server:

        def talk() -> None:
            with connect_blocking(str(server.addresses[0])) as client:
                assert client.cells.make_counter("s", "k", 3, ttl_s=60)
                assert client.cells.subtract("s", "k", 2) == 1
                assert [each.count for each in client.cells.listed("s")] == [1]

        await anyio.to_thread.run_sync(talk)


async def test_a_channel_is_reached_by_throttr_and_tmqp() -> None:
    async with running(config(NEW)) as server:
        peer = await Throttr.dial(server, "7.3")
        await peer.ask(Request(words.SUBSCRIBE, b"news"))
        async with (
            connect(str(server.addresses[0])) as client,
            client.consume("news") as consumer,
        ):
            await client.push("news", 0, b"from TMQP")
            push = await peer.push()
            assert (push.channel, push.payload) == (b"news", b"from TMQP")
            await peer.ask(Request(words.PUBLISH, b"news", b"from Throttr"))
            with anyio.fail_after(20):
                messages = aiter(consumer)
                found = [(await anext(messages)).payload for _ in range(2)]
            assert found == [b"from TMQP", b"from Throttr"]
            assert (await peer.push()).payload == b"from Throttr"
        await peer.close()


async def test_fifty_thousand_pipelined_requests_are_answered_in_order() -> None:
    """The original answers about a thousand of ten thousand, and drops the rest.

    Here some were out of order once: what an answer led to went before the rest of its chunk.
    """
    async with running(config(OLD)) as server:
        peer = await Throttr.dial(server)
        asked = [
            each
            for number in range(25_000)
            for each in (
                insert(b"%d" % number, number % 65_536),
                Request(words.QUERY, b"%d" % number),
            )
        ]
        found = await peer.ask(*asked)
        assert [each.amount for each in found[1::2]] == list(range(25_000))
        assert all(each.ok for each in found)
        (listed,) = await peer.ask(Request(words.LIST))
        assert [each.name for each in listed.items] == [b"%d" % n for n in range(25_000)]
        await peer.close()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("dialect", ["7.1", "7.3"])
def test_a_million_pipelined_requests_are_answered_in_order(dialect: str, tmp_path: Path) -> None:
    """Each QUERY tells how many UPDATEs were done before it; the server is a process of its own."""
    port, requests = free_port(), 1_000_000
    file = tmp_path / "server.toml"
    door = f'[[doors]]\nprotocol = "throttr"\nlisten = ["127.0.0.1:{port}"]\n'
    file.write_text(f'{door}options = {{ dialect = "{dialect}" }}\n', encoding="utf-8")
    update = Request(words.UPDATE, b"k", amount=1, change=words.CHANGE_INCREASE)
    pair = encode_request(update, 2) + encode_request(Request(words.QUERY, b"k"), 2)
    first = encode_request(Request(words.INSERT, b"k", b"", 0, words.TTL_HOURS, 9), 2)
    with (
        running_server("--config", str(file)),
        socket.create_connection(("127.0.0.1", port), 60) as peer,
    ):
        peer.sendall(first)
        assert peer.recv(1) == b"\1"
        peer.sendall(encode_request(Request(words.QUERY, b"k"), 2))
        begin = b"".join([peer.recv(1) for _ in range(6)])
        assert begin[:4] == b"\1\0\0" + bytes((words.TTL_HOURS,))
        lasts = begin[3:]  # whole hours, which stay what they are
        sender = Thread(target=peer.sendall, args=(pair * (requests // 2),))
        sender.start()
        found = bytearray()
        while len(found) < 7 * requests // 2:
            data = peer.recv(1_048_576)
            assert data, f"the connection ended after {len(found)} bytes"
            found += data
        sender.join()
        peer.settimeout(0.3)
        with pytest.raises(TimeoutError):
            peer.recv(1)
    counts = [number % 65_536 for number in range(1, requests // 2 + 1)]
    expected = b"".join([b"\1\1%b%b" % (each.to_bytes(2, "little"), lasts) for each in counts])
    assert bytes(found) == expected


async def test_an_operator_sees_what_a_channel_refused() -> None:
    async with running(config(OLD)) as server:
        peer = await Throttr.dial(server)
        async with connect(str(server.addresses[0])) as client:
            await client.create_queue("news", 0, QueueOptions(message_size_limit=200))
            (reply,) = await peer.ask(Request(words.PUBLISH, b"news", bytes(1_000)))
            assert not reply.ok
            assert (await client.queue_information("news", 0)).refused_messages == 1
        await peer.close()


async def test_pipelined_messages_to_oneself_are_all_answered() -> None:
    """Their replies are late: what waited for them had nobody to go on with it."""
    async with running(config(NEW)) as server:
        peer = await Throttr.dial(server, "7.3")
        await peer.ask(Request(words.SUBSCRIBE, b"ch"))
        found = await peer.ask(*[Request(words.PUBLISH, b"ch", b"%d" % n) for n in range(3_000)])
        assert all(each.ok for each in found)
        assert [each.payload for each in peer.pushed] == [b"%d" % n for n in range(3_000)]
        await peer.close()


#: What is asked, and the right that it needs.
NEEDS: list[tuple[Request, str]] = [
    (insert(b"new"), rights.CELLS_WRITE),
    (Request(words.SET, b"v", b"x", 0, 4, 60), rights.CELLS_WRITE),
    (Request(words.UPDATE, b"k", b"", 1, 0, 0, 0, 1), rights.CELLS_WRITE),
    (Request(words.QUERY, b"k"), rights.CELLS_READ),
    (Request(words.GET, b"v"), rights.CELLS_READ),
    (Request(words.STAT, b"k"), rights.CELLS_READ),
    (Request(words.LIST), rights.CELLS_READ),
    (Request(words.STATS), rights.CELLS_READ),
    (Request(words.INFO), rights.CELLS_READ),
    (Request(words.PURGE, b"k"), rights.CELLS_WRITE),
    (Request(words.SUBSCRIBE, b"other"), rights.JOIN),
    (Request(words.PUBLISH, b"ch", b"x"), rights.PUSH),
    (Request(words.CHANNEL, b"ch"), rights.SEE_CONSUMERS),
    (Request(words.CONNECTIONS), rights.SEE_CLIENTS),
]


@pytest.mark.parametrize("right", sorted({right for _, right in NEEDS}))
async def test_of_all_rights_the_one_that_is_missing_forbids_a_request(right: str) -> None:
    """Two doors: the clients of one have every right, those of the other have all but one."""
    async with running(all_but_one(NEW, right, "throttr-2")) as server:
        ports = [int(each.rpartition(":")[2]) for each in server.door_addresses()]
        peers = [Throttr(await anyio.connect_tcp("127.0.0.1", port), "7.3") for port in ports[-2:]]
        full, limited = peers
        extra = Throttr(await anyio.connect_tcp("127.0.0.1", ports[-1]), "7.3")
        await extra.ask(Request(words.SUBSCRIBE, b"ch"))
        for request, needed in NEEDS:
            await full.ask(
                insert(b"k"), Request(words.SET, b"v", b"x", 0, 4, 60), Request(words.PURGE, b"new")
            )
            await full.ask(Request(words.SUBSCRIBE, b"ch"))
            (allowed,) = await full.ask(request)
            assert allowed.ok, request
            await full.ask(Request(words.PURGE, b"new"), insert(b"k"))
            (reply,) = await limited.ask(request)
            if right == rights.JOIN and needed == rights.SEE_CONSUMERS:
                continue  # nobody is on the channel
            assert reply.ok == (needed != right), request
        for peer in (*peers, extra):
            await peer.close()


@pytest.mark.parametrize(
    ("door", "reason"),
    [
        ({**OLD, "options": {"dialect": "8"}}, "dialect must be"),
        ({**OLD, "options": {"value_bytes": 3}}, "value_bytes must be"),
        ({**OLD, "options": {"valuebytes": 2}}, "did you mean value_bytes"),
        ({**OLD, "limits": {"max_unanswered": 0}}, "must be positive"),
        ({**OLD, "limits": {"max_unanswered": 15}}, "must be at least 16"),
    ],
)
async def test_doors_that_cannot_be_opened(door: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with running(config(door)):
            pass
