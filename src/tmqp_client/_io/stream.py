"""Takes items from an inbox; any number of tasks may wait for the next item.

Each item goes to one task; the longest waiting task is woken first.  If a woken task is cancelled,
it wakes the next one, so that no item is missed.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

import anyio.lowlevel

from tmqp.errors import TmqpError
from tmqp_client._core.inbox import Inbox
from tmqp_client._io.loop import NewSignal, Signal, signals

__all__ = ["InboxReader"]

_T = TypeVar("_T")
#: Items a task may take without waiting before it lets others run.
_TURN_ITEMS: Final = 64


class InboxReader(Generic[_T]):
    """The reading end of an inbox, and its listener."""

    __slots__ = ("_inbox", "_new_signal", "_over", "_turn", "_waiting")

    def __init__(self, inbox: Inbox[_T]) -> None:
        self._inbox = inbox
        self._waiting: deque[Signal] = deque()
        self._new_signal: NewSignal = signals()
        self._over = False
        self._turn = 0
        inbox.listener = self

    @property
    def congested(self) -> bool:
        """Whether the inbox is congested, so that taking the next item may let reading continue."""
        return self._inbox.congested

    @property
    def error(self) -> TmqpError | None:
        """Why nothing more arrives, if the reason is not the end of the connection."""
        return self._inbox.error

    def arrived(self) -> None:
        """Wake one waiting task for each item in the inbox."""
        count = len(self._inbox)
        while self._waiting and count > 0:
            self._waiting.popleft().set()
            count -= 1

    def ended(self) -> None:
        """Let all tasks that wait, now or later, return None, because nothing more will arrive."""
        self._over = True
        while self._waiting:
            self._waiting.popleft().set()

    def take_now(self) -> _T | None:
        """Return the next item; None if there is none now, or other tasks should run first."""
        inbox = self._inbox
        if self._turn >= _TURN_ITEMS - 1 or not inbox.items:
            return None
        self._turn += 1
        return inbox.take()

    async def take(self) -> _T | None:
        """Return the next item, or wait for it; None if none will arrive."""
        while True:
            if len(self._inbox):
                self._turn += 1
                if self._turn < _TURN_ITEMS:
                    return self._inbox.take()
                # Before taking: an item taken by a task that is cancelled here would be lost.
                self._turn = 0
                await anyio.lowlevel.checkpoint()
                continue
            if self._over:
                return None
            self._turn = 0
            event = self._new_signal()
            self._waiting.append(event)
            try:
                await event.wait()
            except BaseException:
                if event.is_set():
                    self.arrived()
                else:
                    self._waiting.remove(event)
                raise
