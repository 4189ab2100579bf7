"""``/consumers``: consumers that outlive a connection, for clients that poll.

Theory of operation.  A consumer is a session of the broker without a connection.  It logs in with
the credentials of the client that created it, and joins one channel without credit: so the broker
delivers only what a fetch asks for, and a consumer that nobody polls does not hold up others.  A
message that arrives too late for its fetch waits here for the next one.  Messages that the client
does not acknowledge return to their queue: at the acknowledgement timeout, when the consumer is
closed, and when there was no request for ``idle_s`` seconds.

The session notes the messages that the broker delivers and its answers to the log-in and the join,
and then wakes the request that waits for them.  Answers for deliveries wake no request, because the
broker does not answer most of them.  So after such commands, a request asks for a right of its own
client; when the broker has answered this, it has handled everything before it.
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
#: Seconds without a request after which a consumer ends: by default, and at most.
IDLE_S: Final = 60
LONGEST_IDLE_S: Final = 3_600
#: How many unacknowledged messages a consumer may have: by default, and at most.
DEFAULT_WINDOW: Final = 1_000
MOST_WINDOW: Final = 100_000
#: The most answers for deliveries in one request, and the possible answers.
MOST_ANSWERS: Final = 1_000
OUTCOMES: Final = ("ack", "nack", "release", "extend")
#: The most consumers of one client, and of all clients.
_MOST_OF_ONE: Final = 100
_MOST: Final = 1_000


@final
class HttpConsumer(Unconnected):
    """One consumer.

    Attributes: ``name``, its id; ``owner``, a digest of its client's credentials; ``number``, that
    of its session; ``channel``; ``idle_s``; ``used_s``, until when it is in use at least;
    ``waiting``, the delivered messages that were not fetched yet, each with its queue, id and
    sequence, and as JSON; ``code``, the result of its log-in and then of its join, -1 before the
    first answer; ``over``, whether the broker has forgotten it, or will; ``waiter``, the request
    that waits for it.

    :param wake: makes the hub look again at the deadline of a session.
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
        """Wake the waiting request; it looks at the change in a step of its own."""
        waiter = self.waiter
        if waiter is not None and waiter.due < math.inf:
            waiter.due = waiter.exchange.now
            self._wake(waiter.exchange.client.number)

    def end(self) -> None:
        """Mark it as ended: the broker has ended it, or the caller's next command does."""
        self.over = True
        self.tell()

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        """Keep a message for the next fetch; the broker sends only as many as were asked for."""
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
        """End the session, because the server stops."""
        self.end()
        return [Disconnect(self.number)]


@final
class _ConsumerDoor(QueuesOnly):
    """The door of all consumers, as the hub sees it."""

    #: The consumer that was opened last.
    newest: HttpConsumer

    def __init__(self, letters: Letters, wake: Callable[[int], None]) -> None:
        super().__init__(HttpBodies())
        self.name = ADMIN
        self.per_session = True
        self._letters = letters
        self._wake = wake

    def open(self, session: int, now: float) -> HttpConsumer:
        """The session of a consumer."""
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
        """The consumers of a client."""
        return [each for each in self._all.values() if each.owner == owner and not each.over]

    def find(self, name: str, owner: bytes) -> HttpConsumer:
        """The consumer of a name, if it belongs to this client.

        :raises BadRequest: 404 when this client has no such consumer, even if another client has.
        """
        found = self._all.get(name)
        if found is None or found.over or found.owner != owner:
            raise BadRequest(404, NO_CONSUMER)
        return found

    def open(
        self, client: ClientState, channel: str, idle_s: float, now: float
    ) -> HttpConsumer | None:
        """Open a consumer; None if there are too many."""
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
        """End consumers that were idle too long, and forget those that have ended; call between
        turns.
        """
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
    """A client's answer to one delivery, and the broker's result: only for an extension does the
    broker report success.
    """

    __slots__ = ("code", "message_id", "queue_id")

    def __init__(self, queue_id: int, message_id: str) -> None:
        self.queue_id = queue_id
        self.message_id = message_id
        self.code = RESULT_OK
