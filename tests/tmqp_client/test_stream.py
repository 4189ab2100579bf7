"""Taking from an inbox: turns, endings, and a place that is given up at the last moment."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from tests.tmqp_client.peer import Peer, ack_of, connect, serve
from tmqp import ConnectionClosed, QueueMessageReceived
from tmqp_client import ClientLimits
from tmqp_client._core.inbox import Inbox
from tmqp_client._io.stream import InboxReader


def make() -> tuple[Inbox[int], InboxReader[int]]:
    inbox: Inbox[int] = Inbox(1_000, 1_000)
    return inbox, InboxReader(inbox)


async def test_items_come_in_order_and_then_none() -> None:
    inbox, reader = make()
    for item in range(100):
        inbox.put(item, 1)
    reader.ended()
    assert [await reader.take() for _ in range(100)] == list(range(100))
    assert await reader.take() is None
    assert reader.take_now() is None


async def test_those_who_wait_longest_are_woken_first() -> None:
    async def wait(name: str) -> None:
        got[name] = await reader.take()

    inbox, reader = make()
    got: dict[str, int | None] = {}
    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(wait, name)
            await anyio.wait_all_tasks_blocked()
        inbox.put(1, 1)
        inbox.put(2, 1)
        reader.arrived()
        await anyio.wait_all_tasks_blocked()
        # Both run in the same turn, in which order is the event loop's business.
        assert set(got) == {"a", "b"}
        assert set(got.values()) == {1, 2}
        reader.ended()
    assert got["c"] is None


async def test_a_task_that_never_waits_lets_others_run() -> None:
    async def count() -> None:
        while True:
            turns.append(1)
            await anyio.lowlevel.checkpoint()

    inbox, reader = make()
    turns: list[int] = []
    for item in range(320):
        inbox.put(item, 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        for _ in range(320):
            await reader.take()
        tasks.cancel_scope.cancel()
    assert len(turns) >= 4


# The event loops' own cancel scopes leave a task alone that was woken already; asyncio's
# ``Task.cancel`` does not, so there the last moment can be had.


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_item_offered_to_a_cancelled_task_goes_to_the_next() -> None:
    inbox, reader = make()
    first = asyncio.create_task(reader.take())
    second = asyncio.create_task(reader.take())
    await anyio.wait_all_tasks_blocked()
    inbox.put(1, 1)
    reader.arrived()
    first.cancel()
    assert await asyncio.wait_for(second, 5) == 1
    with pytest.raises(asyncio.CancelledError):
        await first


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_place_offered_to_a_cancelled_sender_goes_to_the_next() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.pushed()  # this one is not answered
        while not isinstance(event := await peer.next(), ConnectionClosed):
            if isinstance(event, QueueMessageReceived):
                await peer.send(ack_of(event.frame))
        await peer.stream.aclose()

    limits = ClientLimits(max_outstanding=1)
    async with serve(script) as address, connect(address, limits=limits) as client:
        holder = asyncio.create_task(client.push("orders", 1, b"holder"))
        await anyio.wait_all_tasks_blocked()
        called = asyncio.create_task(client.push("orders", 1, b"called"))
        following = asyncio.create_task(client.push("orders", 1, b"following"))
        await anyio.wait_all_tasks_blocked()
        holder.cancel()
        # Runs behind the holder's last step, which calls the next one, and before that one's.
        asyncio.get_running_loop().call_soon(called.cancel)
        assert len(await asyncio.wait_for(following, 5)) == 32
        for task in (holder, called):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await client.push("orders", 1, b"after")
        assert client.statistics().confirmed == 2
