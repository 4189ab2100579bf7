"""Calls channels' event handlers for events.

The turn decides when each is called, how long that may take and how many events wait.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, final

from tmqp_server.access.channel_hooks import EVENT_METHODS, ChannelEventHandler
from tmqp_server.engine.effects import TellHandler

__all__ = ["Teller"]

logger = logging.getLogger("tmqp_server.events")


@final
class Teller:
    """Calls the event handlers of one server."""

    def __init__(self, handlers: Mapping[str, ChannelEventHandler]) -> None:
        self._handlers = dict(handlers)

    def log_late(self, notification: TellHandler) -> None:
        """Log that a handler took too long and was abandoned."""
        method = EVENT_METHODS[notification.event]
        logger.error("the event handler %r: %s took too long", notification.handler, method)

    async def tell(self, notification: TellHandler) -> None:
        """Call a handler for an event; log its exception."""
        method = EVENT_METHODS[notification.event]
        call: Callable[[Any], Awaitable[None]] = getattr(
            self._handlers[notification.handler], method
        )
        try:
            await call(notification.fact)
        except Exception:
            logger.exception("the event handler %r: %s failed", notification.handler, method)
