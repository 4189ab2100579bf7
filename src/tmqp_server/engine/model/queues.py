"""Queues: the places of the messages of a queue, and the counters about them.

Theory of operation.  A message that a queue has accepted is in exactly one of four places, or it is
settled:

* waiting, in the high-priority or the regular ``WaitingList`` (F85: the high one first, first in
  first out in each; a put-back goes to either end, F98), or behind one in its ``Tail`` on disk;
* deferred, in ``Deferrals``, until its not-before time;
* in flight, in ``flights``, from the sending until every consumer that has it has answered or timed
  out, in the order of their timeouts; those with other timeouts are in ``timed``;
* withheld, as part of a batch, until that is saved: it is not visible.

Settled messages are only counted: *done* (acknowledged, or sent if no acknowledgement is needed),
*expired*, *dead* (moved to the dead-letter queue), *cleared*, *dropped* (given up), *undone* (its
batch or commit failed).  ``imbalance`` is 0 after every step: accepted = waiting + deferred + in
flight + withheld + settled.

``flights`` is keyed by message id (F95).  Ids may repeat: a second message with an id in flight is
a *duplicate*, found through ``duplicates``; an acknowledgement closes the oldest one that its
sender has.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.counters import QueueCounters
from tmqp_server.engine.model.deferrals import Deferrals
from tmqp_server.engine.model.delivery import (
    SEND_HOOKS,
    Decision,
    DeliveryHandler,
    QueueFacts,
    hooks_of,
)
from tmqp_server.engine.model.disciplines import Discipline
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.handlers import receipt_of, saving
from tmqp_server.engine.model.keys import KeyTable
from tmqp_server.engine.model.levels import LevelGauge
from tmqp_server.engine.model.message import MARK_HIGH, MARK_SAVED, MARK_SAVING, Message, Wires
from tmqp_server.engine.model.parking import with_levels
from tmqp_server.engine.model.sessions import Audience, Pulling
from tmqp_server.engine.model.tails import Tail
from tmqp_server.engine.model.timed import TimedFlights
from tmqp_server.engine.model.timers import Sleeper
from tmqp_server.engine.model.trash import Trash
from tmqp_server.engine.model.waiting import WaitingList
from tmqp_server.engine.model.waiting_parts import WaitingPart
from tmqp_server.engine.options import NO_KEYS, TEN, QueueOptions

__all__ = ["Queue", "QueueTimer"]

#: More than any number of put-backs or bytes.
_NO_LIMIT: Final = 2**62


class QueueTimer(Sleeper):
    """Wakes one queue: the heap of wake-ups holds this object, which knows its queue."""

    __slots__ = ("queue",)

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        #: None when the queue was removed.
        self.queue: Queue | None = queue


class Queue(QueueFacts):
    """One queue of a channel.  Changed only by the engine's modules; handlers see its facts.

    ``held`` is the message whose acknowledgement the queue waits for before it sends another
    (WaitForAcknowledge, F96).  ``waiting`` means that it is in its audience's line, ``runnable``
    that it has work left for the next ``on_deadline``.
    """

    __slots__ = (
        "key", "memory", "audience", "handler", "hooks", "discipline", "exclusive", "skips",
        "plain", "single", "direct", "keyed", "keys", "leveled", "gauge", "nameless", "saves",
        "bounded", "memory_limit", "memory_bytes", "waits", "receipt", "receipt_asked",
        "size_cap", "count_cap", "byte_cap", "disk_cap", "turn", "high", "regular",
        "deferred", "flights", "timed", "duplicates", "shared", "held", "timer", "waiting",
        "runnable", "reserved", "withheld", "parked", "closed", "fleeting", "expected",
        "heeded", "temporary", "claims", "feeds", "fed_by", "waiters", "committing",
        "high_tail", "regular_tail", "spilled", "appended", "safe", "watched", "cursors",
        "cursor_ticket", "suspect", "sequence", "count", "bytes", "disk_bytes",
        "ack_timeout_s", "message_timeout_s", "put_back_limit", "counters",
    )  # fmt: skip

    def __init__(
        self,
        channel_name: str,
        queue_id: int,
        audience: Audience,
        discipline: Discipline,
        handler: DeliveryHandler,
        options: QueueOptions,
        limits: EngineLimits,
        gauge: LevelGauge | None = None,
    ) -> None:
        super().__init__(channel_name, queue_id, options)
        #: Its number, which is never reused.
        self.key = 0
        #: Its charge in the broker's books, without messages and cursors.
        self.memory = 0
        self.audience = audience
        self.high = WaitingList()
        self.regular = WaitingList()
        self.deferred = Deferrals()
        self.flights: dict[str, Message] = {}
        #: Messages with consumers that have their own times; None until there are any.
        self.timed: TimedFlights | None = None
        self.duplicates: dict[str, list[Message]] = {}
        #: Messages that other nodes have, too, by their ids; see ``sharing.py``.
        self.shared: dict[str, Message] = {}
        self.held: Message | None = None
        self.timer = QueueTimer(self)
        self.waiting = False
        self.runnable = False
        #: Messages that pulls in progress have reserved.
        self.reserved = 0
        #: Messages of batches and commits that are not saved yet: accepted, but in no other place.
        self.withheld = 0
        #: Pulls that wait for the answer to ``held``.
        self.parked: deque[Pulling] = deque()
        #: The queue is removed from its channel.
        self.closed = False
        #: Its channel is destroyed when it is empty, and the queue with it (F101).
        self.fleeting = False
        #: The storage does not know its channel.
        self.temporary = False
        #: How many other objects need the queue to stay: see ``Core.claim``.
        self.claims = 0
        #: The messages on disk only, of each priority, and their number.
        self.high_tail: Tail | None = None
        self.regular_tail: Tail | None = None
        self.spilled = 0
        #: The last sequence under which the storage was asked to save a message.
        self.appended = 0
        #: The last sequence that is saved, and whether a watch waits for it to increase.
        self.safe = 0
        self.watched = False
        #: The cursors: names of readers, and the last sequence that each has processed.
        self.cursors: dict[str, int] = {}
        self.cursor_ticket = 0  # of the last change of a cursor
        #: Messages up to this sequence may have been sent before a restart.
        self.suspect = 0
        #: Position in the audience of the consumer served last (F90).
        self.turn = -1
        #: The last sequence number given to a message.
        self.sequence = 0
        #: Messages in memory, not settled or cleared and not yet disposed of; and their bytes.
        self.count = 0
        self.bytes = 0
        self.disk_bytes = 0  # of messages that the storage has or was asked to keep
        self.nameless = False  # a message without an id has been here (F41)
        self._begin_unfed(gauge)
        self.counters = QueueCounters()
        self.configure(options, discipline, handler, limits)

    def configure(
        self,
        options: QueueOptions,
        discipline: Discipline,
        handler: DeliveryHandler,
        limits: EngineLimits,
    ) -> None:
        """Apply new options, with the objects that they name."""
        self.options = options
        self.discipline = discipline
        self.handler = handler
        self.hooks = hooks_of(handler)
        self.exclusive = discipline.exclusive or options.send_only_first_acquirer
        #: It does not wait for consumers: one that cannot take a message misses it.
        self.skips = not discipline.stores or (options.skip_slow_consumers and not self.exclusive)
        #: The handler decides nothing in a send pass; see Sender.
        decides = self.nameless or self.hooks & SEND_HOOKS != 0 or self.feeds is not None
        self.plain = not (self.exclusive or decides)
        #: Some messages wait for others of their keys; only if consumers take turns.
        self.keyed = options.group_keys != NO_KEYS and discipline.exclusive and discipline.sends
        #: The handler decides nothing, and each message goes to one consumer that can take it.
        self.direct = self.exclusive and discipline.stores and not decides
        #: The same, and any consumer may get it.
        self.single = self.direct and not self.keyed
        #: Only one message is in flight at a time (F96); a broadcast cannot be held back.
        self.waits = (
            options.wait_for_acknowledge and options.request_acknowledge and discipline.stores
        )
        #: The decision about a push whose producer did not ask for a confirm, and one that did;
        #: None if the handler must be called.
        self.receipt: Decision | None = None
        self.receipt_asked: Decision | None = None
        if (receipt := receipt_of(handler)) is not None:
            self.receipt, self.receipt_asked = receipt
        #: Every accepted message is saved.
        self.saves = options.durable and discipline.stores
        if self.saves:
            self.receipt = saving(self.receipt)
            self.receipt_asked = saving(self.receipt_asked)
        #: There may be too many messages for the memory; see ``is_over``.
        self.bounded = (
            (options.durable or options.overflow or options.ephemeral)
            and discipline.stores
            and not discipline.replaces
        ) or self.spilled > 0
        self.limit_to(limits)
        self.disk_cap = options.disk_limit_bytes or _NO_LIMIT
        self.message_timeout_s = options.message_timeout_ms / 1000
        self._count_priorities(options.priorities == TEN)

    def limit_to(self, limits: EngineLimits) -> None:
        """Apply new limits, and the limits of its options."""
        options = self.options
        self.memory_limit = options.memory_limit or limits.max_messages_in_memory
        self.memory_bytes = limits.max_queue_bytes // 2
        # Within these, a push fits without further checks (Outcomes.make_room has them).
        self.size_cap = min(limits.max_message_bytes, options.message_size_limit or _NO_LIMIT)
        if self.discipline.refuses:
            self.size_cap = -1
        self.byte_cap = min(limits.max_queue_bytes, options.bytes_limit or _NO_LIMIT)
        self.count_cap = min(limits.max_messages_per_queue, options.message_limit or _NO_LIMIT)
        self.count_cap -= self.deferred.on_disk()
        timeout_ms = options.acknowledge_timeout_ms or limits.max_acknowledge_timeout_ms
        self.ack_timeout_s = timeout_ms / 1000
        if self.timed is not None:
            self.timed.change_timeout(self.ack_timeout_s)
        self.put_back_limit = options.put_back_limit or limits.max_put_backs
        if options.put_back_limit < 0:
            self.put_back_limit = _NO_LIMIT

    def _begin_unfed(self, gauge: LevelGauge | None) -> None:
        """Begin with no feeds, no keys, and two priorities."""
        self.gauge = LevelGauge() if gauge is None else gauge  # tells the priorities
        self.leveled = False  # each of ten priorities counts
        self.keys: KeyTable | None = None  # as long as keys have made no difference
        #: Where its messages are copied to, in the order of adding; None without any.
        self.feeds: list[Feed] | None = None
        self.fed_by: list[Feed] = []  # the feeds that copy into it
        #: Queues whose feeds wait for room here; see ``Audience.line``.
        self.waiters: deque[QueueFacts] = deque()
        #: Copies of its messages are being saved; until then it sends nothing.
        self.committing = False
        #: The number of pushes that are held for this queue; see ``holding.py``.
        self.expected = 0
        #: A message that leaves it for good must be noted.
        self.heeded = False

    def _count_priorities(self, ten: bool) -> None:
        """Let ten priorities count for further messages, or two."""
        if ten != self.leveled:
            self.leveled = ten
            self.high = with_levels(self.high, self.gauge if ten else None)
            self.regular = with_levels(self.regular, self.gauge if ten else None)

    def heed(self) -> None:
        """Update whether leaving messages must be noted."""
        self.heeded = self.fleeting or len(self.waiters) > 0 or self.expected > 0

    def expect(self, count: int) -> None:
        """Set the number of pushes that are held for this queue."""
        self.expected = count
        self.heed()

    def make_fleeting(self, fleeting: bool) -> None:
        """Set whether its channel is destroyed when it is empty."""
        self.fleeting = fleeting
        self.heed()

    def expect_nameless(self) -> None:
        """Note that a message without an id arrives, which no consumer can acknowledge.

        From now on each message is examined: this one may outlast the options that allowed it.
        """
        self.nameless = True
        self.plain = False
        self.direct = False
        self.single = False

    def can_send(self) -> bool:
        """Whether a message can be sent now: to all consumers, except those that may miss it, or to
        one."""
        audience = self.audience
        if self.skips and self.discipline.stores:
            return audience.stalled < len(audience.subscriptions)
        return audience.can_take(self.exclusive)

    def chooses(self) -> bool:
        """Whether the consumer of a message must be chosen: each goes to one consumer, by filters
        or keys."""
        if not self.exclusive or self.feeds is not None:
            return False
        return (self.audience.filters != 0 or self.keyed) and self.discipline.sends

    # --- Messages on disk only -------------------------------------------------------------------

    def is_over(self, message: Message, entered: bool) -> bool:
        """Whether there is no room in memory for *message* at the end of its priority's list.

        *entered* means that the queue's bytes include it already.
        """
        if message.marks & MARK_HIGH:
            if self.high_tail is not None or self.high_count >= self.memory_limit:
                return True
        elif self.regular_tail is not None or self.regular_count >= self.memory_limit:
            return True
        others = self.bytes - message.size if entered else self.bytes
        return others >= self.memory_bytes

    def keeps_deferred(self, others: int, size: int, is_soon: bool) -> bool:
        """Whether a deferred message has room in memory; *size* is included in the queue's bytes.

        :param others: the number of other deferred messages in memory.
        :param is_soon: whether it would have to be read immediately; such messages have the same
            amount of room again.
        """
        most = 2 * self.memory_limit if is_soon else self.memory_limit
        return others < most and self.bytes - size < self.memory_bytes

    def has_disk_for(self, message: Message) -> bool:
        """Whether a message is on disk, or has room there."""
        if message.marks & (MARK_SAVED | MARK_SAVING):
            return True
        return self.disk_bytes + message.size <= self.disk_cap

    def spills_deferred(self) -> bool:
        """Whether deferred messages that need not be saved go to disk if the memory is full."""
        options = self.options
        return self.bounded and options.overflow and not (self.saves or options.ephemeral)

    def is_full(self) -> bool:
        """Whether there may be no room in memory for a message."""
        return (
            self.spilled > 0
            or self.high_count >= self.memory_limit
            or self.regular_count >= self.memory_limit
            or self.bytes >= self.memory_bytes
        )

    def tail_of(self, message: Message) -> Tail | None:
        """The tail of a message's priority, if there is one."""
        return self.high_tail if message.marks & MARK_HIGH else self.regular_tail

    def set_tail(self, high_priority: bool, tail: Tail | None) -> None:
        """Set the tail of a priority."""
        if high_priority:
            self.high_tail = tail
        else:
            self.regular_tail = tail

    def must_save(self) -> bool:
        """Whether an arriving message must be stored, because all are or the memory is full."""
        return self.saves or (self.bounded and not self.options.ephemeral and self.is_full())

    def is_too_large_for_disk(self, size: int) -> bool:
        """Whether a message of that size would have to be stored, but exceeds the disk limit."""
        goes = self.saves or (self.bounded and not self.options.ephemeral)
        return goes and size > self.disk_cap

    def high_in_all(self) -> int:
        """The number of waiting high-priority messages, including those on disk."""
        return self.high_count + (0 if self.high_tail is None else self.high_tail.count)

    def regular_in_all(self) -> int:
        """The number of waiting regular messages, including those on disk."""
        return self.regular_count + (0 if self.regular_tail is None else self.regular_tail.count)

    def take_failed(self) -> list[Message]:
        """Remove and return the waiting and deferred messages that could not be saved."""
        failed = self.high.take_failed()
        self.high_count -= len(failed)
        more = self.regular.take_failed()
        self.regular_count -= len(more)
        return failed + more + self.deferred.take_failed()

    # --- Waiting and deferred messages -----------------------------------------------------------

    def put_last(self, message: Message) -> None:
        """Append *message* to its priority's list."""
        if message.marks & MARK_HIGH:
            self.high.put_last(message)
            self.high_count += 1
        else:
            self.regular.put_last(message)
            self.regular_count += 1

    def put_part(self, part: WaitingPart, count: int, high_priority: bool) -> None:
        """Append so many messages of one priority to its list, as one part."""
        if high_priority:
            self.high.put_part(part, count)
            self.high_count += count
        else:
            self.regular.put_part(part, count)
            self.regular_count += count

    def put_packed(self, message: Message, packed: bytes, wires: Wires) -> None:
        """Append a message to its priority's list, as its bytes if others are packed, too."""
        if message.marks & MARK_HIGH:
            self.high.put_packed(message, packed, wires)
            self.high_count += 1
        else:
            self.regular.put_packed(message, packed, wires)
            self.regular_count += 1

    def put_first(self, message: Message) -> None:
        """Put *message* first in its priority's list."""
        if message.marks & MARK_HIGH:
            self.high.put_first(message)
            self.high_count += 1
        else:
            self.regular.put_first(message)
            self.regular_count += 1

    def take(self) -> Message:
        """Remove and return the next message; there must be one in memory."""
        if self.high_count:
            self.high_count -= 1
            return self.high.take()
        self.regular_count -= 1
        return self.regular.take()

    def take_newest(self, regular: bool = False) -> Message:
        """Remove and return the newest message: high priority first, or *regular* ones only."""
        if self.high_count and not regular:
            self.high_count -= 1
            return self.high.take_newest()
        self.regular_count -= 1
        return self.regular.take_newest()

    def take_oldest(self) -> Message | None:
        """Remove and return the message that has waited longest, of high priority only if no
        regular one waits; None if none waits in memory."""
        if self.regular_count:
            self.regular_count -= 1
            return self.regular.take_oldest()
        if self.high_count:
            self.high_count -= 1
            return self.high.take_oldest()
        return None

    def withdraw(self, message: Message) -> None:
        """Remove a waiting message, at any position."""
        (self.high if message.marks & MARK_HIGH else self.regular).remove(message)
        self.note_taken(message)

    def note_taken(self, message: Message) -> None:
        """Count a message that a chooser has taken out of its list."""
        if message.marks & MARK_HIGH:
            self.high_count -= 1
        else:
            self.regular_count -= 1

    def look(self, newest: bool) -> Message | None:
        """The message that ``take``, or ``take_newest``, would return; None if none waits."""
        if self.high_count:
            return self.high.look(newest)
        if self.regular_count:
            return self.regular.look(newest)
        return None

    def latest(self) -> Message | None:
        """The newest message of either priority; None if none waits."""
        if self.high_count and self.regular_count:
            high = self.high.look(True)
            regular = self.regular.look(True)
            return high if high.sequence > regular.sequence else regular
        return self.look(True)

    def detach_waiting(self) -> Trash:
        """Remove all waiting messages, but no deferred ones.  The caller counts them as cleared."""
        trash = Trash(self)
        self.high_count = 0
        self.regular_count = 0
        _detach(trash, self.high)
        _detach(trash, self.regular)
        return trash

    def take_expired(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* waiting messages that have expired.  The caller must settle each."""
        expired = self.high.take_expired(now, limit)
        self.high_count -= len(expired)
        more = self.regular.take_expired(now, limit - len(expired))
        self.regular_count -= len(more)
        return expired + more

    def keep(self, message: Message) -> None:
        """Let a message of ``take_expired`` wait on; it must not have an expiry any more."""
        if message.marks & MARK_HIGH:
            self.high.keep()
            self.high_count += 1
        else:
            self.regular.keep()
            self.regular_count += 1

    def tidy(self) -> None:
        """Remove the tombstones that ``take_expired`` left."""
        self.high.tidy()
        self.regular.tidy()

    def detach(self, high_priority: bool, regular: bool) -> Trash:
        """Remove all waiting and deferred messages of these priorities in constant time.  The
        caller must count them as cleared."""
        trash = Trash(self)
        if high_priority:
            self.high_count = 0
            _detach(trash, self.high)
            self._detach_deferred(trash, True)
        if regular:
            self.regular_count = 0
            _detach(trash, self.regular)
            self._detach_deferred(trash, False)
        return trash

    def _detach_deferred(self, trash: Trash, high_priority: bool) -> None:
        trash.deferred.append(self.deferred.detach(high_priority))
        if self.deferred.shelf is not None:
            trash.shelved.append(self.deferred.shelf.detach(high_priority))

    def sent_before(self) -> list[Message]:
        """The messages in memory that have been sent or put back before."""
        found = self.high.sent_before() + self.regular.sent_before()
        for message in self.deferred.messages():
            if message.attempts or message.put_backs:
                found.append(message)
        found.extend(self.all_flights().values())
        return found

    # --- Messages in flight ----------------------------------------------------------------------

    def flight(self, key: str) -> Message | None:
        """The message in flight under this key, or None."""
        message = self.flights.get(key)
        if message is None and self.timed is not None:
            message = self.timed.messages.get(key)
        return message

    def all_flights(self) -> dict[str, Message]:
        """The messages in flight by their keys, those with the queue's timeout first."""
        timed = self.timed
        return self.flights if timed is None else {**self.flights, **timed.messages}

    def in_flight(self) -> int:
        """The number of messages in flight."""
        timed = 0 if self.timed is None else len(self.timed.messages)
        return len(self.flights) + timed

    def duplicate_held_by(self, message_id: str, client: Client) -> Message | None:
        """The oldest duplicate of that id in flight to *client*, or None."""
        for message in self.duplicates.get(message_id, ()):
            if message.is_held_by(client):
                return message
        return None

    def overdue(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* messages in flight that have exceeded the queue's timeout, oldest first."""
        timeout_s = self.ack_timeout_s
        found: list[Message] = []
        for message in self.flights.values():
            # The same sum as in next_due: rounding must not make them differ.
            if message.sent_at + timeout_s > now or len(found) >= limit:
                break
            found.append(message)
        return found

    # --- Time and books --------------------------------------------------------------------------

    def next_due(self) -> float:
        """When the queue must be woken, or NEVER."""
        due = min(self.high.next_expiry(), self.regular.next_expiry())
        if self.flights:
            due = min(due, next(iter(self.flights.values())).sent_at + self.ack_timeout_s)
        if self.timed is not None:
            due = min(due, self.timed.next_due())
        return min(due, self.deferred.next_due())

    def live(self) -> int:
        """The number of messages that are not settled."""
        waiting = self.high_count + self.regular_count + self.spilled
        return waiting + len(self.deferred) + self.in_flight() + self.withheld

    def is_empty(self) -> bool:
        """Whether every message is settled."""
        return self.live() == 0

    def imbalance(self) -> int:
        """Accepted messages that are in no place (positive) or counted twice; 0 if all is right."""
        return self.counters.accepted - self.live() - self.counters.settled()


def _detach(trash: Trash, waiting: WaitingList) -> None:
    """Move all messages of a list to the trash."""
    parts = waiting.detach_parts()
    if parts:
        trash.parts.extend(parts)
    trash.lists.extend(waiting.detach())
