"""The real server with the real store, killed while messages are deferred and cancelled.

Each life pushes deferred messages and cancels some; then the process is killed without warning.
What was confirmed and not cancelled must come, and not before its time; what was cancelled, and
answered for, must never come.
"""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from tests.tmqp_server.killing import Process
from tmqp.models import QueueOptions
from tmqp_client import Client, ClientError, OperationError, connect

LIVES = 3
CONFIRMED = 150
#: Long enough for a slow machine to kill the server before most are due.
DELAYS_S = (0.5, 2.0, 6.0)


class Ledger:
    """What the clients know; times are those of this machine's monotonic clock."""

    def __init__(self) -> None:
        self.last = 0
        #: When each confirmed message is due at the earliest.
        self.due: dict[str, float] = {}
        #: Cancels that were asked for, and those that were answered.
        self.doubtful: set[str] = set()
        self.cancelled: set[str] = set()
        self.seen: set[str] = set()

    def received(self, uid: str) -> None:
        assert uid not in self.cancelled, f"{uid} was cancelled"
        early = self.due.get(uid, 0.0) - anyio.current_time()
        assert early <= 0.002, f"{uid} comes {early:.3f} s too early"
        self.seen.add(uid)


async def push(client: Client, ledger: Ledger, chance: random.Random, enough: anyio.Event) -> None:
    """Push one after the other, and cancel some, until the server is gone."""
    while True:
        ledger.last += 1
        uid = f"m{ledger.last}"
        delay_s = chance.choice(DELAYS_S)
        begun = anyio.current_time()
        await client.push("c", 1, uid, message_id=uid, delay_s=delay_s)
        ledger.due[uid] = begun + delay_s
        if chance.random() < 0.4:
            ledger.doubtful.add(uid)
            if await client.cancel_message("c", 1, uid):
                ledger.cancelled.add(uid)
            else:
                assert anyio.current_time() >= ledger.due[uid] - 0.002, "it was not due"
        if len(ledger.due) % CONFIRMED == 0:
            enough.set()


async def live(process: Process, ledger: Ledger, chance: random.Random) -> None:
    """One life: many at a time, and an end without warning."""
    enough = anyio.Event()

    async def busy() -> None:
        try:
            async with (
                connect(process.address, reconnect=None) as client,
                anyio.create_task_group() as tasks,
            ):
                for _ in range(16):
                    tasks.start_soon(push, client, ledger, chance, enough)
        except* (ClientError, OperationError):
            pass
        assert enough.is_set(), "the client ended before the server did"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as work:
            work.start_soon(busy)
            await enough.wait()
            process.kill()


async def drain(process: Process, ledger: Ledger) -> None:
    """Take everything that comes, until nothing is deferred any more."""
    with anyio.fail_after(60):
        async with (
            connect(process.address, reconnect=None) as client,
            client.consume("c", 1) as messages,
        ):
            while True:
                with anyio.move_on_after(1.0) as waited:
                    ledger.received((await messages.get()).message_id)
                if waited.cancelled_caught:
                    about = await client.queue_information("c", 1)
                    if not about.deferred_messages and not about.messages:
                        return


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_deferrals_and_cancels_outlive_kills(tmp_path: Path) -> None:
    chance = random.Random(1)
    ledger = Ledger()
    process = Process(tmp_path)
    try:
        async with connect(process.address, reconnect=None) as client:
            options = QueueOptions(durable=True, memory_limit=20)
            await client.create_queue("c", 1, options, status="push")
        for _ in range(LIVES):
            await live(process, ledger, chance)
            process = Process(tmp_path)
        await drain(process, ledger)
    finally:
        process.kill()
    lost = set(ledger.due) - ledger.doubtful - ledger.seen
    assert not lost, f"{len(lost)} confirmed messages are lost: {sorted(lost)[:10]}"
    assert len(ledger.cancelled) > 20
    assert len(ledger.seen) > CONFIRMED
