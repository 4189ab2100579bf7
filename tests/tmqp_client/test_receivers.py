"""How many consumers a message went to: the client with the real server."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.tmqp_client.server import running_server
from tmqp_client import OperationFailed, Pushed, connect, sync


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


async def test_receivers_are_counted(place: str, channel: str) -> None:
    async with connect(place) as client, connect(place) as other:
        await client.create_queue(channel, 1, status="broadcast")
        assert await client.push_counted(channel, 1, "x", message_id="a") == Pushed("a", 0)
        async with client.consume(channel), other.consume(channel):
            assert await client.push_counted(channel, 1, "x", message_id="b") == Pushed("b", 2)
        await client.create_queue(channel, 2, status="stopped")
        with pytest.raises(OperationFailed):
            await client.push_counted(channel, 2, "x")


def test_the_blocking_client_counts_too(place: str, channel: str) -> None:
    with sync.connect(place) as client:
        client.create_queue(channel, 1, status="push")
        assert client.push_counted(channel, 1, "x", headers={"A": "1"}).receivers == 0
