"""Frequently used functions of the event loop: waking a task, the current loop, the time.

anyio's objects determine at each use which loop they run in; here that is determined once for each
owner.  On asyncio a signal is a bare future and a socket stays registered for as long as it is read
from; on any other loop, and where asyncio cannot watch sockets (Windows' proactor), anyio does it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import anyio
from anyio.lowlevel import current_token

from tmqp_client._core.pending import Pending

if TYPE_CHECKING:
    import asyncio

__all__ = ["NewSignal", "Signal", "now", "signals", "this_asyncio_loop"]

#: Seconds on the clock all deadlines of a session are on.
now: Final = monotonic


class Signal(Protocol):
    """An event that is set once and awaited by one task; it may be the waiter of a request."""

    def set(self) -> None:
        """Wake the task that waits, now or later."""

    def settled(self, pending: Pending) -> None:
        """Do the same, as the waiter of a request."""

    def is_set(self) -> bool:
        """Whether it was set, even if its waiter was cancelled first."""

    async def wait(self) -> None:
        """Wait until it is set; returns without running other tasks if it is already set."""


NewSignal: TypeAlias = Callable[[], Signal]


class _LoopSignal:
    """A signal of asyncio."""

    __slots__ = ("_future", "_set")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[None] = loop.create_future()
        self._set = False

    def set(self) -> None:
        self._set = True
        future = self._future
        if not future.done():  # a task that is cancelled cancels what it waits for
            future.set_result(None)

    def settled(self, pending: Pending) -> None:
        self.set()

    def is_set(self) -> bool:
        return self._set

    async def wait(self) -> None:
        if not self._set:
            await self._future


class _AnySignal:
    """A signal of any loop."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        self._event.set()

    def settled(self, pending: Pending) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        if not self._event.is_set():
            await self._event.wait()


def this_asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs this code if it is asyncio's, otherwise None."""
    import asyncio  # noqa: PLC0415 - 55 modules that only a client needs that connects

    token = current_token().native_token
    return token if isinstance(token, asyncio.AbstractEventLoop) else None


def signals() -> NewSignal:
    """Return a function that makes signals for the loop that runs this code."""
    loop = this_asyncio_loop()
    if loop is None:
        return _AnySignal
    there = loop

    def new() -> Signal:
        return _LoopSignal(there)

    return new
