"""Cancelling at awkward moments: nothing hangs, nothing leaks, whole messages are left behind.

Each test cancels after one step of the event loop, after two, and so on: wherever the code can be
interrupted, it is.
"""

# ruff: noqa: ASYNC110 - nested blocks tell a story; some things can only be polled

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.tmqp_client.peer import Peer, ack_of, broker, connect, delivery, response_to, serve
from tmqp import AcknowledgeReceived, ConnectionClosed, QueueMessageReceived, ServerMessageReceived
from tmqp_client import Client, ClientError, ClientLimits

STEPS = 25


async def cancelled_after(steps: int, work: Callable[[], Awaitable[object]]) -> bool:
    """Run something and cancel it after so many steps; whether that came in time."""

    async def cancel() -> None:
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            await work()
            tasks.cancel_scope.cancel()
    return scope.cancelled_caught


@pytest.mark.parametrize("steps", range(STEPS))
async def test_connecting(steps: int) -> None:
    async def work() -> None:
        async with connect(address) as client:
            await client.ping()

    async with serve(lenient) as address:
        await cancelled_after(steps, work)
        async with connect(address) as client:
            await client.ping()


async def lenient(peer: Peer) -> None:
    """The small server, for clients that may go away at any moment."""
    try:
        await broker(peer)
    except AssertionError:
        return
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


@pytest.mark.parametrize("steps", range(STEPS))
@pytest.mark.parametrize("what", ["push", "push_many", "join", "ping", "no-wait", "consume"])
async def test_an_operation(what: str, steps: int) -> None:
    async def work() -> None:
        if what == "push":
            await client.push("orders", 1, b"x")
        elif what == "push_many":
            await client.push_many("orders", 1, [b"x"] * 300, in_flight=7)
        elif what == "join":
            await client.join("orders")
        elif what == "ping":
            await client.ping()
        elif what == "no-wait":
            for _ in range(300):
                await client.push("orders", 1, b"x" * 1_000, wait=False)
        else:
            async with client.consume("orders", 1) as consumer:
                await consumer.get()

    async with serve(broker) as address, connect(address) as client:
        await cancelled_after(steps, work)
        # Whole messages only, and nothing that waits for ever: the connection is as good as new.
        await client.ping()
        await client.push("orders", 1, b"x")
        assert client.statistics().outstanding == 0
        async with client.consume("orders", 1):
            pass


class Careful:
    """A server that keeps what was not acknowledged."""

    def __init__(self, count: int) -> None:
        self.waiting = [f"m{n}" for n in range(count)]

    async def __call__(self, peer: Peer) -> None:
        await peer.accept()
        while True:
            event = await peer.next()
            if isinstance(event, ConnectionClosed):
                await peer.stream.aclose()
                return
            if isinstance(event, ServerMessageReceived):
                if event.frame.content_type == 601:
                    await peer.send(
                        *[delivery("orders", 1, b"x", message_id=m) for m in self.waiting]
                    )
                if event.frame.pending_response:
                    await peer.send(response_to(event.frame))
            elif isinstance(event, AcknowledgeReceived) and event.positive:
                self.waiting = [m for m in self.waiting if m != event.frame.message_id]


@pytest.mark.parametrize("steps", range(0, 60, 3))
async def test_what_was_not_finished_is_not_acknowledged(steps: int) -> None:
    async def work() -> None:
        async with client.consume("orders", 1) as consumer:
            async for message in consumer:
                begun.append(message.message_id)
                await anyio.lowlevel.checkpoint()
                finished.append(message.message_id)

    begun: list[str] = []
    finished: list[str] = []
    server = Careful(10)
    async with serve(server) as address, connect(address) as client:
        await cancelled_after(steps, work)
        await client.ping()
        gone = {f"m{n}" for n in range(10)} - set(server.waiting)
        assert gone <= set(finished)
        assert len(set(finished) - gone) <= 1, "all but the one it may have stopped behind"


@pytest.mark.parametrize("steps", range(STEPS))
async def test_leaving(steps: int) -> None:
    async def work() -> None:
        async with connect(address) as client:
            await client.push("orders", 1, b"x", wait=False)
            reached.append(1)

    reached: list[int] = []
    async with serve(lenient) as address:
        await cancelled_after(steps, work)


async def test_cancelling_the_block_sends_what_the_socket_takes() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        while not isinstance(event := await peer.next(), ConnectionClosed):
            if isinstance(event, QueueMessageReceived):
                pushed.append(event.frame.payload)
        ends.append(event.reason)

    pushed: list[bytes] = []
    ends: list[str] = []
    async with serve(script) as address:
        with anyio.CancelScope() as scope:
            async with connect(address) as client:
                for number in range(50):
                    await client.push("orders", 1, b"%d" % number, wait=False)
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            while not ends:
                await anyio.sleep(0.01)
    assert pushed == [b"%d" % number for number in range(50)]
    assert ends == ["terminated"]


async def test_a_cancelled_wait_for_a_place_leaves_the_line() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        first = await peer.pushed()
        await go_on.wait()
        peer.events.insert(0, QueueMessageReceived(first))
        await acknowledge_all(peer)

    async def wait(number: int) -> None:
        with anyio.CancelScope() as scope:
            scopes[number] = scope
            await client.push("orders", 1, b"x")
            done.append(number)

    go_on = anyio.Event()
    scopes: dict[int, anyio.CancelScope] = {}
    done: list[int] = []
    limits = ClientLimits(max_outstanding=1)
    async with serve(script) as address, connect(address, limits=limits) as client:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for number in range(6):
                    tasks.start_soon(wait, number)
                    await anyio.wait_all_tasks_blocked()
                for number in (1, 2, 4):
                    scopes[number].cancel()
                go_on.set()
    assert done == [0, 3, 5]


async def acknowledge_all(peer: Peer) -> None:
    while not isinstance(event := await peer.next(), ConnectionClosed):
        if isinstance(event, QueueMessageReceived):
            await peer.send(ack_of(event.frame))
    await peer.stream.aclose()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_native_cancellation_of_asyncio_is_not_swallowed() -> None:
    async def work() -> None:
        async with connect(address) as client:
            clients.append(client)
            await asyncio.sleep(60)

    clients: list[Client] = []
    async with serve(lenient) as address:
        task = asyncio.create_task(work())
        while not clients:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not clients[0].connected


async def test_no_task_is_left_behind() -> None:
    before = len(anyio.get_running_tasks())
    async with serve(broker) as address:
        serving = len(anyio.get_running_tasks())
        async with connect(address) as client:
            await client.ping()
            assert len(anyio.get_running_tasks()) > serving
        with pytest.raises(ClientError):
            await client.ping()
    assert len(anyio.get_running_tasks()) == before
