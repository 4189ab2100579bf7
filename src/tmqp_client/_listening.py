"""Listening to one topic, from the first request for a message to the end."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio

from tmqp.events import MessageReceived
from tmqp_client._core.board import Topic
from tmqp_client._core.letters import SubscriptionRequest
from tmqp_client._io.stream import InboxReader
from tmqp_client._port import Port
from tmqp_client.errors import ClientClosed, ConnectionLost, OperationFailed

__all__ = ["Listening"]


class Listening:
    """Base class of the iterators over direct messages, custom messages and events.

    :param topic: whose inbox is opened.
    :param request: the subscription that is sent when it opens and undone when it closes; None if
        there is none.
    """

    def __init__(self, port: Port, topic: Topic, request: SubscriptionRequest | None) -> None:
        self._port = port
        self._topic = topic
        self._request = request
        self._lock = anyio.Lock()
        self._reader: InboxReader[MessageReceived] | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None or isinstance(exc, Exception):
            await self.aclose()
        elif self._shut() and self._request is not None:
            self._port.session.tell(self._request.opposite())

    async def aclose(self) -> None:
        """Stop listening; messages that have arrived and were not read are dropped and counted.

        Closing twice, or after the connection was lost, does nothing.
        """
        if not self._shut() or self._request is None:
            return
        # If the server refuses, or the connection is lost, the subscription no longer exists.
        with suppress(OperationFailed, ConnectionLost, ClientClosed):
            await self._port.session.retract(self._request.opposite())

    async def _open(self) -> None:
        async with self._lock:
            if self._closed:
                raise ClientClosed("this iterator was closed")
            if self._reader is not None:
                return
            port = self._port
            session = port.session
            session.check()
            self._reader = InboxReader(port.machine.listen(self._topic))
            port.iterators[self] = None
            if self._request is None:
                return
            try:
                await session.ask(self._request, repeat=True)
            except OperationFailed:
                self._shut()
                raise
            except BaseException:
                # It is unknown whether the server has subscribed this client.
                if self._shut():
                    session.tell(self._request.opposite())
                raise

    def _shut(self, error: BaseException | None = None) -> bool:
        """Stop listening; return whether the subscription has to be undone."""
        if self._closed:
            return False
        self._closed = True
        if self._reader is None:
            return False
        port = self._port
        self._reader.ended()
        port.iterators.pop(self, None)
        port.machine.board.close(self._topic)
        port.session.read_on()
        return port.session.lost is None

    async def _next(self) -> MessageReceived | None:
        """Return the next message; None once this side has closed.

        :raises ConnectionLost: if the connection has ended for good.
        """
        if self._reader is None:
            await self._open()
            assert self._reader is not None, "it is open now"
        session = self._port.session
        crowded = self._reader.congested
        event = await self._reader.take()
        if crowded:
            session.read_on()
        if event is not None:
            return event
        if self._reader.error is not None and not self._closed:
            raise self._reader.error
        if self._closed or session.lost is None or session.lost.reason == "local":
            return None
        raise session.lost.error()
