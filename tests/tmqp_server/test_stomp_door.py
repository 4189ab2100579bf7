"""STOMP clients by others, stomp.py and stompman, at our server, and beside TMQP."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import stomp
import stompman

from tests.project import ROOT
from tests.tmqp_server.stomp_clients import (
    CLASSES,
    Clients,
    StompPy,
    config,
    in_thread,
    port_of,
    with_clients,
)
from tmqp_client import connect
from tmqp_server import ConfigError, running

BODIES: Final = ("", "text", "voilà: 1\\2\n\nx", "x" * 100_000)
VERSIONS: Final = tuple(CLASSES)

# --- stomp.py ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_sent_is_received(version: str) -> None:
    def work(found: Clients) -> list[str]:
        producer, consumer = found.make(version), found.make(version)
        consumer.subscribe("/queue/a")
        for number, body in enumerate(BODIES):
            producer.send("/queue/a", body, str(number), correlation="c:d\\e", type="t")
        frames = [consumer.take() for _ in BODIES]
        for frame in frames:
            assert frame.headers["destination"] == "/queue/a"
            assert frame.headers["correlation"] == "c:d\\e"
            assert frame.headers["type"] == "t"
        return [frame.body for frame in frames]

    assert await with_clients(work) == list(BODIES)


async def test_bytes_of_every_value() -> None:
    def work(found: Clients) -> bytes:
        client = found.make(auto_decode=False)
        client.subscribe("/queue/a")
        client.send("/queue/a", bytes(range(256)))
        body: bytes = client.take().body
        return body

    assert await with_clients(work) == bytes(range(256))


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_not_acknowledged_comes_again(version: str) -> None:
    def work(found: Clients) -> list[tuple[str, str]]:
        first = found.make(version)
        for body in ("1", "2", "3"):
            first.send("/queue/a", body, body)
        first.subscribe("/queue/a", ack="client")
        frames = [first.take() for _ in range(3)]
        first.ack(frames[1])
        first.connection.disconnect(receipt="bye")
        assert first.receipt() == "bye"
        second = found.make(version)
        second.subscribe("/queue/a", ack="client")
        frame = second.take()
        second.ack(frame)
        return [(frame.body, frame.headers["redelivered"])]

    assert await with_clients(work) == [("3", "true")]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_a_refused_message_becomes_a_dead_letter(version: str) -> None:
    def work(found: Clients) -> tuple[str, str, str]:
        client = found.make(version)
        client.subscribe("/queue/a", ack="client-individual")
        client.send("/queue/a", "poison", "1")
        for _ in range(3):
            client.ack(client.take(), positive=False)
        client.subscribe("/queue/ActiveMQ.DLQ", "dead")
        frame = client.take()
        headers = frame.headers
        return frame.body, headers["Dead-Letter-Reason"], headers["Dead-Letter-Attempts"]

    found = await with_clients(work, config(options={"redeliveries": 2}))
    assert found == ("poison", "put-backs", "3")


@pytest.mark.parametrize("version", VERSIONS)
async def test_transactions(version: str) -> None:
    def work(found: Clients) -> list[str]:
        client = found.make(version)
        client.subscribe("/queue/in", "in", ack="client")
        client.subscribe("/queue/out", "out")
        client.send("/queue/in", "question", "1")
        question = client.take()
        for ends in ("abort", "commit"):
            name = client.connection.begin()
            client.send("/queue/out", f"answer {ends}", transaction=name)
            client.ack(question, transaction=name)
            getattr(client.connection, ends)(name)
        answers = [client.take().body]
        client.send("/queue/out", "last", "2")
        return [*answers, client.take().body]

    assert await with_clients(work) == ["answer commit", "last"]


async def test_a_topic_goes_to_all_who_are_subscribed() -> None:
    def work(found: Clients) -> list[str]:
        subscribers = [found.make(version) for version in VERSIONS]
        for each in subscribers:
            each.subscribe("/topic/news")
        found.make().send("/topic/news", "now", "1")
        return [each.take().body for each in subscribers]

    assert await with_clients(work) == ["now"] * 3


async def test_heart_beats_keep_a_silent_connection() -> None:
    def work(found: Clients) -> tuple[bool, int]:
        client = found.make(heartbeats=(400, 400))
        time.sleep(3)
        return client.connection.is_connected(), client.beats

    connected, beats = await with_clients(work, config(options={"heart_beat_ms": 100}))
    assert connected
    assert beats >= 5


async def test_an_error_says_what_went_wrong() -> None:
    def work(found: Clients) -> tuple[str, str]:
        client = found.make()
        client.connection.send("/nowhere", "x", headers={"receipt": "r"})
        frame = client.error()
        return frame.headers["receipt-id"], frame.headers["message"]

    receipt, message = await with_clients(work)
    assert receipt == "r"
    assert "there is no destination '/nowhere'" in message


ACCESS: Final = {
    "roles": {
        "jobs": {
            "rights": ["push", "join", "create-channel", "create-queue"],
            "channels": ["jobs", "ActiveMQ.DLQ"],
        }
    },
    "tokens": [{"name": "ann", "user": "ann", "password": "pw", "roles": ["jobs"]}],
}


async def test_login_and_passcode_are_those_of_the_access_table() -> None:
    def work(found: Clients) -> str:
        for names in (("ann", "other"), ("ann",), ()):
            stranger = found.unconnected()
            with pytest.raises(stomp.exception.ConnectFailedException):
                stranger.connect(*names)
            assert "not allowed" in stranger.error().headers["message"]
        client = found.unconnected()
        client.connect("ann", "pw")
        client.subscribe("/queue/jobs")
        client.send("/queue/jobs", "x", "1")
        assert client.take().body == "x"
        client.connection.send("/queue/secret", "x", headers={"receipt": "2"})
        message: str = client.error().headers["message"]
        return message

    assert "SEND to '/queue/secret': not allowed" in await with_clients(work, config(access=ACCESS))


OF_SUBSCRIBERS: Final = ("join", "create-queue", "see-channel", "feed")


@pytest.mark.parametrize("missing", ["", *OF_SUBSCRIBERS])
async def test_the_rights_that_a_durable_subscription_needs(missing: str) -> None:
    rights = [each for each in OF_SUBSCRIBERS if each != missing]
    access = {
        "roles": {
            "subscriber": {"rights": rights, "channels": ["durable://me/*", "topic://t"]},
            "dead": {"rights": ["push"], "channels": ["ActiveMQ.DLQ"]},
        },
        "tokens": [
            {"name": "ann", "user": "ann", "password": "pw", "roles": ["subscriber", "dead"]}
        ],
    }

    def work(found: Clients) -> str:
        client = found.unconnected()
        client.connect("ann", "pw", **{"client-id": "me"})
        headers = {"activemq.subscriptionName": "n"}
        if not missing:
            client.subscribe("/topic/t", **headers)
            return ""
        client.connection.subscribe("/topic/t", "1", headers=headers)
        message: str = client.error().headers["message"]
        return message

    told = await with_clients(work, config(access=access))
    assert ("not allowed" in told or "may not create it" in told) == bool(missing), told


async def test_many_messages_to_two_consumers() -> None:
    def work(found: Clients) -> list[int]:
        consumers = [found.make() for _ in range(2)]
        for each in consumers:
            each.subscribe("/queue/a", **{"activemq.prefetchSize": "50"})
        producer = found.make()
        for number in range(2_000):
            producer.send("/queue/a", str(number))
        taken: list[int] = []
        deadline = time.monotonic() + 30
        while len(taken) < 2_000 and time.monotonic() < deadline:
            for each in consumers:
                while not each.messages.empty():
                    taken.append(int(each.take().body))
            time.sleep(0.01)
        return sorted(taken)

    assert await with_clients(work) == list(range(2_000))


# --- stompman ------------------------------------------------------------------------------------


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_stompman_in_a_transaction_and_with_manual_answers() -> None:
    async with running(config()) as server:
        where = stompman.ConnectionParameters("127.0.0.1", port_of(server, "stomp"), "ann", "x")
        heard: list[tuple[bytes, str]] = []
        done = anyio.Event()

        async def handle(frame: Any) -> None:
            heard.append((frame.body, frame.headers.get("redelivered", "")))
            if len(heard) == 2:
                await frame.nack()
            else:
                await frame.ack()
            if len(heard) == 4:
                done.set()

        with anyio.fail_after(30):
            async with stompman.Client([where]) as client:
                async with client.begin() as transaction:
                    for number in range(3):
                        await transaction.send(b"%d" % number, "/queue/a")
                subscription = await client.subscribe_with_manual_ack("/queue/a", handle)
                await done.wait()
                await subscription.unsubscribe()
        assert [body for body, _ in heard] == [b"0", b"1", b"2", b"1"]
        assert heard[-1][1] == "true"


# --- beside TMQP ---------------------------------------------------------------------------------


async def test_a_queue_is_reached_by_stomp_and_tmqp(tmp_path: Path) -> None:
    async with running(config(tmp_path)) as server:
        port = port_of(server, "stomp")

        def send(found: Clients) -> None:
            headers = {"priority": "9", "correlation-id": "7", "colour": "red"}
            found.make().send("/queue/orders", "by stomp", "1", **headers)

        def take(found: Clients) -> tuple[str, dict[str, str]]:
            client = found.make()
            client.subscribe("/queue/orders")
            frame = client.take()
            return frame.body, frame.headers

        await in_thread(send, port)
        async with connect(server.addresses[0]) as client:
            information = await client.queue_information("orders", 0)
            assert information.saved_messages == 1
            async with client.consume("orders") as messages:
                async for message in messages:
                    assert message.payload == b"by stomp"
                    assert message.high_priority
                    headers = dict(message.headers)
                    assert headers["Correlation-Id"] == "7"
                    assert headers["colour"] == "red"
                    break
            await client.push("orders", 0, b"by tmqp", headers=[("shape", "round")])
        body, told = await in_thread(take, port)
        assert (body, told["shape"]) == ("by tmqp", "round")


async def test_a_worker_of_tmqp_answers_to_a_temporary_queue() -> None:
    async with running(config()) as server:

        def ask(found: Clients) -> tuple[str, str]:
            client = found.make()
            client.subscribe("/temp-queue/Answers")
            client.send("/queue/work", "6*7", "1", **{"reply-to": "/temp-queue/Answers"})
            frame = client.take()
            return frame.body, frame.headers["correlation-id"]

        async def work() -> None:
            async with (
                connect(server.addresses[0]) as client,
                client.consume("work") as messages,
            ):
                async for message in messages:
                    reply_to = dict(message.headers)["Reply-To"]
                    channel = reply_to.replace("/remote-temp-queue/", "temp-queue://")
                    headers = [("Correlation-Id", message.message_id)]
                    await client.push(channel, 0, b"42", headers=headers)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            body, asked = await in_thread(ask, port_of(server, "stomp"))
            tasks.cancel_scope.cancel()
    assert body == "42"
    assert asked


async def test_what_has_a_receipt_outlives_the_server(tmp_path: Path) -> None:
    def send(found: Clients) -> None:
        found.make().send("/queue/a", "kept", "1", persistent="true")

    def take(found: Clients) -> str:
        client = found.make()
        client.subscribe("/queue/a")
        body: str = client.take().body
        return body

    async with running(config(tmp_path)) as server:
        await in_thread(send, port_of(server, "stomp"))
    async with running(config(tmp_path)) as server:
        assert await in_thread(take, port_of(server, "stomp")) == "kept"


async def test_a_durable_subscription_outlives_the_server(tmp_path: Path) -> None:
    """Its selector, too: who begins again reads it from the disk."""
    durable = {"activemq.subscriptionName": "news", "selector": "n > 1"}

    def member(found: Clients) -> StompPy:
        client = found.unconnected()
        client.connect(**{"client-id": "me"})
        client.subscribe("/topic/t", ack="client", **durable)
        return client

    def subscribe(found: Clients) -> None:
        member(found)
        found.end()
        send(found, "before")

    def send(found: Clients, body: str) -> None:
        producer = found.make()
        producer.send("/topic/t", "unwanted", "1", n="1")
        producer.send("/topic/t", body, "2", n="2")

    def take(found: Clients) -> list[str]:
        send(found, "after")
        client = member(found)
        return [client.take().body for _ in range(2)]

    async with running(config(tmp_path)) as server:
        await in_thread(subscribe, port_of(server, "stomp"))
    async with running(config(tmp_path)) as server:
        assert await in_thread(take, port_of(server, "stomp")) == ["before", "after"]


async def test_the_last_expiry_and_the_longest_delay(tmp_path: Path) -> None:
    last = str(2**63 - 1)

    def send(found: Clients) -> str:
        found.make().send("/queue/a", "kept", "1", expires=last)
        client = found.make()
        client.connection.send("/queue/a", "x", headers={"AMQ_SCHEDULED_DELAY": last})
        message: str = client.error().headers["message"]
        return message

    def take(found: Clients) -> tuple[str, str]:
        client = found.make()
        client.subscribe("/queue/a")
        frame = client.take()
        return frame.body, frame.headers["expires"]

    async with running(config(tmp_path)) as server:
        assert "a limit is reached" in await in_thread(send, port_of(server, "stomp"))
    async with running(config(tmp_path)) as server:
        assert await in_thread(take, port_of(server, "stomp")) == ("kept", last)


async def test_the_example_says_what_happens() -> None:
    async with running(config()) as server:
        program = str(ROOT / "examples" / "stomp_client.py")
        with anyio.fail_after(60):
            done = await anyio.run_process(
                [sys.executable, program, "127.0.0.1", str(port_of(server, "stomp"))]
            )
    assert done.stdout.decode().splitlines() == [
        "the server has job-6",
        "the server has job-7",
        "6 squared is 36",
        "7 squared is 49",
        "the server says bye",
    ]


@pytest.mark.parametrize(
    ("door", "reason"),
    [
        ({"options": {"prefetch": 0}}, "prefetch must be at least 1"),
        ({"options": {"redeliver": 1}}, "did you mean redeliveries"),
        ({"limits": {"max_headers": 0}}, "max_headers must be positive"),
    ],
)
async def test_doors_that_cannot_be_opened(door: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with running(config(**door)):
            pass
