"""The real server, killed around commits of transactions: every epoch is there, once and whole.

A driver does what a pipeline's sink does: epoch after epoch it opens a transaction for each part,
pushes, and commits, and does not go on before it was told that the epoch is committed.  The server
is killed in between: while parts are pushed, within a moment of the commit, right behind it.  The
driver then knows nothing but the number of its epoch, and does it again.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import anyio
import pytest

from tests.tmqp_server.killing import Process
from tmqp.models import QueueOptions, TransactionInformation
from tmqp_client import Client, ClientError, OperationError, connect

#: ``make soak`` does more of them.
EPOCHS = 12
PARTS = 3
#: Messages of a part.
MESSAGES = 200
OPTIONS = QueueOptions(durable=True, retain_for_readers=True)


def payloads(epoch: int, part: int) -> list[bytes]:
    """What a part of an epoch holds, always the same."""
    return [b"%d/%d/%d" % (epoch, part, number) for number in range(MESSAGES)]


class Killer:
    """Ends the server at a moment of its choice, once in three epochs."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.process = Process(folder)
        self.kills = 0
        #: Epochs that were committed although the driver was not told.
        self.known = 0

    def kill(self) -> None:
        self.kills += 1
        self.process.kill()
        self.process = Process(self.folder)

    async def soon(self, longest_s: float) -> None:
        await anyio.sleep(self.chance.random() * longest_s)
        await anyio.to_thread.run_sync(self.kill)


async def write_epoch(client: Client, epoch: int, attempt: int, killer: Killer) -> str:
    """Do an epoch; its state before."""
    if epoch == 0:
        await client.create_queue("c", 1, OPTIONS, status="pull")
    moment = killer.chance.choice(("", "", "push", "commit", "behind"))
    parts: list[TransactionInformation] = []
    for part in range(PARTS):
        opened = await client.open_transaction("sink", epoch, part=part, attempt=attempt)
        if opened.state == "committed":
            return opened.state
        if moment == "push" and part == PARTS - 1:
            await anyio.to_thread.run_sync(killer.kill)
        parts.append(await client.push_transaction(opened, "c", 1, payloads(epoch, part)))
    async with anyio.create_task_group() as tasks:
        if moment == "commit":
            tasks.start_soon(killer.soon, 0.01)
        done = await client.commit_transaction("sink", epoch, parts)
    assert (done.state, done.count) in {("committed", PARTS * MESSAGES), ("committed", 0)}
    if moment == "behind":
        await anyio.to_thread.run_sync(killer.kill)
        async with connect(killer.process.address, reconnect=None) as again:
            repeated = await again.commit_transaction("sink", epoch, parts)
            assert (repeated.state, repeated.count) == ("committed", 0)
    return "open"


async def write_all(killer: Killer, epochs: int) -> None:
    epoch = attempt = 0
    while epoch < epochs:
        attempt += 1
        try:
            async with connect(killer.process.address, reconnect=None) as client:
                while epoch < epochs:
                    state = await write_epoch(client, epoch, attempt, killer)
                    killer.known += state == "committed"
                    epoch += 1
        except* (ClientError, OperationError, OSError):
            await anyio.sleep(0.01)


async def everything(address: str) -> list[bytes]:
    found: list[bytes] = []
    async with connect(address, reconnect=None) as client:
        first = 1
        while portion := await client.read_range("c", 1, first):
            found += [each.payload for each in portion]
            first = portion[-1].sequence + 1
        (mark,) = await client.list_transactions()
        assert mark.state == "committed"
    return found


async def commit_again_and_again(folder: Path, epochs: int, seed: int) -> str:
    """So many epochs; what happened, in a line."""
    began = time.monotonic()
    killer = Killer(folder, seed)
    try:
        with anyio.fail_after(60 + epochs):
            await write_all(killer, epochs)
        killer.kill()
        found = await everything(killer.process.address)
    finally:
        killer.process.kill()
    whole = [
        each for epoch in range(epochs) for part in range(PARTS) for each in payloads(epoch, part)
    ]
    assert found == whole, f"{len(found)} messages, {len({*found})} different, of {len(whole)}"
    return (
        f"{epochs} epochs, {killer.kills} kills in {time.monotonic() - began:.0f} s:"
        f" {len(found)} messages, lost 0, twice 0;"
        f" {killer.known} epochs were committed when the driver began them again"
    )


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_killed_around_commits_every_epoch_is_there_once(tmp_path: Path) -> None:
    print(await commit_again_and_again(tmp_path, EPOCHS, 1))
