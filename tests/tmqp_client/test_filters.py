"""Filters, from the client to the server and back."""

# ruff: noqa: ASYNC110 - what changes has no event

from __future__ import annotations

import itertools
from collections.abc import Iterator

import anyio
import pytest

from tests.tmqp_client.proxy import proxied
from tests.tmqp_client.server import running_server
from tmqp import LocalProtocolError
from tmqp_client import Client, OperationFailed, ReconnectPolicy, connect
from tmqp_client.sync import connect as connect_blocking

COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as addresses:
        yield addresses[0]


@pytest.fixture
def channel() -> str:
    return f"channel-{next(COUNT)}"


async def push_orders(client: Client, channel: str, *numbers: int) -> None:
    """Those with an even number are orders, the others bills."""
    for number in numbers:
        kind = "bill" if number % 2 else "order"
        await client.push(channel, 1, f"{kind} {number}", headers={"Kind": kind})


async def test_consumers_get_what_they_want(server: str, channel: str) -> None:
    async with connect(server) as client, connect(server) as other:
        await client.create_queue(channel, 1, status="round-robin")
        await push_orders(client, channel, 0, 1, 2, 3)
        async with (
            client.consume(channel, 1, filter="kind=order") as orders,
            other.consume(channel, 1, filter="bill", filter_language="prefix") as bills,
        ):
            assert [(await orders.get()).text for _ in range(2)] == ["order 0", "order 2"]
            assert [(await bills.get()).text for _ in range(2)] == ["bill 1", "bill 3"]


async def test_what_nobody_wants_waits(server: str, channel: str) -> None:
    async with connect(server) as client, connect(server) as other:
        await client.create_queue(channel, 1, status="round-robin")
        await client.join(channel, filter="kind=order")
        await push_orders(client, channel, 1, 2, 3)
        async with client.consume(channel, 1) as orders:  # as joined before
            assert (await orders.get()).text == "order 2"
            assert (await client.queue_information(channel, 1)).messages == 2
            async with other.consume(channel, 1) as rest:
                assert [(await rest.get()).text for _ in range(2)] == ["bill 1", "bill 3"]


async def test_a_filter_survives_a_cut(server: str, channel: str) -> None:
    quick = ReconnectPolicy(initial_delay_s=0.01, max_delay_s=0.05)
    async with proxied(server) as proxy, connect(proxy.address, reconnect=quick) as client:
        await client.create_queue(channel, 1, status="round-robin")
        async with client.consume(channel, 1, filter="kind=order") as orders:
            await proxy.cut()
            with anyio.fail_after(10):
                while client.statistics().connections < 2 or not client.connected:
                    await anyio.sleep(0.005)
            await push_orders(client, channel, 1, 2)
            assert (await orders.get()).text == "order 2"


async def test_the_server_says_what_is_wrong_with_a_filter(server: str, channel: str) -> None:
    async with connect(server) as client:
        with pytest.raises(OperationFailed, match="the languages are headers, prefix") as caught:
            await client.join(channel, filter="price > 3", filter_language="xpath")
        assert caught.value.code == 400
        with pytest.raises(LocalProtocolError, match="filter_language"):
            await client.join(channel, filter_language="prefix")


def test_blocking(server: str, channel: str) -> None:
    with connect_blocking(server) as client:
        client.create_queue(channel, 1, status="round-robin")
        with client.consume(channel, 1, filter="kind=order") as orders:
            for kind in ("bill", "order"):
                client.push(channel, 1, kind, headers={"Kind": kind})
            assert orders.get().text == "order"
