"""Feeds from outside: the client, the command ``tmqp feed`` and what arrives at a consumer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anyio
import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import tmqp
from tmqp.errors import LocalProtocolError
from tmqp_client import OperationFailed, connect


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


async def test_consumers_of_a_target_get_messages_that_name_it(place: str) -> None:
    """What is acknowledged must name the queue that the message was taken from."""
    async with connect(place) as client:
        await client.create_queue("topic", 1, status="push")
        await client.create_queue("group", 7, status="round-robin")
        await client.add_feed("topic", 1, "group", 7, filter="kind=a")
        await client.push("topic", 1, "no", headers={"kind": "b"})
        await client.push("topic", 1, "yes", headers={"kind": "a"})
        with anyio.fail_after(10):
            async with client.consume("group", 7) as messages:
                async for message in messages:
                    assert (message.text, message.channel, message.queue_id) == ("yes", "group", 7)
                    break
        (feed,) = await client.feeds("topic", 1)
        assert (feed.target, feed.target_queue, feed.language, feed.filter) == (
            "group",
            7,
            "headers",
            "kind=a",
        )
        assert (feed.copied, feed.passed, feed.skipped, feed.waiting) == (1, 1, 0, 0)
        await client.ping()  # the server has the acknowledgement, which came before
        assert (await client.queue_information("group", 7)).acks == 1
        with pytest.raises(OperationFailed) as refused:
            await client.add_feed("group", 7, "topic", 1)
        assert refused.value.code == 406
        with pytest.raises(OperationFailed):
            await client.add_feed("topic", 1, "group", 7)
        with pytest.raises(LocalProtocolError):
            await client.add_feed("topic", 1, "other", 1, filter_language="prefix")
        await client.remove_feed("topic", 1, "group", 7)
        assert await client.feeds("topic") == []
        with pytest.raises(OperationFailed):
            await client.remove_feed("topic", 1, "group", 7)
        await client.remove_channel("topic")
        await client.remove_channel("group")


def test_the_command(place: str) -> None:
    for channel in ("shop", "billing"):
        assert tmqp(place, "queue", "create", channel, "1", "--status", "push").exit_code == 0
    words = ["feed", "add", "shop", "1", "billing", "1"]
    added = tmqp(place, *words, "--filter", "kind=new", "--json")
    assert json.loads(added.stdout) == {
        "channel": "shop",
        "queue": 1,
        "target": "billing",
        "target_queue": 1,
    }
    assert tmqp(place, *words).exit_code == 1
    assert tmqp(place, "feed", "add", "shop", "1", "missing", "1").exit_code == 1
    listed = json.loads(tmqp(place, "feed", "ls", "shop", "1", "--json").stdout)
    assert (listed["target"], listed["filter"], listed["copied"]) == ("billing", "kind=new", 0)
    assert tmqp(place, "feed", "rm", "shop", "1", "billing", "1").exit_code == 0
    assert tmqp(place, "feed", "ls", "shop", "--json").stdout == ""
