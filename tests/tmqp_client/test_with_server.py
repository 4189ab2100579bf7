"""The client with the real server, over TCP and over a Unix socket, on each event loop."""

# ruff: noqa: SIM117 - nested blocks tell the story

from __future__ import annotations

import itertools
from collections.abc import Iterator

import anyio
import pytest

from tests.tmqp_client.server import running_server
from tmqp_client import (
    AlreadyAcknowledged,
    Client,
    ClientLimits,
    ConnectRefused,
    Consumer,
    NegativeAcknowledge,
    OperationFailed,
    OperationTimeout,
    connect,
)

COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def places() -> Iterator[tuple[str, str]]:
    with running_server() as addresses:
        yield addresses


@pytest.fixture(params=["tcp", "unix"])
def address(request: pytest.FixtureRequest, places: tuple[str, str]) -> str:
    return places[request.param == "unix"]


@pytest.fixture
def channel() -> str:
    """A channel no other test has."""
    return f"channel-{next(COUNT)}"


async def test_a_message_from_one_client_to_another(address: str, channel: str) -> None:
    async with connect(address, client_id=f"p-{channel}") as producer, connect(address) as other:
        await producer.create_queue(channel, 1, status="push")
        async with other.consume(channel, 1) as consumer:
            sent = await producer.push(channel, 1, "größe", headers={"A": "1"})
            message = await consumer.get()
            assert message.message_id == sent
            assert message.text == "größe"
            assert message.header("a") == "1"
            assert message.source == f"p-{channel}"
            assert message.requires_acknowledge
            assert message.first_acquirer
            await message.ack()


async def test_everything_confirmed_is_consumed_once_and_in_order(
    address: str, channel: str
) -> None:
    count = 3_000
    async with connect(address) as producer, connect(address) as other:
        await producer.create_queue(channel, 1, status="push")
        report = await producer.push_many(channel, 1, (b"%d" % n for n in range(count)))
        assert report.confirmed == count
        number = 0
        async with other.consume(channel, 1) as consumer:
            async for message in consumer:
                assert message.payload == b"%d" % number
                number += 1
                if number == count:
                    break
        assert other.statistics().acknowledged == count
        assert other.statistics().delivered == count


async def test_two_consumers_of_a_round_robin_queue_share_it(address: str, channel: str) -> None:
    async def take(consumer: Consumer, name: str) -> None:
        async for message in consumer:
            seen.append((name, message.payload))
            if len(seen) == 200:
                tasks.cancel_scope.cancel()

    seen: list[tuple[str, bytes]] = []
    async with connect(address) as first, connect(address) as second:
        await first.create_queue(channel, 1, status="round-robin")
        async with first.consume(channel, 1) as one, second.consume(channel, 1) as two:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take, one, "one")
                tasks.start_soon(take, two, "two")
                await first.push_many(channel, 1, [b"%d" % n for n in range(200)])
    assert len({payload for _, payload in seen}) == 200
    assert {name for name, _ in seen} == {"one", "two"}


async def test_the_consumers_own_answer_reaches_the_producer(address: str, channel: str) -> None:
    async def consume(client: Client) -> None:
        async with client.consume(channel, 1, acknowledge="manual") as consumer:
            async for message in consumer:
                if message.payload == b"good":
                    await message.ack()
                else:
                    await message.nack("not for me")

    async with connect(address) as producer, connect(address) as other:
        await producer.create_queue(channel, 1, status="push", delivery_handler="ack-consumer")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume, other)
            await producer.push(channel, 1, b"good")
            with pytest.raises(NegativeAcknowledge, match="not for me"):
                await producer.push(channel, 1, b"bad")
            tasks.cancel_scope.cancel()


async def test_a_message_that_is_given_back_comes_again(address: str, channel: str) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, status="push")
        await client.push(channel, 1, b"x")
        async with client.consume(channel, 1) as consumer:
            times = 0
            async for message in consumer:
                times += 1
                if times == 3:
                    break
                await message.release(delay_s=0.01 * times, to="front", counted=times == 1)
        assert message.redelivered


async def test_terms_of_a_consumer(address: str, channel: str) -> None:
    async with connect(address) as client, connect(address) as other:
        await client.create_queue(channel, 1, status="round-robin")
        async with client.consume(channel, 1, acknowledge="manual", window=1) as consumer:
            for number in range(3):
                await client.push(channel, 1, b"%d" % number)
            first = await consumer.get()
            with pytest.raises(OperationTimeout):
                await consumer.get(timeout_s=0.05)
            assert await first.extend(60)
            await client.set_terms(channel, window=2, ack_timeout_s=float("inf"), returns="front")
            second = await consumer.get(timeout_s=5)
            assert (first.payload, second.payload) == (b"0", b"1")
            await first.ack()
            with pytest.raises(AlreadyAcknowledged):
                await first.extend(1)
            third = await consumer.get(timeout_s=5)
            assert third.payload == b"2"
            await other.join(channel, credit=1)
        # The two that were left without an answer went back, and the credit lets one come.
        async with other.consume(channel, 1, acknowledge="manual", join=False) as rest:
            assert (await rest.get(timeout_s=5)).payload == b"1"
            with pytest.raises(OperationTimeout):
                await rest.get(timeout_s=0.05)
            await other.grant(channel, -1)
            assert (await rest.get(timeout_s=5)).payload == b"2"
        with pytest.raises(OperationFailed, match="404"):
            await client.set_terms(channel, priority=1)
        with pytest.raises(OperationFailed, match="404"):
            await client.grant(channel, 1)
        with pytest.raises(OperationFailed, match="403"):
            await second.extend(5)


async def test_a_delivery_whose_time_is_up_is_the_clients_no_more(
    address: str, channel: str
) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, delivery_handler="retry-timeouts")
        async with client.consume(
            channel, 1, acknowledge="manual", ack_timeout_s=0.1, tells_lapsed=True
        ) as consumer:
            await client.push(channel, 1, b"x")
            first = await consumer.get()
            assert (first.lapsed, first.stale) == ("", False)
            again = await consumer.get(timeout_s=5)
            assert again.message_id == first.message_id
            assert (first.lapsed, first.stale, again.lapsed) == ("timed-out", True, "")
            assert not await first.extend(5)
            assert not await first.ack()
            assert not first.answered
            assert await again.ack()
            assert again.lapsed == ""
        assert client.statistics().lapsed >= 1


async def test_what_the_server_refuses(address: str, channel: str) -> None:
    async with connect(address) as client:
        assert await client.create_channel(channel) is True
        assert await client.create_channel(channel) is False
        with pytest.raises(OperationFailed, match="481"):
            await client.create_channel(channel, exist_ok=False)
        await client.create_queue(channel, 9, status="stopped")
        with pytest.raises((OperationFailed, NegativeAcknowledge)):
            await client.push(channel, 9, b"x")
        with pytest.raises(OperationFailed, match="404"):
            await client.leave(channel)
        with pytest.raises(ConnectRefused) as caught:
            async with connect(address, client_id=client.client_id):
                pytest.fail("it cannot be entered")
        assert caught.value.code == 503
        await client.ping()


async def test_a_consumer_slower_than_its_producer_loses_nothing(
    address: str, channel: str
) -> None:
    count = 5_000
    limits = ClientLimits(consumer_messages=50)
    async with connect(address) as producer, connect(address, limits=limits) as slow:
        await producer.create_queue(channel, 1, status="push")
        seen = 0
        async with slow.consume(channel, 1) as consumer, anyio.create_task_group() as tasks:
            tasks.start_soon(push_all, producer, channel, count)
            async for message in consumer:
                assert message.payload[:10] == b"%010d" % seen
                seen += 1
                if seen % 500 == 0:
                    await anyio.sleep(0.02)
                if seen == count:
                    break
        assert slow.statistics().pauses > 0


async def push_all(client: Client, channel: str, count: int) -> None:
    payloads = (b"%010d" % n + b"x" * 1_000 for n in range(count))
    report = await client.push_many(channel, 1, payloads)
    assert report.confirmed == count


async def test_many_clients_at_once(address: str, channel: str) -> None:
    async def one(number: int) -> None:
        async with connect(address) as client:
            await client.push(channel, number % 4, b"x")
            async with client.consume(channel, number % 4):
                await client.ping()
        done.append(number)

    done: list[int] = []
    async with connect(address) as client:
        for queue_id in range(4):
            await client.create_queue(channel, queue_id, status="push")
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(one, number)
    assert sorted(done) == list(range(40))
