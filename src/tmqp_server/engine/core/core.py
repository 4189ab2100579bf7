"""The shared state of the broker's parts during a step: the tables, the accounts, the effects.

One ``Core`` belongs to one ``Broker``.  A step sets ``out`` to a new list, refills ``budget`` and
calls one of the parts, which appends its effects and takes its units of work from the budget.  When
the budget is used up, remaining work goes into ``runnable``, ``awake``, ``pulls``, ``trash`` or
``removals``, and the broker's next deadline is immediate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sized
from typing import Final, TypeAlias

from tmqp.constants import RESULT_BUSY
from tmqp_server.engine.books import (
    ENDED_SESSION_BYTES,
    PENDING_BYTES,
    PENDING_CURSOR_BYTES,
    Books,
    text_bytes,
)
from tmqp_server.engine.commands import Command
from tmqp_server.engine.core.notices import Notices
from tmqp_server.engine.core.pending import PendingChange, PendingFetch, PendingRead, PendingWrite
from tmqp_server.engine.effects import Effect, Fetch, Reply, StoredChange
from tmqp_server.engine.events import (
    CLIENT_CONNECTED,
    NODE_CONNECTED,
    NODE_DISCONNECTED,
    ChannelFact,
    ClientFact,
    MessageFact,
    NodeFact,
    QueueFact,
    SubscriptionFact,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.channels import Channel, ChannelTable, IdleTimer
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.counters import BrokerCounters
from tmqp_server.engine.model.delivery import HandlerRegistry, QueueFacts
from tmqp_server.engine.model.message import Message, Wires
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.removals import Removal
from tmqp_server.engine.model.sessions import Audience, Pulling, Session
from tmqp_server.engine.model.tails import Tail
from tmqp_server.engine.model.timers import HoldTimer, Wakeups
from tmqp_server.engine.model.totals import EngineTally
from tmqp_server.engine.model.trash import Trash
from tmqp_server.engine.options import BrokerOptions

__all__ = [
    "Core",
    "Master",
    "Performers",
]

#: Messages, and bytes, that are fetched from the storage at a time.
_FETCH_MESSAGES: Final = 1_000
_FETCH_BYTES: Final = 1_048_576
#: Units of work that storing a change of the topology takes: its options are written as JSON.
_WORK_PER_CHANGE: Final = 3
#: Names that are compared with a filter for one unit of work.
_NAMES_PER_UNIT: Final = 16

#: The method of a part that serves each command of a session.
Performers: TypeAlias = dict[type[Command], Callable[[Command, Session], None]]


class Master:
    """A master of this server; ``since`` is when it connected, in monotonic seconds."""

    __slots__ = ("node_id", "host", "connected", "since")

    def __init__(self, node_id: str, host: str, connected: bool, since: float) -> None:
        self.node_id = node_id
        self.host = host
        self.connected = connected
        self.since = since


class Core(Books):
    """The state that the parts of one broker share."""

    __slots__ = (
        "limits",
        "options",
        "channels",
        "sessions",
        "clients",
        "by_name",
        "by_type",
        "notices",
        "now",
        "out",
        "budget",
        "work",
        "wakeups",
        "freed",
        "hold_timer",
        "runnable",
        "awake",
        "branches",
        "pulls",
        "trash",
        "removals",
        "emptied",
        "claimed",
        "changed_queues",
        "stores",
        "storage_ok",
        "tickets",
        "last_ticket",
        "change",
        "unsynced_bytes",
        "fetches",
        "last_fetch",
        "counters",
        "tables",
        "tally",
        "takes_nodes",
        "shares_decisions",
        "masters",
        "wires",
        "packs_behind",
    )

    def __init__(
        self, limits: EngineLimits, options: BrokerOptions, handlers: HandlerRegistry
    ) -> None:
        super().__init__(limits.max_total_bytes)
        self.limits = limits
        self.options = options
        self.channels = ChannelTable(limits, handlers, options, self)
        #: Clients, nodes and branches, by number, in the order of connecting.
        self.sessions: dict[int, Session] = {}
        self.branches = 0
        #: By client id.
        self.clients: dict[str, Session] = {}
        #: By client name and by client type, each in the order of connecting (F114).
        self.by_name: dict[str, dict[int, Session]] = {}
        self.by_type: dict[str, dict[int, Session]] = {}
        self.notices = Notices(options.events, self)
        #: The time of this step, in monotonic seconds.
        self.now = 0.0
        self.out: list[Effect] = []
        self.budget = 0  # units of work left in this step
        self.work = 0  # see charge_names
        self.wakeups = Wakeups()
        #: Queues, by key, that a message has left while pushes were held for room there.
        self.freed: dict[int, None] = {}
        self.hold_timer = HoldTimer()
        #: Queues whose messages could be sent, but the budget was used up.
        self.runnable: deque[Queue] = deque()
        #: Lines of queues whose audience can take messages again.
        self.awake: deque[deque[QueueFacts]] = deque()
        #: Pulls that can continue.
        self.pulls: deque[Pulling] = deque()
        self.trash: deque[Trash] = deque()
        #: Channels with too many queues to close in one step.
        self.removals: deque[Removal] = deque()
        #: Queues of deserted channels that may have become empty, and queues with claims, by key.
        self.emptied: dict[int, Queue] = {}
        self.claimed: dict[int, Queue] = {}
        #: Watched queues of which more is safe than at the last check, by key.
        self.changed_queues: dict[int, Queue] = {}
        self.stores = options.storage
        self.storage_ok = True  # the storage works
        self.tickets: dict[int, PendingWrite] = {}
        self.last_ticket = 0
        #: The ticket of the last change of the topology by this command; 0 for none.
        self.change = 0
        #: Bytes of messages the storage has not answered for.
        self.unsynced_bytes = 0
        self.fetches: dict[int, PendingRead] = {}
        self.last_fetch = 0
        self.counters = BrokerCounters()
        self.tally = EngineTally()
        #: The bounded tables of the parts, by their contents, for monitoring.
        self.tables: dict[str, Sized] = {}
        #: Whether a session may be a node; otherwise ``Connect.node`` is ignored.
        self.takes_nodes = options.takes_nodes
        #: Whether nodes notify each other of the messages that their queues have settled (F63).
        self.shares_decisions = options.shares_decisions
        #: The masters of this server, by this server's names for them.
        self.masters: dict[str, Master] = {}
        #: Reads what only doors know about messages.
        self.wires = Wires()
        self.packs_behind = 0  # see Broker.know_wires

    def charge_names(self, count: int) -> None:
        """Count the work of comparing so many names with a filter.

        ``work`` counts the work since the hub last asked, except for moving messages.  A unit takes
        a few microseconds: an operation, an item of a list, a receiver of a direct message, a
        subscriber told of an event, or 16 names compared with a filter.
        """
        self.work += 1 + count // _NAMES_PER_UNIT

    def add_session(self, session: Session) -> None:
        """Add a session to the tables."""
        self.sessions[session.number] = session
        self.clients[session.client_id] = session
        if session.node:
            return  # not a client: no message is addressed to it
        if session.name:
            _enter(self.by_name, session.name, session)
        if session.client_type:
            _enter(self.by_type, session.client_type, session)

    def client_count(self) -> int:
        """The number of connections; branches do not count."""
        return len(self.sessions) - self.branches

    def remove_session(self, session: Session) -> None:
        """Remove a session and its event subscriptions from the tables."""
        del self.sessions[session.number]
        del self.clients[session.client_id]
        if session.node:
            return
        if session.name:
            _leave(self.by_name, session.name, session)
        if session.client_type:
            _leave(self.by_type, session.client_type, session)
        self.notices.forget_session(session)

    def end_session(self, session: Session) -> None:
        """Refund what a session takes, except for what deliveries in flight still refer to."""
        left = 0
        if session.in_flight:
            left = ENDED_SESSION_BYTES + text_bytes(session.client_id)
        self.tally.end(session)
        self.refund(session.memory - left)
        session.memory = left
        session.end()

    def forget_ended(self, client: Client) -> None:
        """Refund the rest of a session that has ended: its last delivery is over."""
        assert isinstance(client, Session)
        self.refund(client.memory)
        client.memory = 0

    def count_stray(self) -> None:
        """Count a command of an unknown session."""
        self.counters.stray_commands += 1

    def skip_confirms(self, count: int) -> None:
        """Count confirms that are not made because the producer has disconnected (F77)."""
        self.counters.confirms_skipped += count

    def count_unknown_ticket(self) -> None:
        """Count an answer of the storage that matches no request."""
        self.counters.unknown_tickets += 1

    def schedule(self, queue: Queue) -> None:
        """Have *queue* worked on in the next ``on_deadline``."""
        if not queue.runnable:
            queue.runnable = True
            self.runnable.append(queue)

    def schedule_pull(self, pulling: Pulling) -> None:
        """Have a pull continued in the next ``on_deadline``."""
        if not pulling.runnable:
            pulling.runnable = True
            self.pulls.append(pulling)

    def release_pull(self, queue: Queue) -> None:
        """Let the first pull that waits for *queue* continue, if the queue is not held any more, or
        is no longer a pull queue; in that case the pull only ends."""
        discipline = queue.discipline
        pulls = discipline.pulled and not discipline.replaces
        if queue.parked and (queue.held is None or not pulls):
            pulling = queue.parked.popleft()
            pulling.parked = False
            self.schedule_pull(pulling)

    # --- Queues that are destroyed when they are empty -------------------------------------------

    def note_emptied(self, queue: Queue) -> None:
        """Note that a ``fleeting`` queue may have become empty; it is examined at the end of the
        step."""
        if not queue.audience.subscriptions:
            self.emptied[queue.key] = queue

    def claim(self, queue: Queue) -> None:
        """Keep *queue* from being destroyed as empty: a transaction holds messages for it, or it
        has the only copy of a dead letter that is not yet safe elsewhere."""
        queue.claims += 1
        self.claimed[queue.key] = queue

    def withhold(self, queue: Queue, count: int) -> None:
        """Count messages of a queue that no door of this server can read.  They stay on disk, so
        the queue is never destroyed as empty."""
        self.counters.withheld += count
        queue.claims += 1

    def release_claim(self, key: int) -> None:
        """Release a claim on the queue with this key."""
        queue = self.claimed.get(key)
        if queue is None:
            return
        queue.claims -= 1
        if queue.claims == 0:
            del self.claimed[key]
            if queue.fleeting:
                self.note_emptied(queue)

    # --- The storage -----------------------------------------------------------------------------

    def keep(self, change: StoredChange, more: int = 0) -> None:
        """Have the storage save a change of the topology; there must be a storage.

        :param more: the number of further cursors in the change.
        """
        self.last_ticket += 1
        change.ticket = self.last_ticket
        self.work += _WORK_PER_CHANGE
        pending = PendingChange(PENDING_BYTES + PENDING_CURSOR_BYTES * more)
        self.tickets[change.ticket] = pending
        self.charge(pending.memory)
        self.change = change.ticket
        self.out.append(change)

    def reply(self, session: Session, request: object, code: int, body: object = None) -> None:
        """Answer an operation that has a *request*; if it changed the topology, not before the
        change is safe."""
        if request is None:
            return
        answer = Reply(session.number, request, code, body)
        if self.change:
            pending = self.tickets[self.change]
            assert isinstance(pending, PendingChange)
            pending.reply = answer
        else:
            self.out.append(answer)

    def became_safe(self, queue: Queue, sequence: int) -> None:
        """Note that everything up to this sequence of a queue is on disk."""
        if sequence > queue.safe:
            queue.safe = sequence
            if queue.watched:
                self.changed_queues[queue.key] = queue

    def has_room_to_save(self, size: int) -> bool:
        """Whether the storage works and is not too busy to save *size* bytes more."""
        return self.storage_ok and self.unsynced_bytes + size <= self.limits.max_unsynced_bytes

    def short_of_storage(self) -> int:
        """Note that a message needs a storage that fails or is busy; return 503."""
        return self.short_of("max_unsynced_bytes" if self.storage_ok else "", RESULT_BUSY)

    def can_save(self, size: int) -> bool:
        """The same for a message that was accepted before: if it is too large in any case, it is
        saved when no other request is unfinished."""
        return self.has_room_to_save(size) or (self.storage_ok and self.unsynced_bytes == 0)

    def refill(self, queue: Queue) -> None:
        """Fetch more of the messages that are on disk only, if there is room in memory."""
        if queue.high_tail is not None:
            self._fetch(queue, queue.high_tail, queue.high_count, True)
        if queue.regular_tail is not None:
            self._fetch(queue, queue.regular_tail, queue.regular_count, False)

    def _fetch(self, queue: Queue, tail: Tail, there: int, high_priority: bool) -> None:
        if tail.fetching or tail.last <= tail.after or queue.closed:
            return
        if there and (2 * there > queue.memory_limit or 2 * queue.bytes > queue.memory_bytes):
            return
        tail.fetching = True
        limit = min(queue.memory_limit - there, _FETCH_MESSAGES)
        pending = PendingFetch(queue, tail, high_priority)
        self.fetch(pending, tail.after, tail.last, limit, _FETCH_BYTES)

    def fetch(
        self, pending: PendingRead, after: int, last: int, limit: int, most_bytes: int
    ) -> None:
        """Ask the storage for messages; see ``Fetch``."""
        self.last_fetch += 1
        self.fetches[self.last_fetch] = pending
        key = pending.queue.key
        high_priority = pending.high_priority
        self.out.append(Fetch(self.last_fetch, key, high_priority, after, last, limit, most_bytes))

    # --- Time and audiences ----------------------------------------------------------------------

    def arm(self, queue: Queue) -> None:
        """Have *queue* woken when its next timer is due."""
        due = queue.next_due()
        if due < queue.timer.wake_at:
            self.wakeups.arm(queue.timer, due)

    def wake_audience(self, audience: Audience) -> None:
        """Let the waiting queues of an audience try again before the step ends."""
        if audience.line:
            self.awake.append(audience.line)
            audience.line = deque()

    def recount(self, session: Session) -> None:
        """Count a session again in all its audiences, and wake those that can take more now."""
        for subscription in session.subscriptions.values():
            audience = subscription.audience
            audience.recount(subscription)
            if not subscription.stalled:
                self.wake_audience(audience)
        if not session.blocked and not session.full:
            for pulling in session.pulls:
                if not pulling.parked:
                    self.schedule_pull(pulling)

    def watch_channel(self, channel: Channel) -> None:
        """Have the event handler of a new or changed channel notified of the channel's events."""
        handler = channel.options.event_handler
        wanted = self.options.event_handlers[handler] if handler else 0
        self.notices.set_handler(channel.key, handler, wanted)

    def watch_idle(self, channel: Channel) -> None:
        """Begin to watch whether a new or changed channel is used."""
        timeout_ms = channel.options.idle_timeout_ms
        timer = channel.idle
        if timeout_ms == 0:
            self.forget_idle(channel)
            return
        if timer is None:
            timer = IdleTimer(channel)
            channel.idle = timer
        self.wakeups.disarm(timer)
        self._look_again(timer, channel)

    def still_used(self, timer: IdleTimer) -> bool:
        """Whether a channel was used since the last check; if so, check again later."""
        channel = timer.channel
        if channel is None or channel.idle is not timer:
            return True
        self.charge_names(len(channel.queues))
        if channel.is_idle(timer.pushed):
            return False
        self._look_again(timer, channel)
        return True

    def _look_again(self, timer: IdleTimer, channel: Channel) -> None:
        timer.pushed = channel.pushed()
        channel.audience.used = False
        self.wakeups.arm(timer, self.now + channel.options.idle_timeout_ms / 1000)

    def forget_idle(self, channel: Channel) -> None:
        """Stop watching whether a channel is used."""
        timer = channel.idle
        if timer is not None:
            timer.channel = None
            channel.idle = None
            self.wakeups.disarm(timer)

    def notify_client(self, event: int, session: Session) -> None:
        """Report that a client, or a slave, connected or disconnected."""
        if session.node:
            node_event = NODE_CONNECTED if event == CLIENT_CONNECTED else NODE_DISCONNECTED
            fact_of_node = NodeFact(session.client_id, session.name, session.host, True)
            self.notify_node(node_event, fact_of_node)
        elif self.notices.mask & event:
            fact = ClientFact(session.client_id, session.name, session.client_type)
            self.work += self.notices.tell(self.out, event, fact)

    def notify_node(self, event: int, fact: NodeFact) -> None:
        """Report that a node connected or disconnected."""
        if self.notices.mask & event:
            self.work += self.notices.tell(self.out, event, fact)

    def notify_channel(self, event: int, channel: Channel) -> None:
        """Report that a channel was created or removed."""
        if self.notices.mask & event:
            active = len(channel.audience.subscriptions)
            fact = ChannelFact(channel.name, active, channel.options.client_limit)
            self.work += self.notices.tell(self.out, event, fact)
            self.notices.tell_handler(self.out, event, fact, channel.key)

    def notify_subscription(self, event: int, channel: Channel, session: Session) -> None:
        """Report that a client joined or left a channel."""
        if self.notices.mask & event:
            fact = SubscriptionFact(
                channel.name, session.client_id, session.name, session.client_type
            )
            self.work += self.notices.tell(self.out, event, fact, channel.key)

    def notify_queue(self, event: int, queue: Queue, status: int) -> None:
        """Report that a queue was created, updated or removed."""
        if self.notices.mask & event:
            fact = QueueFact(
                queue.channel_name,
                queue.queue_id,
                queue.options.tag,
                status,
                queue.high_in_all(),
                queue.regular_in_all(),
            )
            self.work += self.notices.tell(self.out, event, fact, queue.channel_name.lower())

    def notify_message(self, queue: Queue, message: Message) -> None:
        """Report that a message was produced."""
        producer = message.producer
        fact = MessageFact(
            message.channel,
            message.queue_id,
            message.message_id,
            message.saved,
            producer.client_id,
            producer.name,
            producer.client_type,
        )
        self.work += self.notices.tell_of_queue(self.out, fact, queue)


def _enter(groups: dict[str, dict[int, Session]], name: str, session: Session) -> None:
    group = groups.get(name)
    if group is None:
        groups[name] = {session.number: session}
    else:
        group[session.number] = session


def _leave(groups: dict[str, dict[int, Session]], name: str, session: Session) -> None:
    group = groups[name]
    del group[session.number]
    if not group:
        del groups[name]
