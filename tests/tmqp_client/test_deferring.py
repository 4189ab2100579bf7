"""Deferred messages: the client and the command ``tmqp`` with the real server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import anyio
import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_client.test_cli import tmqp
from tmqp.errors import LocalProtocolError
from tmqp_client import BatchFailed, Client, OperationFailed, connect, sync
from tmqp_client._times import with_times


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with running_server() as (tcp, _):
        yield tcp


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "-", request.node.name)


async def come(client: Client, channel: str, count: int) -> list[str]:
    """The next messages of queue 1, until one second passes without any."""
    found: list[str] = []
    async with client.consume(channel, 1) as consumer:
        while len(found) < count:
            with anyio.move_on_after(1.0) as waited:
                found.append((await consumer.get()).text)
            if waited.cancelled_caught:
                break
    return found


async def test_messages_come_when_they_are_due(place: str, channel: str) -> None:
    async with connect(place) as client:
        await client.create_queue(channel, 1, status="push")
        soon = datetime.now(UTC) + timedelta(seconds=0.3)
        await client.push(channel, 1, "third", delay_s=0.6)
        await client.push(channel, 1, "second", deliver_at=soon)
        await client.push(channel, 1, "first", delay_s=0, expires_s=60)
        await client.push(channel, 1, "never", delay_s=0.5, expires_s=0.2, wait=False)
        about = await client.queue_information(channel, 1)
        assert about.deferred_messages in (2, 3)
        assert await come(client, channel, 4) == ["first", "second", "third"]
        about = await client.queue_information(channel, 1)
        assert about.deferred_messages is None


async def test_a_message_is_cancelled_once(place: str, channel: str) -> None:
    async with connect(place) as client:
        await client.create_queue(channel, 1, status="push")
        sent = await client.push(channel, 1, "late", delay_s=60)
        await client.push_many(channel, 1, ["a", "b"], delay_s=0.2)
        assert await client.cancel_message(channel, 1, sent)
        assert not await client.cancel_message(channel, 1, sent)
        assert not await client.cancel_message("none", 1, sent)
        assert await come(client, channel, 3) == ["a", "b"]


async def test_a_waiting_message_is_removed_once(place: str, channel: str) -> None:
    async with connect(place) as client:
        await client.create_queue(channel, 1, status="pull")
        sent = [await client.push(channel, 1, text) for text in ("a", "b", "c")]
        assert await client.remove_message(channel, 1, sent[1])
        assert not await client.remove_message(channel, 1, sent[1])
        assert not await client.cancel_message(channel, 1, sent[0]), "it is not deferred"
        about = await client.queue_information(channel, 1)
        assert about.messages == 2


async def test_a_delay_past_the_limit_is_refused(place: str, channel: str) -> None:
    async with connect(place) as client:
        with pytest.raises(OperationFailed) as refused:
            await client.push(channel, 1, "m", delay_s=400 * 86_400)
        assert refused.value.code == 482
        with pytest.raises(BatchFailed):
            await client.push_many(channel, 1, ["m"], deliver_at=datetime(2999, 1, 1, tzinfo=UTC))


def test_the_blocking_client_does_it_too(place: str, channel: str) -> None:
    with sync.connect(place) as client:
        client.create_queue(channel, 1, status="push")
        sent = client.push(channel, 1, "late", delay_s=60)
        assert client.cancel_message(channel, 1, sent)
        assert not client.cancel_message(channel, 1, sent)
        assert not client.remove_message(channel, 1, sent)


# --- What a caller says --------------------------------------------------------------------------


def test_the_headers_of_a_push() -> None:
    given = [("Mine", "x")]
    assert with_times(given, None, None, None) is given
    assert with_times(given, 1.5, None, None) == [("Mine", "x"), ("Delay", "1500")]
    assert with_times((), 0, None, 0.001) == [("Delay", "0"), ("Message-Timeout", "1")]
    at = datetime(2027, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert with_times({}, None, at, None) == [("Deliver-At", "1798761600000")]
    assert with_times({}, None, datetime(1960, 1, 1, tzinfo=UTC), None) == [("Deliver-At", "0")]


@pytest.mark.parametrize(
    ("delay_s", "deliver_at", "expires_s", "words"),
    [
        (-1.0, None, None, "delay_s must be 0 ms or more"),
        (float("nan"), None, None, "delay_s must be"),
        (float("inf"), None, None, "delay_s must be"),
        (None, None, 0.0, "expires_s must be 1 ms or more"),
        (None, None, 0.0001, "expires_s must be 1 ms or more"),
        (1.0, datetime(2027, 1, 1, tzinfo=UTC), None, "not both"),
        (None, datetime(2027, 1, 1), None, "needs a time zone"),  # noqa: DTZ001 - the mistake
    ],
)
def test_times_that_make_no_sense(
    delay_s: float | None, deliver_at: datetime | None, expires_s: float | None, words: str
) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        with_times((), delay_s, deliver_at, expires_s)


# --- The command ---------------------------------------------------------------------------------


def test_the_command_defers_and_cancels(place: str, channel: str) -> None:
    assert tmqp(place, "queue", "create", channel, "1", "--status", "push").exit_code == 0
    for options in (["--delay", "60"], ["--deliver-at", "2999-01-01"], ["--expires", "0.001"]):
        pushed = tmqp(place, "pub", channel, "1", "x", *options)
        assert pushed.exit_code == (1 if "2999-01-01" in options else 0), pushed.output
    shown = tmqp(place, "queue", "info", channel, "1", "--json")
    assert json.loads(shown.stdout)["deferred_messages"] == 1
    with sync.connect(place) as client:
        client.push(channel, 1, "late", message_id="mine", delay_s=60)
    cancelled = tmqp(place, "queue", "cancel", channel, "1", "mine", "--json")
    assert json.loads(cancelled.stdout) == {
        "channel": channel,
        "queue": 1,
        "id": "mine",
        "cancelled": True,
    }
    again = tmqp(place, "queue", "cancel", channel, "1", "mine")
    assert again.exit_code == 1
    assert "no deferred message mine" in again.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--delay", "-1"],
        ["--deliver-at", "tomorrow"],
        ["--delay", "1", "--deliver-at", "2027-01-01T00:00:00Z"],
        ["--expires", "0"],
    ],
)
def test_options_that_make_no_sense(place: str, options: list[str]) -> None:
    assert tmqp(place, "pub", "c", "1", "x", *options).exit_code == 2
