"""Messages with a key: the client and the command ``tmqp`` with the real server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import anyio
import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import tmqp
from tmqp.constants import QueueStatus
from tmqp.errors import LocalProtocolError
from tmqp.models import QueueOptions
from tmqp_client import OperationFailed, connect, sync
from tmqp_client._times import with_key


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


async def test_one_consumer_gets_all_of_a_key(place: str, channel: str) -> None:
    async with connect(place) as producer, connect(place) as one, connect(place) as two:
        await producer.create_queue(
            channel, 1, QueueOptions(status=QueueStatus.ROUND_ROBIN, group_keys="sticky")
        )
        got: dict[str, list[str]] = {"one": [], "two": []}
        with anyio.fail_after(20):
            async with one.consume(channel, 1) as first, two.consume(channel, 1) as second:
                for number in range(5):
                    for key in ("a", "b", "c", "d"):
                        await producer.push(channel, 1, f"{key}{number}", key=key)
                await producer.push_many(channel, 1, [f"e{n}" for n in range(5)], key="e")
                for name, consumer in (("one", first), ("two", second)):
                    with anyio.move_on_after(1.0):
                        while True:
                            message = await consumer.get()
                            got[name].append(message.text)
                            assert message.header("Group-Key") == message.text[0]
        assert len(got["one"]) + len(got["two"]) == 25
        for name, other in (("one", "two"), ("two", "one")):
            assert got[name]
            for key in {text[0] for text in got[name]}:
                mine = [text for text in got[name] if text[0] == key]
                assert mine == [f"{key}{number}" for number in range(5)]
                assert not [text for text in got[other] if text[0] == key]
        about = await producer.queue_information(channel, 1)
        assert about.group_keys == "sticky"


async def test_an_unknown_way_is_refused(place: str, channel: str) -> None:
    async with connect(place) as client:
        with pytest.raises(OperationFailed, match="400"):
            await client.create_queue(channel, 1, QueueOptions(group_keys="loose"))


def test_the_command_and_the_blocking_client(place: str, channel: str) -> None:
    options = ["--status", "round-robin", "--group-keys", "strict"]
    assert tmqp(place, "queue", "create", channel, "1", *options).exit_code == 0
    shown = tmqp(place, "queue", "info", channel, "1", "--json")
    assert json.loads(shown.stdout)["group_keys"] == "strict"
    assert tmqp(place, "pub", channel, "1", "first", "--key", "k").exit_code == 0
    with sync.connect(place) as client:
        client.push(channel, 1, "second", key="k")
        with client.consume(channel, 1, acknowledge="manual") as consumer:
            first = consumer.get(timeout_s=10)
            assert first.text == "first"
            first.ack()
            assert consumer.get(timeout_s=10).header("Group-Key") == "k"


def test_an_empty_key_is_none() -> None:
    assert with_key((), None) == ()
    assert with_key([("a", "b")], "k") == [("a", "b"), ("Group-Key", "k")]
    with pytest.raises(LocalProtocolError, match="key is empty"):
        with_key((), "")


async def test_ten_priorities(place: str, channel: str) -> None:
    async with connect(place) as client:
        await client.create_queue(
            channel, 1, QueueOptions(status=QueueStatus.ROUND_ROBIN, priorities="ten")
        )
        for priority in (4, 1, 9, 0, 7):
            await client.push(channel, 1, str(priority), priority=priority)
        await client.push(channel, 1, "high", high_priority=True)
        await client.push(channel, 1, "usual")
        got: list[str] = []
        with anyio.fail_after(20):
            async with client.consume(channel, 1) as messages:
                while len(got) < 7:
                    got.append((await messages.get()).text)
        assert got == ["9", "high", "7", "4", "usual", "1", "0"]
        assert (await client.queue_information(channel, 1)).priorities == "ten"
        with pytest.raises(LocalProtocolError, match="priority must be 0"):
            await client.push(channel, 1, "x", priority=10)
        with pytest.raises(OperationFailed):
            await client.create_queue(f"{channel}-2", 1, QueueOptions(priorities="three"))
