"""ZeroMQ sockets, those of libzmq, at our server: every pattern, back-pressure, PLAIN, restarts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from tests.tmqp_server.zmtp_sockets import (
    PATIENCE_MS,
    Sockets,
    config,
    in_thread,
    messages,
    port_of,
    sockets,
    with_sockets,
)
from tmqp.models import QueueInformation, QueueOptions
from tmqp_client import Client, connect
from tmqp_server import ConfigError, running

# --- Patterns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("producer_first", [True, False])
async def test_push_and_pull(producer_first: bool) -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        if producer_first:
            push = found.make(zmq.PUSH)
            push.send_multipart(messages()[0])
            pull = found.make(zmq.PULL)
        else:
            pull = found.make(zmq.PULL)
            push = found.make(zmq.PUSH)
            push.send_multipart(messages()[0])
        for each in messages()[1:]:
            push.send_multipart(each)
        return [pull.recv_multipart() for _ in messages()]

    assert await with_sockets(work) == messages()


async def test_two_pull_sockets_share_and_lose_nothing() -> None:
    def work(found: Sockets) -> tuple[list[int], int, int]:
        pulls = [found.make(zmq.PULL) for _ in range(2)]
        time.sleep(0.3)
        push = found.make(zmq.PUSH)
        for number in range(5_000):
            push.send(b"%d" % number)
        poller = zmq.Poller()
        for pull in pulls:
            poller.register(pull, zmq.POLLIN)
        taken: list[list[int]] = [[], []]
        while sum(map(len, taken)) < 5_000:
            ready = poller.poll(PATIENCE_MS)
            assert ready, f"{sum(map(len, taken))} have come"
            for pull, _ in ready:
                taken[pulls.index(pull)].append(int(pull.recv()))
        assert taken[0] == sorted(taken[0])
        assert taken[1] == sorted(taken[1])
        return sorted(taken[0] + taken[1]), len(taken[0]), len(taken[1])

    found, first, second = await with_sockets(work)
    assert found == list(range(5_000))
    assert min(first, second) > 1_000


@pytest.mark.parametrize("kinds", [(zmq.PUB, zmq.SUB), (zmq.XPUB, zmq.XSUB)])
async def test_publish_and_subscribe(kinds: tuple[int, int]) -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        publisher, subscriber = found.make(kinds[0]), found.make(kinds[1])
        if kinds[1] == zmq.SUB:
            subscriber.subscribe(b"A")
        else:
            subscriber.send(b"\x01A")
        time.sleep(0.5)
        publisher.send(b"B not wanted")
        for each in messages():
            publisher.send_multipart([b"A", *each])
        return [subscriber.recv_multipart()[1:] for _ in messages()]

    assert await with_sockets(work) == messages()


async def test_a_subscription_ends() -> None:
    def work(found: Sockets) -> list[bytes]:
        publisher, subscriber = found.make(zmq.PUB), found.make(zmq.SUB)
        subscriber.subscribe(b"A")
        subscriber.subscribe(b"B")
        time.sleep(0.4)
        subscriber.unsubscribe(b"A")
        time.sleep(0.4)
        for topic in (b"A1", b"B1", b"C1", b"B2"):
            publisher.send(topic)
        return [subscriber.recv() for _ in range(2)]

    assert await with_sockets(work) == [b"B1", b"B2"]


async def test_request_and_reply() -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        asker, worker = found.make(zmq.REQ), found.make(zmq.REP)
        answers: list[list[bytes]] = []
        for each in messages():
            asker.send_multipart(each)
            worker.send_multipart([b"re", *worker.recv_multipart()])
            answers.append(asker.recv_multipart()[1:])
        return answers

    assert await with_sockets(work) == messages()


@pytest.mark.parametrize("delimited", [True, False])
async def test_a_dealer_asks_many_things_and_a_router_answers_in_any_order(
    delimited: bool,
) -> None:
    def work(found: Sockets) -> set[bytes]:
        dealer, router = found.make(zmq.DEALER), found.make(zmq.ROUTER)
        time.sleep(0.3)
        head = [b"mine", b""] if delimited else []
        for number in range(20):
            dealer.send_multipart([*head, b"%d" % number])
        asked = [router.recv_multipart() for _ in range(20)]
        for each in reversed(asked):
            router.send_multipart([*each[:-1], b"re:" + each[-1]])
        answers = [dealer.recv_multipart() for _ in range(20)]
        assert all(each[:-1] == head for each in answers)
        return {each[-1] for each in answers}

    assert await with_sockets(work) == {b"re:%d" % number for number in range(20)}


async def test_a_request_that_is_correlated_by_libzmq() -> None:
    def work(found: Sockets) -> bytes:
        asker, worker = found.make(zmq.REQ, REQ_CORRELATE=1, REQ_RELAXED=1), found.make(zmq.REP)
        asker.send(b"1")
        asker.send(b"2")
        for _ in range(2):
            worker.send(b"re:" + worker.recv())
        return asker.recv()

    assert await with_sockets(work) == b"re:2"


async def test_a_worker_that_dies_leaves_its_request_to_another() -> None:
    def work(found: Sockets) -> bytes:
        asker, first = found.make(zmq.REQ), found.make(zmq.REP)
        asker.send(b"work")
        assert first.recv() == b"work"
        first.close(linger=0)
        second = found.make(zmq.REP)
        second.send(b"done: " + second.recv())
        return asker.recv()

    assert await with_sockets(work) == b"done: work"


async def test_a_worker_has_one_request_at_a_time() -> None:
    def work(found: Sockets) -> list[bytes]:
        dealer, busy = found.make(zmq.DEALER), found.make(zmq.REP)
        for number in range(4):
            dealer.send_multipart([b"", b"%d" % number])
        assert busy.recv() == b"0"
        idle = found.make(zmq.REP)
        done = []
        for _ in range(3):
            done.append(idle.recv())
            idle.send(b"")
        return done

    assert await with_sockets(work) == [b"1", b"2", b"3"]


async def test_a_pair() -> None:
    settings = config(options={"socket_type": "PAIR"})
    async with running(settings) as server:
        port = port_of(server, "zmtp")
        async with connect(str(server.addresses[0])) as client:

            def send(found: Sockets) -> list[bytes]:
                pair = found.make(zmq.PAIR)
                pair.send(b"ping")
                answer = pair.recv()
                second = found.make(zmq.PAIR, RCVTIMEO=300)
                with pytest.raises(zmq.Again):
                    second.recv()
                return [answer]

            async def answer() -> None:
                async with client.consume("zeromq.pair") as consumer:
                    message = await anext(aiter(consumer))
                    await message.ack()
                    await client.push("zeromq.pair.out", 0, message.payload + b" pong")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer)
                assert await in_thread(send, port) == [b"ping pong"]


# --- Beside other protocols ----------------------------------------------------------------------


async def test_a_queue_is_reached_by_zeromq_and_tmqp() -> None:
    async with running(config(options={"queue_channel": "jobs"})) as server:
        port = port_of(server, "zmtp")
        async with connect(str(server.addresses[0])) as client:
            await in_thread(lambda found: found.send(zmq.PUSH, [b"a", b"bc"]), port)
            async with client.consume("jobs") as consumer:
                with anyio.fail_after(20):
                    message = await anext(aiter(consumer))
                assert message.payload == b"\0\0\0\1a\0\0\0\2bc"
                assert message.header("Content-Type") == "application/x-zmq-multipart"
                await message.ack()
            await client.push("jobs", 0, b"one")
            packed = {"Content-Type": "application/x-zmq-multipart"}
            await client.push("jobs", 0, message.payload, headers=packed)

            def pull(found: Sockets) -> list[list[bytes]]:
                socket = found.make(zmq.PULL)
                return [socket.recv_multipart() for _ in range(2)]

            assert await in_thread(pull, port) == [[b"one"], [b"a", b"bc"]]


async def test_a_tmqp_client_answers_a_request() -> None:
    async with running(config()) as server, connect(str(server.addresses[0])) as client:

        async def answer() -> None:
            async with client.consume("zeromq.service") as consumer:
                message = await anext(aiter(consumer))
                await client.send_direct(
                    message.header("Reply-To") or "",
                    b"re:" + message.payload,
                    headers={"Correlation-Id": message.message_id},
                )
                await message.ack()

        def ask(found: Sockets) -> bytes:
            socket = found.make(zmq.REQ)
            socket.send(b"question")
            return socket.recv()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            assert await in_thread(ask, port_of(server, "zmtp")) == b"re:question"


async def test_metadata_name_another_channel() -> None:
    async with running(config()) as server:
        port = port_of(server, "zmtp")
        await in_thread(
            lambda found: found.send(zmq.PUSH, [b"1"], METADATA=b"X-Channel:invoices"), port
        )
        async with (
            connect(str(server.addresses[0])) as client,
            client.consume("invoices") as consumer,
        ):
            with anyio.fail_after(20):
                message = await anext(aiter(consumer))
            assert message.payload == b"1"
            await message.ack()


# --- Full, slow, gone ----------------------------------------------------------------------------


async def test_a_push_into_a_full_queue_blocks_and_loses_nothing() -> None:
    async with running(config()) as server:
        port = port_of(server, "zmtp")
        with sockets(port) as found:
            push = found.make(zmq.PUSH, SNDTIMEO=500, SNDHWM=100)
            push.send(b"0")
            async with connect(str(server.addresses[0])) as client:
                with anyio.fail_after(20):
                    while True:
                        try:
                            options = QueueOptions(message_limit=10)
                            await client.update_queue("zeromq.queue", 0, options)
                            break
                        except Exception:  # noqa: BLE001 - the channel is about to be made
                            await anyio.sleep(0.05)

            def fill() -> int:
                sent = 1
                while True:
                    try:
                        push.send(b"%d" % sent + bytes(2_000))
                    except zmq.Again:
                        return sent
                    sent += 1

            sent = await anyio.to_thread.run_sync(fill)
            with pytest.raises(zmq.Again):
                push.send(b"", zmq.NOBLOCK)
            pull = found.make(zmq.PULL)

            def drain() -> list[int]:
                return [int(pull.recv().rstrip(b"\0")) for _ in range(sent)]

            assert await anyio.to_thread.run_sync(drain) == list(range(sent))


async def test_a_slow_subscriber_costs_nobody_else() -> None:
    def work(found: Sockets) -> tuple[int, int]:
        slow = found.make(zmq.SUB, RCVHWM=1, RCVBUF=4_096)
        quick = found.make(zmq.SUB, RCVHWM=0)
        for each in (slow, quick):
            each.subscribe(b"")
        publisher = found.make(zmq.PUB, SNDHWM=0)
        time.sleep(0.5)
        count = 20_000
        body = bytes(500)
        for number in range(count):
            publisher.send(b"%08d" % number + body)
        for number in range(count):
            assert int(quick.recv()[:8]) == number
        slow.setsockopt(zmq.RCVTIMEO, 500)
        got = 0
        try:
            while True:
                slow.recv()
                got += 1
        except zmq.Again:
            return count, got

    count, got = await with_sockets(work)
    assert 0 < got < count


async def test_an_operator_sees_what_a_slow_subscriber_missed_and_what_was_refused() -> None:
    count = 20_000

    def publish(found: Sockets) -> None:
        slow = found.make(zmq.SUB, RCVHWM=1, RCVBUF=4_096)
        slow.subscribe(b"")
        publisher = found.make(zmq.PUB, SNDHWM=0)
        time.sleep(0.5)
        for _ in range(count):
            publisher.send(bytes(500))
        publisher.close(linger=PATIENCE_MS)
        time.sleep(0.5)
        slow.close(linger=0)

    async with running(config()) as server:
        port = port_of(server, "zmtp")
        await in_thread(publish, port)
        async with connect(str(server.addresses[0])) as client:
            with anyio.fail_after(20):
                while True:
                    topic = await client.queue_information("zeromq.topic", 0)
                    missed = topic.skipped_deliveries or 0
                    if missed and missed + topic.deliveries == count:
                        break
                    await anyio.sleep(0.05)
            await in_thread(lambda found: found.send(zmq.PUSH, [b"small"]), port)
            await until(client, lambda queue: queue.messages == 1)
            await client.update_queue("zeromq.queue", 0, QueueOptions(message_size_limit=100))
            await in_thread(lambda found: found.send(zmq.PUSH, [bytes(1_000)]), port)
            await until(client, lambda queue: queue.refused_messages == 1)


async def until(client: Client, is_so: Callable[[QueueInformation], bool]) -> None:
    """Wait until the queue of PUSH and PULL sockets says so."""
    with anyio.fail_after(20):
        while not is_so(await client.queue_information("zeromq.queue", 0)):  # noqa: ASYNC110
            await anyio.sleep(0.05)


async def test_what_a_program_has_sent_leaves_it_within_its_linger() -> None:
    async with running(config()) as server:
        port = port_of(server, "zmtp")

        def send(found: Sockets) -> None:
            push = found.make(zmq.PUSH)
            for number in range(2_000):
                push.send(b"%d" % number)
            push.close(linger=-1)
            found.end()

        await in_thread(send, port)

        def take(found: Sockets) -> list[int]:
            pull = found.make(zmq.PULL)
            return [int(pull.recv()) for _ in range(2_000)]

        assert await in_thread(take, port) == list(range(2_000))


async def test_durable_messages_survive_and_sockets_connect_again(tmp_path: Path) -> None:
    settings = config(tmp_path, options={"durable": True})
    async with running(settings) as server:
        port = port_of(server, "zmtp")
        with sockets(port) as found:
            push = found.make(zmq.PUSH)
            for each in messages():
                push.send_multipart(each)
            asker = found.make(zmq.REQ, IDENTITY=b"asker")
            asker.send(b"question")
            await anyio.sleep(0.5)
    settings = config(tmp_path, port, options={"durable": True})
    with sockets(port) as found:
        pull = found.make(zmq.PULL)
        async with running(settings):

            def take() -> list[list[bytes]]:
                return [pull.recv_multipart() for _ in messages()]

            assert await anyio.to_thread.run_sync(take) == messages()
            asker = found.make(zmq.ROUTER)
            worker = await anyio.to_thread.run_sync(asker.recv_multipart)
            assert worker[-1] == b"question"


async def test_a_reply_finds_an_asker_with_an_identity_that_has_connected_again() -> None:
    def work(found: Sockets) -> list[bytes]:
        asker = found.make(zmq.DEALER, IDENTITY=b"me")
        asker.send_multipart([b"", b"question"])
        worker = found.make(zmq.REP)
        question = worker.recv()
        asker.close(linger=0)
        time.sleep(0.3)
        again = found.make(zmq.DEALER, IDENTITY=b"me")
        time.sleep(0.3)
        worker.send(b"re:" + question)
        return again.recv_multipart()

    assert await with_sockets(work) == [b"", b"re:question"]


# --- Who may, and what cannot be -----------------------------------------------------------------

ACCESS: Final = {
    "roles": {
        "all": {"rights": ["push", "join", "create-channel", "create-queue"], "channels": ["*"]}
    },
    "tokens": [{"name": "adm", "user": "adm", "password": "pw", "roles": ["all"]}],
}


def shakes_hands(found: Sockets, kind: int, **options: Any) -> bool:
    """Whether the server lets a socket in."""
    socket = found.unconnected(kind, **options)
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | _FAILED)
    monitor.setsockopt(zmq.RCVTIMEO, 1_500)
    socket.connect(found.address)
    try:
        event = int.from_bytes(monitor.recv_multipart()[0][:2], "little")
    except zmq.Again:
        event = 0
    finally:
        socket.disable_monitor()
        monitor.close(linger=0)
    return event == zmq.EVENT_HANDSHAKE_SUCCEEDED


_FAILED: Final = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


async def test_heartbeats_keep_a_quiet_socket() -> None:
    def work(found: Sockets) -> bytes:
        options = {"HEARTBEAT_IVL": 100, "HEARTBEAT_TTL": 300, "HEARTBEAT_TIMEOUT": 300}
        pull = found.make(zmq.PULL, **options)
        push = found.make(zmq.PUSH, **options)
        time.sleep(1.0)
        push.send(b"still here")
        return pull.recv()

    assert await with_sockets(work) == b"still here"


async def test_a_producer_that_sent_all_the_time_gave_a_server_with_heartbeats_up() -> None:
    """To libzmq a peer is gone that has sent a PING, and then nothing for the time it named."""

    def work(found: Sockets) -> list[int]:
        push = found.unconnected(zmq.PUSH)
        monitor = push.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        push.connect(found.address)
        time.sleep(0.5)
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            push.send(b"x")
            time.sleep(0.02)
        events: list[int] = []
        while monitor.poll(0):
            events.append(recv_monitor_message(monitor)["event"])
        push.disable_monitor()
        monitor.close(linger=0)
        return events

    settings = config(options={"heartbeat_ms": 200}, limits={"heartbeat_timeout_s": 0.7})
    assert await with_sockets(work, settings) == []


async def test_an_endpoint_of_one_type_refuses_others() -> None:
    def work(found: Sockets) -> tuple[bool, bool]:
        return shakes_hands(found, zmq.PUSH), shakes_hands(found, zmq.PULL)

    assert await with_sockets(work, config(options={"socket_type": "PULL"})) == (True, False)


@pytest.mark.parametrize(
    ("password", "is_let_in"), [(b"pw", True), (b"other", False), (None, False)]
)
async def test_plain_is_a_name_and_a_password(password: bytes | None, is_let_in: bool) -> None:
    def work(found: Sockets) -> bool:
        if password is None:
            return shakes_hands(found, zmq.PUSH)
        return shakes_hands(found, zmq.PUSH, PLAIN_USERNAME=b"adm", PLAIN_PASSWORD=password)

    settings = config(access=ACCESS, options={"mechanism": "plain"})
    assert await with_sockets(work, settings) == is_let_in


@pytest.mark.parametrize(
    ("door", "reason"),
    [
        ({"options": {"durable": True}}, "need a data directory"),
        ({"options": {"socket_type": "pull"}}, "must be one of PAIR"),
        ({"options": {"mechanism": "gssapi"}}, "must be null, plain or curve"),
        ({"options": {"heartbeat_ms": -1}}, "must not be negative"),
        ({"options": {"topic_channel": ""}}, "the name of a channel is empty"),
        ({"limits": {"max_parts": 0}}, "must be positive"),
        ({"options": {"connect": ["nowhere:x"]}}, "connect: "),
        (
            {"options": {"connect": ["a:1"], "mechanism": "plain"}},
            "null or curve: the server has no",
        ),
    ],
)
async def test_doors_that_cannot_be_opened(door: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with running(config(**door)):
            pass
