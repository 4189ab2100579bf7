"""What dead letters say: by every door, after a restart, and not by their producers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.tmqp_server.test_doors import HTTP, TOY, ToyClient, serving
from tmqp.constants import STATUS_PULL
from tmqp.models import ModelError, QueueOptions
from tmqp_client import Client, DeadLetter, connect
from tmqp_server import Server
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.settings.options import DeclaredChannel, DeclaredQueue

NAMES = ["Dead-Letter-Reason", "Dead-Letter-Queue", "Dead-Letter-Attempts"]
FORGED = [(NAMES[0], "full"), ("dead-letter-queue", "else;9"), (NAMES[2], "77"), ("Mine", "1")]
#: Each reason, how a queue comes to it, and how often it has sent the message before.
CAUSES: dict[str, tuple[dict[str, Any], int]] = {
    "expired": ({"message_timeout_ms": 50, "expired_to_dead_letter": True}, 0),
    "full": ({"message_limit": 1, "when_full": "dead-letter"}, 0),
    "put-backs": ({"delivery_handler": "putback-end", "put_back_limit": 1}, 2),
}


def channels(cause: str, *, durable: bool = False) -> tuple[DeclaredChannel, ...]:
    """A queue that makes dead letters; what is refused there is moved on to another queue."""
    options, _ = CAUSES[cause]
    first = QueueChanges(dead_letter=("dead", 1), durable=durable, **options)
    again = QueueChanges(
        dead_letter=("graves", 2), durable=durable, delivery_handler="putback-end", put_back_limit=1
    )
    places = (
        ("Orders", 1, first),
        ("dead", 1, again),
        ("graves", 2, QueueChanges(durable=durable)),
    )
    return tuple(
        DeclaredChannel(name, ChannelChanges(), (DeclaredQueue(queue_id, changes),))
        for name, queue_id, changes in places
    )


async def kill(client: Client, cause: str) -> None:
    """Push a message that its queue gives up."""
    told = cause != "put-backs"  # whose handler answers when the message is done
    await client.push("orders", 1, b"first", headers=FORGED, message_id="m1", wait=told)
    if cause == "full":
        await client.push("orders", 1, b"second")
    elif cause == "put-backs":
        with anyio.fail_after(20):
            async with client.consume("orders", 1) as messages:
                for _ in range(2):
                    message = await messages.get()
                    assert DeadLetter.of(message) is None
                    assert message.headers == [("Mine", "1")], "nobody else says so"
                    await message.nack("error")


@pytest.mark.parametrize("cause", CAUSES)
async def test_a_dead_letter_says_why_from_where_and_after_how_many_attempts(cause: str) -> None:
    expected = DeadLetter(cause, "Orders", 1, CAUSES[cause][1])
    async with serving(channels=channels(cause)) as server, connected(server) as client:
        await kill(client, cause)
        with anyio.fail_after(20):
            async with client.consume("dead", 1) as messages:
                message = await messages.get()
                assert DeadLetter.of(message) == expected
                assert message.headers[0] == ("Mine", "1")
                assert len(message.headers) == 4, "what the producer wrote is not there"
                await message.nack("error")
                await (await messages.get()).nack("error")
            async with client.consume("graves", 2) as messages:
                moved = await messages.get()
                assert (moved.payload, moved.message_id) == (b"first", "m1")
                assert DeadLetter.of(moved) == expected, "what happened first"


@pytest.mark.parametrize("cause", CAUSES)
async def test_it_says_so_after_a_restart_too(tmp_path: Path, cause: str) -> None:
    expected = DeadLetter(cause, "Orders", 1, CAUSES[cause][1])
    asked = channels(cause, durable=True)
    async with serving(data=tmp_path, channels=asked) as server, connected(server) as client:
        await kill(client, cause)
        with anyio.fail_after(20):
            while not (await client.queue_information("dead", 1)).messages:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    async with serving(data=tmp_path, channels=asked) as server, connected(server) as client:
        with anyio.fail_after(20):
            async with client.consume("dead", 1) as messages:
                message = await messages.get()
                assert DeadLetter.of(message) == expected
                await message.nack("error")
                await (await messages.get()).nack("error")
            async with client.consume("graves", 2) as messages:
                assert DeadLetter.of(await messages.get()) == expected


async def test_every_door_shows_it() -> None:
    said = list(zip(NAMES, ["expired", "Orders;1", "0"], strict=True))
    async with (
        serving(TOY, channels=channels("expired")) as server,
        await ToyClient.dial(server.door_addresses("toy")[0]) as toy,
        connected(server) as client,
    ):
        channel = {"channel": "orders", "queue": 1}
        await toy.ask(do="push", id="toy's", body="", headers=[["Mine", "1"]], **channel)
        await toy.say(do="join", channel="dead")
        for _ in range(2):
            while (delivered := await toy.line())["is"] != "message":
                pass
            assert delivered["headers"] == [["Mine", "1"], *[list(pair) for pair in said]]
            await toy.say(do="nack", id="toy's", channel="dead", queue=1, reason="error")
        async with client.consume("graves", 2) as messages:
            with anyio.fail_after(20):
                message = await messages.get()
            assert message.headers == [("Mine", "1"), *said], "by another door than it came in"


async def test_it_is_shown_over_http() -> None:
    said = list(zip(NAMES, ["expired", "Orders;1", "0"], strict=True))
    pulled = (DeclaredQueue(1, QueueChanges(status=STATUS_PULL)),)
    dead = DeclaredChannel("dead", ChannelChanges(), pulled)
    asked = (channels("expired")[0], dead)
    async with serving(HTTP, channels=asked) as server, connected(server) as client:
        await kill(client, "expired")
        (url,) = server.door_addresses("http")
        async with httpx.AsyncClient(base_url=url, timeout=20) as web:
            place = "/api/v1/channels/dead/queues/1/deliveries"
            taken = await web.post(place, params={"max": 1, "wait": 10})
        (item,) = taken.json()["items"]
        assert item["headers"] == [["Mine", "1"], *[list(pair) for pair in said]]


async def test_nobody_can_push_what_looks_like_a_dead_letter() -> None:
    """Nor can it be pulled, nor taken by another door."""
    async with serving(TOY) as server, connected(server) as client:
        await client.create_queue("dead", 1, status="push")
        await client.create_queue("pulled", 1, status="pull")
        async with await ToyClient.dial(server.door_addresses("toy")[0]) as toy:
            await toy.ask(do="join", channel="dead")
            async with client.consume("dead", 1) as messages:
                await client.push("dead", 1, b"x", headers=FORGED)
                message = await messages.get()
                assert DeadLetter.of(message) is None
                assert message.headers == [("Mine", "1")]
            assert (await toy.line())["headers"] == [["Mine", "1"]]
        await client.push("pulled", 1, b"x", headers=FORGED)
        await client.join("pulled")
        (pulled,) = [each async for each in client.pull("pulled", 1, 1)]
        assert DeadLetter.of(pulled) is None
        assert pulled.header("Mine") == "1"


def connected(server: Server) -> Client:
    """A client of its TMQP door."""
    return connect(str(server.addresses[0]))


async def test_a_client_names_the_queue_of_dead_letters() -> None:
    async with serving() as server, connected(server) as client:
        options = QueueOptions(
            dead_letter_queue="Dead;7", message_timeout_ms=50, expired_to_dead_letter=True
        )
        await client.create_queue("orders", 1, options)
        assert (await client.queue_information("orders", 1)).dead_letter_queue == "Dead;7"
        await client.push("orders", 1, b"first", message_id="m1", wait=True)
        with anyio.fail_after(20):
            async with client.consume("dead", 7) as messages:
                message = await messages.get()
        assert DeadLetter.of(message) == DeadLetter("expired", "orders", 1, 0)
        none = QueueOptions(dead_letter_queue="", expired_to_dead_letter=False)
        await client.update_queue("orders", 1, none)
        assert (await client.queue_information("orders", 1)).dead_letter_queue is None


@pytest.mark.parametrize("address", ["dead", ";1", "dead;", "dead;x", "dead;65536", "de\nad;1"])
def test_what_is_no_address_is_no_queue_of_dead_letters(address: str) -> None:
    with pytest.raises(ModelError, match="DeadLetterQueue"):
        QueueOptions(dead_letter_queue=address)
