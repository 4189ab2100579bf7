"""Routers through the client, with the real server, on each loop."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import anyio
import pytest

from tests.tmqp_client.server import running_server
from tmqp import LocalProtocolError
from tmqp.constants import BindingInteraction, BindingType, RouteMethod
from tmqp.models import BindingInformation, RouterInformation
from tmqp_client import NegativeAcknowledge, OperationFailed, Response, connect, to_name

COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_server() as (tcp, _unix):
        yield tcp


@pytest.fixture
def name() -> str:
    """A name no other test has."""
    return f"r{next(COUNT)}"


def to_queue(name: str, target: str, **more: object) -> BindingInformation:
    return BindingInformation(
        name=name,
        target=target,
        content_type=1,
        binding_type=BindingType.QUEUE,
        **more,  # type: ignore[arg-type]
    )


async def test_managing_routers_and_bindings(address: str, name: str) -> None:
    async with connect(address) as client:
        await client.create_router(name, RouteMethod.ONLY_FIRST)
        await client.create_router(name, RouteMethod.DISTRIBUTE)
        expected = RouterInformation(name=name, is_enabled=True, method=RouteMethod.ONLY_FIRST)
        assert expected in await client.routers()
        low, high = to_queue("low", name), to_queue("high", name, priority=2)
        for binding in (low, high, to_queue("low", "other")):
            await client.add_binding(name, binding)
        assert await client.bindings(name) == [high, low]
        await client.remove_binding(name, "high")
        assert await client.bindings(name) == [low]
        with pytest.raises(OperationFailed) as caught:
            await client.remove_binding(name, "high")
        assert caught.value.code == 404
        for _ in range(2):
            await client.remove_router(name)
        with pytest.raises(OperationFailed) as caught:
            await client.bindings(name)
        assert caught.value.code == 404


async def test_enabling_and_disabling(address: str, name: str) -> None:
    async with connect(address) as client:
        await client.create_router(name)
        await client.create_queue(name, 1, status="push")
        await client.add_binding(name, to_queue("q", name))
        await client.set_router_enabled(name, False)
        (router,) = [each for each in await client.routers() if each.name == name]
        assert not router.is_enabled
        with pytest.raises(NegativeAcknowledge) as refused:
            await client.publish(name, b"x")
        assert refused.value.reason == "no-consumers"
        await client.set_router_enabled(name, True)
        await client.publish(name, b"x")
        with pytest.raises(OperationFailed) as caught:
            await client.set_router_enabled("nowhere", True)
        assert caught.value.code == 404


async def test_a_binding_that_is_not_served(address: str, name: str) -> None:
    web = BindingInformation(name="w", target="http://x/", binding_type=BindingType.HTTP)
    async with connect(address) as client:
        await client.create_router(name)
        with pytest.raises(OperationFailed) as caught:
            await client.add_binding(name, web)
        assert caught.value.code == 501


async def test_a_message_reaches_the_queues(address: str, name: str) -> None:
    async with connect(address) as client, connect(address) as other:
        await client.create_router(name)
        await client.create_queue(name, 1, status="push")
        await client.create_queue(f"{name}b", 1, status="push", tag=f"tag-{name}")
        await client.add_binding(name, to_queue("q", name))
        tagged = BindingInformation(name="t", target=f"tag-{name}", binding_type=BindingType.TAG)
        await client.add_binding(name, tagged)
        async with other.consume(name, 1) as first, other.consume(f"{name}b", 1) as second:
            sent = await client.publish(name, "größe", headers={"A": "1"}, content_type=9)
            for consumer, channel in ((first, name), (second, f"{name}b")):
                message = await consumer.get()
                assert (message.channel, message.queue_id) == (channel, 1)
                assert (message.text, message.header("A")) == ("größe", "1")
                assert message.source == client.client_id
                assert message.message_id != sent  # a copy of its own
                assert message.frame.ttl == 16
                await message.ack()


async def test_nobody_is_reached(address: str, name: str) -> None:
    async with connect(address) as client:
        with pytest.raises(NegativeAcknowledge) as caught:
            await client.publish(name, b"x")
        assert caught.value.reason == "no-consumers"
        with pytest.raises(OperationFailed) as failed:
            await client.request_router(name, b"x")
        assert failed.value.code == 404
        await client.publish(name, b"x", wait=False)
        await client.ping()
        assert client.statistics().unclaimed == 0
        with pytest.raises(LocalProtocolError):
            await client.publish("a b", b"x")


async def test_receivers_answer_where_a_binding_asks(address: str, name: str) -> None:
    async with connect(address, name=name) as worker, connect(address) as client:
        for kind in (BindingInteraction.RESPONSE, BindingInteraction.ACKNOWLEDGE):
            router = f"{name}-{kind.name.lower()}"
            await client.create_router(router)
            binding = BindingInformation(
                name="d",
                target=to_name(name),
                content_type=7,
                interaction=kind,
                method=RouteMethod.ONLY_FIRST,
            )
            await client.add_binding(router, binding)
        async with worker.direct_messages() as messages:

            async def answer() -> None:
                request = await anext(messages)
                assert (request.content_type, request.target) == (7, to_name(name))
                assert request.requires_response
                await request.respond(0, b"done")
                asked = await anext(messages)
                assert asked.requires_acknowledge
                assert not asked.requires_response
                await asked.nack("busy")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer)
                response = await client.request_router(f"{name}-response", b"x")
                assert response == Response(0, b"done", worker.client_id)
                with pytest.raises(NegativeAcknowledge, match="busy"):
                    await client.publish(f"{name}-acknowledge", b"x")


async def test_a_response_of_the_router_itself(address: str, name: str) -> None:
    async with connect(address) as client:
        await client.create_router(name)
        await client.create_queue(name, 1, status="push")
        await client.add_binding(name, to_queue("q", name))
        assert await client.request_router(name, b"x") == Response(0, b"", "")
