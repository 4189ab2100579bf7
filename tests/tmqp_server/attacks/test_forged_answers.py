"""A peer that may only push into one channel answers for the server and for others.

It is given what it used to guess: the ids of what its victim waits for.  Nothing that it sends may
settle anything, whatever it knows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from tmqp import Connection, ConnectionInformation, Frame, MessageType, Role
from tmqp.address import Address
from tmqp_client import (
    Client,
    ClientLimits,
    OperationFailed,
    OperationTimeout,
    connect,
)
from tmqp_server import ServerConfig, running

#: How often each forgery is tried.
TRIES = 10
#: The victim waits so long for an answer that nobody gives.
LIMITS = ClientLimits(response_timeout_s=0.3, acknowledge_timeout_s=0.3, pull_timeout_s=0.3)


class Attacker:
    """Speaks frames; everything that arrives is read and forgotten."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._connection = Connection(Role.CLIENT, now=anyio.current_time())
        self.client_id = "attacker"

    async def greet(self) -> None:
        self._connection.initiate(ConnectionInformation(self.client_id))
        await self._stream.send(self._connection.data_to_send())
        while not self._connection.client_id:
            self._connection.receive(await self._stream.receive(), anyio.current_time())

    async def read(self) -> None:
        while True:
            try:
                data = await self._stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            self._connection.receive(data, anyio.current_time())

    async def send(self, *frames: Frame) -> None:
        await self._stream.send(b"".join(frame.raw for frame in frames))


def forged_answers(victim: str, message_id: str, channel: str) -> list[Frame]:
    """Every answer that could settle what the victim waits for under an id."""
    mine: dict[str, Any] = {"message_id": message_id, "source": "attacker"}
    acknowledge, response = MessageType.ACKNOWLEDGE, MessageType.RESPONSE
    return [
        Frame.build(acknowledge, victim, 1, high_priority=True, **mine),
        Frame.build(acknowledge, victim, 1, **mine),
        Frame.build(acknowledge, channel, 1, **mine),
        Frame.build(acknowledge, channel, 1, high_priority=True, **mine),
        Frame.build(response, victim, 0, b"forged", **mine),
        Frame.build(response, victim, 0, b"forged", high_priority=True, **mine),
        Frame.build(response, victim, 404, **mine),
        Frame.build(acknowledge, victim, 1, headers=[("Nack-Reason", "error")], **mine),
    ]


@asynccontextmanager
async def attacked() -> AsyncIterator[tuple[Client, Attacker, list[str]]]:
    """A server, and the two of :func:`beside`."""
    async with running(ServerConfig(listen=(Address("127.0.0.1", 0),))) as server:
        address = server.addresses[0]
        async with beside(address.host, address.port) as found:
            yield found


@asynccontextmanager
async def beside(host: str, port: int) -> AsyncIterator[tuple[Client, Attacker, list[str]]]:
    """A victim, an attacker, and the victim's ids as an oracle tells them to the attacker: the last
    two that it used and the next two."""
    async with (
        connect(f"tmq://{host}:{port}", client_id="victim", limits=LIMITS) as victim,
        await anyio.connect_tcp(host, port) as stream,
        anyio.create_task_group() as tasks,
    ):
        attacker = Attacker(stream)
        await attacker.greet()
        tasks.start_soon(attacker.read)
        machine = victim._session._machine
        draw = machine._new_id
        ids = [draw() for _ in range(4)]

        def new_id() -> str:
            ids.append(draw())
            del ids[0]
            return ids[1]

        machine._new_id = new_id
        yield victim, attacker, ids
        tasks.cancel_scope.cancel()


async def keep_forging(attacker: Attacker, ids: list[str], channel: str) -> None:
    """Answer whatever the victim asks, again and again."""
    while True:
        for message_id in list(ids):
            await attacker.send(*forged_answers("victim", message_id, channel))
        await anyio.sleep(0.005)


async def test_confirms_of_others_cannot_be_forged() -> None:
    """29 of 30 pushes were "confirmed" by a peer that guessed their ids."""
    async with attacked() as (victim, attacker, ids), anyio.create_task_group() as tasks:
        # Nobody confirms there: the handler waits for a consumer, and there is none.
        await victim.create_queue("orders", 1, status="push", delivery_handler="ack-consumer")
        tasks.start_soon(keep_forging, attacker, ids, "orders")
        for _ in range(TRIES):
            with pytest.raises(OperationTimeout):
                await victim.push("orders", 1, b"x")
        assert victim.statistics().confirmed == 0
        tasks.cancel_scope.cancel()


async def test_results_of_operations_cannot_be_forged() -> None:
    """28 of 30 operations that the server had refused "succeeded"."""
    async with attacked() as (victim, attacker, ids), anyio.create_task_group() as tasks:
        tasks.start_soon(keep_forging, attacker, ids, "nowhere")
        for _ in range(TRIES):
            with pytest.raises(OperationFailed) as refused:
                await victim.remove_queue("nowhere", 1)
            assert refused.value.code == 404
        tasks.cancel_scope.cancel()


async def forge_pulled(attacker: Attacker, ids: list[str]) -> None:
    """Push what looks like results of the victim's pulls, where it consumes."""
    while True:
        for message_id in list(ids):
            headers = [("Request-Id", message_id), ("Count", "1"), ("Index", "1")]
            end = [("Request-Id", message_id), ("No-Content", "End")]
            for number, (payload, extra) in enumerate(((b"forged", headers), (b"", end))):
                push = Frame.build(
                    MessageType.QUEUE_MESSAGE,
                    "public",
                    1,
                    payload,
                    message_id=f"{message_id}-{number}",
                    source="attacker",
                    headers=extra,
                )
                await attacker.send(push)
            await attacker.send(*forged_answers("victim", message_id, "secret"))
        await anyio.sleep(0.005)


async def test_results_of_pulls_cannot_be_forged() -> None:
    """14 of 15 pulls gave what a peer had pushed into another queue."""
    async with attacked() as (victim, attacker, ids), anyio.create_task_group() as tasks:
        await victim.create_queue("public", 1, status="push")
        await victim.create_queue("secret", 1, status="pull")
        await victim.join("secret")
        tasks.start_soon(forge_pulled, attacker, ids)
        async with victim.consume("public", 1) as messages:
            for number in range(TRIES):
                await victim.push("secret", 1, f"real {number}")
                with anyio.fail_after(20):
                    got = [message.payload async for message in victim.pull("secret", 1, 1)]
                assert got == [f"real {number}".encode()]
            # What the attacker pushed is an ordinary message, and says nothing of a pull.
            with anyio.fail_after(20):
                message = await messages.get()
            assert message.source == "attacker"
            assert message.header("Request-Id") is None
        tasks.cancel_scope.cancel()


async def test_responses_of_other_clients_cannot_be_forged() -> None:
    """Only the client asked answers a request."""
    async with attacked() as (victim, attacker, ids), anyio.create_task_group() as tasks:
        tasks.start_soon(keep_forging, attacker, ids, "orders")
        async with connect(str(victim.address), client_id="clerk", name="clerks") as clerk:

            async def answer() -> None:
                async with clerk.direct_messages() as messages:
                    async for message in messages:
                        await anyio.sleep(0.02)  # the attacker is faster
                        await message.respond(0, b"real")

            tasks.start_soon(answer)
            await anyio.wait_all_tasks_blocked()
            for target in ("clerk", "@name:clerks"):
                for _ in range(TRIES // 2):
                    response = await victim.request(target, b"?", 10.0)
                    assert (response.payload, response.source) == (b"real", "clerk")
            tasks.cancel_scope.cancel()
