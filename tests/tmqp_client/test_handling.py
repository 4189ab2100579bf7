"""Handlers and responders against the real server: what they are given, and what is answered."""

# ruff: noqa: ASYNC110 - counters have no event

from __future__ import annotations

import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import attrs
import pytest

from tests.tmqp_client.server import running_server
from tmqp import LocalProtocolError
from tmqp_client import (
    Client,
    DirectMessage,
    Message,
    NegativeAcknowledge,
    OperationFailed,
    Refuse,
    RetryPolicy,
    Unreadable,
    connect,
)

COUNT = itertools.count(1)


@attrs.define
class Order:
    """What is ordered, and how many of it."""

    name: str
    count: int = 1


@dataclass
class Bill:
    """What it costs."""

    total: float


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as addresses:
        yield addresses[0]


@pytest.fixture
def channel() -> str:
    return f"channel-{next(COUNT)}"


async def make_queue(client: Client, channel: str, **how: Any) -> None:
    """A queue whose producer hears what its consumer says."""
    how.setdefault("status", "round-robin")
    await client.create_queue(channel, 1, delivery_handler="ack-consumer", **how)


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(client.run)
        yield
        tasks.cancel_scope.cancel()


async def test_a_handler_is_given_what_it_asks_for(server: str, channel: str) -> None:
    seen: list[object] = []
    async with connect(server) as client, connect(server) as other:
        for queue_id in range(1, 6):
            await client.create_queue(channel, queue_id, status="push")

        @client.handler(channel, 1)
        async def a_message(message: Message) -> None:
            seen.append(message.text)

        @client.handler(channel, 2)
        async def bytes_and_message(payload: bytes, message: Message) -> None:
            seen.append((payload, message.queue_id))

        @client.handler(channel, 3)
        async def text(text: str) -> None:
            seen.append(text)

        @client.handler(channel, 4)
        async def a_model(order: Order) -> None:
            seen.append(order)

        @client.handler(channel, 5)
        async def no_annotation(message) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            seen.append(message.text)

        async with running(client):
            await other.push(channel, 1, "1")
            await other.push(channel, 2, "2")
            await other.push(channel, 3, "größe")
            await other.push(channel, 4, other.encode(Order("pizza", 2)))
            await other.push(channel, 5, "5")
            with anyio.fail_after(5):
                while len(seen) < 5:
                    await anyio.sleep(0.01)
    assert sorted(seen, key=str) == sorted(
        ["1", (b"2", 2), "größe", Order("pizza", 2), "5"], key=str
    )


async def test_success_is_acknowledged_and_failure_refused(server: str, channel: str) -> None:
    async with connect(server) as client, connect(server) as other:
        await make_queue(client, channel)

        @client.handler(channel, 1)
        async def handle(order: Order) -> None:
            if order.name == "refused":
                raise Refuse("out of cheese")
            if order.name == "broken":
                raise RuntimeError("the oven is cold")

        async with running(client):
            await other.push(channel, 1, client.encode(Order("good")))
            for name, reason in {"refused": "out of cheese", "broken": "error"}.items():
                with pytest.raises(NegativeAcknowledge) as caught:
                    await other.push(channel, 1, client.encode(Order(name)))
                assert caught.value.reason == reason
            with pytest.raises(NegativeAcknowledge, match="unreadable"):
                await other.push(channel, 1, "no JSON")
            with pytest.raises(NegativeAcknowledge, match="unreadable"):
                await other.push(channel, 1, '{"count":"many"}')


async def test_a_handler_that_fails_is_called_again(server: str, channel: str) -> None:
    calls = 0
    async with connect(server) as client, connect(server) as other:
        await make_queue(client, channel)

        @client.handler(channel, 1, retry=RetryPolicy(attempts=3, initial_delay_s=0.01))
        async def handle(text: str) -> None:
            nonlocal calls
            calls += 1
            if calls < 3 or text == "never":
                raise RuntimeError("not yet")

        async with running(client):
            await other.push(channel, 1, "third time lucky")
            assert calls == 3
            with pytest.raises(NegativeAcknowledge):
                await other.push(channel, 1, "never")
            assert calls == 6


async def test_so_many_at_a_time_and_no_more(server: str, channel: str) -> None:
    now = most = 0
    async with connect(server) as client, connect(server) as other:
        await other.create_queue(channel, 1, status="push")

        @client.handler(channel, 1, concurrency=3)
        async def handle(message: Message) -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await anyio.sleep(0.02)
            now -= 1

        async with running(client):
            await other.push_many(channel, 1, [b"x"] * 12)
            with anyio.fail_after(5):
                while client.statistics().acknowledged < 12:
                    await anyio.sleep(0.01)
    assert most == 3


async def test_a_plain_function_runs_in_a_thread(server: str, channel: str) -> None:
    threads: list[str] = []
    async with connect(server) as client, connect(server) as other:
        await make_queue(client, channel)

        @client.handler(channel, 1)
        def handle(text: str) -> None:
            threads.append(threading.current_thread().name)

        async with running(client):
            await other.push(channel, 1, "x")
    assert threads != []
    assert threads != [threading.main_thread().name]


async def test_acknowledging_before_and_not_at_all(server: str, channel: str) -> None:
    async with connect(server) as client, connect(server) as other:
        await make_queue(client, channel)

        @client.handler(channel, 1, acknowledge="before")
        async def handle(text: str) -> None:
            raise RuntimeError("too late to say so")

        async with running(client):
            await other.push(channel, 1, "x")
    async with connect(server) as client, connect(server) as other:

        @client.handler(channel, 1, acknowledge="none")
        async def answer(message: Message) -> None:
            await message.nack("by hand")

        async with running(client):
            with pytest.raises(NegativeAcknowledge, match="by hand"):
                await other.push(channel, 1, "x")


async def test_responders_answer_requests(server: str) -> None:
    async with connect(server, name="kitchen") as client, connect(server) as other:

        @client.responder(1)
        async def price(order: Order) -> Bill:
            return Bill(order.count * 9.5)

        @client.responder(2)
        async def refuse(text: str) -> str:
            raise Refuse("closed", 503)

        @client.responder(3)
        async def fail(text: str) -> str:
            raise RuntimeError("burnt")

        @client.responder(4)
        async def silent(message: DirectMessage) -> None:
            assert message.source == other.client_id

        @client.responder(5)
        async def by_hand(message: DirectMessage) -> None:
            await message.respond(1_000, "mine")

        async with running(client):
            to = client.client_id
            answer = await other.request(to, other.encode(Order("pizza", 2)), content_type=1)
            assert other.decode(answer, Bill) == Bill(19.0)
            with pytest.raises(Unreadable, match="Order"):
                other.decode(answer, Order)
            assert (await other.request(to, "x", content_type=1)).code == 400
            answer = await other.request(to, "x", content_type=2)
            assert (answer.code, answer.text) == (503, "closed")
            assert (await other.request(to, "x", content_type=3)).code == 500
            assert (await other.request(to, "x", content_type=4)).code == 204
            assert (await other.request(to, "x", content_type=5)).code == 1_000
            assert (await other.request(to, "x", content_type=6)).code == 404
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(other.request, to, "x")


async def test_what_ends_a_consumer_ends_the_run(server: str) -> None:
    async with connect(server) as client, connect(server) as other:
        channel = f"channel-{next(COUNT)}"
        await client.create_queue(channel, 1)

        @client.handler(channel, 1)
        async def handle(text: str) -> None: ...

        async with anyio.create_task_group() as tasks:
            await tasks.start(client.run)
            await client.aclose()
        with pytest.raises(LocalProtocolError, match="no handler"):
            await other.run()


class Loud:
    """A converter of its own kind."""

    def encode(self, value: object) -> bytes:
        return str(value).upper().encode()

    def decode(self, payload: bytes, kind: type[Any]) -> Any:
        return kind(payload.decode().lower())


class Name:
    """Wants a text."""

    def __init__(self, text: str) -> None:
        if not text:
            raise ValueError("empty")
        self.text = text


async def test_a_converter_of_the_programs_own(server: str, channel: str) -> None:
    names: list[str] = []
    async with connect(server, converter=Loud()) as client:
        await make_queue(client, channel)

        @client.handler(channel, 1)
        async def handle(name: Name) -> None:
            names.append(name.text)

        async with running(client):
            await client.push(channel, 1, client.encode("ada"))
            with pytest.raises(NegativeAcknowledge, match="unreadable"):
                await client.push(channel, 1, "")
    assert names == ["ada"]


def print_it(message: DirectMessage) -> None:
    print(message)


def test_functions_and_arguments_that_cannot_be() -> None:
    client = connect("tmq://127.0.0.1:1")
    with pytest.raises(LocalProtocolError, match="takes a message"):
        client.handler("a", 1)(lambda: None)
    with pytest.raises(LocalProtocolError, match="takes a message"):
        client.handler("a", 1)(str)
    with pytest.raises(LocalProtocolError, match="concurrency"):
        client.handler("a", 1, concurrency=0)
    with pytest.raises(LocalProtocolError, match="concurrency"):
        client.responder(concurrency=0)
    with pytest.raises(LocalProtocolError, match="acknowledge"):
        client.handler("a", 1, acknowledge="sometimes")  # type: ignore[arg-type]
    client.responder(1)(print_it)
    with pytest.raises(LocalProtocolError, match="already has a responder"):
        client.responder(1)
    with pytest.raises(LocalProtocolError):
        RetryPolicy(attempts=0)
    with pytest.raises(LocalProtocolError):
        RetryPolicy(jitter=2)
    with pytest.raises(LocalProtocolError, match="cannot be converted to JSON"):
        client.encode(object())


def test_waits_between_calls_double_up_to_their_bound() -> None:
    policy = RetryPolicy(attempts=5, initial_delay_s=1.0, max_delay_s=3.0, jitter=0.5)
    assert [policy.delay_s(attempt, 0.0) for attempt in (1, 2, 3, 4000)] == [1.0, 2.0, 3.0, 3.0]
    assert policy.delay_s(1, 1.0) == 0.5


def test_without_cattrs_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cattrs.preconf.json", None)
    with pytest.raises(LocalProtocolError, match="cattrs"):
        connect("tmq://127.0.0.1:1").encode(1)


async def test_an_operation_that_fails_ends_the_run(server: str) -> None:
    async with connect(server) as client:

        @client.handler("x" * 300)
        async def handle(text: str) -> None: ...

        with pytest.raises((OperationFailed, LocalProtocolError)):
            await client.run()
