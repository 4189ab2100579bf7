"""``/consumers``: consumers that outlive a connection, for clients that ask again and again.

Theory of operation.  A consumer is a session of the broker without a connection.  It logs in as
whoever made it, and joins one channel without credit: so nothing is delivered to it but what a
fetch asks for, and a consumer that nobody asks holds nobody up.  What a fetch was too late for
waits here for the next one.  What its client does not acknowledge goes back: at the acknowledgement
timeout, when the consumer is closed, and when nobody has asked it for ``idle_s`` seconds.

What comes for a consumer, and what the broker answers to its log-in and its join, is noted by its
session, which wakes the request that waits for it.  Answers for deliveries wake nobody, since most
are none: so behind such commands a request asks for a right of its own client, and when that is
answered, everything before it has been.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final, final

from tmqp.constants import RESULT_OK
from tmqp_server.admin.api.unconnected import FIRST_UNCONNECTED, Unconnected
from tmqp_server.admin.options import ADMIN
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.bodies import HttpBodies
from tmqp_server.doors.http.client import ClientState
from tmqp_server.doors.http.contents import item_of
from tmqp_server.doors.http.exchange import Handler
from tmqp_server.doors.http.messages import BadRequest, as_json
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import QueuesOnly
from tmqp_server.engine.commands import Command, Disconnect
from tmqp_server.engine.effects import (
    Accept,
    CloseSession,
    Deliver,
    Effect,
    Lapsed,
    Left,
    Refuse,
    Reply,
)

__all__ = [
    "DEFAULT_WINDOW",
    "IDLE_S",
    "LONGEST_IDLE_S",
    "MOST_ANSWERS",
    "MOST_WINDOW",
    "NO_CONSUMER",
    "OUTCOMES",
    "DeliveryAnswer",
    "HttpConsumer",
    "HttpConsumers",
]

NO_CONSUMER: Final = "there is no such consumer"
#: Seconds after which a consumer ends that nobody asks: where its client does not say, and at most.
IDLE_S: Final = 60
LONGEST_IDLE_S: Final = 3_600
#: How many messages a consumer may have unacknowledged: where its client does not say, and at most.
DEFAULT_WINDOW: Final = 1_000
MOST_WINDOW: Final = 100_000
#: Answers for deliveries in one request, and what each may say.
MOST_ANSWERS: Final = 1_000
OUTCOMES: Final = ("ack", "nack", "release", "extend")
#: Consumers of one client, and of all.
_MOST_OF_ONE: Final = 100
_MOST: Final = 1_000


@final
class HttpConsumer(Unconnected):
    """One consumer.

    Attributes: ``name``, its id; ``owner``, a digest of what its client has shown; ``number``, of
    its session; ``channel``; ``idle_s``; ``used_s``, until when it is in use, at least;
    ``waiting``, what was delivered and not yet fetched, as JSON, with the queue, the id and the
    sequence of each; ``code``, what its log-in and its join were answered, -1 while they are not;
    ``over``, the broker has forgotten it, or will; ``waiter``, the request that waits for it.

    :param wake: has the deadline of a session looked at again.
    """

    def __init__(self, number: int, wake: Callable[[int], None]) -> None:
        super().__init__()
        self._wake = wake
        self.number = number
        self.name = ""
        self.owner = b""
        self.channel = ""
        self.idle_s = 60.0
        self.used_s = 0.0
        self.waiting: list[tuple[int, str, int, bytes]] = []
        self.code = -1
        self.over = False
        self.waiter: Handler | None = None

    def tell(self) -> None:
        """Something has changed: let the request that waits look at it, in a moment of its own."""
        waiter = self.waiter
        if waiter is not None and waiter.due < math.inf:
            waiter.due = waiter.exchange.now
            self._wake(waiter.exchange.client.number)

    def end(self) -> None:
        """It is over, or will be by the command that follows."""
        self.over = True
        self.tell()

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Keep a message for the next fetch: no more of them come than were asked for."""
        message = effect.message
        entry = (message.queue_id, message.message_id, message.sequence, shared)
        self.waiting.append(entry)
        self.tell()

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Note what the broker says."""
        if isinstance(effect, Reply):
            if isinstance(effect.request, DeliveryAnswer):
                effect.request.code = effect.code
            elif effect.request is self:
                self.code = effect.code
                self.tell()
        elif isinstance(effect, Refuse):
            self.code = effect.code
            self.end()
        elif isinstance(effect, (CloseSession, Left)):
            self.end()
        elif isinstance(effect, Lapsed):
            gone = (effect.queue_id, effect.message_id, effect.sequence)
            self.waiting = [each for each in self.waiting if each[:3] != gone]
        else:
            assert isinstance(effect, Accept), f"{effect!r} is not for a consumer"
        return ()

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """The server ends."""
        self.end()
        return [Disconnect(self.number)]


@final
class _ConsumerDoor(QueuesOnly):
    """What consumers are to the broker's world."""

    #: The consumer that was opened last.
    newest: HttpConsumer

    def __init__(self, letters: Letters, wake: Callable[[int], None]) -> None:
        super().__init__(HttpBodies())
        self.name = ADMIN
        self.per_session = True
        self._letters = letters
        self._wake = wake

    def open(self, session: int, now: float) -> HttpConsumer:
        """A consumer."""
        self.newest = HttpConsumer(session, self._wake)
        return self.newest

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The message, as a fetch shows it."""
        message = effect.message
        item = item_of(
            message, self._letters, hides_source=effect.hide_source, attempt=effect.attempt
        )
        return as_json({"queue": message.queue_id, "ack": effect.wants_acknowledge, **item})


@final
class HttpConsumers:
    """All consumers of one server.

    :param world: the server.
    """

    def __init__(self, world: AdminWorld) -> None:
        self._world = world
        self._numbers = itertools.count(FIRST_UNCONNECTED + 1)
        self._all: dict[str, HttpConsumer] = {}
        self._door: _ConsumerDoor | None = None
        world.beats.append(self.sweep)

    def __len__(self) -> int:
        return len(self._all)

    def of(self, owner: bytes) -> list[HttpConsumer]:
        """Those of a client."""
        return [each for each in self._all.values() if each.owner == owner and not each.over]

    def find(self, name: str, owner: bytes) -> HttpConsumer:
        """One of a client's own.

        :raises BadRequest: when it has none of that name, whoever else may.
        """
        found = self._all.get(name)
        if found is None or found.over or found.owner != owner:
            raise BadRequest(404, NO_CONSUMER)
        return found

    def open(
        self, client: ClientState, channel: str, idle_s: float, now: float
    ) -> HttpConsumer | None:
        """A new one; None if there are too many."""
        turn = self._world.turn
        assert turn is not None, "somebody asks"
        if len(self._all) >= _MOST or len(self.of(client.proof)) >= _MOST_OF_ONE:
            return None
        if self._door is None:
            self._door = _ConsumerDoor(client.letters, turn.hub.wake)
        number = next(self._numbers)
        turn.hub.open(number, self._door, now)
        session = self._door.newest
        session.name = self._world.random_bytes(16).hex()
        session.owner = client.proof
        session.channel = channel
        session.idle_s = idle_s
        session.used_s = now
        self._all[session.name] = session
        return session

    def sweep(self, now: float) -> None:
        """End those that nobody asks, and forget those that are over; outside of all turns."""
        turn = self._world.turn
        late = [
            each for each in self._all.values() if each.over or each.used_s + each.idle_s <= now
        ]
        if turn is None or not late:
            return
        for each in late:
            each.end()
            del self._all[each.name]
            turn.hub.forget(each.number, now)
        turn.perform((), now)


@final
class DeliveryAnswer:
    """A client's answer to one delivery, and what the broker says to it: a success is not
    answered, but for more time."""

    __slots__ = ("code", "message_id", "queue_id")

    def __init__(self, queue_id: int, message_id: str) -> None:
        self.queue_id = queue_id
        self.message_id = message_id
        self.code = RESULT_OK
