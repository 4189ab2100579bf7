"""Destinations with wildcards: ``/queue/a.*`` and ``/topic/a.>`` of SUBSCRIBE.

Such a subscription joins all matching channels (``doors/jms/patterns.py``).  When a session is
notified of a new channel, it joins after its queued output has been written, because only then can
it send commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from tmqp.constants import RESULT_OK
from tmqp_server.doors.jms.patterns import listed_by, name_like
from tmqp_server.doors.stomp.consuming import StompSubscription
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.places import Place, place_of
from tmqp_server.doors.stomp.subscribing import SubscribingSession
from tmqp_server.doors.stomp.writing import AskedFrame, words_of
from tmqp_server.engine.commands import Command, Join, ListChannels, SubscribeEvent, Terms
from tmqp_server.engine.effects import Inform, Left, Reply
from tmqp_server.engine.events import CHANNEL_CREATED, ChannelFact
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.snapshots import ChannelSnapshot

__all__ = ["ListedChannels", "WildcardSession", "news_of"]


@final
class ListedChannels:
    """The token of a list of channels that may match a pattern; ``last`` says that its answer
    completes the SUBSCRIBE."""

    __slots__ = ("asked", "last", "place", "subscription")

    def __init__(
        self, asked: AskedFrame, subscription: StompSubscription, place: Place, *, last: bool
    ) -> None:
        self.asked = asked
        self.subscription = subscription
        self.place = place
        self.last = last


def news_of(effect: Inform) -> bytes:
    """The name of a channel that was created; empty for any other event."""
    fact = effect.fact
    if effect.event != CHANNEL_CREATED or not isinstance(fact, ChannelFact):
        return b""
    return fact.name.encode("utf-8", "replace")


class WildcardSession(SubscribingSession):
    """The part of a session that subscribes to destinations with wildcards."""

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._watches = False
        #: The places that subscriptions join when everything queued was written.
        self._to_join: list[tuple[StompSubscription, Place]] = []

    def _join(
        self,
        subscription: StompSubscription,
        places: list[Place],
        wanted: SubscriptionFilter | None,
        terms: Terms,
        asked: AskedFrame,
        commands: list[Command],
    ) -> None:
        """Join the places of a destination, and list the channels that may match its patterns."""
        patterns = [place for place in places if place.pattern]
        plain = [place for place in places if not place.pattern]
        subscription.patterns = patterns
        subscription.wanted = wanted
        subscription.terms = terms
        super()._join(subscription, plain, wanted, terms, asked, commands)
        if not patterns:
            return
        if not self._watches:
            self._watches = True
            commands.append(SubscribeEvent(self._number, None, CHANNEL_CREATED))
        for at, place in enumerate(patterns, 1):
            listed = ListedChannels(asked, subscription, place, last=at == len(patterns))
            like = listed_by(is_topic=place.is_topic)
            commands.append(ListChannels(self._number, listed, like))

    def _listed(self, effect: Reply, listed: ListedChannels) -> Sequence[Command]:
        """Join the listed channels that match the pattern."""
        if effect.code != RESULT_OK:
            return self._fail(listed.asked, words_of(effect.code))
        commands: list[Command] = []
        body = effect.body
        for snapshot in body if isinstance(body, list) else ():
            if isinstance(snapshot, ChannelSnapshot):
                found = self._like(listed.place, snapshot.name)
                if found is not None:
                    self._join_one(listed.subscription, found, commands)
        if listed.last:
            commands += self._settle(listed.asked)
        return commands

    def _like(self, wanted: Place, channel: str) -> Place | None:
        """The place of a channel, if it matches the pattern; else None."""
        names = self._context.names
        is_topic = wanted.is_topic
        name = name_like(wanted.pattern, channel, names, is_topic=is_topic)
        if not name:
            return None
        try:
            found = place_of(f"/{'topic' if is_topic else 'queue'}/{name}", self._name, names)
        except ValueError:
            return None  # no client of STOMP can name it
        return None if found.pattern else found

    def _join_one(
        self, subscription: StompSubscription, place: Place, commands: list[Command]
    ) -> None:
        most = self._context.limits.max_matches
        if self._by_index.get(subscription.index) is not subscription:
            return  # it has ended meanwhile
        if place.channel in subscription.channels or len(subscription.channels) >= most:
            return
        subscription.channels[place.channel] = place.destination
        commands.append(
            Join(
                subscription.number,
                None,
                place.channel,
                filter=subscription.wanted,
                terms=subscription.terms,
                creates=False,
            )
        )

    def deliver(self, data: bytes) -> None:
        """Handle a new channel (``news_of``): note subscriptions whose patterns match."""
        channel = data.decode("utf-8", "replace")
        for subscription in self._subscriptions.values():
            for pattern in subscription.patterns:
                place = self._like(pattern, channel)
                if place is not None:
                    self._to_join.append((subscription, place))
                    self.wants_written = True

    def written(self, now: float) -> Sequence[Command]:
        """Everything queued was written: join noted channels."""
        commands = list(super().written(now))
        to_join, self._to_join = self._to_join, []
        for subscription, place in to_join:
            if not self.closed:
                self._join_one(subscription, place, commands)
        return commands

    def _left(self, effect: Left) -> Sequence[Command]:
        """Handle a removed destination: a subscription with wildcards continues, others end with an
        ERROR."""
        for subscription in self._subscriptions.values():
            if subscription.patterns and subscription.number == effect.session:
                names = self._context.names
                exact = names.exact_channel(names.foreign_name(effect.channel))
                subscription.channels.pop(exact, None)
                return ()
        return self._fail(None, "a destination of the client was removed")
