"""The subscribers of each event.

Theory of operation.  A subscription is found by its subject: the event, the channel's key (empty
for events of the server) and the queue (only for MessageProduced).  An event looks up that one
subject.  ``mask`` has the bits of the events that have any subscriber, including the world
(``BrokerOptions.events``); the code that would create a fact checks it first, so that an event
without subscribers costs one comparison.

A subscription ends with its session, its channel or its queue.  It remembers how the subscriber
spelt the channel, because clients compare that exactly (F131).  A subscriber whose outbound buffer
is full misses the event, which is counted: events are not stored.

A channel may also have an event handler: code outside the engine, which gets the events of this
channel that it needs (F70).
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.books import Books, listening_bytes
from tmqp_server.engine.effects import Effect, EventsEnded, Inform, Notify, TellHandler
from tmqp_server.engine.events import MESSAGE_PRODUCED, Fact
from tmqp_server.engine.model.delivery import QueueFacts
from tmqp_server.engine.model.sessions import EventSubscription, Session

__all__ = ["NO_QUEUE", "Notices", "Place"]

#: Stands for the queue in events that are not about a queue.
NO_QUEUE: Final = -1

#: The key of subscriptions: an event bit, a channel's key, a queue's id.
Place = tuple[int, str, int]


class Notices:
    """The subscriptions to events of one broker."""

    __slots__ = (
        "mask",
        "skipped",
        "_books",
        "_channels",
        "_counts",
        "_handlers",
        "_places",
        "_world",
    )

    def __init__(self, world: int, books: Books) -> None:
        #: Bits of the events that have any subscriber.
        self.mask = world
        #: Events that were skipped because a subscriber's outbound buffer was full.
        self.skipped = 0
        self._books = books
        self._world = world
        self._places: dict[Place, dict[int, EventSubscription]] = {}
        #: The places of each channel, by its key.
        self._channels: dict[str, dict[Place, None]] = {}
        #: Subscriptions to each event bit.
        self._counts: dict[int, int] = {}
        #: The event handlers of channels, by the channel's key: the name, and the wanted bits.
        self._handlers: dict[str, tuple[str, int]] = {}

    def subscribe(self, session: Session, place: Place, channel: str, specified: bool) -> None:
        """Subscribe a session to the events of a place; *channel* is its spelling, *specified* asks
        for the specification's form."""
        subscription = session.event_subscriptions.get(place)
        if subscription is not None:
            # The same name in another case; its length may differ.
            self._books.charge(listening_bytes(channel) - listening_bytes(subscription.channel))
            subscription.channel = channel
            subscription.specified = specified
            return
        self._books.charge(listening_bytes(channel))
        subscription = EventSubscription(session, channel, specified)
        session.event_subscriptions[place] = subscription
        listeners = self._places.get(place)
        if listeners is None:
            listeners = {}
            self._places[place] = listeners
            channels = self._channels.get(place[1])
            if channels is None:
                channels = {}
                self._channels[place[1]] = channels
            channels[place] = None
        listeners[session.number] = subscription
        self._count(place[0], 1)

    def unsubscribe(self, session: Session, place: Place) -> None:
        """Unsubscribe a session; nothing happens if it had not subscribed."""
        subscription = session.event_subscriptions.pop(place, None)
        if subscription is None:
            return
        self._books.refund(listening_bytes(subscription.channel))
        listeners = self._places[place]
        del listeners[session.number]
        if not listeners:
            del self._places[place]
            self._close(place)
        self._count(place[0], -1)

    def _close(self, place: Place) -> None:
        """Remove a place without subscribers."""
        places = self._channels[place[1]]
        del places[place]
        if not places:
            del self._channels[place[1]]

    def forget_session(self, session: Session) -> None:
        """End all subscriptions of a session."""
        for place in list(session.event_subscriptions):
            self.unsubscribe(session, place)

    def forget_channel(self, out: list[Effect], key: str) -> int:
        """End all subscriptions to a removed channel, also that of its event handler.

        :returns: the number of subscriptions; each costs work.
        """
        handler = self._handlers.pop(key, None)
        if handler is not None:
            self._count_all(handler[1], -1)
        ended = 0
        for place in list(self._channels.get(key, ())):
            ended += self._forget(out, place)
        return ended

    def forget_queue(self, out: list[Effect], key: str, queue_id: int) -> int:
        """End the subscriptions to a removed queue; returns as :meth:`forget_channel`."""
        return self._forget(out, (MESSAGE_PRODUCED, key, queue_id))

    def _forget(self, out: list[Effect], place: Place) -> int:
        listeners = self._places.pop(place, None)
        if listeners is None:
            return 0
        self._close(place)
        for number, subscription in listeners.items():
            self._books.refund(listening_bytes(subscription.channel))
            del subscription.session.event_subscriptions[place]
            out.append(EventsEnded(number, place[0], subscription.channel))
        self._count(place[0], -len(listeners))
        return len(listeners)

    def _count(self, event: int, more: int) -> None:
        count = self._counts.get(event, 0) + more
        assert count >= 0, "subscriptions are counted one by one"
        self._counts[event] = count
        if count or self._world & event:
            self.mask |= event
        else:
            self.mask &= ~event

    def _count_all(self, events: int, more: int) -> None:
        bit = 1
        while bit <= events:
            if events & bit:
                self._count(bit, more)
            bit <<= 1

    def set_handler(self, key: str, name: str, events: int) -> None:
        """Notify an event handler of these events of a channel, and no other handler; none if
        *name* is empty."""
        before = self._handlers.pop(key, None)
        if before is not None:
            self._count_all(before[1], -1)
        if name:
            self._handlers[key] = (name, events)
            self._count_all(events, 1)

    def tell_handler(self, out: list[Effect], event: int, fact: Fact, key: str) -> None:
        """Notify the channel's event handler, if there is one that wants this event."""
        handler = self._handlers.get(key)
        if handler is not None and handler[1] & event:
            out.append(TellHandler(handler[0], event, fact))

    def tell(
        self, out: list[Effect], event: int, fact: Fact, key: str = "", queue_id: int = NO_QUEUE
    ) -> int:
        """Notify the world, if it wants the event, and all subscribers, grouped by spelling and
        form.

        :returns: the number of subscribers; each costs work.
        """
        if self._world & event:
            out.append(Notify(event, fact))
        if key and self._handlers:
            self.tell_handler(out, event, fact, key)
        listeners = self._places.get((event, key, queue_id))
        if listeners is None:
            return 0
        groups: dict[tuple[str, bool], list[int]] = {}
        for number, subscription in listeners.items():
            if subscription.session.blocked:
                self.skipped += 1
                continue
            form = (subscription.channel, subscription.specified)
            group = groups.get(form)
            if group is None:
                groups[form] = [number]
            else:
                group.append(number)
        for form, sessions in groups.items():
            out.append(Inform(sessions, event, fact, form[0], form[1]))
        return len(listeners)

    def tell_of_queue(self, out: list[Effect], fact: Fact, queue: QueueFacts) -> int:
        """Notify of a message produced into a queue; returns as :meth:`tell`."""
        return self.tell(out, MESSAGE_PRODUCED, fact, queue.channel_name.lower(), queue.queue_id)
