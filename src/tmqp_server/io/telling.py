"""Owns the telling of channels' event handlers: in order, one event at a time, and bounded.

Theory of operation.  Each handler has a queue of its own and a task that tells it; so a slow one
delays nobody, not even another handler.  When its queue is full, further events are lost to it and
counted, and that is logged once, and once more with their number when there is room again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, final

import anyio

from tmqp_server.access.channel_hooks import EVENT_METHODS, ChannelEventHandler
from tmqp_server.engine.effects import TellHandler

__all__ = ["MOST_WAITING", "Teller"]

logger = logging.getLogger("tmqp_server.events")

#: Events that may wait for one handler.
MOST_WAITING: Final = 10_000


@final
class Teller:
    """Tells the event handlers of one server.

    :param timeout_s: seconds a handler may take for one event.

    Attributes: ``lost``, the number of events that were not told because too many waited.
    """

    def __init__(self, handlers: Mapping[str, ChannelEventHandler], timeout_s: float) -> None:
        self._lines = {name: _Line(name, each, timeout_s) for name, each in handlers.items()}

    @property
    def lost(self) -> int:
        """Events that were not told to their handler."""
        return sum(line.lost for line in self._lines.values())

    def tell(self, telling: TellHandler) -> None:
        """Tell as soon as it is this event's turn."""
        self._lines[telling.handler].put(telling)

    async def run(self) -> None:
        """Tell, for ever."""
        async with anyio.create_task_group() as tasks:
            for line in self._lines.values():
                tasks.start_soon(line.run)

    async def drained(self) -> None:
        """Wait until everything is told."""
        for line in self._lines.values():
            await line.idle.wait()


@final
class _Line:
    """What waits for one handler."""

    def __init__(self, name: str, handler: ChannelEventHandler, timeout_s: float) -> None:
        self.lost = 0
        #: Set while nothing waits and nothing is being told.
        self.idle = anyio.Event()
        self.idle.set()
        self._name = name
        self._handler = handler
        self._timeout_s = timeout_s
        self._waiting: deque[TellHandler] = deque()
        self._losing = 0
        self._filled = anyio.Event()

    def put(self, telling: TellHandler) -> None:
        if len(self._waiting) >= MOST_WAITING:
            if not self._losing:
                logger.error("the event handler %r is too slow: events are lost", self._name)
            self._losing += 1
            self.lost += 1
            return
        if self._losing:
            logger.error("the event handler %r missed %d events", self._name, self._losing)
            self._losing = 0
        self._waiting.append(telling)
        if self.idle.is_set():
            self.idle = anyio.Event()
        self._filled.set()

    async def run(self) -> None:
        while True:
            while self._waiting:
                await self._tell(self._waiting.popleft())
            self.idle.set()
            self._filled = anyio.Event()
            await self._filled.wait()

    async def _tell(self, telling: TellHandler) -> None:
        method = EVENT_METHODS[telling.event]
        call: Callable[[Any], Awaitable[None]] = getattr(self._handler, method)
        try:
            with anyio.fail_after(self._timeout_s):
                await call(telling.fact)
        except TimeoutError:
            logger.error("the event handler %r: %s took too long", self._name, method)
        except Exception:
            logger.exception("the event handler %r: %s failed", self._name, method)
