"""Sessions, their subscriptions, and the audience that the subscriptions of a channel form.

Theory of operation.  Most messages go to an audience in which every consumer can take everything;
that case must not require a check of each consumer.  So an audience *counts* its exceptions instead
of finding them: ``stalled`` subscriptions cannot take a delivery now (the session's outbound buffer
is full, it has too much unanswered, or the credit is used up), ``special`` ones must be examined
each time (they have a finite credit or a filter).  While both are 0, the lists of session numbers,
made when a client joins or leaves and shared by all effects in between, are the recipients.

A broadcast does not wait: it skips subscriptions that are *deaf* (the outbound buffer is full, or
the credit is used up), which are in no list meanwhile.

A queue whose messages go to one consumer each needs the next one that can take a message: the
subscriptions are in a ring in join order, and ``ready`` has a bit for each place that is not
stalled.  While some are *exclusive*, one of them is the ``sole`` taker of such queues, and only it
may have a bit.  In an audience of a *single* consumer, all are exclusive.

``line`` has the queues with messages that the audience cannot take.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import QueueFacts
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.model.questions import Questions
from tmqp_server.engine.model.recipients import Recipients
from tmqp_server.engine.model.selection import EVERYBODY, Selection
from tmqp_server.engine.model.terms import AcceptedTerms, Terms, sole_of
from tmqp_server.engine.model.timed import set_due

__all__ = ["Audience", "EventSubscription", "Pulling", "Session", "Subscription"]


class Session(Client):
    """A connected client, or one of its branches, with what it has joined, by the channel's key.

    ``notices.py`` keeps ``event_subscriptions``, by their keys.
    """

    __slots__ = (
        "alone",
        "asked",
        "branches",
        "event_subscriptions",
        "memory",
        "owned",
        "parent",
        "pulls",
        "subscriptions",
    )

    def __init__(
        self,
        number: int,
        client_id: str,
        name: str | None,
        client_type: str | None,
        door: str,
        properties: dict[str, str] | None,
        authenticated: bool,
        connected_at: float,
        node: bool = False,
        host: str = "",
    ) -> None:
        super().__init__(
            number,
            client_id,
            name,
            client_type,
            door,
            properties,
            authenticated,
            connected_at,
            node,
            host,
        )
        #: A list with only this session, for effects; never changed or replaced.
        self.alone = [number]
        self.subscriptions: dict[str, Subscription] = {}
        #: Its pulls that are in progress, oldest first.
        self.pulls: list[Pulling] = []
        self.event_subscriptions: dict[tuple[int, str, int], EventSubscription] = {}
        #: Its charge in the broker's books.
        self.memory = 0
        #: The keys of the channels that end with it; None until there is one.
        self.owned: dict[str, None] | None = None
        #: Its direct messages that wait for an answer; None until there is one.
        self.asked: Questions | None = None
        #: Whose branch it is; None for a client.
        self.parent: Session | None = None
        #: Its branches by number, in the order of opening; None until there is one.
        self.branches: dict[int, Session] | None = None

    def end(self) -> None:
        """Note that the connection has ended, and keep only what deliveries in flight refer to."""
        self.alive = False
        self.origin.end()
        self.properties = None
        self.name = None
        self.client_type = None
        self.subscriptions = _NO_SUBSCRIPTIONS
        self.pulls = _NO_PULLS
        self.event_subscriptions = _NO_LISTENING
        self.owned = None
        self.branches = None
        if self.asked is not None:
            self.asked.clear()
            self.asked = None

    def take_terms(self) -> None:
        """Note that it has terms, which every delivery and answer must observe from now on."""
        self.termed = True
        self.closely = True
        self.most = 0

    def delivered_in_all(self) -> int:
        """The number of deliveries to this session, including those to whole audiences."""
        total = self.delivered
        for subscription in self.subscriptions.values():
            if not subscription.deaf:
                total += subscription.audience.fanouts - subscription.fanouts_before
        return total


class Pulling:
    """A pull in progress; what it waits for is in ``pulls.py``.

    ``count`` messages were reserved; ``index`` of them were sent, and ``left`` still have to be.
    """

    __slots__ = (
        "session",
        "queue",
        "request",
        "count",
        "left",
        "index",
        "newest_first",
        "clear_high",
        "clear_regular",
        "info",
        "runnable",
        "parked",
        "over",
        "refused",
        "returned",
        "memory",
    )

    def __init__(
        self,
        session: Session,
        queue: QueueFacts,
        request: object,
        count: int,
        newest_first: bool,
        clear_high: bool,
        clear_regular: bool,
        info: bool,
    ) -> None:
        self.session = session
        self.queue = queue
        self.request = request
        self.count = count
        self.left = count
        self.index = 0
        self.newest_first = newest_first
        self.clear_high = clear_high
        self.clear_regular = clear_regular
        self.info = info
        #: It is in ``Core.pulls``.
        self.runnable = False
        #: It is in ``Queue.parked``.
        self.parked = False
        self.over = False
        #: The handler did not allow a message for this consumer.
        self.refused = False
        #: The sequences of messages that it took and that were put back immediately.
        self.returned: set[int] = set()
        #: Its charge in the broker's books.
        self.memory = 0


class EventSubscription:
    """One session's subscription to an event; ``channel`` is as the session spelt it (F131).

    ``specified`` asks for the form of the specification.
    """

    __slots__ = ("channel", "session", "specified")

    def __init__(self, session: Session, channel: str, specified: bool) -> None:
        self.session = session
        self.channel = channel
        self.specified = specified


class Subscription(AcceptedTerms):
    """The subscription of a session to a channel: its place in the audience."""

    __slots__ = (
        "session",
        "audience",
        "credit",
        "filter",
        "joined_at",
        "fanouts_before",
        "stalled",
        "deaf",
        "special",
        "metered",
        "selected",
        "place",
        "bit",
        "alone",
    )

    def __init__(
        self,
        session: Session,
        audience: Audience,
        credit: int,
        filter: SubscriptionFilter | None,
        joined_at: float,
    ) -> None:
        super().__init__()
        self.session = session
        self.audience = audience
        #: Deliveries that may still be sent; -1 for no limit.
        self.credit = credit
        self.filter = filter
        self.joined_at = joined_at
        #: The audience's ``fanouts`` when this subscription began, or could hear again.
        self.fanouts_before = audience.fanouts
        # Counted in the audience's numbers of the same name.
        self.stalled = False
        self.deaf = False
        self.special = False
        self.metered = False
        #: The filter that the audience's selection knows of.
        self.selected: SubscriptionFilter | None = None
        #: Its place in the audience's ring, once that is right, and the bit that it has in
        #: ``ready`` when it is not stalled: 0 while another consumer is the only taker.
        self.place = -1
        self.bit = 0
        self.alone = session.alone

    def can_take(self) -> bool:
        """Whether a broadcast may be sent to it now."""
        return not self.session.blocked and self.credit != 0 and not self.is_full()

    def accept(self, terms: Terms) -> None:
        """Apply terms; those that are not given stay as they are."""
        if self.holds is None:
            self.session.take_terms()
        if self.take_over(terms):
            self.audience.scattered = True
            self.audience.stale = True
        self.audience.recount(self)

    def hold(self, queue: QueueFacts, message: Message) -> None:
        """Record a delivery that must be answered; the subscription must have terms."""
        assert self.holds is not None, "it has terms"
        self.holds[message] = queue
        if self.ack_timeout_s:
            set_due(message, self.session, message.sent_at + self.ack_timeout_s)
        if self.is_full():
            self.audience.recount(self)

    def drop(self, message: Message) -> bool:
        """Record that a delivery is over; return whether the subscription can take deliveries again
        that could not before."""
        holds = self.holds
        if holds is None or message not in holds:
            return False
        was_full = self.is_full()
        del holds[message]
        if not was_full or self.is_full():
            return False
        self.audience.recount(self)
        return not self.stalled


class Audience:
    """The subscriptions of one channel, in join order."""

    __slots__ = (
        "subscriptions",
        "stalled",
        "deaf",
        "special",
        "filters",
        "fanouts",
        "used",
        "line",
        "everyone",
        "first",
        "rest",
        "clients",
        "only",
        "ring",
        "ready",
        "stale",
        "scattered",
        "tiers",
        "single",
        "sole",
        "selection",
        "metered",
        "_chosen",
    )

    def __init__(self) -> None:
        self.subscriptions: dict[int, Subscription] = {}
        self.stalled = 0
        self.deaf = 0
        self.special = 0
        #: The number of subscriptions with a filter.
        self.filters = 0
        #: Messages that went to all; see ``Subscription.fanouts_before``.
        self.fanouts = 0
        #: A client joined, left, pulled or read since this was last cleared; see ``IdleTimer``.
        self.used = False
        self.line: deque[QueueFacts] = deque()
        # The recipients, as effects want them: see ``refresh``.
        self.everyone: list[int] = []
        self.first: list[int] = []
        self.rest: list[int] = []
        self.clients: dict[int, Client] = {}
        self.only: Client | None = None
        #: The subscriptions in join order, and a bit for each place that is not stalled.
        self.ring: list[Subscription] = []
        self.ready = 0
        #: The recipients must be updated.
        self.stale = False
        #: The ring must be updated, too: a client has joined or left.  Consumers that temporarily
        #: cannot take messages keep their places, so that the ring is not rebuilt whenever credit
        #: changes.
        self.scattered = False
        #: The places of each priority, the highest first; empty while all have the same.
        self.tiers: list[int] = []
        #: All consumers count as exclusive; see ``let_one_take``.
        self.single = False
        #: The only taker of messages that go to one consumer: the first exclusive one of the
        #: highest priority, or None.  Valid when the ring is.
        self.sole: Subscription | None = None
        #: The distinct filters; None before there was one.
        self.selection: Selection | None = None
        #: The number of subscriptions with a finite credit, or terms.
        self.metered = 0
        #: The recipients by mask, for the masks that were needed since the last update.
        self._chosen: dict[int, Recipients] = {}

    def has_room_for(self, filter: SubscriptionFilter | None) -> bool:
        """Whether there may be a further consumer with this filter."""
        return filter is None or self.selection is None or self.selection.has_room(filter)

    def let_one_take(self, single: bool) -> None:
        """If *single*, one consumer takes all messages that go to one, as if all were exclusive."""
        self.single = single
        self.scattered = True
        self.stale = True

    def add(self, subscription: Subscription) -> None:
        """Add a session that has not joined yet, as the last one."""
        self.subscriptions[subscription.session.number] = subscription
        self.used = True
        self.stale = True
        self.scattered = True
        self.recount(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Remove a session that has joined."""
        session = subscription.session
        del self.subscriptions[session.number]
        self.used = True
        self.stale = True
        self.scattered = True
        if subscription.stalled:
            self.stalled -= 1
        if subscription.special:
            self.special -= 1
        if subscription.metered:
            self.metered -= 1
        if subscription.selected is not None:
            self._select(subscription, None)
        if subscription.deaf:
            self.deaf -= 1
        else:
            session.delivered += self.fanouts - subscription.fanouts_before

    def recount(self, subscription: Subscription) -> None:
        """Count a subscription again after its credit, filter or session changed."""
        session = subscription.session
        deaf = not subscription.can_take()
        if deaf != subscription.deaf:
            self._note_hearing(subscription, deaf)
        stalled = deaf or session.full
        if stalled != subscription.stalled:
            subscription.stalled = stalled
            self.stalled += 1 if stalled else -1
            if not self.scattered:
                self.ready ^= subscription.bit
        special = (
            subscription.credit >= 0
            or subscription.filter is not None
            or subscription.holds is not None
        )
        if special != subscription.special:
            subscription.special = special
            self.special += 1 if special else -1
        metered = subscription.credit >= 0 or subscription.holds is not None
        if metered != subscription.metered:
            subscription.metered = metered
            self.metered += 1 if metered else -1
        if subscription.filter is not subscription.selected:
            self._select(subscription, subscription.filter)

    def _select(self, subscription: Subscription, filter: SubscriptionFilter | None) -> None:
        """Replace the filter of a subscription in the selection."""
        selection = self.selection
        if selection is None:
            selection = Selection()
            self.selection = selection
        if subscription.selected is not None:
            selection.remove(subscription.selected)
            self.filters -= 1
        if filter is not None:
            selection.add(filter)
            self.filters += 1
        subscription.selected = filter
        self.scattered = True
        self.stale = True

    def _note_hearing(self, subscription: Subscription, deaf: bool) -> None:
        """Take a subscription out of the lists, or put it back."""
        subscription.deaf = deaf
        self.stale = True
        if deaf:
            self.deaf += 1
            subscription.session.delivered += self.fanouts - subscription.fanouts_before
        else:
            self.deaf -= 1
            subscription.fanouts_before = self.fanouts

    def refresh(self) -> None:
        """Update the recipients, as new lists, because effects may refer to the old ones."""
        if not self.stale:
            return
        self.stale = False
        self._chosen = {}
        if self.scattered:
            self._form_ring()
        everyone: list[int] = []
        clients: dict[int, Client] = {}
        for subscription in self.ring:
            if not subscription.deaf:
                session = subscription.session
                everyone.append(session.number)
                clients[session.number] = session
        self.everyone = everyone
        self.first = everyone[:1]
        self.rest = everyone[1:]
        self.clients = clients
        self.only = None
        if len(everyone) == 1:
            self.only = clients[everyone[0]]

    def _form_ring(self) -> None:
        """Give every subscription a place in join order."""
        self.scattered = False
        self.ring = list(self.subscriptions.values())
        self.sole = sole_of(self.ring, self.single)
        ready = 0
        for place, subscription in enumerate(self.ring):
            subscription.place = place
            may_take = self.sole is None or self.sole is subscription
            subscription.bit = 1 << place if may_take else 0
            if not subscription.stalled:
                ready |= subscription.bit
        self.ready = ready
        self.tiers = _tiers_of(self.ring)
        if self.selection is not None:
            self.selection.place([each.filter for each in self.ring])

    def chosen_by(self, mask: int) -> Recipients:
        """The consumers that hear and want a message, by the mask of the filters that accept it."""
        self.refresh()
        found = self._chosen.get(mask)
        if found is None:
            assert self.selection is not None, "there are filters"
            takers = self.selection.takers(mask)
            clients: dict[int, Client] = {}
            missed = 0
            for subscription in self.ring:
                if not takers >> subscription.place & 1:
                    continue
                if subscription.deaf:
                    missed += 1
                else:
                    clients[subscription.session.number] = subscription.session
            found = Recipients(clients, missed)
            if len(self._chosen) >= _MOST_CHOSEN:
                self._chosen = {}
            self._chosen[mask] = found
        return found

    def ready_places(self) -> int:
        """A bit for each place of the ring that can take a delivery now."""
        if self.scattered:
            self._form_ring()
        return self.ready

    def next_of(self, places: int, turn: int) -> Subscription:
        """Of these places of the ring, at least one, the next one after *turn*."""
        if self.tiers:
            places = self._highest(places)
        place = turn + 1
        above = places >> place
        if above:
            return self.ring[place + (above & -above).bit_length() - 1]
        return self.ring[(places & -places).bit_length() - 1]

    def next_ready(self, turn: int, takers: int = EVERYBODY) -> Subscription | None:
        """Of the places *takers*, the next one after *turn* that can take a delivery now; None if
        there is none.

        The turn is a position, which is not adjusted when a client leaves; after the last position
        comes the first (F90).
        """
        if self.scattered:
            self._form_ring()
        ready = self.ready & takers
        if not ready:
            return None
        if self.tiers:
            ready = self._highest(ready)
        place = turn + 1
        above = ready >> place
        if above:
            return self.ring[place + (above & -above).bit_length() - 1]
        return self.ring[(ready & -ready).bit_length() - 1]

    def sole_taker(self) -> Subscription | None:
        """The one consumer that takes all messages that go to one consumer; None if several do."""
        if self.scattered:
            self._form_ring()
        return self.sole

    def takers(self) -> list[Subscription]:
        """The consumers that take messages that go to one consumer, in join order."""
        sole = self.sole_taker()
        return self.ring if sole is None else [sole]

    def has_tiers(self) -> bool:
        """Whether some consumers have a higher priority than others."""
        if self.scattered:
            self._form_ring()
        return bool(self.tiers)

    def _highest(self, ready: int) -> int:
        """Of these places, those with the highest priority."""
        for tier in self.tiers:
            if ready & tier:
                return ready & tier
        return ready

    def can_take(self, exclusive: bool) -> bool:
        """Whether a queue that keeps its messages may send one now.

        If *exclusive* (each goes to one consumer), one consumer must be able to take it, otherwise
        all: a slow consumer must not miss messages.
        """
        if self.stalled == 0:
            return bool(self.subscriptions)
        if not exclusive:
            return False
        sole = self.sole_taker()
        return self.stalled < len(self.subscriptions) if sole is None else not sole.stalled


def _tiers_of(ring: list[Subscription]) -> list[int]:
    """The places of each priority, the highest first; empty if all priorities are the same."""
    places: dict[int, int] = {}
    for subscription in ring:
        priority = subscription.priority
        places[priority] = places.get(priority, 0) | 1 << subscription.place
    return [places[each] for each in sorted(places, reverse=True)] if len(places) > 1 else []


#: Lists of recipients that are kept for one audience.
_MOST_CHOSEN: Final = 256
#: Shared by all sessions that have ended; never changed.
_NO_SUBSCRIPTIONS: Final[dict[str, Subscription]] = {}
_NO_PULLS: Final[list[Pulling]] = []
_NO_LISTENING: Final[dict[tuple[int, str, int], EventSubscription]] = {}
