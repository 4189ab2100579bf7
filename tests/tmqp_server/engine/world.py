"""A small world around a broker for tests: clients by name, a clock, effects as short words.

After every step the world checks what must hold whatever happens: each queue's books balance,
sessions and queues agree about what is in flight, and no message was confirmed twice.
"""

from __future__ import annotations

from typing import Final

from tests.tmqp_server.engine.shelves import check_shelf
from tmqp.constants import PUT_BACK_END
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Acknowledge,
    Command,
    Connect,
    CreateQueue,
    Disconnect,
    Join,
    Leave,
    Pull,
    Push,
    PushExtras,
    Release,
    UpdateQueue,
)
from tmqp_server.engine.core import PendingRun, PendingSave
from tmqp_server.engine.delivery.batch_checks import PendingBatch
from tmqp_server.engine.delivery.feed_commits import Commit
from tmqp_server.engine.effects import (
    Accept,
    AnswerPull,
    AnswerRouted,
    Append,
    CallHttp,
    CloseSession,
    Confirm,
    Deliver,
    DeliverPulled,
    Effect,
    EndPull,
    Erase,
    EventsEnded,
    Fetch,
    FindOffsets,
    Forward,
    Inform,
    Lapsed,
    Left,
    MeasureStored,
    Notify,
    PushDecided,
    ReadStored,
    Refuse,
    Reply,
    RouterFailed,
    SplitStored,
    StoredChange,
    TellHandler,
    TellNodes,
)
from tmqp_server.engine.events import NO_EVENTS, event_name
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.model.message import MARK_SHARED, MARK_TIMED, Message, SubscriptionFilter
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueChanges, QueueOptions
from tmqp_server.engine.routing.custom import CustomRouter
from tmqp_sim.books import closed_in, commits_of, disk_bytes_of, is_withheld, state_of

__all__ = ["World", "holders_of", "queue_defaults"]

#: The counters of a queue's snapshot.
_COUNTERS: Final = (
    "priority_messages", "messages", "spilled", "deferred", "in_flight", "accepted", "done",
    "expired", "dead", "cleared", "dropped", "displaced", "received_messages", "sent_messages",
    "deliveries", "negative_acks", "acks", "unknown_acks", "ack_timeouts", "timeout_messages",
    "saved_messages", "removed_messages", "errors", "refused", "requeued", "released", "skipped",
    "untracked", "overflowed", "damaged", "starved",
)  # fmt: skip


class World:
    """A broker, its clients, and the time; of a thousand steps only the last need be checked."""

    checked = True

    def __init__(
        self,
        limits: EngineLimits | None = None,
        options: BrokerOptions | None = None,
        handlers: dict[str, DeliveryHandler] | None = None,
        routers: dict[str, CustomRouter] | None = None,
    ) -> None:
        registry = built_in_handlers()
        for name, handler in (handlers or {}).items():
            registry.register(name, handler)
        self.options = BrokerOptions(events=NO_EVENTS) if options is None else options
        self.broker = Broker(limits, self.options, registry, routers)
        self.now = 100.0
        self.numbers: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.confirmed: set[tuple[int, str]] = set()
        self.last: list[Effect] = []

    # --- Steps -----------------------------------------------------------------------------------

    def step(self, command: Command) -> list[str]:
        """One command; its effects in words."""
        return self.told(self.broker.step(command, self.now))

    def told(self, effects: list[Effect]) -> list[str]:
        """Effects in words, after the checks that hold always."""
        self.last = effects
        if self.checked:
            self.check(effects)
        return [self.word(effect) for effect in effects]

    def wait(self, seconds: float) -> list[str]:
        """Let time pass; everything that becomes due on the way happens when it is due."""
        words: list[str] = []
        end = self.now + seconds
        for _ in range(10_000):
            deadline = self.broker.next_deadline()
            if deadline is None or deadline > end:
                self.now = end
                return words
            self.now = max(self.now, deadline)
            words += self.told(self.broker.on_deadline(self.now))
        raise AssertionError("the broker always wants to be called at once")

    def finish(self) -> list[str]:
        """Let the broker finish what it left for later, without time passing."""
        words: list[str] = []
        for _ in range(10_000):
            deadline = self.broker.next_deadline()
            if deadline is None or deadline > self.now:
                return words
            words += self.told(self.broker.on_deadline(self.now))
        raise AssertionError("the broker always wants to be called at once")

    # --- Clients ---------------------------------------------------------------------------------

    def connect(self, *names: str) -> list[str]:
        """Connect clients with these names as ids."""
        words: list[str] = []
        for name in names:
            number = self.numbers[name] = len(self.names) + 1
            self.names[number] = name
            words += self.step(Connect(number, "hello", name, f"{name}-name", f"{name}-type"))
        return words

    def disconnect(self, name: str) -> list[str]:
        """End a client's connection."""
        return self.step(Disconnect(self.numbers[name]))

    def join(
        self,
        name: str,
        channel: str = "ch",
        credit: int = -1,
        filter: SubscriptionFilter | None = None,
    ) -> list[str]:
        """Let a client join, connected first if need be."""
        if name not in self.numbers:
            self.connect(name)
        return self.step(Join(self.numbers[name], "join", channel, credit, filter))

    def leave(self, name: str, channel: str = "ch") -> list[str]:
        """Let a client leave."""
        return self.step(Leave(self.numbers[name], "leave", channel))

    # --- Queues and messages ---------------------------------------------------------------------

    def create(
        self,
        changes: QueueChanges | None = None,
        channel: str = "ch",
        queue_id: int = 1,
        owner: str = "admin",
    ) -> list[str]:
        """Create a queue."""
        if owner not in self.numbers:
            self.connect(owner)
        return self.step(CreateQueue(self.numbers[owner], "create", channel, queue_id, changes))

    def update(self, changes: QueueChanges, channel: str = "ch", queue_id: int = 1) -> list[str]:
        """Change a queue's options."""
        if "admin" not in self.numbers:
            self.connect("admin")
        return self.step(UpdateQueue(self.numbers["admin"], "update", channel, queue_id, changes))

    def push(
        self,
        message_id: str,
        high: bool = False,
        wants: bool = False,
        size: int = 10,
        channel: str = "ch",
        queue_id: int = 1,
        producer: str = "p",
        extras: PushExtras | None = None,
    ) -> list[str]:
        """Push a message, its producer connected first if need be."""
        if producer not in self.numbers:
            self.connect(producer)
        number = self.numbers[producer]
        wire = f"wire of {message_id}"
        return self.step(
            Push(number, message_id, channel, queue_id, high, wants, size, wire, extras)
        )

    def ack(
        self,
        name: str,
        message_id: str,
        channel: str = "ch",
        queue_id: int = 1,
        wire: object = None,
    ) -> list[str]:
        """Acknowledge a message."""
        number = self.numbers[name]
        return self.step(Acknowledge(number, message_id, channel, queue_id, True, "", wire))

    def nack(
        self,
        name: str,
        message_id: str,
        reason: str = "no",
        channel: str = "ch",
        queue_id: int = 1,
        wire: object = None,
    ) -> list[str]:
        """Refuse a message."""
        number = self.numbers[name]
        return self.step(Acknowledge(number, message_id, channel, queue_id, False, reason, wire))

    def release(
        self,
        name: str,
        message_id: str,
        to: int = PUT_BACK_END,
        delay_ms: int = 0,
        counted: bool = True,
        channel: str = "ch",
        queue_id: int = 1,
    ) -> list[str]:
        """Give a message back."""
        how = (message_id, channel, queue_id, to, delay_ms, counted)
        return self.step(Release(self.numbers[name], "release", *how))

    def pull(
        self,
        name: str,
        count: int = 1,
        channel: str = "ch",
        queue_id: int = 1,
        newest_first: bool = False,
        clear: str = "",
        info: bool = False,
        request: str = "pull",
    ) -> list[str]:
        """Pull messages; *clear* holds ``h``, ``r`` or both."""
        number, high, regular = self.numbers[name], "h" in clear, "r" in clear
        return self.step(
            Pull(number, request, channel, queue_id, count, newest_first, high, regular, info)
        )

    def queue(self, channel: str = "ch", queue_id: int = 1) -> Queue:
        """A queue as it is."""
        for queue in self.broker.queues():
            if queue.channel_name == channel and queue.queue_id == queue_id:
                return queue
        raise AssertionError(f"there is no queue {channel}/{queue_id}")

    def books(self, channel: str = "ch", queue_id: int = 1) -> dict[str, int]:
        """The counters of a queue that are not 0."""
        snapshot = QueueSnapshot(self.queue(channel, queue_id))
        shown = {name: getattr(snapshot, name) for name in _COUNTERS}
        return {name: value for name, value in shown.items() if value}

    # --- Words -----------------------------------------------------------------------------------

    def word(self, effect: Effect) -> str:
        """One effect in words."""
        if isinstance(effect, Deliver):
            return self._delivery(effect)
        if isinstance(effect, DeliverPulled):
            return self._pulled(effect)
        if isinstance(effect, EndPull):
            return f"{self.names[effect.session]} {effect.request} {effect.reason}"
        if isinstance(effect, AnswerPull):
            shown = effect.message.message_id
            return f"{self.names[effect.session]} {effect.request}: answer {shown}"
        if isinstance(effect, Confirm):
            return self._confirm(effect)
        if isinstance(effect, Reply):
            body = "" if effect.body is None else " with body"
            return f"{self.names[effect.session]} {effect.request}: {effect.code}{body}"
        if isinstance(effect, Accept):
            return f"{self.names[effect.session]} accepted"
        if isinstance(effect, Refuse):
            return f"session {effect.session} refused {effect.code}"
        if isinstance(effect, CloseSession):
            return f"close {self.names[effect.session]}"
        if isinstance(effect, EventsEnded):
            where = f" in {effect.channel}" if effect.channel else ""
            return f"{self.names[effect.session]} hears no more {event_name(effect.event)}{where}"
        if isinstance(effect, (Left, PushDecided)):
            what = f"left {effect.channel}" if isinstance(effect, Left) else "goes on"
            return f"{self.names[effect.session]} {what}"
        if isinstance(effect, Forward):
            return f"{self._names(effect.sessions)} <- forward {effect.wire}"
        if isinstance(effect, Inform):
            where = f" in {effect.channel}" if effect.channel else ""
            return f"{self._names(effect.sessions)} told {event_name(effect.event)}{where}"
        if isinstance(effect, TellNodes):
            word = "done" if effect.positive else "refused"
            return f"nodes: {effect.channel}/{effect.queue_id} {effect.message_id} {word}"
        if isinstance(effect, CallHttp):
            where = f"{effect.method} {effect.url}"
            return f"call {effect.ticket} {where} {effect.body.decode()}".strip()
        if isinstance(effect, AnswerRouted):
            asked = ("", "acknowledge", "response")[effect.interaction]
            said = f"{effect.code} {effect.body.decode()}".strip()
            return f"{self.names[effect.session]} {effect.request} {asked}: {said}"
        if isinstance(effect, RouterFailed):
            return f"router {effect.router} failed: {effect.error}"
        if isinstance(effect, TellHandler):
            return f"{effect.handler} handles {event_name(effect.event)}"
        if isinstance(effect, Lapsed):
            return f"{self.names[effect.session]} lost {effect.message_id}: {effect.reason}"
        if isinstance(effect, Notify):
            return f"event {event_name(effect.event)}"
        return self._of_storage(effect)

    def _of_storage(self, effect: Effect) -> str:
        """One effect for the storage in words."""
        if isinstance(effect, Append):
            where = f" for {effect.old_key}/{effect.old}" if effect.old else ""
            where += " transient" if effect.transient else ""
            return f"append {effect.ticket} {effect.message.message_id}{where}"
        if isinstance(effect, Erase):
            return f"erase {effect.ticket or f'{effect.key}/{effect.sequence}'}"
        if isinstance(effect, Fetch):
            priority = " high" if effect.high_priority else ""
            place = f"{effect.key}: {effect.limit} after {effect.after} to {effect.last}"
            return f"fetch {effect.number} from {place}{priority}"
        if isinstance(effect, FindOffsets):
            return f"find {effect.number} {effect.keys}"
        if isinstance(effect, ReadStored):
            held = " held" * effect.held + f" as {effect.form}" * (effect.form > 0)
            place = f"{effect.key}: {effect.limit} from {effect.first} to {effect.last}"
            return f"read {effect.number} from {place}, end {effect.end}{held}"
        if isinstance(effect, SplitStored):
            held = " held" * effect.held
            place = f"{effect.key}: {effect.limit} and {effect.max_bytes} B"
            place += f" from {effect.first} to {effect.last}"
            return f"split {effect.number} of {place}, end {effect.end}{held}"
        if isinstance(effect, MeasureStored):
            return f"measure {effect.number} {effect.keys} after {effect.after}"
        assert isinstance(effect, StoredChange)
        return f"{type(effect).__name__} {effect.ticket}"

    def _names(self, sessions: list[int]) -> str:
        return " ".join([self.names[number] for number in sessions])

    def _delivery(self, effect: Deliver) -> str:
        """Such as ``a b <- m1 FA`` (F first acquirer, A acknowledge wanted, R redelivered)."""
        names = self._names(effect.sessions)
        flags = "F" if effect.first_acquirer else ""
        flags += "A" if effect.wants_acknowledge else ""
        flags += "R" if effect.redelivered else ""
        flags += " hidden" if effect.hide_source else ""
        return f"{names} <- {effect.message.message_id} {flags}".rstrip()

    def _pulled(self, effect: DeliverPulled) -> str:
        """Such as ``a pull 1/2 m1 FA left 0+3`` (flags as in _delivery)."""
        flags = "F" if effect.first_acquirer else ""
        flags += "A" if effect.wants_acknowledge else ""
        flags += " hidden" if effect.hide_source else ""
        if effect.high_left >= 0:
            flags += f" left {effect.high_left}+{effect.regular_left}"
        name = self.names[effect.session]
        place = f"{effect.index}/{effect.count}"
        return f"{name} {effect.request} {place} {effect.message.message_id} {flags}".rstrip()

    def _confirm(self, effect: Confirm) -> str:
        """Such as ``p: m1 ok F`` or ``p: m1 no timeout`` (F first acquirer)."""
        name = self.names[effect.session]
        outcome = "ok" if effect.positive else f"no {effect.reason}"
        flag = " F" if effect.first_acquirer else ""
        via = f" from {effect.source or '?'}" if effect.forwarded is not None else ""
        return f"{name}: {effect.message_id} {outcome}{flag}{via}"

    # --- What must always hold -------------------------------------------------------------------

    def check(self, effects: list[Effect]) -> None:
        """Books, windows and confirms after a step."""
        held: dict[int, int] = {}
        core = self.broker._core
        for queue in self.broker.queues():
            assert queue.imbalance() == 0, f"{queue!r}: {queue.imbalance()}"
            self._check_found_again(queue)
            self._check_shared(queue)
            if not core.trash:
                assert queue.disk_bytes == disk_bytes_of(self.broker, queue), repr(queue)
            for message in queue.all_flights().values():
                for client in holders_of(message):
                    held[client.number] = held.get(client.number, 0) + 1
                assert holders_of(message), f"{message!r} is in flight with nobody"
        if not core.trash:
            for number, session in core.sessions.items():
                assert session.in_flight == held.get(number, 0), self.names.get(number)
                assert session.in_flight <= self.broker.limits.max_in_flight_per_session
            total = sum(
                queue.bytes + queue.count * MESSAGE_OVERHEAD_BYTES for queue in self.broker.queues()
            )
            for pending in core.tickets.values():
                if isinstance(pending, PendingSave) and pending.tail and pending.queue.closed:
                    # Until the storage has answered.
                    total += pending.message.size + MESSAGE_OVERHEAD_BYTES
            batches = [each for each in core.tickets.values() if isinstance(each, PendingBatch)]
            for batch in batches + list(self.broker._batches._unfinished):
                for item in batch.items[batch.done :]:
                    if is_withheld(item) and item.queue.closed:
                        total += item.message.size + MESSAGE_OVERHEAD_BYTES
            total += sum([closed_in(commit) for commit in commits_of(self.broker)])
            assert core.total_bytes == total + core.state_bytes
            assert core.state_bytes == state_of(self.broker)
        tickets = core.tickets.values()
        unsynced = sum(each.message.size for each in tickets if isinstance(each, PendingSave))
        whole = (Commit, PendingBatch, PendingRun)
        unsynced += sum(each.size for each in tickets if isinstance(each, whole))
        assert core.unsynced_bytes == unsynced
        self._check_audiences()
        self._check_pulls()
        self._check_listeners()
        for effect in effects:
            if isinstance(effect, (Deliver, Forward, Inform)):
                assert effect.sessions, "a delivery to nobody"
                assert all(number in core.sessions for number in effect.sessions)

    def _check_found_again(self, queue: Queue) -> None:
        """A queue that has messages and does not send them stands where it will be found."""
        core = self.broker._core
        in_line = queue in queue.audience.line or any(queue in line for line in core.awake)
        for feed in queue.feeds or ():
            assert isinstance(feed.target, Queue)
            in_line = in_line or queue in feed.target.waiters
        assert queue.waiting == in_line
        assert queue.runnable == (queue in core.runnable)
        if (queue.high_count or queue.regular_count) and queue.discipline.sends:
            comes_first = queue.high_tail is not None and not queue.high_count
            found = queue.waiting or queue.runnable or queue.held is not None or comes_first
            found = found or queue.committing or queue.key in self.broker._feeder._late
            assert found, repr(queue)
        spilled = 0
        for tail in (queue.high_tail, queue.regular_tail):
            if tail is not None:
                assert tail.count > 0 or tail.unsynced > 0, f"{queue!r}: an empty tail"
                assert tail.count >= tail.unsynced
                spilled += tail.count
                there = queue.high_count if tail is queue.high_tail else queue.regular_count
                assert there or tail.fetching or tail.unsynced, f"{queue!r}: nobody fetches"
        assert queue.spilled == spilled
        check_shelf(queue)
        for key, message in queue.all_flights().items():
            assert bool(message.marks & MARK_TIMED) == (key not in queue.flights)
        if queue.held is not None:
            assert queue.held in queue.all_flights().values()
        if queue.next_due() != NEVER:
            assert queue.timer.wake_at <= queue.next_due()

    def _check_shared(self, queue: Queue) -> None:
        """What is shared with other nodes is there, and is found under its id."""
        there = [*queue.high.messages(), *queue.regular.messages(), *queue.all_flights().values()]
        there += queue.deferred.messages()
        shared = [message for message in there if message.marks & MARK_SHARED]
        assert queue.shared == {message.message_id: message for message in shared}
        assert len(shared) == len(queue.shared)

    def _check_pulls(self) -> None:
        """Pulls under way have reserved what they promised, and stand where they are found."""
        core = self.broker._core
        reserved: dict[int, int] = {}
        for session in core.sessions.values():
            assert len(session.pulls) <= self.broker.limits.max_pulls_per_session
            for pulling in session.pulls:
                queue = pulling.queue
                assert isinstance(queue, Queue)
                assert pulling.left > 0
                assert not pulling.over
                reserved[id(queue)] = reserved.get(id(queue), 0) + pulling.left
                assert pulling.runnable == (pulling in core.pulls)
                assert pulling.parked == (pulling in queue.parked)
                waits_for_session = session.blocked or session.full
                assert pulling.runnable or pulling.parked or waits_for_session
        for queue in self.broker.queues():
            assert queue.reserved == reserved.get(id(queue), 0)
            assert all(not pulling.over for pulling in queue.parked)
            if queue.parked and queue.held is None and not queue.spilled:
                # The first one was let go on; it lets the next one go on in its turn.
                assert any(not pulling.over and pulling.queue is queue for pulling in core.pulls)
            if queue.discipline.replaces:
                assert queue.waiting_count() <= 1

    def _check_listeners(self) -> None:
        """Who listens to what is the same from both sides, and about what exists."""
        core = self.broker._core
        listeners = core.notices._places
        mask = self.options.events
        count = 0
        for (event, key, queue_id), subscriptions in listeners.items():
            assert subscriptions
            mask |= event
            for number, subscription in subscriptions.items():
                assert core.sessions[number].event_subscriptions[event, key, queue_id] is (
                    subscription
                )
                count += 1
            if key:
                assert queue_id == -1 or queue_id in core.channels.by_key[key].queues
        for key, (handler, wanted) in core.notices._handlers.items():
            assert core.channels.by_key[key].options.event_handler == handler
            mask |= wanted
        assert core.notices.mask == mask
        assert count == sum(len(each.event_subscriptions) for each in core.sessions.values())

    def _check_audiences(self) -> None:
        """What audiences count is what is there."""
        for channel in self.broker._core.channels.by_key.values():
            audience = channel.audience
            everybody = list(audience.subscriptions.values())
            stalled = [
                each
                for each in everybody
                if each.session.blocked
                or each.session.full
                or each.credit == 0
                or (each.holds is not None and 0 <= each.window <= len(each.holds))
            ]
            special = [
                each
                for each in everybody
                if each.credit >= 0 or each.filter is not None or each.holds is not None
            ]
            assert audience.stalled == len(stalled)
            assert audience.special == len(special)
            for subscription in everybody:
                assert subscription.credit >= -1
                if not self.broker._core.trash:
                    for message, queue in (subscription.holds or {}).items():
                        assert isinstance(queue, Queue)
                        assert message in queue.all_flights().values()
                        assert message.is_held_by(subscription.session)


def holders_of(message: Message) -> list[Client]:
    """The clients that have a message."""
    if message.holder is not None:
        return [message.holder]
    return list((message.holders or {}).values())


def queue_defaults(*, takes_nodes: bool = False, **values: object) -> BrokerOptions:
    """Broker options whose queues start from these queue options, with no events."""
    channel = ChannelOptions(queue=QueueOptions(**values))  # type: ignore[arg-type]
    return BrokerOptions(channel=channel, events=NO_EVENTS, takes_nodes=takes_nodes)
