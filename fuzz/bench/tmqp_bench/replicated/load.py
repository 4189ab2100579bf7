"""The load of the comparison: so many messages at a time, each until it is confirmed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from typing import Final, Protocol

import anyio

__all__ = ["PAYLOAD", "Contender", "Push", "gap", "pushed"]

PAYLOAD: Final = bytes(100)
#: Before a leader is killed, in seconds.
_BEFORE_S: Final = 2.0
_WARM_S: Final = 1.0
_PAUSE_S: Final = 0.01

#: Sends one message and returns when it is confirmed.
Push = Callable[[], Awaitable[None]]


class Contender(Protocol):
    """What is measured, while it runs.

    Attributes: ``name``, with its version; ``gap_s``, for how long messages are pushed after its
    leader was killed.
    """

    name: str
    gap_s: float

    def link(self) -> AbstractAsyncContextManager[Push]:
        """A client of it, which finds the new leader by itself."""

    def kill_leader(self) -> None:
        """Kill (-9) the leader of what the link pushes into."""

    def revive(self) -> None:
        """Start again what was killed."""


async def pushed(contender: Contender, seconds: float, in_flight: int) -> list[float]:
    """How long each push took that was confirmed within so many seconds."""
    times_s: list[float] = []

    async def keep_pushing(push: Push) -> None:
        while True:
            began = time.monotonic()
            await push()
            times_s.append(time.monotonic() - began)

    async with contender.link() as push, anyio.create_task_group() as tasks:
        for _ in range(in_flight):
            tasks.start_soon(keep_pushing, push)
        await anyio.sleep(_WARM_S)
        times_s.clear()
        await anyio.sleep(seconds)
        tasks.cancel_scope.cancel()
    return times_s


async def gap(contender: Contender, in_flight: int) -> float:
    """The longest time without a confirm after the leader was killed, in seconds."""
    confirmed: list[float] = []

    async def keep_pushing(push: Push) -> None:
        while True:
            try:
                await push()
            except Exception:  # noqa: BLE001 - each library has its own; it is pushed again
                await anyio.sleep(_PAUSE_S)
            else:
                confirmed.append(time.monotonic())

    async with contender.link() as push, anyio.create_task_group() as tasks:
        for _ in range(in_flight):
            tasks.start_soon(keep_pushing, push)
        await anyio.sleep(_BEFORE_S)
        killed = time.monotonic()
        await anyio.to_thread.run_sync(contender.kill_leader)
        await anyio.sleep(contender.gap_s)
        tasks.cancel_scope.cancel()
    contender.revive()
    times = [killed, *[each for each in confirmed if each > killed], killed + contender.gap_s]
    return max(after - before for before, after in pairwise(times))
