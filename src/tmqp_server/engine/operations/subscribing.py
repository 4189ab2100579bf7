"""The operation by which clients subscribe to events and unsubscribe (F127, F128).

Rights are checked before a request becomes a command.
"""

from __future__ import annotations

from tmqp.constants import RESULT_FAILED, RESULT_OK
from tmqp_server.engine.books import listening_bytes
from tmqp_server.engine.commands import Command, SubscribeEvent
from tmqp_server.engine.core import NO_QUEUE, Core, Place
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.events import MESSAGE_PRODUCED, SERVER_EVENTS
from tmqp_server.engine.model.sessions import Session

__all__ = ["Subscribing"]


class Subscribing:
    """Handles subscriptions to events."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def subscribe(self, command: Command, session: Session) -> None:
        """Begin or end a subscription, and answer."""
        assert isinstance(command, SubscribeEvent)
        code = self._subscribe(command, session)
        if command.request is not None:
            self._core.out.append(Reply(session.number, command.request, code))

    def _subscribe(self, command: SubscribeEvent, session: Session) -> int:
        core = self._core
        place = self._place(command)
        if place is None:
            return RESULT_FAILED
        if not command.wanted:
            core.notices.unsubscribe(session, place)
            return RESULT_OK
        subscriptions = session.event_subscriptions
        most = core.limits.max_event_subscriptions_per_session
        if place not in subscriptions and len(subscriptions) >= most:
            return core.reached("max_event_subscriptions_per_session")
        channel = command.channel if place[1] else ""
        if place not in subscriptions and not core.has_room(listening_bytes(channel)):
            return core.no_room()
        core.notices.subscribe(session, place, channel, command.specified)
        return RESULT_OK

    def _place(self, command: SubscribeEvent) -> Place | None:
        """The key of a subscription; None if the event needs a channel or queue that is missing
        (F128)."""
        event = command.event
        if event & SERVER_EVENTS:
            return (event, "", NO_QUEUE)
        channel = self._core.channels.find(command.channel)
        if channel is None:
            return None
        if event != MESSAGE_PRODUCED:
            return (event, channel.key, NO_QUEUE)
        if command.queue_id is None or command.queue_id not in channel.queues:
            return None
        return (event, channel.key, command.queue_id)
