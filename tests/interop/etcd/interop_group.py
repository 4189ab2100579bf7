"""Three brokers and three servers of etcd, killed and frozen under producers and consumers.

What was confirmed is received or owed, every epoch is one server's, and the time without a
confirm is measured.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import pytest

from tests.interop.etcd.groups import (
    MOST_S,
    PRODUCERS,
    Broker,
    Group,
    OrderedLedger,
    consume,
    create,
    produce,
    settle,
)

__all__ = ["Group", "create", "group", "produce"]

pytestmark = [pytest.mark.interop, pytest.mark.cold, pytest.mark.timeout(400)]

#: How long clients work between two faults, in seconds.
_WORK_S: Final = 3.0
#: The time without a confirm that a group may have, on a machine that does other things as well.
_MOST_GAP_S: Final = 12.0


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    made = Group(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_was_confirmed_survives_killed_and_frozen_leaders(group: Group) -> None:
    ledger = OrderedLedger(group.producers)
    done = anyio.Event()
    gaps: dict[str, float] = {}
    await create(group)

    async def fault(name: str, cause: Callable[[], None], heal: Callable[[], None]) -> None:
        await anyio.sleep(_WORK_S)
        before = time.monotonic()
        confirmed = len(group.confirms)
        await anyio.to_thread.run_sync(cause)
        await anyio.sleep(5.0)
        heal()
        while len(group.confirms) < confirmed + 200 or group.confirms[-1] < before + 6.0:
            assert time.monotonic() < before + MOST_S, f"no confirm after {name}"
            await anyio.sleep(0.05)
        gaps[name] = group.gap_s(before)

    def broker() -> Broker:
        return group.brokers[group.leader().node]

    async with anyio.create_task_group() as tasks:
        for producer in range(PRODUCERS):
            tasks.start_soon(produce, group, ledger, done, producer)
        tasks.start_soon(consume, group, ledger, done)
        for turn in range(2):
            name = f"kill -9 of the leader, {turn + 1}"
            await fault(name, lambda: broker().send(signal.SIGKILL), lambda: None)
        frozen = broker()
        await fault(
            "the leader frozen for 5 s",
            lambda: frozen.send(signal.SIGSTOP),
            lambda: frozen.send(signal.SIGCONT),
        )
        idle = next(each for each in group.brokers.values() if each is not broker())
        await fault("a standby's disk lost", lambda: group.rebuild(idle), lambda: None)
        await fault("kill -9 of etcd", lambda: group.etcd.kill(0), lambda: group.etcd.start(0))
        done.set()
        await anyio.sleep(0.5)
        tasks.cancel_scope.cancel()
    await settle(group, ledger)
    lives = sum(len(each.epochs) for each in group.brokers.values())
    assert lives >= 4, "each fault of a leader made another one"
    assert frozen.ends, "who was frozen found out that it was replaced"
    print(f"{len(ledger.confirmed)} confirmed, {ledger.repeated} came again, gaps {gaps}")
    assert max(gaps.values()) < _MOST_GAP_S, gaps
