"""Bounds under pressure: slow consumers, servers that do not read, and what still goes on then."""

# ruff: noqa: ASYNC110, PT012, SIM117 - nested blocks tell a story; some things can only be polled

from __future__ import annotations

import anyio
import pytest
from anyio.abc import TaskGroup

from tests.tmqp_client.peer import Peer, ack_of, connect, delivery, response_to, serve
from tests.waiting import until
from tmqp import (
    AcknowledgeReceived,
    ConnectionClosed,
    Limits,
    QueueMessageReceived,
    ServerMessageReceived,
    State,
)
from tmqp.constants import PING_BYTES
from tmqp_client import Client, ClientLimits, ConnectionLost, Consumer, OperationTimeout

SLOW = ClientLimits(consumer_messages=100, overflow_factor=4.0, acknowledge_timeout_s=0.3)
#: Messages that one read (64 KiB) of the flood below can bring on top of a bound.
ONE_READ = 65_536 // 1_000 + 1


class Flood:
    """A server that sends as fast as the socket takes it, and answers what it is asked."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.sent = 0
        self.acknowledged = 0
        self.begin = anyio.Event()
        self.lock = anyio.Lock()

    async def __call__(self, peer: Peer) -> None:
        await peer.accept()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.send, peer)
            await self.answer(peer, tasks)
            tasks.cancel_scope.cancel()
        await peer.stream.aclose()

    async def send(self, peer: Peer) -> None:
        await self.begin.wait()
        for number in range(self.count):
            frame = delivery("orders", 1, b"%06d" % number * 160, message_id=f"m{number}")
            if peer.connection.state is State.CLOSED:
                return
            peer.connection.send(frame)
            await self.flush(peer)
            self.sent += 1

    async def flush(self, peer: Peer) -> None:
        async with self.lock:
            await peer.flush()

    async def answer(self, peer: Peer, tasks: TaskGroup) -> None:
        while True:
            try:
                data = await peer.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return
            for event in peer.connection.receive(data, anyio.current_time()):
                if isinstance(event, ConnectionClosed):
                    return
                if isinstance(event, AcknowledgeReceived):
                    self.acknowledged += 1
                elif isinstance(event, QueueMessageReceived):
                    peer.connection.send(ack_of(event.frame))
                elif isinstance(event, ServerMessageReceived) and event.frame.pending_response:
                    peer.connection.send(response_to(event.frame))
            tasks.start_soon(self.flush, peer)  # a server that waited here would stop hearing


async def settled(client: Client, flood: Flood) -> int:
    """Wait until no more messages are sent or come; how many came."""
    before = (-1, -1)
    while before != (flood.sent, client.statistics().delivered):
        before = (flood.sent, client.statistics().delivered)
        await anyio.sleep(0.1)
    return before[1]


async def drain(consumer: Consumer, count: int) -> None:
    """Take and acknowledge so many, which must come in order."""
    number = 0
    async for message in consumer:
        assert message.payload == b"%06d" % number * 160
        number += 1
        if number == count:
            return


async def test_a_slow_consumer_stops_the_server_and_loses_nothing() -> None:
    flood = Flood(5_000)  # 5 MB: far more than the system's own buffers hold
    async with serve(flood) as address, connect(address, limits=SLOW) as client:
        async with client.consume("orders", 1) as consumer:
            flood.begin.set()
            delivered = await settled(client, flood)
            assert 100 <= delivered <= 100 + ONE_READ
            assert flood.sent < flood.count, "the server feels it"
            assert client.statistics().pauses == 1
            await drain(consumer, flood.count)
        assert client.statistics().delivered == flood.count
        assert client.statistics().dropped == 0
    assert flood.acknowledged == flood.count


async def test_large_messages_are_bounded_by_bytes() -> None:
    flood = Flood(5_000)
    limits = ClientLimits(consumer_messages=1_000_000, consumer_bytes=50_000)
    async with serve(flood) as address, connect(address, limits=limits) as client:
        async with client.consume("orders", 1) as consumer:
            flood.begin.set()
            assert 50 <= await settled(client, flood) <= 50 + ONE_READ
            await drain(consumer, 1_000)


async def test_an_answer_comes_through_while_the_consumer_is_full() -> None:
    flood = Flood(250)
    async with serve(flood) as address, connect(address, limits=SLOW) as client:
        async with client.consume("orders", 1) as consumer:
            flood.begin.set()
            assert await settled(client, flood) < 200
            await client.push("orders", 2, b"x")
            assert client.statistics().confirmed == 1
            assert client.statistics().delivered == 250
            await drain(consumer, 250)


async def test_at_the_hard_bound_even_an_answer_has_to_wait_and_the_error_says_why() -> None:
    flood = Flood(5_000)
    async with serve(flood) as address, connect(address, limits=SLOW) as client:
        async with client.consume("orders", 1) as consumer:
            flood.begin.set()
            await settled(client, flood)
            with pytest.raises(OperationTimeout, match="reading was paused"):
                await client.push("orders", 2, b"x")
            assert 400 <= client.statistics().delivered <= 400 + ONE_READ
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(drain, consumer, flood.count)
                await client.push("orders", 2, b"x", timeout_s=10)


async def test_a_full_consumer_that_closes_lets_the_others_go_on() -> None:
    flood = Flood(5_000)
    async with serve(flood) as address, connect(address, limits=SLOW) as client:
        async with client.consume("orders", 1):
            flood.begin.set()
            delivered = await settled(client, flood)
        with anyio.fail_after(20):
            while flood.sent < flood.count:
                await anyio.sleep(0.01)
            await client.ping()
        numbers = client.statistics()
        assert numbers.delivered == flood.count
        assert numbers.dropped >= flood.count - SLOW.unclaimed_messages
        assert numbers.dropped >= delivered


async def test_a_pause_of_many_ping_intervals_keeps_the_connection() -> None:
    """The server gives up a client it hears nothing from; the client does not read its pings."""

    class Strict(Flood):
        async def send(self, peer: Peer) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.watch, peer)
                await super().send(peer)

        async def watch(self, peer: Peer) -> None:
            while True:
                due = peer.connection.next_deadline()
                if due is None:
                    return
                await anyio.sleep(due - anyio.current_time())
                peer.connection.on_deadline(anyio.current_time())

    flood = Strict(5_000)
    limits = ClientLimits(consumer_messages=100, protocol=Limits(ping_interval_s=0.2))

    async def script(peer: Peer) -> None:
        strict = Peer(peer.stream, Limits(ping_interval_s=0.5))
        await flood(strict)

    async with serve(script) as address, connect(address, limits=limits) as client:
        async with client.consume("orders", 1) as consumer:
            flood.begin.set()
            await anyio.sleep(2.2)  # twice the time after which the server gives up
            assert client.connected
            assert client.statistics().delivered < flood.count
            await drain(consumer, flood.count)


# --- Servers that do not read --------------------------------------------------------------------


class Deaf:
    """A server that stops reading until it is told to go on."""

    def __init__(self, *, speak: bytes = b"", messages: int = 0) -> None:
        self.hear = anyio.Event()
        self.speak = speak
        self.messages = messages
        self.pushed = 0
        self.acknowledged = 0

    async def __call__(self, peer: Peer) -> None:
        await peer.accept()
        if self.messages:
            frame = await peer.operation_frame()
            await peer.send(
                *[delivery("orders", 1, b"x", message_id=f"m{n}") for n in range(self.messages)],
                response_to(frame),
            )
        async with anyio.create_task_group() as tasks:
            if self.speak:
                tasks.start_soon(self.talk, peer)
            await self.hear.wait()
            tasks.cancel_scope.cancel()
        while True:
            event = await peer.next()
            if isinstance(event, ConnectionClosed):
                await peer.stream.aclose()
                return
            if isinstance(event, QueueMessageReceived):
                self.pushed += 1
            elif isinstance(event, AcknowledgeReceived):
                self.acknowledged += 1
            elif isinstance(event, ServerMessageReceived) and event.frame.pending_response:
                await peer.send(response_to(event.frame))

    async def talk(self, peer: Peer) -> None:
        try:
            while True:
                await peer.stream.send(self.speak)
        except anyio.BrokenResourceError:
            self.hear.set()


async def test_senders_wait_while_the_server_does_not_read() -> None:
    async def push(count: int) -> None:
        for _ in range(count):
            await client.push("orders", 1, b"x" * 10_000, wait=False)

    deaf = Deaf()
    limits = ClientLimits(outbound_bytes=100_000)
    async with serve(deaf) as address, connect(address, limits=limits) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(push, 200)  # 20 MB in all
            await until(lambda: client.statistics().backlog_bytes >= 100_000)
            await anyio.sleep(0.1)  # who went on would be seen
            stuck = client.statistics()
            assert stuck.pushed < 2_000
            assert stuck.backlog_bytes <= 100_000 + 11_000
            deaf.hear.set()
        assert client.statistics().pushed == 2_000
        assert client.statistics().backlog_bytes <= 100_000
    assert deaf.pushed == 2_000


async def test_pings_that_cannot_be_answered_are_not_read_for_ever() -> None:
    deaf = Deaf(speak=PING_BYTES * 1_024)
    limits = ClientLimits(outbound_bytes=10_000, close_timeout_s=0.1)
    async with serve(deaf) as address, connect(address, limits=limits) as client:
        largest = 0
        for _ in range(50):
            await anyio.sleep(0.01)
            largest = max(largest, client.statistics().backlog_bytes)
        assert largest <= 10_000 * 4 + 65_536
        assert client.connected


async def test_acknowledges_go_on_beyond_the_bound_and_stop_at_the_hard_one() -> None:
    async def push() -> None:
        while True:
            await client.push("orders", 1, b"x" * 10_000, wait=False)

    deaf = Deaf(messages=6_000)
    limits = ClientLimits(outbound_bytes=50_000, consumer_messages=10_000)
    async with serve(deaf) as address, connect(address, limits=limits) as client:
        consumer = client.consume("orders", 1)
        await consumer.__aenter__()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(push)
            await until(lambda: client.statistics().backlog_bytes >= 50_000)
            with anyio.move_on_after(1.0) as scope:
                for _ in range(6_000):
                    await (await consumer.get()).ack()
            assert scope.cancelled_caught, "6,000 of them do not fit"
            numbers = client.statistics()
            assert numbers.acknowledged > 1_000
            assert numbers.backlog_bytes <= 200_000 + 1_000
            tasks.cancel_scope.cancel()
        deaf.hear.set()
        await client.ping()
        assert deaf.acknowledged == client.statistics().acknowledged


async def test_a_sender_that_waits_for_room_hears_of_the_end() -> None:
    async def push() -> None:
        with pytest.raises(ConnectionLost):
            while True:
                await client.push("orders", 1, b"x" * 10_000, wait=False)
        ended.append(1)

    async def script(peer: Peer) -> None:
        await peer.accept()
        await deaf.wait()

    ended: list[int] = []
    deaf = anyio.Event()
    limits = ClientLimits(outbound_bytes=50_000)
    async with serve(script) as address, connect(address, limits=limits) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(push)
            await anyio.sleep(0.1)
            deaf.set()
    assert len(ended) == 5
