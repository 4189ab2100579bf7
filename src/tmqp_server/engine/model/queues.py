"""Queues: the places of the messages of a queue, and the counters about them.

Theory of operation.  A message that a queue has accepted is in exactly one of five places, or it
is settled:

* waiting, in the high-priority or the regular ``WaitingList`` (F85: the high one first, first in
  first out in each; a put-back goes to either end, F98), or behind one in its ``Tail`` on disk;
* deferred, in ``Deferrals``, until its not-before time;
* in flight, in ``flights``, from the sending until every consumer that has it has answered or timed
  out, in the order of their timeouts; those with other timeouts are in ``timed``;
* withheld, as part of a batch, until that is saved: it is not visible.

Settled messages are only counted: *done* (acknowledged, or sent if no acknowledgement is needed),
*expired*, *dead* (moved to the dead-letter queue), *cleared*, *dropped* (given up).  ``imbalance``
is 0 after every step: accepted = waiting + deferred + in flight + withheld + settled.

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

#: More put-backs, and bytes, than anything can have.
_NO_LIMIT: Final = 2**62


class QueueTimer(Sleeper):
    """Wakes one queue: the heap of wake-ups holds this, and this knows its queue."""

    __slots__ = ("queue",)

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        #: None when the queue was removed.
        self.queue: Queue | None = queue


class Queue(QueueFacts):
    """One queue of a channel.  Changed only by the engine's modules; handlers see its facts.

    ``held`` is the message whose acknowledge the queue waits for before it sends another
    (WaitForAcknowledge, F96).  ``waiting`` says that it is in its audience's line,
    ``runnable`` that it has work left for the next ``on_deadline``.
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
        #: Its number, which no other queue ever has.
        self.key = 0
        #: What it is charged in the broker's books, without messages and cursors.
        self.memory = 0
        self.audience = audience
        self.high = WaitingList()
        self.regular = WaitingList()
        self.deferred = Deferrals()
        self.flights: dict[str, Message] = {}
        #: Those of which some consumer has a time of its own; None until there is one.
        self.timed: TimedFlights | None = None
        self.duplicates: dict[str, list[Message]] = {}
        #: Messages that other nodes have too, by their ids, see ``sharing.py``.
        self.shared: dict[str, Message] = {}
        self.held: Message | None = None
        self.timer = QueueTimer(self)
        self.waiting = False
        self.runnable = False
        #: Messages that pulls in progress have promised to send.
        self.reserved = 0
        #: Messages of batches that are not safe yet: accepted, and in no other place.
        self.withheld = 0
        #: Pulls that wait until ``held`` is answered for.
        self.parked: deque[Pulling] = deque()
        #: The queue is removed from its channel.
        self.closed = False
        #: Its channel is destroyed when it is empty, and the queue with it (F101).
        self.fleeting = False
        #: The storage knows nothing of its channel.
        self.temporary = False
        #: How many things outside the queue need it to stay: see ``Core.claim``.
        self.claims = 0
        #: What waits on disk only, of either priority, and how many messages that is.
        self.high_tail: Tail | None = None
        self.regular_tail: Tail | None = None
        self.spilled = 0
        #: The last sequence under which the storage was asked to keep a message.
        self.appended = 0
        #: The last sequence that is safe on the disk, and whether somebody waits for it to rise.
        self.safe = 0
        self.watched = False
        #: Readers of what is kept: their names, and up to which sequence each is done.
        self.cursors: dict[str, int] = {}
        self.cursor_ticket = 0  # of the last change of a cursor
        #: Messages up to this sequence may have been sent before a restart.
        self.suspect = 0
        #: Position in the audience of the consumer served last (F90).
        self.turn = -1
        #: The last sequence number given to a message.
        self.sequence = 0
        #: In memory: not settled, or cleared and not yet disposed of; and their bytes.
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
        """Take over new options, with what has been looked up for them."""
        self.options = options
        self.discipline = discipline
        self.handler = handler
        self.hooks = hooks_of(handler)
        self.exclusive = discipline.exclusive or options.send_only_first_acquirer
        #: Nobody is waited for: a consumer that cannot take a message misses it.
        self.skips = not discipline.stores or (options.skip_slow_consumers and not self.exclusive)
        #: Nothing is decided in a send pass; see Sender.
        decides = self.nameless or self.hooks & SEND_HOOKS != 0 or self.feeds is not None
        self.plain = not (self.exclusive or decides)
        #: Some messages wait for others of their keys; only where consumers take turns.
        self.keyed = options.group_keys != NO_KEYS and discipline.exclusive and discipline.sends
        #: Nothing is decided, and each message goes to one consumer, who must be able to take it.
        self.direct = self.exclusive and discipline.stores and not decides
        #: The same, and it may be any of them.
        self.single = self.direct and not self.keyed
        #: One message is out at a time (F96); a broadcast cannot be held back.
        self.waits = (
            options.wait_for_acknowledge and options.request_acknowledge and discipline.stores
        )
        #: The decision about a push whose producer did not ask to be told, and about one that
        #: did; None where the handler must be called.
        self.receipt: Decision | None = None
        self.receipt_asked: Decision | None = None
        if (receipt := receipt_of(handler)) is not None:
            self.receipt, self.receipt_asked = receipt
        #: Every message taken in is saved.
        self.saves = options.durable and discipline.stores
        if self.saves:
            self.receipt = saving(self.receipt)
            self.receipt_asked = saving(self.receipt_asked)
        #: There may be too many messages for the memory, see ``is_over``.
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
        """Be limited by these from now on, and by its options."""
        options = self.options
        self.memory_limit = options.memory_limit or limits.max_messages_in_memory
        self.memory_bytes = limits.max_queue_bytes // 2
        # Within these a push fits without another look (Outcomes.make_room looks closely).
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
        self.gauge = LevelGauge() if gauge is None else gauge  # who tells the priorities
        self.leveled = False  # each of ten priorities counts
        self.keys: KeyTable | None = None  # as long as keys have made no difference
        #: Where its messages are copied to, in the order of adding; None without any.
        self.feeds: list[Feed] | None = None
        self.fed_by: list[Feed] = []  # the feeds that copy into it
        #: Queues whose feeds wait for room here; see ``Audience.line``.
        self.waiters: deque[QueueFacts] = deque()
        #: Copies of its messages are being saved, and it sends nothing until they are.
        self.committing = False
        #: How many pushes are held until there is room here; see ``holding.py``.
        self.expected = 0
        #: Somebody must hear when a message has left it for good.
        self.heeded = False

    def _count_priorities(self, ten: bool) -> None:
        """Let each of ten priorities count for what comes, or two."""
        if ten != self.leveled:
            self.leveled = ten
            self.high = with_levels(self.high, self.gauge if ten else None)
            self.regular = with_levels(self.regular, self.gauge if ten else None)

    def heed(self) -> None:
        """Note again whether somebody must hear that a message has left."""
        self.heeded = self.fleeting or len(self.waiters) > 0 or self.expected > 0

    def expect(self, count: int) -> None:
        """So many pushes are held until there is room."""
        self.expected = count
        self.heed()

    def make_fleeting(self, fleeting: bool) -> None:
        """Note whether its channel is destroyed when it is empty."""
        self.fleeting = fleeting
        self.heed()

    def expect_nameless(self) -> None:
        """A message without an id comes in, which nobody can acknowledge: look at each from now on.

        For good: it may wait longer than the options last that let it in.
        """
        self.nameless = True
        self.plain = False
        self.direct = False
        self.single = False

    def can_send(self) -> bool:
        """Whether there is who can take a message now: all must be able to, but for those that may
        miss it."""
        audience = self.audience
        if self.skips and self.discipline.stores:
            return audience.stalled < len(audience.subscriptions)
        return audience.can_take(self.exclusive)

    def chooses(self) -> bool:
        """Whether it must look who would take a message: each goes to one consumer, of those who
        want it, or whose it is."""
        if not self.exclusive or self.feeds is not None:
            return False
        return (self.audience.filters != 0 or self.keyed) and self.discipline.sends

    # --- Messages on disk only -------------------------------------------------------------------

    def is_over(self, message: Message, entered: bool) -> bool:
        """Whether *message*, if it is to wait behind all of its priority, has no room in memory.

        *entered* says that it is counted among the queue's bytes already.
        """
        if message.marks & MARK_HIGH:
            if self.high_tail is not None or self.high_count >= self.memory_limit:
                return True
        elif self.regular_tail is not None or self.regular_count >= self.memory_limit:
            return True
        others = self.bytes - message.size if entered else self.bytes
        return others >= self.memory_bytes

    def keeps_deferred(self, others: int, size: int, is_soon: bool) -> bool:
        """Whether a deferred message of that size, counted already, has room in memory.

        :param others: how many are deferred there beside it.
        :param is_soon: it would have to be read at once, for which as many have room again.
        """
        most = 2 * self.memory_limit if is_soon else self.memory_limit
        return others < most and self.bytes - size < self.memory_bytes

    def has_disk_for(self, message: Message) -> bool:
        """Whether a message is on disk, or has room there."""
        if message.marks & (MARK_SAVED | MARK_SAVING):
            return True
        return self.disk_bytes + message.size <= self.disk_cap

    def spills_deferred(self) -> bool:
        """Whether deferred messages that nobody wants saved go to disk if the memory is full."""
        options = self.options
        return self.bounded and options.overflow and not (self.saves or options.ephemeral)

    def is_full(self) -> bool:
        """Whether some message has no room in memory."""
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
        """Let this be the tail of a priority."""
        if high_priority:
            self.high_tail = tail
        else:
            self.regular_tail = tail

    def must_save(self) -> bool:
        """Whether a message that comes in goes to the storage, because all do or memory is full."""
        return self.saves or (self.bounded and not self.options.ephemeral and self.is_full())

    def is_too_large_for_disk(self, size: int) -> bool:
        """Whether a message of that size would have to go to the storage, and never may."""
        goes = self.saves or (self.bounded and not self.options.ephemeral)
        return goes and size > self.disk_cap

    def high_in_all(self) -> int:
        """High-priority messages waiting, those on disk included."""
        return self.high_count + (0 if self.high_tail is None else self.high_tail.count)

    def regular_in_all(self) -> int:
        """Regular messages waiting, those on disk included."""
        return self.regular_count + (0 if self.regular_tail is None else self.regular_tail.count)

    def take_failed(self) -> list[Message]:
        """Take out waiting and deferred messages that could not be saved; settle each."""
        failed = self.high.take_failed()
        self.high_count -= len(failed)
        more = self.regular.take_failed()
        self.regular_count -= len(more)
        return failed + more + self.deferred.take_failed()

    # --- Waiting and deferred messages -----------------------------------------------------------

    def put_last(self, message: Message) -> None:
        """Let *message* wait behind all of its priority."""
        if message.marks & MARK_HIGH:
            self.high.put_last(message)
            self.high_count += 1
        else:
            self.regular.put_last(message)
            self.regular_count += 1

    def put_part(self, part: WaitingPart, count: int, high_priority: bool) -> None:
        """Let so many messages of one priority wait behind all of it, in one piece."""
        if high_priority:
            self.high.put_part(part, count)
            self.high_count += count
        else:
            self.regular.put_part(part, count)
            self.regular_count += count

    def put_packed(self, message: Message, packed: bytes, wires: Wires) -> None:
        """Let a message wait behind all of its priority, as its bytes if others do."""
        if message.marks & MARK_HIGH:
            self.high.put_packed(message, packed, wires)
            self.high_count += 1
        else:
            self.regular.put_packed(message, packed, wires)
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

    def take_newest(self, regular: bool = False) -> Message:
        """Take out the message that came last, of high priority first, or *regular* only."""
        if self.high_count and not regular:
            self.high_count -= 1
            return self.high.take_newest()
        self.regular_count -= 1
        return self.regular.take_newest()

    def take_oldest(self) -> Message | None:
        """Take out the message that has waited longest, of high priority only if no other waits;
        None if none waits in memory."""
        if self.regular_count:
            self.regular_count -= 1
            return self.regular.take_oldest()
        if self.high_count:
            self.high_count -= 1
            return self.high.take_oldest()
        return None

    def withdraw(self, message: Message) -> None:
        """Take out a message that waits, wherever it stands."""
        (self.high if message.marks & MARK_HIGH else self.regular).remove(message)
        self.note_taken(message)

    def note_taken(self, message: Message) -> None:
        """Count a message that was taken out of its list by whoever chooses."""
        if message.marks & MARK_HIGH:
            self.high_count -= 1
        else:
            self.regular_count -= 1

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

    def detach_waiting(self) -> Trash:
        """Take out what waits, but for deferred messages.  The caller must count it as cleared."""
        trash = Trash(self)
        self.high_count = 0
        self.regular_count = 0
        _detach(trash, self.high)
        _detach(trash, self.regular)
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

    def detach(self, high_priority: bool, regular: bool) -> Trash:
        """Take out what waits of these priorities, deferred messages too, however much it is.  The
        caller must count it as cleared."""
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
        """The messages in memory that have been sent, or put back."""
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
        """Messages in flight by their keys, those with the queue's timeout first."""
        timed = self.timed
        return self.flights if timed is None else {**self.flights, **timed.messages}

    def in_flight(self) -> int:
        """Messages in flight."""
        timed = 0 if self.timed is None else len(self.timed.messages)
        return len(self.flights) + timed

    def duplicate_held_by(self, message_id: str, client: Client) -> Message | None:
        """The oldest duplicate of that id which *client* has in flight, or None."""
        for message in self.duplicates.get(message_id, ()):
            if message.is_held_by(client):
                return message
        return None

    def overdue(self, now: float, limit: int) -> list[Message]:
        """Up to *limit* messages in flight whose timeout, the queue's, has come, oldest first."""
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
        if self.timed is not None:
            due = min(due, self.timed.next_due())
        return min(due, self.deferred.next_due())

    def live(self) -> int:
        """Messages that are not settled."""
        waiting = self.high_count + self.regular_count + self.spilled
        return waiting + len(self.deferred) + self.in_flight() + self.withheld

    def is_empty(self) -> bool:
        """Whether every message is settled."""
        return self.live() == 0

    def imbalance(self) -> int:
        """Accepted messages that are nowhere (positive) or counted twice; 0 when all is right."""
        return self.counters.accepted - self.live() - self.counters.settled()


def _detach(trash: Trash, waiting: WaitingList) -> None:
    """Move all of a list to the trash."""
    parts = waiting.detach_parts()
    if parts:
        trash.parts.extend(parts)
    trash.lists.extend(waiting.detach())
