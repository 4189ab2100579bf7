"""Temporary queues: made by a client for itself, gone with it, there again after a cut."""

# ruff: noqa: SIM117, ASYNC110 - nested blocks tell the story; what changes has no event

from __future__ import annotations

import itertools
from collections.abc import Iterator

import anyio
import pytest

from tests.tmqp_client.proxy import proxied
from tests.tmqp_client.server import running_server
from tmqp.models import ChannelOptions
from tmqp_client import Client, OperationFailed, ReconnectPolicy, connect, sync

COUNT = itertools.count(1)
QUICK = ReconnectPolicy(initial_delay_s=0.01, max_delay_s=0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as addresses:
        yield addresses[0]


async def names(client: Client, prefix: str) -> list[str]:
    return [each.name for each in await client.channels(f"{prefix}*")]


async def test_an_answer_comes_to_a_queue_of_ones_own(server: str) -> None:
    requests = f"requests-{next(COUNT)}"
    async with connect(server) as asker, connect(server) as worker, anyio.create_task_group() as g:

        async def serve() -> None:
            async with worker.consume(requests, 1) as messages:
                async for message in messages:
                    reply_to = message.frame.header("Reply-To") or ""
                    await worker.push(reply_to, 0, message.text.upper())

        g.start_soon(serve)
        async with asker.temporary_queue("replies") as replies:
            assert replies.channel.startswith("replies.")
            await asker.push(requests, 1, "hello", headers={"Reply-To": replies.channel})
            message = await replies.get(timeout_s=5)
            assert message.text == "HELLO"
            await message.ack()
            shown = await worker.channel_information(replies.channel)
            assert (shown.lifetime, shown.owner_only, shown.owner) == (
                "owner",
                True,
                asker.client_id,
            )
            with pytest.raises(OperationFailed, match="403"):
                await worker.join(replies.channel)
        assert await names(worker, "replies.") == []
        g.cancel_scope.cancel()


async def test_it_goes_when_the_block_fails_and_with_the_client(server: str) -> None:
    async with connect(server) as other:
        async with connect(server) as client:
            with pytest.raises(ZeroDivisionError):
                async with client.temporary_queue("failing"):
                    raise ZeroDivisionError
            await client.ping()
            assert await names(other, "failing.") == []
            queue = client.temporary_queue("leaving")
            await queue.__aenter__()
            assert await names(other, "leaving.") == [queue.channel]
        with anyio.fail_after(5):
            while await names(other, "leaving."):
                await anyio.sleep(0.01)


async def test_it_is_there_again_after_a_cut(server: str) -> None:
    async with connect(server) as other, proxied(server) as proxy:
        async with connect(proxy.address, reconnect=QUICK) as client:
            async with client.temporary_queue("cut") as replies:
                await other.push(replies.channel, 0, "before")
                assert (await replies.get(timeout_s=5)).text == "before"
                await proxy.cut()
                with anyio.fail_after(10):
                    while client.statistics().connections < 2 or not client.connected:
                        await anyio.sleep(0.005)
                await client.ping()
                shown = await other.channel_information(replies.channel)
                assert (shown.lifetime, shown.owner) == ("owner", client.client_id)
                await other.push(replies.channel, 0, "after")
                assert (await replies.get(timeout_s=5)).text == "after"
            await client.ping()
            assert await names(other, "cut.") == []


async def test_what_was_removed_is_not_made_again(server: str) -> None:
    channel = f"removed-{next(COUNT)}"
    async with connect(server) as other, proxied(server) as proxy:
        async with connect(proxy.address, reconnect=QUICK) as client:
            await client.create_channel(channel, ChannelOptions(lifetime="owner"))
            await client.remove_channel(channel)
            await client.create_channel(f"{channel}-kept", ChannelOptions(lifetime="owner"))
            await proxy.cut()
            with anyio.fail_after(10):
                while client.statistics().connections < 2 or not client.connected:
                    await anyio.sleep(0.005)
            await client.ping()
            assert await names(other, channel) == [f"{channel}-kept"]


def test_blocking(server: str) -> None:
    with sync.connect(server) as client, client.temporary_queue() as replies:
        client.push(replies.channel, 0, "hello")
        message = replies.get(timeout_s=5)
        assert message.text == "hello"
        message.ack()
