"""The real server, killed without warning while it is busy, again and again, at every door.

The clients of TMQP consume meanwhile: what was confirmed and not answered for must come, in order,
nothing else, and whatever comes a second time must say so.
"""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from tests.tmqp_server.killed_doors import FOREIGN
from tests.tmqp_server.killing import (
    END,
    KilledDoor,
    Ledger,
    Process,
    kill_again_and_again,
)
from tmqp.models import QueueOptions
from tmqp_client import Client, connect

#: ``make soak`` does more of them.
CYCLES = 5
IN_FLIGHT = 256


class NativeDoor(KilledDoor):
    """TMQP: a producer with many messages under way, and a consumer that answers for some."""

    confirmed = 2_000

    async def prepare(self, process: Process) -> None:
        async with connect(process.address, reconnect=None) as client:
            options = QueueOptions(durable=True, memory_limit=500)
            await client.create_queue("c", 1, options, status="push")

    async def work(
        self, process: Process, ledger: Ledger, enough: anyio.Event, chance: random.Random
    ) -> None:
        async with (
            connect(process.address, reconnect=None) as producer,
            connect(process.address, reconnect=None) as consumer,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self.produce, producer, ledger, enough)
            tasks.start_soon(self.consume, consumer, ledger, chance.randint(1, 3))

    async def produce(self, client: Client, ledger: Ledger, enough: anyio.Event) -> None:
        """Push one after the other, many at a time, until the server is gone."""
        start = len(ledger.confirmed)

        async def one() -> None:
            while True:
                (number,) = ledger.take(1)
                await client.push("c", 1, b"%09d" % number)
                ledger.confirmed.add(number)
                if len(ledger.confirmed) >= start + self.confirmed:
                    enough.set()

        async with anyio.create_task_group() as tasks:
            for _ in range(IN_FLIGHT):
                tasks.start_soon(one)

    async def consume(self, client: Client, ledger: Ledger, share: int) -> None:
        """Answer for a share of the messages, so that some are in hand at the end and some are
        not."""
        async with client.consume("c", 1, acknowledge="manual") as messages:
            async for message in messages:
                if ledger.receive(message.payload):
                    assert not message.first_acquirer, "it was sent before and is not flagged"
                if int(message.payload) % share == 0:
                    await message.ack()

    async def drain(self, process: Process, ledger: Ledger) -> None:
        async with connect(process.address, reconnect=None) as client:
            await client.push("c", 1, END)
            async with client.consume("c", 1) as messages:
                async for message in messages:
                    if message.payload == END:
                        break
                    ledger.receive(message.payload)
                    assert not message.first_acquirer, "it may have been sent, and is not flagged"


NATIVE = NativeDoor()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    "door",
    [pytest.param(NATIVE, marks=pytest.mark.alone), *FOREIGN],
    ids=lambda door: str(door.name),
)
async def test_killed_again_and_again_nothing_is_lost(door: KilledDoor, tmp_path: Path) -> None:
    print(await kill_again_and_again(door, tmp_path, CYCLES, 1))
