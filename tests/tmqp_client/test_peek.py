"""Looking into queues: the client and the command ``tmqp`` with the real server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import tmqp
from tmqp.errors import LocalProtocolError
from tmqp_client import OperationFailed, connect, sync


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


async def test_a_queue_is_seen_and_left_as_it_is(place: str, channel: str) -> None:
    async with connect(place, client_id=channel) as client:
        await client.create_queue(channel, 1, status="pull")
        for number in range(5):
            await client.push(channel, 1, f"x{number}", headers={"N": str(number)})
        await client.push(channel, 1, "high", high_priority=True)
        late = await client.push(channel, 1, "late", delay_s=60)
        seen = [message async for message in client.peek(channel, 1, limit=2)]
        assert [each.text for each in seen] == ["x0", "x1", "x2", "x3", "x4", "high", "late"]
        assert [each.text async for each in client.peek(channel, 1)] == [each.text for each in seen]
        assert [each.state for each in seen] == ["waiting"] * 6 + ["deferred"]
        assert seen[2].headers == [("N", "2")]
        assert seen[5].high_priority
        assert seen[0].source == channel
        assert not seen[0].kept
        assert seen[0].attempts == 0
        assert seen[0].due_at is None
        due_at = seen[6].due_at
        assert due_at is not None
        assert abs(due_at - datetime.now(UTC) - timedelta(seconds=60)) < timedelta(seconds=30)
        only = [each.text async for each in client.peek(channel, 1, message_id=late)]
        assert only == ["late"]
        some = [each.text async for each in client.peek(channel, 1, filter="n=3", limit=1)]
        assert some == ["x3"]
        language = "sql92-converting"
        chosen = client.peek(channel, 1, filter="N > 1 AND N < 4", filter_language=language)
        assert [each.text async for each in chosen] == ["x2", "x3"]
        await client.join(channel)
        async for message in client.pull(channel, 1, 1):
            flying = [each async for each in client.peek(channel, 1, states=["in-flight"])]
            assert [each.message_id for each in flying] == [message.message_id]
            assert flying[0].attempts == 1
        about = await client.queue_information(channel, 1)
        assert about.messages + about.priority_messages == 5


async def test_what_cannot_be_seen(place: str, channel: str) -> None:
    async with connect(place) as client:
        with pytest.raises(OperationFailed) as refused:
            await anext(client.peek(channel, 1))
        assert refused.value.code == 404
        with pytest.raises(LocalProtocolError, match="a state must be one of"):
            client.peek(channel, 1, states=["gone"])
        with pytest.raises(LocalProtocolError, match="filter_language"):
            client.peek(channel, 1, filter_language="prefix")
        await client.create_queue(channel, 1)
        with pytest.raises(OperationFailed) as refused:
            await anext(client.peek(channel, 1, filter="=x"))
        assert refused.value.code == 400
        assert "a condition is" in str(refused.value)


def test_the_blocking_client_sees_too(place: str, channel: str) -> None:
    with sync.connect(place) as client:
        client.create_queue(channel, 1, status="pull")
        client.push(channel, 1, "x")
        assert [message.text for message in client.peek(channel, 1)] == ["x"]
        chosen = client.peek(channel, 1, filter="y", filter_language="prefix")
        assert [message.text for message in chosen] == []


def test_the_command_shows_a_queue(place: str, channel: str) -> None:
    with sync.connect(place) as client:
        client.create_queue(channel, 1, status="pull")
        client.push(channel, 1, "one", message_id="m1", expires_s=60)
        client.push(channel, 1, "two", message_id="m2", delay_s=60)
    shown = tmqp(place, "peek", channel, "1")
    assert (shown.exit_code, shown.stdout.split()) == (0, ["one", "two"])
    shown = tmqp(place, "peek", channel, "1", "--state", "deferred", "--json")
    fields = json.loads(shown.stdout)
    assert (fields["sequence"], fields["state"], fields["message_id"]) == (2, "deferred", "m2")
    assert fields["due_at"]
    assert fields["expires_at"] is None
    shown = tmqp(place, "peek", channel, "1", "--id", "m1", "--json")
    assert json.loads(shown.stdout)["expires_at"]
    assert tmqp(place, "peek", channel, "1", "-n", "1").stdout.split() == ["one"]
    assert tmqp(place, "peek", channel, "1", "--first", "2").stdout.split() == ["two"]
    chosen = tmqp(place, "peek", channel, "1", "--filter", "t", "--filter-language", "prefix")
    assert chosen.stdout.split() == ["two"]
    assert tmqp(place, "peek", channel, "1", "--filter", "delay").stdout.split() == ["two"]
    assert tmqp(place, "peek", channel, "7").exit_code == 1
    assert tmqp(place, "peek", channel, "1", "--state", "gone").exit_code == 2
