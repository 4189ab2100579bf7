"""Consumers of OpenWire beyond a single queue or topic: durable subscriptions, wildcards and
virtual topics.

A durable subscription is looked up, created if it does not exist, and then joined.  A consumer with
wildcards joins all matching destinations, now and whenever one is created.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.doors.jms.durable import (
    DurableSubscription,
    begin,
    durable_channel,
    look,
    waits_for,
)
from tmqp_server.doors.jms.patterns import listed_by, name_like
from tmqp_server.doors.jms.virtual_topics import virtual_topic_of
from tmqp_server.doors.openwire.advising import AdvisingSession
from tmqp_server.doors.openwire.answering import (
    INVALID_DESTINATION,
    JMS,
    AskedCommand,
    CommandError,
    fault_of_code,
)
from tmqp_server.doors.openwire.consumers import Consumer, JoinedConsumer
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import QUEUE
from tmqp_server.doors.openwire.places import JmsPlace, place_of
from tmqp_server.engine.commands import AddFeed, CreateQueue, ListChannels, RemoveChannel
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_server.engine.effects import Deliver, Reply
from tmqp_server.engine.model.snapshots import ChannelSnapshot
from tmqp_wires.openwire.commands import ConsumerInfo, RemoveSubscriptionInfo
from tmqp_wires.openwire.ids import TOPIC, Destination

__all__ = ["Listed", "LookedFor", "SubscriberSession", "Unsubscribed"]

_MOST_FED: Final = 1_000


@final
class LookedFor:
    """The token of the lookup of a durable subscription."""

    __slots__ = ("asked", "consumer", "subscription")

    def __init__(
        self, asked: AskedCommand, consumer: Consumer, subscription: DurableSubscription
    ) -> None:
        self.asked = asked
        self.consumer = consumer
        self.subscription = subscription


@final
class Listed:
    """The token of the list of channels that may match a pattern."""

    __slots__ = ("asked", "consumer", "pattern")

    def __init__(self, asked: AskedCommand, consumer: Consumer, pattern: JmsPlace) -> None:
        self.asked = asked
        self.consumer = consumer
        self.pattern = pattern


@final
class Unsubscribed:
    """The token of the removal of a durable subscription."""

    __slots__ = ("asked",)

    def __init__(self, asked: AskedCommand) -> None:
        self.asked = asked


class SubscriberSession(AdvisingSession):
    """The subscribing part of a session."""

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        #: The places that consumers with wildcards join when everything queued was written.
        self._to_join: list[tuple[Consumer, JmsPlace]] = []
        #: The name of the client in its durable subscriptions.
        self._durable_id = ""
        #: Queues that get the messages of their virtual topics already.
        self._fed: set[str] = set()

    def _begin_consumer(
        self, info: ConsumerInfo, asked: AskedCommand, commands: list[EngineCommand]
    ) -> None:
        """Begin a consumer of any kind.

        :raises CommandError: when it cannot begin.
        """
        destination = info.destination
        if info.subscription is not None and destination is not None and destination.is_topic:
            self._begin_durable(info, info.subscription, asked, commands)
            return
        super()._begin_consumer(info, asked, commands)
        consumer = self._consumers[info.consumer.key]
        for pattern in consumer.patterns:
            self._watch_channels(commands)
            asked.left += 1
            listed = Listed(asked, consumer, pattern)
            like = listed_by(is_topic=pattern.is_topic)
            commands.append(ListChannels(self._number, listed, like))

    # -- durable subscriptions --------------------------------------------------------------------

    def _begin_durable(
        self, info: ConsumerInfo, name: str, asked: AskedCommand, commands: list[EngineCommand]
    ) -> None:
        """Begin the consumer of a durable subscription.

        :raises CommandError: when it cannot begin.
        """
        places = self._places_of(info.destination)
        if len(places) != 1:
            raise CommandError(INVALID_DESTINATION, "a durable subscription must have one topic")
        channel = durable_channel(self._durable_id, name, self._context.names)
        if channel in self._context.in_use:
            raise CommandError(JMS, f"the durable subscription {name[:64]!r} is in use")
        consumer = self._new_consumer(info)
        consumer.filter = None
        consumer.kept_in = channel
        consumer.channels[channel] = JmsPlace(channel, places[0].destination)
        self._consumers[info.consumer.key] = consumer
        self._context.in_use.add(channel)
        selector = self._selector_of(info)
        subscription = DurableSubscription(channel, places[0].channel, selector)
        commands.append(look(self._number, LookedFor(asked, consumer, subscription), subscription))

    def _looked(self, effect: Reply, looked: LookedFor) -> Sequence[EngineCommand]:
        """Handle the lookup of a durable subscription: create what is missing, and join."""
        consumer = looked.consumer
        if effect.code not in (RESULT_OK, RESULT_NOT_FOUND):
            self._fail(looked.asked, *fault_of_code(effect.code))
            return self._drop(consumer)
        if self._consumers.get(consumer.info.consumer.key) is not consumer:
            return ()
        asked = looked.asked
        made = JoinedConsumer(asked, consumer, must=True, makes=True)
        commands = begin(
            self._number,
            made,
            looked.subscription,
            effect,
            self._context.shapes.of_topic,
            self._context.durable_shape(),
            JoinedConsumer(None, consumer, must=False),
        )
        asked.left = waits_for(commands, made)
        self._enter(consumer, asked, commands)
        for place in consumer.channels.values():
            self._join(consumer, place, asked, commands)
        return commands

    def _end_durable(self, consumer: Consumer) -> None:
        """Let another consumer use the durable subscription of one that has ended."""
        if consumer.kept_in:
            self._context.in_use.discard(consumer.kept_in)

    def _unsubscribe(
        self, info: RemoveSubscriptionInfo, commands: list[EngineCommand], now: float
    ) -> None:
        """Remove a durable subscription."""
        name = info.name or ""
        asked = self._asked(f"durable subscription {name[:64]!r}", info)
        channel = durable_channel(self._durable_id, name, self._context.names)
        if channel in self._context.in_use:
            self._fail(asked, JMS, "it is in use")
        else:
            commands.append(RemoveChannel(self._number, Unsubscribed(asked), channel))

    def _unsubscribed(self, effect: Reply, removed: Unsubscribed) -> None:
        if effect.code == RESULT_OK:
            self._settle(removed.asked)
        elif effect.code == RESULT_NOT_FOUND:
            self._fail(removed.asked, INVALID_DESTINATION, "there is no such subscription")
        else:
            self._fail(removed.asked, *fault_of_code(effect.code))

    def _is_unwanted(self, effect: Deliver, consumer: Consumer) -> bool:
        """Whether a message is from the consumer's own connection, and its durable subscription
        does not want these."""
        info = consumer.info
        return info.no_local and consumer.kept_in != "" and effect.message.source == self._client_id

    # -- wildcards --------------------------------------------------------------------------------

    def _listed(self, effect: Reply, listed: Listed) -> Sequence[EngineCommand]:
        """Join the listed channels that match the pattern."""
        commands: list[EngineCommand] = []
        if effect.code != RESULT_OK:
            self._fail(listed.asked, *fault_of_code(effect.code))
            return self._drop(listed.consumer)
        body = effect.body
        if isinstance(body, list):
            for snapshot in body:
                if isinstance(snapshot, ChannelSnapshot):
                    place = self._like(listed.pattern, snapshot.name)
                    if place is not None:
                        self._join_one(listed.consumer, place, commands)
        self._settle(listed.asked)
        return commands

    def _like(self, pattern: JmsPlace, channel: str) -> JmsPlace | None:
        """The place of a channel, if it matches the pattern; else None."""
        names = self._context.names
        wanted = pattern.destination
        name = name_like(wanted.name, channel, names, is_topic=pattern.is_topic)
        return place_of(Destination(wanted.type, name), names) if name else None

    def _join_one(self, consumer: Consumer, place: JmsPlace, commands: list[EngineCommand]) -> None:
        most = self._context.limits.max_matches
        if place.channel in consumer.channels or len(consumer.channels) >= most:
            return
        consumer.channels[place.channel] = place
        self._join(consumer, place, None, commands)

    def deliver(self, data: bytes) -> None:
        """Handle an event about a channel: note consumers whose patterns match a new one."""
        super().deliver(data)
        if not data.startswith(b"+"):
            return
        channel = data[1:].decode("utf-8")
        for consumer in self._consumers.values():
            for pattern in consumer.patterns:
                place = self._like(pattern, channel)
                if place is not None:
                    self._to_join.append((consumer, place))
                    self.wants_written = True

    def written(self, now: float) -> Sequence[EngineCommand]:
        """Everything queued was written: acknowledge unwanted messages, and join noted channels."""
        commands: list[EngineCommand] = []
        if self.closed:
            return commands
        unwanted, self._unwanted = self._unwanted, []
        for consumer, number in unwanted:
            if number in consumer.in_hand:
                commands += self._acknowledged(consumer, [number])
        to_join, self._to_join = self._to_join, []
        for consumer, place in to_join:
            if consumer.index in self._by_index and not consumer.ends:
                self._join_one(consumer, place, commands)
        return commands

    # -- virtual topics ---------------------------------------------------------------------------

    def _make_feed(self, place: JmsPlace, commands: list[EngineCommand]) -> None:
        """Feed a queue from its virtual topic, if it has one."""
        if place.destination.is_topic or place.is_temporary:
            return
        name = virtual_topic_of(place.destination.name)
        if not name or place.channel in self._fed:
            return
        if len(self._fed) >= _MOST_FED:
            self._fed.clear()
        self._fed.add(place.channel)
        topic = place_of(Destination(TOPIC, name), self._context.names)
        made = JoinedConsumer(None, None, must=False)
        commands.append(self._create(topic, made))
        shape = self._context.shape(place)
        commands.append(CreateQueue(self._number, made, place.channel, QUEUE, shape))
        commands.append(AddFeed(self._number, made, topic.channel, QUEUE, place.channel, QUEUE))
