"""Advisories of OpenWire: they tell clients which temporary destinations exist.

When a client connects, it subscribes to two topics, and it sends only to temporary destinations
that were announced there.  The session announces the existing ones, then each that is created or
removed, from the broker's events about channels.  Because the client may not have the right to
these events, the session also announces each temporary destination that a message names for its
answer.  No other advisory topics are served.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.openwire.answering import AskedCommand
from tmqp_server.doors.openwire.consuming import ConsumerSession
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.places import (
    ADVISORY,
    TEMPORARY_SCHEMES,
    destination_of,
    plain_name,
)
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_server.engine.commands import SubscribeEvent
from tmqp_server.engine.effects import Inform
from tmqp_server.engine.events import CHANNEL_CREATED, CHANNEL_REMOVED, ChannelFact
from tmqp_wires.openwire.commands import ADD, REMOVE, ConsumerInfo, DestinationInfo
from tmqp_wires.openwire.ids import TEMP_TOPIC, TOPIC, Destination, MessageId, ProducerId
from tmqp_wires.openwire.messages import PLAIN_MESSAGE, Message, MessageDispatch

__all__ = ["AdvisingSession", "WatchingChannels", "news_of"]

_OF_QUEUES: Final = f"{ADVISORY}TempQueue"
_OF_TOPICS: Final = f"{ADVISORY}TempTopic"
_TYPE: Final = "Advisory"
_CREATED: Final = b"+"
_REMOVED: Final = b"-"
_MOST_KNOWN: Final = 10_000


@final
class WatchingChannels:
    """The token of the subscriptions to events about channels."""

    __slots__ = ()


def news_of(effect: Inform) -> bytes:
    """An event about a channel in the form that sessions read; empty for any other event."""
    fact = effect.fact
    if not isinstance(fact, ChannelFact):
        return b""
    sign = _CREATED if effect.event == CHANNEL_CREATED else _REMOVED
    return sign + fact.name.encode("utf-8", "replace")


class AdvisingSession(ConsumerSession):
    """The part of a session that sends advisories."""

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._watchers: dict[tuple[int, int], ConsumerInfo] = {}
        self._known: set[str] = set()
        self._watches = False
        self._advised = 0
        self._connection = ""

    def _watch_channels(self, commands: list[EngineCommand]) -> None:
        """Subscribe to events about created and removed channels, once."""
        if not self._watches:
            self._watches = True
            for event in (CHANNEL_CREATED, CHANNEL_REMOVED):
                commands.append(SubscribeEvent(self._number, WatchingChannels(), event))

    def _begin_watcher(
        self, info: ConsumerInfo, asked: AskedCommand, commands: list[EngineCommand]
    ) -> None:
        """Begin a consumer of advisories, and announce all existing temporary destinations."""
        self._settle(asked)
        destination = info.destination
        assert destination is not None, "its name was read"
        if not (_OF_QUEUES in destination.name or _OF_TOPICS in destination.name):
            return
        self._watchers[info.consumer.key] = info
        self._watch_channels(commands)
        for each in self._context.temporary.values():
            self._advise(each, ADD)

    def deliver(self, data: bytes) -> None:
        """Handle an event about a channel (``news_of``)."""
        channel = data[1:].decode("utf-8")
        name = plain_name(channel)
        created = data[:1] == _CREATED
        if name.startswith(TEMPORARY_SCHEMES):
            self._advise(self._named(name, self._context.names), ADD if created else REMOVE)

    def _named(self, name: str, names: DoorNames) -> Destination:
        return destination_of(names.foreign_name(name).decode("utf-8", "replace"))

    def _make_known(self, destination: Destination) -> None:
        """Announce a temporary destination to the client before it sends an answer there."""
        if destination.name not in self._known:
            self._advise(destination, ADD)

    def _advise(self, destination: Destination, operation: int) -> None:
        if not self._watchers:
            return
        name = destination.name
        if operation == REMOVE:
            self._known.discard(name)
        elif name in self._known:
            return
        else:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known.add(name)
        of_topics = destination.type == TEMP_TOPIC
        topic = Destination(TOPIC, _OF_TOPICS if of_topics else _OF_QUEUES)
        for info in self._watchers.values():
            self._advised += 1
            producer = ProducerId(self._context.broker_id, self._number, 1)
            message = Message(PLAIN_MESSAGE, MessageId(producer, self._advised), topic)
            message.jms_type = _TYPE
            message.structure = DestinationInfo(self._connection, destination, operation)
            self._say(MessageDispatch(info.consumer, topic, message))
