"""The connection as a program sees it: its current state, and each change."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final, Self, TypeAlias

import anyio

from tmqp.errors import TmqpError

__all__ = [
    "ConnectionEvent",
    "ConnectionEvents",
    "ConnectionState",
    "Disconnected",
    "GaveUp",
    "Reconnected",
    "RestoreRefused",
    "Watchers",
]

#: Unread changes that are kept; further ones displace the oldest.
_MAX_KEPT: Final = 1_000


class ConnectionState(StrEnum):
    """The state of a client's connection."""

    NEW = "new"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    RECONNECTING = "reconnecting"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection was lost; ``reason`` is a slug as in :class:`ConnectionLost`."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Reconnected:
    """The client has reconnected to ``address``, after this many attempts and seconds."""

    address: str
    attempts: int
    outage_s: float


@dataclass(frozen=True, slots=True)
class RestoreRefused:
    """The server refused on the new connection what it had granted on the old one, such as a joined
    channel or a subscription to an event."""

    asked: str
    error: TmqpError


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The client has given up reconnecting; ``message`` is the reason."""

    message: str


#: The items of :meth:`tmqp_client.Client.connection_events`.
ConnectionEvent: TypeAlias = Disconnected | Reconnected | RestoreRefused | GaveUp


class Watchers:
    """The open iterators over changes of the connection."""

    __slots__ = ("_watching",)

    def __init__(self) -> None:
        self._watching: dict[ConnectionEvents, None] = {}

    def add(self, watcher: ConnectionEvents) -> None:
        """Add an iterator."""
        self._watching[watcher] = None

    def remove(self, watcher: ConnectionEvents) -> None:
        """Remove an iterator."""
        self._watching.pop(watcher, None)

    def tell(self, event: ConnectionEvent) -> None:
        """Report a change to all iterators."""
        for watcher in self._watching:
            watcher._put(event)

    def end(self) -> None:
        """End all iterators."""
        for watcher in list(self._watching):
            watcher.close()


class ConnectionEvents:
    """Changes of the connection as an async iterator; ends when the client is closed.

    ::

        async for change in client.connection_events():
            print(change)

    It receives changes from its creation on, and keeps up to 1,000 of them until they are read.
    """

    def __init__(self, watchers: Watchers) -> None:
        self._watchers = watchers
        self._changes: deque[ConnectionEvent] = deque(maxlen=_MAX_KEPT)
        self._wake = anyio.Event()
        self._closed = False
        watchers.add(self)

    def _put(self, event: ConnectionEvent) -> None:
        self._changes.append(event)
        self._wake.set()

    def close(self) -> None:
        """Stop receiving; changes received before can still be read."""
        self._closed = True
        self._watchers.remove(self)
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConnectionEvent:
        """Return the next change."""
        while not self._changes:
            if self._closed:
                raise StopAsyncIteration
            self._wake = anyio.Event()
            await self._wake.wait()
        return self._changes.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
