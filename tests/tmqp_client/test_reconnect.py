"""The client through losses of its connection, with the real server behind a proxy."""

# ruff: noqa: SIM117, ASYNC110, PT012 - nested blocks tell the story; what changes has no event

from __future__ import annotations

import itertools
from collections.abc import Iterator

import anyio
import anyio.lowlevel
import pytest

from tests.tmqp_client.peer import Peer, ack_of, serve
from tests.tmqp_client.proxy import Proxy, proxied
from tests.tmqp_client.server import running_server
from tmqp import Limits
from tmqp.models import QueueOptions
from tmqp_client import (
    Client,
    ClientClosed,
    ClientLimits,
    ConnectFailed,
    ConnectionLost,
    ConnectionState,
    Disconnected,
    GaveUp,
    OperationFailed,
    OperationTimeout,
    Reconnected,
    ReconnectPolicy,
    WouldBlock,
    connect,
)

COUNT = itertools.count(1)
QUICK = ReconnectPolicy(initial_delay_s=0.01, max_delay_s=0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as addresses:
        yield addresses[0]


@pytest.fixture
def channel() -> str:
    return f"channel-{next(COUNT)}"


async def make_queue(client: Client, channel: str) -> None:
    """A queue that delivers again soon what was not answered (F99)."""
    options = QueueOptions(request_acknowledge=True, acknowledge_timeout_ms=200)
    await client.create_queue(channel, 1, options, status="push")


async def until_reconnected(client: Client, connections: int) -> None:
    with anyio.fail_after(10):
        while client.statistics().connections < connections or not client.connected:
            await anyio.sleep(0.005)


async def test_a_consumer_goes_on_after_a_cut(server: str, channel: str) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:
        changes = client.connection_events()
        await make_queue(client, channel)
        async with client.consume(channel, 1) as messages:
            await client.push(channel, 1, "before")
            first = await messages.get()
            assert [first.stale] == [False]
            await proxy.cut()
            change = await anext(changes)
            assert isinstance(change, Disconnected)
            assert [first.stale] == [True]
            await until_reconnected(client, 2)
            change = await anext(changes)
            assert isinstance(change, Reconnected)
            assert change.address == proxy.address
            assert await first.ack() is False, "it says that nothing was said"
            again = await messages.get()
            assert again.message_id == first.message_id
            assert await again.ack() is True
            await client.push(channel, 1, "after")
            assert (await messages.get()).text == "after"
            assert client.state == ConnectionState.CONNECTED


async def test_the_loop_takes_what_comes_again(server: str, channel: str) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:
        await make_queue(client, channel)
        await client.push_many(channel, 1, [b"0", b"1", b"2"])
        seen = []
        async with client.consume(channel, 1) as messages:
            async for message in messages:
                if message.text == "1" and message.text not in seen:
                    await proxy.cut(reset=True)
                    await until_reconnected(client, 2)
                seen.append(message.text)
                if {"0", "1", "2"} <= set(seen) and len(seen) >= 4:
                    break
        assert sorted(set(seen)) == ["0", "1", "2"]


async def test_what_is_pushed_during_an_outage_goes_out_after_it(server: str, channel: str) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:
        await make_queue(client, channel)
        proxy.refusing = True
        await proxy.cut()
        with anyio.fail_after(10):
            while client.connected:
                await anyio.sleep(0.005)
        assert client.state == ConnectionState.RECONNECTING
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                await client.push(channel, 1, str(number), wait=False)
            tasks.start_soon(client.push, channel, 1, "20")
            await anyio.sleep(0.05)
            assert client.statistics().buffered == 21
            proxy.refusing = False
        async with client.consume(channel, 1) as messages:
            assert [(await messages.get()).text for _ in range(21)] == [str(n) for n in range(21)]
        assert client.statistics().buffered == 0


async def test_events_go_on_after_a_cut(server: str, channel: str) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:
        async with client.events("ChannelCreated") as events:
            await proxy.cut()
            await until_reconnected(client, 2)
            await client.create_channel(channel)
            with anyio.fail_after(5):
                async for event in events:
                    assert channel in repr(event)
                    break


async def test_a_dead_connection_the_server_has_not_noticed(server: str, channel: str) -> None:
    """It refuses the id with 503 for as long; the client keeps its id, and tries again."""
    async with (
        proxied(server) as proxy,
        connect(proxy.address, client_id=f"me-{channel}", reconnect=QUICK) as client,
    ):
        await proxy.cut(half=True)
        with anyio.fail_after(10):
            while proxy.accepted < 4:
                await anyio.sleep(0.01)
        assert not client.connected
        await proxy.bury()
        await until_reconnected(client, 2)
        assert client.client_id == f"me-{channel}"


async def test_an_operation_under_way_is_lost_and_one_begun_later_waits(
    server: str, channel: str
) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:

        async def create() -> None:
            with pytest.raises(ConnectionLost):
                await client.create_queue(channel, 2)

        proxy.stall()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create)
            await anyio.sleep(0.05)
            await proxy.cut()
        proxy.flow()
        await client.create_queue(channel, 3, status="push")
        assert client.connected


async def test_a_time_out_goes_on_counting_without_a_connection(server: str, channel: str) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:
        await make_queue(client, channel)
        proxy.refusing = True
        await proxy.cut()
        with anyio.fail_after(5):
            while client.connected:
                await anyio.sleep(0.005)
            with pytest.raises(OperationTimeout, match="no connection"):
                await client.push(channel, 1, "x", timeout_s=0.1)
        assert client.statistics().buffered == 0
        proxy.refusing = False
        await until_reconnected(client, 2)
        async with client.consume(channel, 1) as messages:
            await client.push(channel, 1, "y")
            assert (await messages.get()).text == "y", "what has timed out is not sent any more"


async def test_a_push_under_way_is_sent_again_under_its_id(server: str, channel: str) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:
        await make_queue(client, channel)
        proxy.stall()
        ids = []

        async def push() -> None:
            ids.append(await client.push(channel, 1, "once"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(push)
            await anyio.sleep(0.05)
            await proxy.cut()
            proxy.flow()
        assert client.statistics().resent == 1
        async with client.consume(channel, 1) as messages:
            assert (await messages.get()).message_id == ids[0]


async def test_a_batch_says_how_much_was_sent_again(server: str, channel: str) -> None:
    async with proxied(server) as proxy, connect(proxy.address, reconnect=QUICK) as client:
        await make_queue(client, channel)
        proxy.stall()

        async def cut() -> None:
            await anyio.sleep(0.05)
            await proxy.cut()
            proxy.flow()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            report = await client.push_many(channel, 1, [b"x"] * 10)
        assert (report.confirmed, report.resent) == (10, 10)


async def test_it_gives_up_when_the_policy_says_so(server: str, channel: str) -> None:
    policy = ReconnectPolicy(initial_delay_s=0.01, max_attempts=2)
    async with proxied(server) as proxy, connect(proxy.address, reconnect=policy) as client:
        changes = client.connection_events()
        await make_queue(client, channel)
        proxy.refusing = True
        with pytest.raises(ConnectionLost, match="2 attempts failed"):
            async with client.consume(channel, 1) as messages:
                await proxy.cut()
                async for _ in messages:
                    pass
        assert client.state == ConnectionState.CLOSED
        assert [type(change) async for change in changes] == [Disconnected, GaveUp]
        with pytest.raises(ConnectionLost, match="2 attempts failed"):
            await client.push(channel, 1, "x")


async def test_another_address_is_as_good(server: str, channel: str) -> None:
    async with proxied(server) as one, proxied(server) as two:
        async with connect([one.address, two.address], reconnect=QUICK) as client:
            assert str(client.address) == one.address
            one.refusing = True
            await one.cut()
            await until_reconnected(client, 2)
            assert str(client.address) == two.address
            await client.create_channel(channel)


async def test_the_address_was_that_of_the_connection_before(server: str) -> None:
    """For a moment, after the client was connected again."""
    async with proxied(server) as one, proxied(server) as two:
        async with connect([one.address, two.address], reconnect=QUICK) as client:
            one.refusing = True
            await one.cut()
            with anyio.fail_after(10):
                for wanted in (False, True):
                    while client.connected != wanted:
                        await anyio.lowlevel.checkpoint()
            assert str(client.address) == two.address


async def test_the_first_connection_is_tried_again_if_that_is_wished(server: str) -> None:
    policy = ReconnectPolicy(initial_delay_s=0.01, max_delay_s=0.05, retry_first=True)
    async with proxied(server) as proxy:
        proxy.refusing = True

        async def relent() -> None:
            await anyio.sleep(0.1)
            proxy.refusing = False

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(relent)
            async with connect(proxy.address, reconnect=policy) as client:
                assert client.connected
        proxy.refusing = True
        with pytest.raises(ConnectFailed):
            async with connect(proxy.address, reconnect=QUICK):
                pass


async def test_a_channel_that_is_gone_ends_its_consumer() -> None:
    codes = iter([0, 404])

    async def script(peer: Peer) -> None:
        await peer.accept()
        code = next(codes)
        await peer.operation(601, code)
        if code:
            await peer.until_closed()

    async with serve(script) as address, connect(address, reconnect=QUICK) as client:
        changes = client.connection_events()
        with anyio.fail_after(5):
            with pytest.raises(OperationFailed) as caught:
                async with client.consume("orders", 1) as messages:
                    await messages.get()
            assert caught.value.code == 404
            seen = [type(await anext(changes)) for _ in range(3)]
        assert sorted(kind.__name__ for kind in seen) == [
            "Disconnected",
            "Reconnected",
            "RestoreRefused",
        ]
        assert client.connected


async def test_refused_logins_are_not_repeated_for_ever() -> None:
    accepted = iter([True])
    refusals = 0

    async def script(peer: Peer) -> None:
        nonlocal refusals
        if next(accepted, False):
            await peer.accept()
        else:
            refusals += 1
            await peer.refuse(401)

    async with serve(script) as address:
        async with connect(address, reconnect=QUICK) as client:
            with anyio.fail_after(5):
                with pytest.raises(ConnectionLost, match=r"refused 3 times.*401"):
                    await client.push("orders", 1, "x")
        assert refusals == 3


async def test_a_message_that_ends_every_connection_is_given_up() -> None:
    ends = 0

    async def script(peer: Peer) -> None:
        nonlocal ends
        await peer.accept()
        frame = await peer.pushed()
        if frame.payload == b"poison":
            ends += 1
            return
        await peer.send(ack_of(frame))
        await peer.until_closed()

    policy = ReconnectPolicy(initial_delay_s=0.01, max_delay_s=0.05, max_sends=3)
    async with serve(script) as address, connect(address, reconnect=policy) as client:
        with anyio.fail_after(5):
            with pytest.raises(ConnectionLost):
                await client.push("orders", 1, "poison")
            assert ends == 3
            await client.push("orders", 1, "food")


async def test_a_full_buffer_blocks_or_raises_or_drops(server: str, channel: str) -> None:
    limits = ClientLimits(buffered_messages=3)

    async def outage(proxy: Proxy, client: Client) -> None:
        await make_queue(client, channel)
        proxy.refusing = True
        await proxy.cut()
        while client.connected:
            await anyio.sleep(0.005)
        for number in range(3):
            await client.push(channel, 1, str(number), wait=False)

    with anyio.fail_after(20):
        async with (
            proxied(server) as proxy,
            connect(proxy.address, reconnect=QUICK, limits=limits, linger_s=0) as client,
        ):
            await outage(proxy, client)
            with pytest.raises(WouldBlock):
                await client.push(channel, 1, "x", wait=False, nowait=True)
            with anyio.move_on_after(0.05) as scope:
                await client.push(channel, 1, "x", wait=False)
            assert scope.cancelled_caught
        assert client.statistics().unsent == 3
        async with (
            proxied(server) as proxy,
            connect(proxy.address, reconnect=QUICK, limits=limits, when_full="raise") as client,
        ):
            await outage(proxy, client)
            with pytest.raises(WouldBlock):
                await client.push(channel, 1, "x", wait=False)
            proxy.refusing = False
        async with (
            proxied(server) as proxy,
            connect(proxy.address, reconnect=QUICK, limits=limits, when_full="drop") as client,
        ):
            await outage(proxy, client)
            assert await client.push(channel, 1, "x", wait=False) == ""
            with pytest.raises(WouldBlock):
                await client.push(channel, 1, "x")
            assert client.statistics().unsent == 1
            proxy.refusing = False


@pytest.mark.parametrize("linger_s", [None, 5.0])
async def test_closing_lingers_until_everything_is_sent(
    server: str, channel: str, linger_s: float | None
) -> None:
    async with proxied(server) as proxy, connect(server) as other:
        await other.create_queue(channel, 1, status="push")
        async with anyio.create_task_group() as tasks:
            async with connect(proxy.address, reconnect=QUICK, linger_s=linger_s) as client:
                proxy.refusing = True
                await proxy.cut()
                while client.connected:
                    await anyio.sleep(0.005)
                await client.push(channel, 1, "last words", wait=False)

                async def relent() -> None:
                    await anyio.sleep(0.1)
                    with pytest.raises(ClientClosed):
                        await client.push(channel, 1, "too late", wait=False)
                    proxy.refusing = False

                tasks.start_soon(relent)
        async with other.consume(channel, 1) as messages:
            with anyio.fail_after(5):
                assert (await messages.get()).text == "last words"


async def test_a_connection_that_says_nothing_is_given_up_and_replaced(
    server: str, channel: str
) -> None:
    limits = ClientLimits(protocol=Limits(ping_interval_s=0.3, handshake_timeout_s=1.0))
    async with (
        proxied(server) as proxy,
        connect(proxy.address, reconnect=QUICK, limits=limits) as client,
    ):
        changes = client.connection_events()
        await make_queue(client, channel)
        proxy.stall()
        with anyio.fail_after(10):
            change = await anext(changes)
            assert isinstance(change, Disconnected)
            assert change.reason == "lifeless"
            proxy.flow()
            await until_reconnected(client, 2)
            await client.push(channel, 1, "heard again")


async def test_lists_are_asked_again_where_that_is_wished(server: str, channel: str) -> None:
    policy = ReconnectPolicy(initial_delay_s=0.01, max_delay_s=0.05, repeat_operations=True)
    async with proxied(server) as proxy, connect(proxy.address, reconnect=policy) as client:
        await make_queue(client, channel)
        found = []

        async def look() -> None:
            found.extend(await client.queues(channel))

        proxy.stall()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            await anyio.sleep(0.05)
            await proxy.cut()
            proxy.flow()
        assert [queue.id for queue in found] == [1]


async def test_a_server_that_accepts_and_closes_at_once_is_not_asked_ever_faster() -> None:
    """Each short connection used to start the waits again: 134 connects in 12 s."""
    connects: list[float] = []

    async def goodbye(peer: Peer) -> None:
        connects.append(anyio.current_time())
        await peer.accept()

    policy = ReconnectPolicy(initial_delay_s=0.01, max_delay_s=10.0, jitter=0.0)
    async with serve(goodbye) as address, connect(address, reconnect=policy):
        with anyio.fail_after(20):
            while len(connects) < 8:
                await anyio.sleep(0.01)
    # Waits of 0.01, 0.02, 0.04 ... 0.64 s came before the others; they sum up to 1.27 s.
    assert connects[-1] - connects[0] >= 1.2


async def test_a_connection_that_lasted_starts_the_waits_again(server: str) -> None:
    policy = ReconnectPolicy(
        initial_delay_s=0.01, max_delay_s=1_000.0, jitter=0.0, steady_after_s=0.0
    )
    async with proxied(server) as proxy, connect(proxy.address, reconnect=policy) as client:
        for count in range(2, 14):  # the last wait would be 20 s
            await proxy.cut()
            await until_reconnected(client, count)
