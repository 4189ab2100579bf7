"""The real server with the real store, killed while clients move messages in batches.

Each batch acknowledges a message of one queue and pushes what was made of it into two others.  Then
the process is killed without warning.  Afterwards each message is in the first queue or in both of
the others: never in only one of these, nowhere twice, and not lost; and what was answered with
success has left the first.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.tmqp_server.killing import Process
from tmqp.models import QueueOptions
from tmqp_client import Client, ClientError, OperationError, connect

LIVES = 3
MOVED = 120
MOVERS = 4
DURABLE = QueueOptions(durable=True, memory_limit=20, put_back_limit=-1)


class Ledger:
    """What the clients know."""

    def __init__(self) -> None:
        self.last = 0
        #: Confirmed in the first queue, and moved with an answer that said so.
        self.pushed: set[str] = set()
        self.moved: set[str] = set()
        #: Answered in this life.
        self.answered = 0


async def push(client: Client, ledger: Ledger) -> None:
    """Keep the first queue filled, until the server is gone."""
    while True:
        if len(ledger.pushed) - len(ledger.moved) > 300:
            await anyio.sleep(0.01)
            continue
        ledger.last += 1
        uid = f"m{ledger.last}"
        await client.push("in", 1, uid, message_id=uid)
        ledger.pushed.add(uid)


async def move(client: Client, ledger: Ledger, enough: anyio.Event) -> None:
    """Move one message after the other."""
    async with client.consume("in", 1, acknowledge="manual", returns="front") as messages:
        while True:
            message = await messages.get()
            uid = message.message_id
            async with client.batch() as batch:
                batch.push("left", 1, b"made", message_id=uid)
                batch.ack(message)
                batch.push("right", 1, b"made", message_id=uid)
            ledger.moved.add(uid)
            ledger.answered += 1
            if ledger.answered >= MOVED:
                enough.set()


async def live(process: Process, ledger: Ledger) -> None:
    """One life: many at a time, and an end without warning."""
    enough = anyio.Event()
    ledger.answered = 0

    async def busy(work: object) -> None:
        try:
            async with (
                connect(process.address, reconnect=None) as client,
                anyio.create_task_group() as tasks,
            ):
                if work is push:
                    for _ in range(4):
                        tasks.start_soon(push, client, ledger)
                else:
                    tasks.start_soon(move, client, ledger, enough)
        except* (ClientError, OperationError):
            pass
        assert enough.is_set(), "the client ended before the server did"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as work:
            work.start_soon(busy, push)
            for _ in range(MOVERS):
                work.start_soon(busy, move)
            await enough.wait()
            process.kill()


async def drained(process: Process, channel: str) -> list[str]:
    """The ids of all that is in a queue."""
    found: list[str] = []
    with anyio.fail_after(60):
        async with (
            connect(process.address, reconnect=None) as client,
            client.consume(channel, 1) as messages,
        ):
            while True:
                with anyio.move_on_after(1.0) as waited:
                    found.append((await messages.get()).message_id)
                if waited.cancelled_caught:
                    about = await client.queue_information(channel, 1)
                    if not about.messages:
                        break
    return found


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_batches_are_there_whole_or_not_at_all_after_kills(tmp_path: Path) -> None:
    ledger = Ledger()
    process = Process(tmp_path)
    try:
        async with connect(process.address, reconnect=None) as client:
            await client.create_queue("in", 1, DURABLE, status="round-robin")
            for channel in ("left", "right"):
                await client.create_queue(channel, 1, DURABLE, status="push")
        for _ in range(LIVES):
            await live(process, ledger)
            process = Process(tmp_path)
        waiting, left, right = [await drained(process, each) for each in ("in", "left", "right")]
    finally:
        process.kill()
    for found in (waiting, left, right):
        assert len(found) == len(set(found)), "no message is declared twice"
    assert set(left) == set(right), "both parts of a batch, or neither"
    both = set(waiting) & set(left)
    assert not both, f"{sorted(both)[:10]} were moved and are there still"
    assert ledger.moved <= set(left), "a batch that was answered with success is there"
    lost = ledger.pushed - set(waiting) - set(left)
    assert not lost, f"{sorted(lost)[:10]} are in neither queue"
    assert len(ledger.moved) >= LIVES * MOVED
