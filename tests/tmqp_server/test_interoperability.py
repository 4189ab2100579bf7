"""The server for interoperability tests: every handler and router of its file, over sockets.

The command runs with ``examples/interoperability.toml``; what HTTP bindings call is a program of
this test's, under another port, so that line alone is replaced.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.project import ROOT
from tests.tmqp_client.server import running_server
from tests.tmqp_server.peers import ack, greeting, push
from tests.tmqp_server.programs import Program, program
from tests.tmqp_server.wires import Wire, dial
from tests.waiting import until
from tmqp.address import Address, parse_address
from tmqp.constants import PING_BYTES, MessageType, Operation
from tmqp.extensions import HEADER_ROUTER_ENABLED, ExtensionOperation
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation

pytestmark = [pytest.mark.anyio, pytest.mark.interop]

FILE = ROOT / "examples" / "interoperability.toml"
URL = "http://127.0.0.1:8080/"
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def called() -> Iterator[Program]:
    with program() as server:
        yield server


@pytest.fixture(scope="module")
def address(called: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    text = FILE.read_text(encoding="utf-8")
    assert URL in text
    path: Path = tmp_path_factory.mktemp("interoperability") / "tmqp.toml"
    path.write_text(text.replace(URL, called.url), encoding="utf-8")
    with running_server("--config", str(path)) as (tcp, _unix):
        yield parse_address(tcp)


@asynccontextmanager
async def client(address: Address, *join: str, name: str = "") -> AsyncIterator[Wire]:
    """A client, connected as the original's connects; all it does is bounded in time."""
    with anyio.fail_after(10):
        async with await dial(address) as wire:
            await wire.say(greeting(payload=ConnectionInformation("", name).encode()))
            assert (await wire.hear()).content_type == 202
            yield await wire.join(*join)


async def create(wire: Wire, channel: str, queue_id: int, handler: str, **headers: str) -> None:
    """Create a queue as the original's client does: everything in headers."""
    pairs = [("Queue-Id", str(queue_id)), ("Delivery-Handler", handler)]
    pairs += [(name.replace("_", "-"), value) for name, value in headers.items()]
    answer = await wire.ask(Operation.CREATE_QUEUE, channel, headers=pairs)
    assert answer.content_type == 0


async def silent(wire: Wire) -> bool:
    """Whether the server has said nothing since: a ping is the fence."""
    await wire.say(PING_BYTES)
    return (await wire.hear()).type == MessageType.PONG


def unique(word: str) -> str:
    return f"{word}{next(NUMBERS)}"


# --- Sizes ---------------------------------------------------------------------------------------


async def test_a_message_of_three_mebibytes_was_refused_that_the_original_takes(
    address: Address,
) -> None:
    """F14: 3 MiB were recorded; here up to 64 MiB are taken."""
    channel = unique("c")
    for size in (3 << 20, 17 << 20):
        async with client(address, channel) as consumer, client(address) as producer:
            await create(producer, f"{channel}", size >> 20, "ack-received")
            await producer.say(push(channel, size >> 20, "large", b"x" * size))
            assert (await producer.hear()).type == MessageType.ACKNOWLEDGE
            delivery = await consumer.hear()
            assert (delivery.message_id, len(delivery.payload)) == ("large", size)
            await consumer.say(ack(delivery))


# --- Delivery handlers ---------------------------------------------------------------------------


async def test_ack_received(address: Address) -> None:
    channel = unique("c")
    async with client(address) as producer:
        await create(producer, channel, 1, "ack-received")
        await producer.say(push(channel, 1, "m1"))  # told although it does not ask (F77)
        told = await producer.hear()
    assert (told.type, told.message_id, told.content_type) == (MessageType.ACKNOWLEDGE, "m1", 1)
    assert told.header("Nack-Reason") is None
    assert told.raw[:2] == b"\x93\x10"  # as recorded: F78


async def test_ack_sent(address: Address) -> None:
    channel = unique("c")
    async with client(address) as producer:
        await create(producer, channel, 1, "ack-sent")
        await producer.say(push(channel, 1, "m1"))
        assert await silent(producer)  # nobody has it yet
        async with client(address, channel):
            told = await producer.hear()
    assert (told.type, told.message_id) == (MessageType.ACKNOWLEDGE, "m1")
    assert told.raw[:2] == b"\x13\x10"  # sent already: F78


@pytest.mark.parametrize("reason", [None, "broken"])
async def test_ack_consumer(address: Address, reason: str | None) -> None:
    channel = unique("c")
    async with client(address) as producer, client(address) as consumer:
        await create(producer, channel, 1, "ack-consumer")
        await consumer.join(channel)
        await producer.say(push(channel, 1, "m1"))
        delivery = await consumer.hear()
        assert delivery.pending_acknowledge  # requested by default
        assert await silent(producer)
        await consumer.say(ack(delivery, reason))
        told = await producer.hear()
    assert (told.type, told.message_id) == (MessageType.ACKNOWLEDGE, "m1")
    assert told.header("Nack-Reason") == reason


async def test_ack_ifsaved(address: Address) -> None:
    channel = unique("c")
    async with client(address) as producer:
        await create(producer, channel, 1, "ack-ifsaved")
        await producer.say(push(channel, 1, "m1"))
        told = await producer.hear()
    # A server without a storage says that it has not saved it; either way it says so.
    assert (told.type, told.message_id) == (MessageType.ACKNOWLEDGE, "m1")
    assert told.header("Nack-Reason") in (None, "error")


async def test_reject(address: Address) -> None:
    channel = unique("c")
    async with client(address) as producer, client(address) as consumer:
        await create(producer, channel, 1, "reject")
        await consumer.join(channel)
        await producer.say(push(channel, 1, "m1", pending_acknowledge=True))
        assert await silent(producer)
        assert await silent(consumer)


async def test_reject_nack(address: Address) -> None:
    channel = unique("c")
    async with client(address) as producer:
        await create(producer, channel, 1, "reject-nack")
        await producer.say(push(channel, 1, "m1"))
        told = await producer.hear()
    assert (told.type, told.header("Nack-Reason")) == (MessageType.ACKNOWLEDGE, "none")


@pytest.mark.parametrize(("where", "second"), [("start", "m1"), ("end", "m2")])
async def test_put_back(address: Address, where: str, second: str) -> None:
    channel = unique("c")
    async with client(address) as producer, client(address) as consumer:
        await create(producer, channel, 1, f"putback-{where}", Wait_For_Acknowledge="1")
        await producer.say(push(channel, 1, "m1"), push(channel, 1, "m2"))
        assert await silent(producer)
        await consumer.say(
            Frame.build(MessageType.SERVER, channel, Operation.JOIN, message_id="join")
        )
        first = await consumer.hear()
        assert first.message_id == "m1"
        await consumer.say(ack(first, "none"))
        assert (await consumer.hear()).message_id == second


async def test_the_declared_queues_have_their_handlers(address: Address) -> None:
    async with client(address) as producer:
        await producer.say(push("handlers", 1, "m1"))
        assert (await producer.hear()).header("Nack-Reason") is None
        await producer.say(push("handlers", 6, "m2"))
        assert (await producer.hear()).header("Nack-Reason") == "none"
        listed = await producer.ask(Operation.QUEUE_LIST, "handlers")
        assert listed.payload.count(b'"Id":') == 8


# --- Routers -------------------------------------------------------------------------------------


async def route(wire: Wire, router: str, message_id: str, response: bool = False) -> None:
    """Publish, asking for an acknowledge, or for a response."""
    message = Frame.build(
        MessageType.ROUTER,
        router,
        3,
        b"x",
        message_id=message_id,
        pending_response=response,
        pending_acknowledge=not response,
    )
    await wire.say(message)


@asynccontextmanager
async def two_queues(address: Address) -> AsyncIterator[tuple[Wire, Wire, Wire]]:
    """A publisher, and a consumer of each of rt-a/10 and rt-b/10, which are new."""
    async with client(address) as publisher, client(address) as a, client(address) as b:
        for channel in ("rt-a", "rt-b"):
            await publisher.ask(Operation.REMOVE_CHANNEL, channel)
            await create(publisher, channel, 10, "allow-all")
        await a.join("rt-a")
        await b.join("rt-b")
        yield publisher, a, b


async def test_distribute(address: Address) -> None:
    async with two_queues(address) as (publisher, a, b):
        await route(publisher, "r-dist", "m1")
        for consumer, channel in ((a, "rt-a"), (b, "rt-b")):
            copy = await consumer.hear()
            assert (copy.type, copy.target, copy.content_type) == (0x11, channel, 10)
            assert copy.message_id != "m1"  # nothing is asked of it (F124)
        told = await publisher.hear()
    assert (told.type, told.message_id, told.target) == (MessageType.ACKNOWLEDGE, "m1", "r-dist")
    assert told.header("Nack-Reason") is None


async def test_only_first(address: Address) -> None:
    async with two_queues(address) as (publisher, a, b):
        await route(publisher, "r-first", "m1")
        assert (await a.hear()).payload == b"x"
        assert await silent(b)
        assert (await publisher.hear()).header("Nack-Reason") is None
        queue = [("Queue-Id", "10")]
        assert (
            await publisher.ask(Operation.REMOVE_QUEUE, "rt-a", headers=queue)
        ).content_type == 0
        await route(publisher, "r-first", "m2")
        assert (await b.hear()).payload == b"x"


async def test_round_robin(address: Address) -> None:
    async with two_queues(address) as (publisher, a, b):
        for number in range(4):
            await route(publisher, "r-rr", f"m{number}")
            assert (await publisher.hear()).header("Nack-Reason") is None
        for consumer in (a, b):
            assert [(await consumer.hear()).type for _ in range(2)] == [0x11, 0x11]
            assert await silent(consumer)


async def test_direct_with_a_response(address: Address) -> None:
    async with client(address, name="worker") as worker, client(address) as publisher:
        await route(publisher, "r-direct", "m1", response=True)
        asked = await worker.hear()
        assert (asked.type, asked.content_type) == (MessageType.DIRECT_MESSAGE, 77)
        assert asked.pending_response
        answer = Frame.build(MessageType.RESPONSE, asked.source, 0, b"done", message_id="m1")
        await worker.say(answer)
        assert (await publisher.hear()).payload == b"done"


async def test_direct_with_an_acknowledge(address: Address) -> None:
    async with client(address, name="worker") as worker, client(address) as publisher:
        await route(publisher, "r-direct-ack", "m1")
        asked = await worker.hear()
        assert asked.pending_acknowledge
        await worker.say(
            Frame.build(
                MessageType.ACKNOWLEDGE, asked.source, 77, message_id="m1", high_priority=True
            )
        )
        assert (await publisher.hear()).type == MessageType.ACKNOWLEDGE


async def test_by_tag(address: Address) -> None:
    channel = unique("c")
    async with client(address) as publisher, client(address) as consumer:
        await create(publisher, channel, 5, "allow-all", Queue_Tag="tag-x")
        await consumer.join(channel)
        await route(publisher, "r-tag", "m1")
        copy = await consumer.hear()
        assert (copy.type, copy.target, copy.content_type) == (0x11, channel, 5)


async def test_nobody_is_reached(address: Address) -> None:
    async with client(address) as publisher:
        for router in ("r-empty", "r-disabled", "nowhere"):
            await route(publisher, router, "m1")
            assert (await publisher.hear()).header("Nack-Reason") == "no-consumers"
            await route(publisher, router, "m2", response=True)
            told = await publisher.hear()
            assert (told.type, told.content_type) == (MessageType.RESPONSE, 404)


async def test_enabling_and_disabling(address: Address) -> None:
    number = ExtensionOperation.SET_ROUTER_ENABLED
    async with two_queues(address) as (publisher, a, _b):
        for word, reason in (("1", None), ("0", "no-consumers")):
            state = [(HEADER_ROUTER_ENABLED, word)]
            assert (await publisher.ask(number, "r-disabled", headers=state)).content_type == 0
            listed = (await publisher.ask(Operation.LIST_ROUTERS)).payload.decode()
            shown = "true" if word == "1" else "false"
            assert f'"Name":"r-disabled","IsEnabled":{shown}' in listed
            await route(publisher, "r-disabled", "m1")
            assert (await publisher.hear()).header("Nack-Reason") == reason
        assert (await a.hear()).payload == b"x"
        assert await silent(a)


async def test_by_http(address: Address, called: Program) -> None:
    async with client(address) as publisher:
        await route(publisher, "r-http", "m1")
        assert (await publisher.hear()).header("Nack-Reason") is None
        await route(publisher, "r-http-ack", "m2")
        told = await publisher.hear()
        assert (told.type, told.header("Nack-Reason")) == (MessageType.ACKNOWLEDGE, None)
        await route(publisher, "r-http-response", "m3", response=True)
        told = await publisher.hear()
        assert (told.type, told.content_type, told.payload) == (MessageType.RESPONSE, 0, b"GET")
        await route(publisher, "r-http-others", "m4")
        assert (await publisher.hear()).header("Nack-Reason") is None
        words = ("delete", "get", "patch", "post", "put")
        wanted = {(word.upper(), f"/tmqp/{word}") for word in words}
        # Nobody waits for a call that is neither acknowledged nor answered.
        await until(lambda: wanted <= {(each.method, each.path) for each in called.asked})
    assert {(each.method, each.path) for each in called.asked} == wanted
