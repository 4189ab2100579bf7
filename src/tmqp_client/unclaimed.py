"""The iterator over messages that no other code of the program receives."""

from __future__ import annotations

from tmqp.events import MessageReceived
from tmqp_client._io.stream import InboxReader
from tmqp_client._port import Port

__all__ = ["Unclaimed"]


class Unclaimed:
    """An async iterator of :class:`tmqp.MessageReceived` events; ends when the client closes."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._reader = InboxReader(port.machine.unclaimed)

    def __aiter__(self) -> Unclaimed:
        return self

    async def __anext__(self) -> MessageReceived:
        """Return the next event.

        :raises ConnectionLost: if no more arrive because the connection has ended for good.
        """
        session = self._port.session
        event = await self._reader.take() if session.lost is None else self._reader.take_now()
        if event is not None:
            return event
        if session.lost is None or session.lost.reason == "local":
            raise StopAsyncIteration
        raise session.lost.error()
