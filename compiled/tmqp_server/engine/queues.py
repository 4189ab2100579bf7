"""Owns queues: where the messages of a queue are at any moment, and the books about it.

Theory of operation.  A message that a queue has accepted is in exactly one of four places, or it
is settled:

* waiting, in the high-priority or the regular ``WaitingList`` (F85: the high one first, first in
  first out in each; a put-back goes to either end, F98);
* deferred, in a heap, until its not-before time;
* in flight, in ``flights``, from the sending until every consumer that has it has answered or
  timed out.  A dict keeps them in the order of sending, which is the order of their time-outs.

Settled messages are only counted: *done* (answered for, or sent where nobody need answer),
*expired*, *dead* (moved to the dead-letter queue), *cleared* (by an operation), *dropped* (given
up).  ``imbalance`` checks that accepted = waiting + deferred + in flight + settled; it must be 0
after every step.

``flights`` is keyed by message id, as acknowledges name messages (F95).  Ids are the producers'
choice and may repeat: a second message with an id in flight is a *twin*, kept under a key of its
own and found through ``twins``; an acknowledge closes the oldest its sender has in hand.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final

from tmqp_server.engine.client import Client
from tmqp_server.engine.delivery import (
    SEND_HOOKS,
    Decision,
    DeliveryHandler,
    QueueFacts,
    hooks_of,
)
from tmqp_server.engine.disciplines import Discipline
from tmqp_server.engine.handlers import receipt_of
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.message import MARK_GONE, MARK_HIGH, MARK_TWIN, Message
from tmqp_server.engine.options import QueueOptions
from tmqp_server.engine.sessions import Audience, Pulling
from tmqp_server.engine.timers import NEVER, ExpiryWheel, Sleeper

__all__ = ["Queue", "QueueTimer", "Trash", "WaitingList"]

#: Settled messages that a waiting list may hold among the living before it is tidied.
_TOLERATED_HUSKS: Final = 1_024


class WaitingList:
    """Messages of one priority that wait, first in first out.

    A message that expires in the middle stays in the list as a husk, passed over by ``take``; the
    list is tidied when more than half of it is husks.
    """

    __slots__ = ("count", "_husks", "_messages", "_wheel")

    def __init__(self) -> None:
        #: Messages that wait, husks not counted.
        self.count = 0
        self._messages: deque[Message] = deque()
        self._husks = 0
        self._wheel: ExpiryWheel | None = None

    def put_last(self, message: Message) -> None:
        """Let *message* wait as the last."""
        self._messages.append(message)
        self._put(message)

    def put_first(self, message: Message) -> None:
        """Let *message* wait as the first."""
        self._messages.appendleft(message)
        self._put(message)

    def _put(self, message: Message) -> None:
        self.count += 1
        expires_at = message.expires_at
        if expires_at > 0.0:
            wheel = self._wheel
            if wheel is None:
                wheel = ExpiryWheel()
                self._wheel = wheel
            wheel.add(message, expires_at)

    def take(self) -> Message:
        """Take out the first message; there must be one."""
        message = self._messages.popleft()
        while message.marks & MARK_GONE:
            self._husks -= 1
            message = self._messages.popleft()
        self.count -= 1
        if message.rare is not None:
            expires_at = message.rare.expires_at
            if expires_at > 0.0 and self._wheel is not None:
                self._wheel.remove(message, expires_at)
        return message

    def take_newest(self) -> Message:
        """Take out the last message; there must be one."""
        message = self._messages.pop()
        while message.marks & MARK_GONE:
            self._husks -= 1
            message = self._messages.pop()
        self.count -= 1
        if message.rare is not None:
            expires_at = message.rare.expires_at
            if expires_at > 0.0 and self._wheel is not None:
                self._wheel.remove(message, expires_at)
        return message

    def look(self, newest: bool) -> Message:
        """The first message, or the last; there must be one."""
        messages = self._messages
        at = -1 if newest else 0
        while messages[at].marks & MARK_GONE:
            self._husks -= 1
            if newest:
                messages.pop()
            else:
                messages.popleft()
        return messages[at]

    def next_expiry(self) -> float:
        """When the next message becomes too old, or NEVER."""
        wheel = self._wheel
        return NEVER if wheel is None else wheel.next_due()

    def take_expired(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* messages that are too old.  The caller must settle each."""
        wheel = self._wheel
        if wheel is None:
            return []
        expired = wheel.take_due(now, limit)
        self.count -= len(expired)
        self._husks += len(expired)
        return expired

    def tidy(self) -> None:
        """Drop husks from the front, and from everywhere when they are too many."""
        messages = self._messages
        while messages and messages[0].marks & MARK_GONE:
            messages.popleft()
            self._husks -= 1
        if self._husks > _TOLERATED_HUSKS and 2 * self._husks > len(messages):
            self._messages = deque([each for each in messages if not each.marks & MARK_GONE])
            self._husks = 0

    def keep(self) -> None:
        """Count one of the messages of ``take_expired`` as waiting again, where it stood."""
        self.count += 1
        self._husks -= 1

    def detach(self) -> deque[Message]:
        """Take out everything at once, husks included, in no more time than for one."""
        messages = self._messages
        self._messages = deque()
        self._wheel = None
        self._husks = 0
        self.count = 0
        return messages


class Trash:
    """Messages cleared from a queue and not yet disposed of, one by one.

    Disposing of a million messages takes a while, so the scheduler does it in portions.
    """

    __slots__ = ("queue", "lists", "deferred", "flights")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.lists: list[deque[Message]] = []
        self.deferred: list[tuple[float, int, Message]] = []
        self.flights: dict[str, Message] = {}

    def take(self) -> Message | None:
        """The next message to dispose of, or None when nothing is left."""
        for messages in self.lists:
            while messages:
                message = messages.popleft()
                if not message.marks & MARK_GONE:  # a husk was settled when it expired
                    return message
        if self.deferred:
            return self.deferred.pop()[2]
        if self.flights:
            return self.flights.popitem()[1]
        return None


class QueueTimer(Sleeper):
    """Wakes one queue: the heap of wake-ups holds this, and this knows its queue."""

    __slots__ = ("queue",)

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self.queue = queue


class Queue(QueueFacts):
    """One queue of a channel.  Changed only by the engine's modules; handlers see its facts.

    ``held`` is the message whose acknowledge the queue waits for before it sends another
    (WaitForAcknowledge, F96).  ``waiting`` says that it stands in its audience's line,
    ``runnable`` that it has work left for the next ``on_deadline``.
    """

    __slots__ = (
        "audience",
        "handler",
        "hooks",
        "discipline",
        "exclusive",
        "plain",
        "waits",
        "receipt",
        "receipt_asked",
        "size_cap",
        "count_cap",
        "turn",
        "high",
        "regular",
        "deferred",
        "flights",
        "twins",
        "held",
        "timer",
        "waiting",
        "runnable",
        "reserved",
        "parked",
        "closed",
        "sequence",
        "count",
        "bytes",
        "ack_timeout_s",
        "message_timeout_s",
        "put_back_limit",
        "accepted",
        "done",
        "expired",
        "dead",
        "cleared",
        "dropped",
        "received",
        "sent",
        "deliveries",
        "acks",
        "negative_acks",
        "unknown_acks",
        "ack_timeouts",
        "saved",
        "removed",
        "errors",
        "refused",
        "requeued",
        "skipped",
        "untracked",
        "last_received",
        "last_sent",
    )

    def __init__(
        self,
        channel_name: str,
        queue_id: int,
        audience: Audience,
        discipline: Discipline,
        handler: DeliveryHandler,
        options: QueueOptions,
        limits: EngineLimits,
    ) -> None:
        super().__init__(channel_name, queue_id, options)
        self.audience = audience
        self.high = WaitingList()
        self.regular = WaitingList()
        #: (not-before time, sequence, message)
        self.deferred: list[tuple[float, int, Message]] = []
        self.flights: dict[str, Message] = {}
        self.twins: dict[str, list[Message]] = {}
        self.held: Message | None = None
        self.timer = QueueTimer(self)
        self.waiting = False
        self.runnable = False
        #: Messages that pulls under way have promised to send.
        self.reserved = 0
        #: Pulls that wait until ``held`` is answered for.
        self.parked: deque[Pulling] = deque()
        #: The queue is removed from its channel.
        self.closed = False
        #: Position in the audience of the consumer served last (F90).
        self.turn = -1
        #: The last sequence number given to a message.
        self.sequence = 0
        #: Messages that are not settled, and cleared ones not yet disposed of; and their bytes.
        self.count = 0
        self.bytes = 0
        self.configure(options, discipline, handler, limits)
        self._reset_counters()

    def _reset_counters(self) -> None:
        self.accepted = 0
        self.done = 0
        self.expired = 0
        self.dead = 0
        self.cleared = 0
        self.dropped = 0
        # The protocol's counters (F68, F100).
        self.received = 0
        self.sent = 0
        self.deliveries = 0
        self.acks = 0
        self.negative_acks = 0
        #: Acknowledges that matched nothing; counted in acks and negative_acks too (F95).
        self.unknown_acks = 0
        self.ack_timeouts = 0
        self.saved = 0
        self.removed = 0
        self.errors = 0
        #: Pushes not accepted: by a limit, by the status, or by the handler.
        self.refused = 0
        #: Put-backs.
        self.requeued = 0
        #: Deliveries of broadcasts that a blocked consumer missed.
        self.skipped = 0
        #: Deliveries of broadcasts to a consumer with too much unanswered: sent, not tracked.
        self.untracked = 0
        #: Monotonic seconds; negative is never.
        self.last_received = -1.0
        self.last_sent = -1.0

    def configure(
        self,
        options: QueueOptions,
        discipline: Discipline,
        handler: DeliveryHandler,
        limits: EngineLimits,
    ) -> None:
        """Take over new options, with what has been looked up for them."""
        self.options = options
        self.discipline = discipline
        self.handler = handler
        self.hooks = hooks_of(handler)
        self.exclusive = discipline.exclusive or options.send_only_first_acquirer
        #: Nothing is decided in a send pass; see Sender.
        self.plain = not self.exclusive and not self.hooks & SEND_HOOKS
        #: One message is out at a time (F96); a broadcast cannot be held back.
        self.waits = (
            options.wait_for_acknowledge and options.request_acknowledge and discipline.stores
        )
        #: The decision about a push whose producer did not ask to be told, and about one that
        #: did; None where the handler must be called.
        self.receipt: Decision | None = None
        self.receipt_asked: Decision | None = None
        receipt = receipt_of(handler)
        if receipt is not None:
            self.receipt, self.receipt_asked = receipt
        # Within these a push fits without another look (Outcomes.problem_of_push looks closely).
        self.size_cap = limits.max_message_bytes
        if options.message_size_limit:
            self.size_cap = min(self.size_cap, options.message_size_limit)
        if discipline.refuses:
            self.size_cap = -1
        self.count_cap = limits.max_messages_per_queue
        if options.message_limit:
            self.count_cap = min(self.count_cap, options.message_limit)
        timeout_ms = options.acknowledge_timeout_ms or limits.max_acknowledge_timeout_ms
        self.ack_timeout_s = timeout_ms / 1000
        self.message_timeout_s = options.message_timeout_ms / 1000
        self.put_back_limit = options.put_back_limit or limits.max_put_backs

    # --- Waiting and deferred messages -----------------------------------------------------------

    def put_last(self, message: Message) -> None:
        """Let *message* wait behind all of its priority."""
        if message.marks & MARK_HIGH:
            self.high.put_last(message)
            self.high_count += 1
        else:
            self.regular.put_last(message)
            self.regular_count += 1

    def put_first(self, message: Message) -> None:
        """Let *message* wait before all of its priority."""
        if message.marks & MARK_HIGH:
            self.high.put_first(message)
            self.high_count += 1
        else:
            self.regular.put_first(message)
            self.regular_count += 1

    def take(self) -> Message:
        """Take out the message that is next; there must be one waiting."""
        if self.high_count:
            self.high_count -= 1
            return self.high.take()
        self.regular_count -= 1
        return self.regular.take()

    def take_newest(self) -> Message:
        """Take out the message that came last, of the high priority first; there must be one."""
        if self.high_count:
            self.high_count -= 1
            return self.high.take_newest()
        self.regular_count -= 1
        return self.regular.take_newest()

    def look(self, newest: bool) -> Message | None:
        """The message that ``take``, or ``take_newest``, would take out; None if none waits."""
        if self.high_count:
            return self.high.look(newest)
        if self.regular_count:
            return self.regular.look(newest)
        return None

    def latest(self) -> Message | None:
        """The message that came last, whatever its priority; None if none waits."""
        if self.high_count and self.regular_count:
            high = self.high.look(True)
            regular = self.regular.look(True)
            return high if high.sequence > regular.sequence else regular
        return self.look(True)

    def clear_waiting(self) -> Trash:
        """Take out what waits, but for deferred messages; otherwise as ``clear``."""
        trash = Trash(self)
        self.cleared += self.high_count + self.regular_count
        self.high_count = 0
        self.regular_count = 0
        trash.lists.append(self.high.detach())
        trash.lists.append(self.regular.detach())
        return trash

    def take_expired(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* waiting messages that are too old.  The caller must settle each."""
        expired = self.high.take_expired(now, limit)
        self.high_count -= len(expired)
        more = self.regular.take_expired(now, limit - len(expired))
        self.regular_count -= len(more)
        return expired + more

    def keep(self, message: Message) -> None:
        """Let one of the messages of ``take_expired`` wait on; it must have no expiry any more."""
        if message.marks & MARK_HIGH:
            self.high.keep()
            self.high_count += 1
        else:
            self.regular.keep()
            self.regular_count += 1

    def tidy(self) -> None:
        """Drop what ``take_expired`` left behind."""
        self.high.tidy()
        self.regular.tidy()

    def defer(self, message: Message, due_at: float) -> None:
        """Let *message* wait until *due_at* before it waits to be sent."""
        heapq.heappush(self.deferred, (due_at, message.sequence, message))

    def take_deferred(self, now: float) -> Message | None:
        """The next deferred message whose time has come, or None."""
        deferred = self.deferred
        if not deferred or deferred[0][0] > now:
            return None
        return heapq.heappop(deferred)[2]

    def clear(self, high_priority: bool, regular: bool, in_flight: bool) -> Trash:
        """Take out what waits of these priorities, deferred ones too, and what is in flight.

        All of it counts as cleared from now on; what is left to do for each message is the
        trash's (see ``Trash``), so this takes no longer for a million than for one.
        """
        trash = Trash(self)
        before = self.live()
        if high_priority:
            self.high_count = 0
            trash.lists.append(self.high.detach())
        if regular:
            self.regular_count = 0
            trash.lists.append(self.regular.detach())
        if high_priority and regular:
            trash.deferred = self.deferred
            self.deferred = []
        elif high_priority or regular:
            wanted = MARK_HIGH if high_priority else 0
            trash.deferred = [e for e in self.deferred if e[2].marks & MARK_HIGH == wanted]
            self.deferred = [e for e in self.deferred if e[2].marks & MARK_HIGH != wanted]
            heapq.heapify(self.deferred)
        if in_flight:
            trash.flights = self.flights
            self.flights = {}
            self.twins = {}
            self.held = None
        self.cleared += before - self.live()
        return trash

    # --- Messages in flight ----------------------------------------------------------------------

    def enter_flight(self, message: Message) -> None:
        """Note that *message* has just been sent and is awaited."""
        key = message.message_id
        if key in self.flights:
            message.marks |= MARK_TWIN
            key = f"{key}\x00{message.sequence}"
            message.rarely().key = key
            self.twins.setdefault(message.message_id, []).append(message)
        self.flights[key] = message

    def leave_flight(self, message: Message) -> None:
        """Note that *message* is no longer awaited; it must have been in flight."""
        if not message.marks & MARK_TWIN:
            del self.flights[message.message_id]
            return
        message.marks &= ~MARK_TWIN
        del self.flights[message.rarely().key]
        twins = self.twins[message.message_id]
        twins.remove(message)
        if not twins:
            del self.twins[message.message_id]

    def twin_held_by(self, message_id: str, client: Client) -> Message | None:
        """The oldest twin of that id which *client* has in hand, or None."""
        for message in self.twins.get(message_id, ()):
            if message.is_held_by(client):
                return message
        return None

    def overdue(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* messages in flight whose time-out has come, oldest first."""
        timeout_s = self.ack_timeout_s
        found: list[Message] = []
        for message in self.flights.values():
            # The same sum as in next_due: rounding must not make them disagree.
            if message.sent_at + timeout_s > now or len(found) >= limit:
                break
            found.append(message)
        return found

    # --- Time and books --------------------------------------------------------------------------

    def next_due(self) -> float:
        """When something must happen in this queue by itself, or NEVER."""
        due = min(self.high.next_expiry(), self.regular.next_expiry())
        if self.flights:
            due = min(due, next(iter(self.flights.values())).sent_at + self.ack_timeout_s)
        if self.deferred:
            due = min(due, self.deferred[0][0])
        return due

    def live(self) -> int:
        """Messages that are not settled."""
        return self.high_count + self.regular_count + len(self.deferred) + len(self.flights)

    def is_empty(self) -> bool:
        """Whether every message is settled."""
        return self.live() == 0

    def imbalance(self) -> int:
        """Accepted messages that are nowhere (positive) or counted twice; 0 when all is right."""
        settled = self.done + self.expired + self.dead + self.cleared + self.dropped
        return self.accepted - self.live() - settled
