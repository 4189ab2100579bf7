"""Owns sessions, their subscriptions, and the audience that the subscriptions of a channel form.

Theory of operation.  Most messages go to an audience of which everybody can take everything; that
case must not cost a look at each consumer.  So an audience *counts* its exceptions instead of
finding them: ``stalled`` subscriptions cannot take a delivery now (the session's outbound buffer
is full, it has too much unanswered, or the credit is used up), ``special`` ones must be looked at
each time (they have a finite credit or a filter).  While both are 0, the lists of session numbers,
made when somebody joins or leaves and shared by all effects in between, are the recipients.

``line`` is where queues wait that have messages and an audience that cannot take them.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import QueueFacts
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.questions import Questions

__all__ = ["Audience", "EventSubscription", "Pulling", "Session", "Subscription"]


class Session(Client):
    """A connected client with what it has joined, by the channel's key.

    ``event_subscriptions`` are kept by ``notices.py``, by the place that they are about.
    """

    __slots__ = ("asked", "event_subscriptions", "memory", "pulls", "subscriptions")

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
        self.subscriptions: dict[str, Subscription] = {}
        #: Its pulls that are under way, oldest first.
        self.pulls: list[Pulling] = []
        self.event_subscriptions: dict[tuple[int, str, int], EventSubscription] = {}
        #: What it is charged in the broker's books.
        self.memory = 0
        #: Its direct messages that wait for an answer; None as long as there was none.
        self.asked: Questions | None = None

    def end(self) -> None:
        """Note that the connection has ended, and keep next to nothing: deliveries in flight refer
        to this session until they time out."""
        self.alive = False
        self.origin.end()
        self.properties = None
        self.name = None
        self.client_type = None
        self.subscriptions = _NO_SUBSCRIPTIONS
        self.pulls = _NO_PULLS
        self.event_subscriptions = _NO_LISTENING
        if self.asked is not None:
            self.asked.clear()
            self.asked = None

    def delivered_in_all(self) -> int:
        """Deliveries to this session, those to whole audiences included."""
        total = self.delivered
        for subscription in self.subscriptions.values():
            total += subscription.audience.fanouts - subscription.fanouts_before
        return total


class Pulling:
    """A pull under way; what it waits for is in ``pulls.py``.

    ``count`` messages were promised, ``left`` of them are still to be sent, ``index`` were.
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
        #: It stands in ``Core.pulls``.
        self.runnable = False
        #: It stands in ``Queue.parked``.
        self.parked = False
        self.over = False
        #: The handler kept a message from this consumer.
        self.refused = False
        #: Sequence numbers of the messages it took that went back at once.
        self.returned: set[int] = set()
        #: What it is charged in the broker's books.
        self.memory = 0


class EventSubscription:
    """One session's wish to be told of an event; ``channel`` is spelt as it spelt it (F131).

    ``specified`` asks for the form of the specification.
    """

    __slots__ = ("channel", "session", "specified")

    def __init__(self, session: Session, channel: str, specified: bool) -> None:
        self.session = session
        self.channel = channel
        self.specified = specified


class Subscription:
    """One session's place in one audience."""

    __slots__ = (
        "session",
        "audience",
        "credit",
        "filter",
        "joined_at",
        "fanouts_before",
        "stalled",
        "special",
    )

    def __init__(
        self,
        session: Session,
        audience: Audience,
        credit: int,
        filter: SubscriptionFilter | None,
        joined_at: float,
    ) -> None:
        self.session = session
        self.audience = audience
        #: Deliveries that may still be sent; -1 is no bound.
        self.credit = credit
        self.filter = filter
        self.joined_at = joined_at
        #: What the audience's count of deliveries to all was when this one joined.
        self.fanouts_before = audience.fanouts
        # Counted in the audience's numbers of the same name.
        self.stalled = False
        self.special = False

    def can_take(self) -> bool:
        """Whether a broadcast may be sent to it now."""
        return not self.session.blocked and self.credit != 0


class Audience:
    """The subscriptions of one channel, in join order."""

    __slots__ = (
        "subscriptions",
        "stalled",
        "special",
        "fanouts",
        "line",
        "everyone",
        "first",
        "rest",
        "clients",
        "only",
        "stale",
    )

    def __init__(self) -> None:
        self.subscriptions: dict[int, Subscription] = {}
        self.stalled = 0
        self.special = 0
        #: Messages that went to all; see Subscription.fanouts_before.
        self.fanouts = 0
        self.line: deque[QueueFacts] = deque()
        # The recipients, as effects want them: see ``refresh``.
        self.everyone: list[int] = []
        self.first: list[int] = []
        self.rest: list[int] = []
        self.clients: dict[int, Client] = {}
        self.only: Client | None = None
        #: The lists are no longer right.
        self.stale = False

    def add(self, subscription: Subscription) -> None:
        """Let a session that is not in join, as the last."""
        self.subscriptions[subscription.session.number] = subscription
        self.stale = True
        self.recount(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Let a session that is in go."""
        session = subscription.session
        del self.subscriptions[session.number]
        self.stale = True
        if subscription.stalled:
            self.stalled -= 1
        if subscription.special:
            self.special -= 1
        session.delivered += self.fanouts - subscription.fanouts_before

    def recount(self, subscription: Subscription) -> None:
        """Count a subscription anew after its credit, filter or session changed."""
        session = subscription.session
        stalled = session.blocked or session.full or subscription.credit == 0
        if stalled != subscription.stalled:
            subscription.stalled = stalled
            self.stalled += 1 if stalled else -1
        special = subscription.credit >= 0 or subscription.filter is not None
        if special != subscription.special:
            subscription.special = special
            self.special += 1 if special else -1

    def refresh(self) -> None:
        """Make the lists of recipients right; new lists, for effects may hold the old ones."""
        if not self.stale:
            return
        self.stale = False
        self.everyone = list(self.subscriptions)
        self.first = self.everyone[:1]
        self.rest = self.everyone[1:]
        clients: dict[int, Client] = {}
        for number, subscription in self.subscriptions.items():
            clients[number] = subscription.session
        self.clients = clients
        self.only = None
        if len(self.everyone) == 1:
            self.only = clients[self.everyone[0]]

    def can_take(self, exclusive: bool) -> bool:
        """Whether a queue that keeps its messages may send one now.

        It needs one consumer that can take it, or, unless *exclusive* (one consumer gets each
        message), all of them: nobody who joined must miss a message for being slow.
        """
        if self.stalled == 0:
            return bool(self.subscriptions)
        return exclusive and self.stalled < len(self.subscriptions)


#: Shared by all sessions that have ended; nothing is ever added to these.
_NO_SUBSCRIPTIONS: Final[dict[str, Subscription]] = {}
_NO_PULLS: Final[list[Pulling]] = []
_NO_LISTENING: Final[dict[tuple[int, str, int], EventSubscription]] = {}
