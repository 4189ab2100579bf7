"""What the comparison of replicated queues measures, with a contender that is none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.tmqp_server.replication.shared_logs import Shared
from tmqp_bench.replicated import load
from tmqp_bench.replicated.appends import appended
from tmqp_bench.replicated.load import Push, gap, pushed

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])


class _Contender:
    """Confirms each message after a moment, and none for a while once its leader was killed."""

    name = "none"
    gap_s = 0.6

    def __init__(self) -> None:
        self.kills = self.revivals = 0
        self._away = False

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Push]:
        async def push() -> None:
            await anyio.sleep(0.002)
            if self._away:
                await anyio.sleep(0.3)
                self._away = False
                raise ConnectionError("the leader is gone")

        yield push

    def kill_leader(self) -> None:
        self.kills += 1
        self._away = True

    def revive(self) -> None:
        self.revivals += 1


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_WARM_S", 0.02)
    monkeypatch.setattr(load, "_BEFORE_S", 0.02)


async def test_each_push_is_timed_until_it_is_confirmed() -> None:
    times_s = await pushed(_Contender(), 0.1, 4)
    assert times_s
    assert min(times_s) >= 0.002


async def test_the_gap_is_the_longest_time_without_a_confirm_after_a_kill() -> None:
    contender = _Contender()
    assert await gap(contender, 1) >= 0.3
    assert (contender.kills, contender.revivals) == (1, 1)


@pytest.mark.parametrize("at_a_time", [1, 3])
async def test_entries_are_in_their_order_however_many_appends_are_out(at_a_time: int) -> None:
    log = Shared()
    found = appended(log, at_a_time, 10, 0.05)
    assert len(found.times_s) == log.server.last > 0
    assert at_a_time > 1 or found.overtook == 0
