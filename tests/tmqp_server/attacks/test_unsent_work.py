"""Clients ask for work that is never sent, without end; another client must not notice.

2,000 pipelined lists whose answer was too large to be sent, 22 kB in all, stopped the server for
40 s.  ``TMQP_ATTACK_S`` is for how many seconds each attack goes on.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketStream

import tmqp
from tests.tmqp_server.attacks.healthy import p99_s, probe, server
from tests.tmqp_server.peers import greeting
from tmqp.address import parse_address
from tmqp.constants import TYPE_DIRECT_MESSAGE, TYPE_ROUTER, TYPE_SERVER, Operation
from tmqp.frames import Frame

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.timeout(120)]

#: The measure is 50 ms for a compiled server; the interpreted one has steps five times as long.
LIMIT_S = 0.050 if tmqp.compiled else 0.250
TRIPS = int(float(os.environ.get("TMQP_ATTACK_S", "3")) * 100)
ATTACKERS = 4
CHANNELS = 9_000


def asking(number: int, target: str = "", body: bytes = b"") -> bytes:
    return Frame.build(TYPE_SERVER, target, number, body, message_id="r", pending_response=True).raw


def storm(piece: bytes) -> bytes:
    """About 64 KiB of the same request."""
    return piece * (65_536 // len(piece))


#: What each attacker sends, again and again.
STORMS: dict[str, bytes] = {
    "lists that cannot be sent": storm(asking(Operation.CHANNEL_LIST)),
    "lists through a filter": storm(asking(Operation.CHANNEL_LIST, "*nn*9*")),
    "lists that just fit": storm(asking(Operation.CHANNEL_LIST, "channel-2*")),
    "queues without end": storm(asking(Operation.QUEUE_LIST, "channel-0")),
    "clients through a filter": storm(asking(Operation.CLIENT_LIST, "*x*")),
    "direct messages to all": storm(Frame.build(TYPE_DIRECT_MESSAGE, "@type:x", 1, b"x").raw),
    "messages for a router": storm(Frame.build(TYPE_ROUTER, "nowhere", 1, b"x").raw),
    "channels and their removal": storm(
        asking(Operation.CREATE_CHANNEL, "fleeting") + asking(Operation.REMOVE_CHANNEL, "fleeting")
    ),
    "no operation": storm(asking(9_999)),
}


@asynccontextmanager
async def dial(address: str, client_id: str) -> AsyncIterator[SocketStream]:
    """A connection that was accepted; it is cut at the end, whatever is still to be sent."""
    where = parse_address(address)
    with anyio.CancelScope(shield=True):
        stream = await anyio.connect_tcp(where.host, where.port)
    try:
        await stream.send(greeting(client_id))
        await stream.receive()
        yield stream
    finally:
        with anyio.CancelScope(shield=True):
            await stream.aclose()


async def fill(address: str) -> None:
    """Make so many channels that their list cannot be sent."""
    async with dial(address, "filler") as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(swallow, stream)
        for at in range(CHANNELS):
            await stream.send(asking(Operation.CREATE_CHANNEL, f"channel-{at}"))
        await stream.send(asking(Operation.CREATE_QUEUE, "channel-0"))
        await anyio.sleep(0.5)
        tasks.cancel_scope.cancel()


async def swallow(stream: SocketStream) -> None:
    while True:
        try:
            await stream.receive(1 << 20)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def attack(address: str, number: int, data: bytes) -> None:
    """Send without end, and read what comes."""
    who = f"attacker-{number}"
    async with dial(address, who) as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(swallow, stream)
        while True:
            try:
                await stream.send(data)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


async def measured(data: bytes) -> list[float]:
    """The round trips of a healthy client beside the attackers."""
    with server() as address:
        await fill(address)
        async with anyio.create_task_group() as tasks:
            for number in range(ATTACKERS):
                tasks.start_soon(attack, address, number, data)
            await anyio.sleep(0.3)
            trips = await probe(address, TRIPS)
            tasks.cancel_scope.cancel()
    return trips


@pytest.mark.parametrize("name", STORMS)
def test_a_healthy_client_does_not_notice(name: str) -> None:
    trips = anyio.run(measured, STORMS[name])
    print(f"{name}: p99 {p99_s(trips) * 1e3:.1f} ms, longest {max(trips) * 1e3:.1f} ms")
    assert p99_s(trips) < LIMIT_S
