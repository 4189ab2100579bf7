"""The real server, killed without warning while it is busy, again and again.

Each cycle a producer and a consumer keep it busy until enough messages are confirmed, then the
process is killed.  The next one must have everything that was confirmed and not answered for, in
order, nothing else, and whatever comes a second time must say so.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from tmqp.models import QueueOptions
from tmqp_client import Client, ClientError, OperationError, connect

#: ``make soak`` does more of them.
CYCLES = 10
CONFIRMED = 2_000
IN_FLIGHT = 256
END = b"end"


class Ledger:
    """What the clients know."""

    def __init__(self) -> None:
        self.next = 0
        self.confirmed: set[int] = set()
        self.seen: set[int] = set()
        self.repeated = 0

    def receive(self, payload: bytes, first_acquirer: bool) -> None:
        number = int(payload)
        assert number < self.next, "invented"
        if number in self.seen:
            assert not first_acquirer, f"{number} was sent before and is not flagged"
            self.repeated += 1
        self.seen.add(number)


class Process:
    """A server process on a Unix socket; ``options`` are further words of its command."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.address = f"unix:{folder}/socket"
        command = [sys.executable, "-m", "tmqp_server", "-l", self.address]
        command += ["--data", str(folder / "data"), "--log-level", "error", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert " ready on " in ready, ready

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


async def produce(client: Client, ledger: Ledger, enough: anyio.Event) -> None:
    """Push one after the other, many at a time, until the server is gone."""
    start = len(ledger.confirmed)

    async def one() -> None:
        while True:
            number = ledger.next
            ledger.next += 1
            await client.push("c", 1, b"%09d" % number)
            ledger.confirmed.add(number)
            if len(ledger.confirmed) >= start + CONFIRMED:
                enough.set()

    async with anyio.create_task_group() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.start_soon(one)


async def consume(client: Client, ledger: Ledger, share: int) -> None:
    """Answer for a share of the messages, so that some are in hand at the end and some are not."""
    async with client.consume("c", 1, acknowledge="manual") as messages:
        async for message in messages:
            ledger.receive(message.payload, message.first_acquirer)
            if int(message.payload) % share == 0:
                await message.ack()


async def cycle(process: Process, ledger: Ledger, chance: random.Random) -> None:
    """Keep the server busy, and kill it in the middle."""
    enough = anyio.Event()

    async def busy() -> None:
        try:
            async with (
                connect(process.address, reconnect=None) as producer,
                connect(process.address, reconnect=None) as consumer,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(produce, producer, ledger, enough)
                tasks.start_soon(consume, consumer, ledger, chance.randint(1, 3))
        except* (ClientError, OperationError):
            pass
        assert enough.is_set(), "the clients ended before the server did"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as work:
            work.start_soon(busy)
            await enough.wait()
            await anyio.sleep(chance.random() * 0.05)
            process.kill()


async def drain(process: Process, ledger: Ledger) -> None:
    """Take everything there is, up to a message that is pushed last."""
    with anyio.fail_after(60):
        async with connect(process.address, reconnect=None) as client:
            await client.push("c", 1, END)
            async with client.consume("c", 1) as messages:
                async for message in messages:
                    if message.payload == END:
                        break
                    ledger.receive(message.payload, message.first_acquirer)
                    assert not message.first_acquirer, "it may have been sent, and is not flagged"
    lost = ledger.confirmed - ledger.seen
    assert not lost, f"{len(lost)} confirmed messages are lost: {sorted(lost)[:10]}"


async def kill_again_and_again(folder: Path, cycles: int, seed: int) -> str:
    """So many cycles; what happened, in a line."""
    chance = random.Random(seed)
    ledger = Ledger()
    process = Process(folder)
    began = time.monotonic()
    try:
        async with connect(process.address, reconnect=None) as client:
            options = QueueOptions(durable=True, memory_limit=500)
            await client.create_queue("c", 1, options, status="push")
        for _ in range(cycles):
            await cycle(process, ledger, chance)
            process = Process(folder)
            await drain(process, ledger)
    finally:
        process.kill()
    return (
        f"{cycles} kills in {time.monotonic() - began:.0f} s: {len(ledger.confirmed)} confirmed,"
        f" {ledger.next} pushed, {len(ledger.seen)} seen, {ledger.repeated} of them again, 0 lost"
    )


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_killed_again_and_again_nothing_is_lost(tmp_path: Path) -> None:
    print(await kill_again_and_again(tmp_path, CYCLES, 1))
