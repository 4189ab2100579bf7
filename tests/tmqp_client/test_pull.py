"""Pulling: against the real server, and against scripted ones that do what ours does not."""

# ruff: noqa: SIM117 - nested blocks tell the story

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import anyio
import pytest

from tests.tmqp_client.machine_pair import LIMITS, Pair, only
from tests.tmqp_client.peer import Peer, connect, response_to, serve
from tests.tmqp_client.server import running_server
from tmqp import Frame, LocalProtocolError, MessageType, PullRequestReceived
from tmqp_client import (
    ClientClosed,
    ClientLimits,
    ConnectionLost,
    OperationFailed,
    OperationTimeout,
    Pull,
    PullRefused,
)
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import Lost
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import PullRequest

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as addresses:
        yield addresses[0]


def fresh() -> str:
    """The name of a channel that nobody has."""
    return f"pulling-{next(_NUMBERS)}"


# --- With the real server ------------------------------------------------------------------------


async def test_messages_come_in_order_and_the_end_is_told(server: str) -> None:
    channel = fresh()
    async with connect(server) as client:
        await client.create_queue(channel, 1, status="pull")
        await client.join(channel)
        for each in range(5):
            await client.push(channel, 1, f"m{each}", high_priority=each == 3, wait=False)
        pull = client.pull(channel, 1, 3, info=True)
        assert pull.reason == ""
        texts = []
        left = []
        async for message in pull:
            async with message:
                texts.append(message.text)
                left.append((message.header("Priority-Messages"), message.header("Messages")))
        assert texts == ["m3", "m0", "m1"]
        assert left == [("0", "4"), ("0", "3"), ("0", "2")]
        assert (pull.reason, pull.received) == ("End", 3)
        newest = [message.text async for message in client.pull(channel, 1, 9, order="LIFO")]
        assert newest == ["m4", "m2"]
        empty = client.pull(channel, 1, 1)
        assert [message async for message in empty] == []
        assert empty.reason == "Empty"


async def test_clear_removes_the_rest(server: str) -> None:
    channel = fresh()
    async with connect(server) as client:
        await client.create_queue(channel, 1, status="pull")
        await client.join(channel)
        for each in range(3):
            await client.push(channel, 1, f"m{each}", wait=False)
        assert [each.text async for each in client.pull(channel, 1, 1, clear="ALL")] == ["m0"]
        assert [each async for each in client.pull(channel, 1, 1)] == []


async def test_refusals_are_errors_with_the_servers_word(server: str) -> None:
    channel = fresh()
    async with connect(server) as client:
        await client.create_queue(channel, 1, status="pull")
        await client.create_queue(channel, 2, status="push")
        for where, word in (
            ((channel, 1), "Unauthorized"),
            ((channel, 2), "Unacceptable"),
            ((channel, 3), "No-Queue"),
            (("nowhere", 1), "No-Channel"),
        ):
            pull = client.pull(*where, 1)
            with pytest.raises(PullRefused, match=word) as caught:
                await anext(pull)
            assert caught.value.reason == pull.reason == word
            with pytest.raises(PullRefused):
                await client.read_cache(*where)


async def test_a_cache_queue_is_read(server: str) -> None:
    channel = fresh()
    async with connect(server) as client:
        await client.create_queue(channel, 1, status="cache")
        with pytest.raises(OperationFailed, match="401"):
            await client.read_cache(channel, 1)
        await client.join(channel)
        assert await client.read_cache(channel, 1) is None
        for text in ("one", "two"):
            await client.push(channel, 1, text, wait=False)
        for _ in range(2):
            assert await client.read_cache(channel, 1) == b"two"
        with pytest.raises(PullRefused, match="it is a cache queue"):
            await anext(client.pull(channel, 1, 1))


async def test_several_pulls_at_once_are_told_apart(server: str) -> None:
    channel = fresh()
    async with connect(server) as client:
        await client.join(channel)
        taken: dict[int, list[str]] = {}

        async def take(queue_id: int) -> None:
            pull = client.pull(channel, queue_id, 2_000)
            taken[queue_id] = [message.text async for message in pull]

        for queue_id in (1, 2):
            await client.create_queue(channel, queue_id, status="pull")
            texts = [f"{queue_id}-{each}" for each in range(1_500)]
            await client.push_many(channel, queue_id, texts)
        async with anyio.create_task_group() as tasks:
            for queue_id in (1, 2):
                tasks.start_soon(take, queue_id)
    for queue_id in (1, 2):
        assert taken[queue_id] == [f"{queue_id}-{each}" for each in range(1_500)]


# --- With scripted servers -----------------------------------------------------------------------


def pulled(request: Frame, index: int, text: str, wants: bool = False) -> Frame:
    return Frame.build(
        MessageType.QUEUE_MESSAGE,
        request.target,
        request.content_type,
        text.encode(),
        message_id=f"m{index}",
        headers=[("Request-Id", request.message_id), ("Index", str(index))],
        pending_acknowledge=wants,
    )


def ended(request: Frame, word: str = "End") -> Frame:
    return Frame.build(
        MessageType.QUEUE_MESSAGE,
        request.target,
        request.content_type,
        message_id=request.message_id,
        headers=[("Request-Id", request.message_id), ("No-Content", word)],
    )


async def test_a_server_that_falls_silent_is_not_waited_for_longer() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        request = (await peer.expect(PullRequestReceived)).frame
        await peer.send(pulled(request, 1, "one"))
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        pull = client.pull("ch", 1, 2, timeout_s=0.05)
        assert (await anext(pull)).text == "one"
        with pytest.raises(OperationTimeout, match=r"pull from 'ch'/1: no answer within 0\.05 s"):
            await anext(pull)
        with pytest.raises(StopAsyncIteration):
            await anext(pull)


async def test_a_connection_that_ends_ends_its_pulls() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        request = (await peer.expect(PullRequestReceived)).frame
        await peer.send(pulled(request, 1, "kept"), pulled(request, 2, "owed", wants=True))

    async def drain(pull: Pull) -> None:
        async for message in pull:
            texts.append(message.text)

    texts: list[str] = []
    async with serve(script) as address, connect(address) as client:
        with pytest.raises(ConnectionLost):
            await drain(client.pull("ch", 1, 5))
    assert texts in (["kept"], ["kept", "owed"]), "the latter if it was taken before the end"


async def test_closing_the_client_ends_its_pulls() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.until_closed()

    async def wait(pull: Any) -> None:
        with pytest.raises(ClientClosed):
            await anext(pull)
        told.append(True)

    told: list[bool] = []
    async with serve(script) as address, anyio.create_task_group() as tasks:
        async with connect(address) as client:
            tasks.start_soon(wait, client.pull("ch", 1, 1))
            await anyio.wait_all_tasks_blocked()
    assert told == [True]


async def test_an_originals_404_ends_a_pull() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        request = (await peer.expect(PullRequestReceived)).frame
        await peer.send(response_to(request, 404))
        await peer.until_closed()

    async with serve(script) as address, connect(address) as client:
        with pytest.raises(OperationFailed, match="404"):
            await anext(client.pull("ch", 1, 1))


async def test_what_comes_after_a_loop_was_left_is_dropped_and_counted() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        request = (await peer.expect(PullRequestReceived)).frame
        await peer.send(*(pulled(request, index, "x") for index in range(1, 4)))
        await left.wait()
        await peer.send(pulled(request, 4, "x"), ended(request))
        again = (await peer.expect(PullRequestReceived)).frame
        await peer.send(ended(again, "Empty"))
        await peer.until_closed()

    left = anyio.Event()
    async with serve(script) as address, connect(address) as client:
        pull = client.pull("ch", 1, 4)
        async for _ in pull:
            break
        await anyio.sleep(0.05)
        pull.close()
        left.set()
        assert [message async for message in pull] == []
        assert [message async for message in client.pull("ch", 1, 1)] == []
        assert client.statistics().dropped == 3
        pull.close()


# --- The machine ---------------------------------------------------------------------------------


def test_what_the_original_sends_is_sent() -> None:
    pair = Pair()
    for request, headers in (
        (PullRequest("ch", 1, 3), [("Count", "3")]),
        (
            PullRequest("ch", 1, 3, "LIFO", "high-priority", True),
            [("Count", "3"), ("Clear", "High-Priority"), ("Info", "yes"), ("Order", "LIFO")],
        ),
    ):
        pair.machine.pull(request)
        (frame,) = pair.asked()
        assert frame.type == MessageType.PULL_REQUEST
        assert (frame.target, frame.content_type, frame.source) == ("ch", 1, "c1")
        assert frame.headers == headers
        assert not frame.pending_response
    pair.machine.read_cache(PullRequest("ch", 1), 0.0, None)
    (frame,) = pair.asked()
    assert frame.pending_response
    assert frame.headers == []


def test_a_full_inbox_of_a_pull_pauses_reading() -> None:
    pair = Pair()
    pull = pair.machine.pull(PullRequest("ch", 1, 9))
    (request,) = pair.asked()
    assert not pair.machine.must_pause(0)
    for index in range(LIMITS.consumer_messages):
        pair.say(pulled(request, index + 1, "x"))
    assert pair.machine.must_pause(0)
    for _ in range(LIMITS.consumer_messages // 2):
        pull.inbox.take()
    assert not pair.machine.must_pause(0)


def test_while_a_pull_is_waited_for_a_congested_consumer_does_not_stop_reading() -> None:
    pair = Pair()
    inbox = pair.machine.subscribe("orders", 1)
    orders = Frame.build(MessageType.QUEUE_MESSAGE, "orders", 1, b"x", message_id="m")
    for _ in range(LIMITS.consumer_messages):
        pair.say(orders)
    assert inbox.congested
    assert pair.machine.must_pause(0)
    pair.machine.pull(PullRequest("ch", 1, 1))
    assert not pair.machine.must_pause(0)


def test_a_cache_that_does_not_answer_times_out() -> None:
    pair = Pair()
    pending = pair.machine.read_cache(PullRequest("ch", 1), 0.0, 3.0)
    assert pair.machine.outstanding == 1
    (expired,) = only(pair.machine.on_deadline(3.0), Pending)
    assert expired is pending
    assert isinstance(pending.error, OperationTimeout)
    (request,) = pair.asked()
    assert only(pair.say(ended(request, "Unacceptable")), Inbox) == []
    assert pair.machine.counters.delivered == 0


def test_a_lost_connection_settles_pulls_and_cache_reads() -> None:
    pair = Pair()
    pull = pair.machine.pull(PullRequest("ch", 1, 9))
    pending = pair.machine.read_cache(PullRequest("ch", 2), 0.0, None)
    request = pair.asked()[0]
    pair.say(pulled(request, 1, "a"), pulled(request, 2, "b", wants=True))
    outcomes = pair.machine.fail("gone")
    assert pull.inbox in outcomes
    assert pending in outcomes
    assert isinstance(outcomes[-1], Lost)
    assert pull.over
    assert isinstance(pull.error, ConnectionLost)
    assert len(pull.inbox) == 1
    assert pair.machine.counters.dropped == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ch", 1, 0), "a count of 1 or more"),
        (("ch", 1, -1), "a count of 1 or more"),
        (("ch", 1, 1, "newest"), "order must be 'fifo' or 'lifo', not 'newest'"),
        (("ch", 1, 1, "fifo", "some"), "clear must be one of"),
        (("a b", 1, 1), "must not contain @, space"),
        (("ch", 65_536, 1), "0 to 65535"),
        (("ch", 70_000), "0 to 65535"),
    ],
)
def test_arguments_that_make_no_sense(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LocalProtocolError, match=message):
        PullRequest(*arguments)


def test_time_outs_that_make_no_sense() -> None:
    client = connect("tmq://127.0.0.1:1")
    for timeout_s in (0.0, -1.0, float("nan")):
        with pytest.raises(LocalProtocolError, match="a timeout must be a positive number"):
            client.pull("ch", 1, 1, timeout_s=timeout_s)
    with pytest.raises(LocalProtocolError, match="pull_timeout_s must be positive"):
        ClientLimits(pull_timeout_s=0.0)
