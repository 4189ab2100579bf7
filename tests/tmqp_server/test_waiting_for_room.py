"""Pushes of TMQP clients that wait for room in a full queue, over sockets."""

from __future__ import annotations

import anyio
import pytest

from tmqp.address import Address
from tmqp.errors import LocalProtocolError
from tmqp.limits import Limits
from tmqp.models import QueueOptions
from tmqp_client import Client, connect
from tmqp_client.errors import OperationFailed
from tmqp_server import ServerConfig, running

QUICK = Limits(ping_interval_s=0.3, max_missed_pings=2)


async def fill(client: Client) -> None:
    """Make a queue of one place, and take the place."""
    await client.create_queue("ch", 0, QueueOptions(message_limit=1), status="pull")
    await client.push("ch", 0, b"first")


async def take(client: Client) -> bytes:
    """Pull one message."""
    (message,) = [each async for each in client.pull("ch", 0, 1)]
    await message.ack()
    return message.payload


async def test_it_is_accepted_when_there_is_room() -> None:
    config = ServerConfig(listen=(Address("127.0.0.1", 0),))
    async with (
        running(config) as server,
        connect(str(server.addresses[0])) as producer,
        connect(str(server.addresses[0])) as consumer,
    ):
        await fill(producer)
        await consumer.join("ch")
        done: list[str] = []

        async def push() -> None:
            await producer.push("ch", 0, b"second", room_s=20)
            done.append("pushed")

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(push)
                await anyio.sleep(0.2)
                assert done == []
                assert await take(consumer) == b"first"
            assert done == ["pushed"]
            assert await take(consumer) == b"second"


async def test_it_is_refused_when_its_time_is_over() -> None:
    config = ServerConfig(listen=(Address("127.0.0.1", 0),))
    async with running(config) as server, connect(str(server.addresses[0])) as producer:
        await fill(producer)
        began = anyio.current_time()
        with anyio.fail_after(20), pytest.raises(OperationFailed):
            await producer.push("ch", 0, b"second", room_s=0.3)
        assert anyio.current_time() - began >= 0.3
        with pytest.raises(OperationFailed):
            await producer.push("ch", 0, b"second")


async def test_a_producer_that_waits_is_not_taken_for_dead() -> None:
    config = ServerConfig(listen=(Address("127.0.0.1", 0),), connection=QUICK)
    async with running(config) as server:
        address = str(server.addresses[0])
        async with connect(address, reconnect=None) as producer:
            await fill(producer)
            with anyio.fail_after(20), pytest.raises(OperationFailed):
                await producer.push("ch", 0, b"second", room_s=2)
            assert (await producer.queue_information("ch", 0)).messages == 1


async def test_a_time_is_a_time() -> None:
    config = ServerConfig(listen=(Address("127.0.0.1", 0),))
    async with running(config) as server, connect(str(server.addresses[0])) as producer:
        with pytest.raises(LocalProtocolError, match="room_s must be 0 ms or more"):
            await producer.push("ch", 0, b"x", room_s=-1)
