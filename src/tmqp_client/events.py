"""Events: an async iterator of models for each subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from tmqp import models
from tmqp.models import ModelError
from tmqp_client._core.board import event_topic
from tmqp_client._core.letters import subscription
from tmqp_client._listening import Listening
from tmqp_client._port import Port

if TYPE_CHECKING:
    from tmqp_client.any_event import AnyEvent

__all__ = ["Events"]


class Events(Listening):
    """One subscription; made by :meth:`tmqp_client.Client.events`.

    ::

        async with client.events("QueueCreated", "orders") as events:
            async for event in events:
                ...

    It begins with the block, or with the first iteration, and ends with the block or the client.
    Events are sent only to current subscribers: a server does not keep them, and omits events for
    which a slow client has no room.

    :raises LocalProtocolError: if the event is unknown, or needs a channel or a queue.
    """

    def __init__(self, port: Port, name: str, channel: str | None, queue_id: int | None) -> None:
        request = subscription(name, channel, queue_id)
        super().__init__(port, event_topic(request.target, channel, queue_id), request)
        self.name = request.target
        self.channel = channel
        self.queue_id = queue_id
        #: The number of events with an invalid body.
        self.unreadable = 0
        self._model = models.EVENT_MODELS.get(self.name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        """Return the next event; events with an invalid body are skipped and counted.

        :raises OperationFailed: if the server refuses: 1 if the channel or queue does not exist,
            404 for an event that it does not have, 482 for too many subscriptions.
        :raises ConnectionLost: if no more arrive because the connection has ended for good.
        """
        while True:
            received = await self._next()
            if received is None:
                raise StopAsyncIteration
            if self._model is not None:
                try:
                    return cast("AnyEvent", self._model.from_json(received.frame.payload))
                except ModelError:
                    pass
            self.unreadable += 1
