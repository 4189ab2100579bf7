"""Batches of the client with the real server: done as a whole, or not at all."""

# ruff: noqa: SIM117 - nested blocks tell the story

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.tmqp_client.server import running_server
from tmqp.errors import LocalProtocolError
from tmqp.models import QueueOptions
from tmqp_client import (
    AlreadyAcknowledged,
    Client,
    Multipart,
    OperationFailed,
    connect,
    sync,
)
from tmqp_client.parts import parts_of

COUNT = itertools.count(1)
DURABLE = QueueOptions(durable=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server("--data", str(tmp_path_factory.mktemp("data"))) as addresses:
        yield addresses[0]


@pytest.fixture
def channel() -> str:
    """A channel no other test has."""
    return f"channel-{next(COUNT)}"


async def counts(client: Client, channel: str) -> list[tuple[int, int]]:
    """Of each of its queues how many messages wait and how many were acknowledged."""
    found = await client.queues(channel)
    return [(each.messages, each.acks) for each in found]


async def test_take_one_and_give_two(address: str, channel: str) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, DURABLE, status="push")
        await client.create_queue(channel, 2, DURABLE, status="pull")
        await client.push(channel, 1, "in")
        async with client.consume(channel, 1, acknowledge="manual") as consumer:
            message = await consumer.get()
            async with client.batch() as batch:
                first = batch.push(channel, 2, "größe", headers={"A": "1"}, message_id="x")
                batch.push(channel, 2, Multipart(b"a", b"bc"))
                batch.ack(message)
                assert message.answered
                assert (first, batch.count) == ("x", 3)
                assert await counts(client, channel) == [(0, 0), (0, 0)]
            assert await counts(client, channel) == [(0, 1), (2, 0)]
        await client.join(channel)
        found = [each async for each in client.pull(channel, 2, 9)]
        assert (found[0].text, found[0].header("a")) == ("größe", "1")
        assert parts_of(found[1].frame) == [b"a", b"bc"]


async def test_an_exception_in_the_block_sends_nothing(address: str, channel: str) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, DURABLE, status="push")
        await client.push(channel, 1, "in")
        async with client.consume(channel, 1, acknowledge="manual") as consumer:
            message = await consumer.get()
            with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what is tested
                async with client.batch() as batch:
                    batch.ack(message)
                    batch.push(channel, 1, "never")
                    raise ZeroDivisionError
            assert not message.answered
            assert await counts(client, channel) == [(0, 0)]
            await message.ack()


async def test_a_refused_batch_answers_nothing(address: str, channel: str) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, DURABLE, status="push")
        await client.create_queue(channel, 2, QueueOptions(message_limit=1), status="pull")
        await client.push(channel, 1, "in")
        async with client.consume(channel, 1, acknowledge="manual") as consumer:
            message = await consumer.get()
            with pytest.raises(OperationFailed, match="a limit") as failed:  # noqa: PT012
                async with client.batch() as batch:
                    batch.ack(message)
                    batch.push(channel, 2, "one")
                    batch.push(channel, 2, "two")
            assert failed.value.code == 482
            assert not message.answered
            async with client.batch() as batch:
                batch.nack(message, "broken")
                with pytest.raises(AlreadyAcknowledged):
                    batch.ack(message)
            with pytest.raises(AlreadyAcknowledged):
                await message.ack()
            assert await counts(client, channel) == [(0, 0), (0, 0)]


async def test_a_message_is_given_back_in_a_batch(address: str, channel: str) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, DURABLE, status="push")
        await client.push(channel, 1, "in")
        async with client.consume(channel, 1, acknowledge="manual") as consumer:
            message = await consumer.get()
            async with client.batch() as batch:
                batch.push(channel, 2, "noted")
                batch.release(message, to="front")
            with anyio.fail_after(30):
                again = await consumer.get()
            assert again.message_id == message.message_id
            await again.ack()


async def test_a_consumer_that_acknowledges_by_itself_leaves_the_batch_its_own(
    address: str, channel: str
) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, DURABLE, status="push")
        for number in range(3):
            await client.push(channel, 1, f"{number}")
        taken = 0
        async with client.consume(channel, 1) as consumer:
            async for message in consumer:
                taken += 1
                async with client.batch(timeout_s=5.0) as batch:
                    batch.ack(message)
                if taken == 3:
                    break
        assert await counts(client, channel) == [(0, 3)]


async def test_a_message_of_another_connection_refuses_the_batch(
    address: str, channel: str
) -> None:
    async with connect(address) as client:
        await client.create_queue(channel, 1, DURABLE, status="push")
        await client.push(channel, 1, "in")
        async with client.consume(channel, 1, acknowledge="manual") as consumer:
            message = await consumer.get()
            message._epoch += 1
            with pytest.raises(OperationFailed, match="no longer in flight to this") as failed:
                async with client.batch() as batch:
                    batch.ack(message)
            assert failed.value.code == 404
            assert not message.answered
            message._epoch -= 1
            await message.ack()


async def test_its_block_is_entered_once(address: str, channel: str) -> None:
    async with connect(address) as client:
        batch = client.batch()
        with pytest.raises(LocalProtocolError, match="only within its block"):
            batch.push(channel, 1, "early")
        async with batch:
            pass  # nothing to send
        with pytest.raises(LocalProtocolError, match="used once"):
            await batch.__aenter__()
        with pytest.raises(LocalProtocolError, match="only within its block"):
            batch.push(channel, 1, "late")
        assert repr(batch) == "<Batch of 0, over>"


def test_the_blocking_form(address: str, channel: str) -> None:
    with sync.connect(address) as client:
        client.create_queue(channel, 1, DURABLE, status="push")
        client.create_queue(channel, 2, DURABLE, status="pull")
        client.push(channel, 1, "in")
        with client.consume(channel, 1, acknowledge="manual") as consumer:
            message = consumer.get()
            with client.batch() as batch:
                batch.push(channel, 2, "out")
                batch.ack(message)
            assert message.answered
            with pytest.raises(ZeroDivisionError):  # noqa: PT012 - as above
                with client.batch() as batch:
                    batch.push(channel, 2, "never")
                    raise ZeroDivisionError
        assert [each.messages for each in client.queues(channel)] == [0, 1]


async def test_a_server_without_storage_does_it_in_memory(channel: str, tmp_path: Path) -> None:
    with running_server() as addresses:
        async with connect(addresses[0]) as client:
            await client.create_queue(channel, 1, status="pull")
            with anyio.fail_after(30):
                async with client.batch() as batch:
                    batch.push(channel, 1, "a")
                    batch.push(channel, 1, "b")
            assert await counts(client, channel) == [(2, 0)]
