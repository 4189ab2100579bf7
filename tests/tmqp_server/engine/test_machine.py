"""The broker under arbitrary commands, against what an observer outside it can know.

The observer sees commands and effects only.  It keeps its own account of credit, of blocked
sessions, of who has which message and of confirms; ``World`` looks at the books inside.  At the
end of each run the world heals and everything that can be delivered must be, and the whole run is
repeated on a new broker and must print the same effects.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.tmqp_server.engine.world import World, holders_of, queue_defaults
from tmqp.constants import (
    STATUS_BROADCAST,
    STATUS_CACHE,
    STATUS_PAUSED,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
    STATUS_STOPPED,
)
from tmqp_server.engine.commands import (
    Acknowledge,
    Batch,
    Block,
    ClearMessages,
    Command,
    Connect,
    CreateQueue,
    Disconnect,
    Grant,
    Join,
    Leave,
    Pull,
    Push,
    PushExtras,
    RemoveChannel,
    RemoveQueue,
    Synced,
    Unblock,
    UpdateQueue,
)
from tmqp_server.engine.effects import (
    AnswerPull,
    Append,
    Confirm,
    Deliver,
    DeliverPulled,
    Effect,
    EndPull,
    Reply,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.model.message import MARK_ANSWERED, MARK_BACK
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.options import QueueChanges

LIMITS = EngineLimits(
    max_work_per_step=12,
    max_in_flight_per_session=5,
    max_pulls_per_session=3,
    max_pull_count=10,
    max_messages_per_queue=12,
    max_queue_bytes=150,
    max_put_backs=6,
)
OPTIONS = queue_defaults(put_back_limit=3, acknowledge_timeout_ms=1_000)
CHANNELS = ("one", "Two")
STATUSES = (
    STATUS_BROADCAST,
    STATUS_PUSH,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
    STATUS_ROUND_ROBIN,
    STATUS_PAUSED,
    STATUS_STOPPED,
    STATUS_PULL,
    STATUS_PULL,
    STATUS_PULL,
    STATUS_CACHE,
)
#: The two that refuse everything teach little.
HANDLERS = tuple([name for name in built_in_handlers().names() if "reject" not in name])

clients = st.integers(1, 4)
channels = st.sampled_from(CHANNELS)
queue_ids = st.integers(1, 2)
changes = st.builds(
    QueueChanges,
    status=st.none() | st.sampled_from(STATUSES),
    request_acknowledge=st.none() | st.booleans(),
    acknowledge_timeout_ms=st.none() | st.sampled_from([500, 1_000, 3_000]),
    message_timeout_ms=st.none() | st.sampled_from([0, 0, 700, 2_000]),
    wait_for_acknowledge=st.none() | st.booleans(),
    send_only_first_acquirer=st.none() | st.booleans(),
    put_back_limit=st.none() | st.integers(0, 3),
    dead_letter=st.none() | st.tuples(channels, queue_ids),
    delivery_handler=st.none() | st.sampled_from(HANDLERS),
)


class Observer:
    """What can be known from outside."""

    def __init__(self) -> None:
        #: (session, channel key) to the credit it has left, -1 without a bound.
        self.credit: dict[tuple[int, str], int] = {}
        self.blocked: set[int] = set()
        self.connected: set[int] = set()
        self.told: set[str] = set()
        self.unsynced: dict[int, str] = {}
        #: The last sequence sent for the first time, by queue and priority.
        self.order: dict[tuple[str, int, bool], int] = {}
        self.pushed: set[str] = set()
        #: Pulls that were asked and have not ended, with how many messages each has brought.
        self.pulls: dict[tuple[int, object], int] = {}

    def see(
        self,
        effects: list[Effect],
        exclusive: dict[tuple[str, int], bool],
        keeping: dict[tuple[str, int], bool],
    ) -> None:
        """Judge the effects of one step.

        *exclusive* queues give a message to one consumer; *keeping* ones that do not must give it
        to all who joined, for they can wait for the slow.
        """
        for position, effect in enumerate(effects):
            if isinstance(effect, Deliver):
                self._delivery(effect, exclusive)
                place = (effect.channel.lower(), effect.message.queue_id)
                if keeping.get(place) and not exclusive.get(place):
                    after = effects[position + 1] if position + 1 < len(effects) else None
                    self._everybody(effect, after)
            elif isinstance(effect, Confirm):
                self._confirm(effect)
            elif isinstance(effect, DeliverPulled):
                self._pulled(effect)
            elif isinstance(effect, (EndPull, AnswerPull)):
                self._pull_ended(effect)
            elif isinstance(effect, Reply) and (effect.session, effect.request) in self.pulls:
                assert effect.code != 0
                del self.pulls[effect.session, effect.request]
            elif isinstance(effect, Append):
                assert effect.ticket not in self.unsynced
                # The copy in the dead letters has its own ticket, and its producer has heard.
                moved = effect.message.readdressed
                for ticket, message_id in self.unsynced.items():
                    if message_id == effect.message.message_id:
                        self.unsynced[ticket] = ""  # asked for anew: that answer counts
                self.unsynced[effect.ticket] = "" if moved else effect.message.message_id

    def _delivery(self, effect: Deliver, exclusive: dict[tuple[str, int], bool]) -> None:
        message = effect.message
        key = effect.channel.lower()
        assert message.message_id in self.pushed, "invented"
        assert len(set(effect.sessions)) == len(effect.sessions)
        for number in effect.sessions:
            assert number in self.connected
            assert number not in self.blocked, "delivered to a blocked session"
            left = self.credit[number, key]
            assert left != 0, "delivered without credit"
            if left > 0:
                self.credit[number, key] = left - 1
        if exclusive.get((key, message.queue_id)):
            assert len(effect.sessions) == 1, "one message in several hands"
        if not effect.redelivered and effect.first_acquirer and message.rare is None:
            place = (key, message.queue_id, message.high_priority)
            assert message.sequence > self.order.get(place, 0), "out of order"
            self.order[place] = message.sequence

    def _pulled(self, effect: DeliverPulled) -> None:
        assert effect.message.message_id in self.pushed, "invented"
        assert effect.session in self.connected
        assert effect.session not in self.blocked, "delivered to a blocked session"
        pull = (effect.session, effect.request)
        self.pulls[pull] += 1
        assert effect.index == self.pulls[pull] <= effect.count, "a message too many, or too few"

    def _pull_ended(self, effect: EndPull | AnswerPull) -> None:
        count = self.pulls.pop((effect.session, effect.request))
        if isinstance(effect, AnswerPull):
            assert count == 0
            assert effect.message.message_id in self.pushed, "invented"
        else:
            assert (effect.reason == "End") == (count > 0)

    def _everybody(self, effect: Deliver, after: Effect | None) -> None:
        """The delivery, with the one for the rest right after it, is for all who joined."""
        got = list(effect.sessions)
        if effect.first_acquirer:
            assert len(got) == 1, "one first acquirer"
            if isinstance(after, Deliver) and after.message is effect.message:
                got += after.sessions
        elif not effect.redelivered:
            return
        joined = [number for number, key in self.credit if key == effect.channel.lower()]
        assert sorted(got) == sorted(joined), "somebody was passed over"

    def _confirm(self, effect: Confirm) -> None:
        assert effect.session in self.connected
        assert effect.message_id not in self.told, "confirmed twice"
        self.told.add(effect.message_id)
        if effect.positive:
            assert effect.message_id not in self.unsynced.values(), "confirmed before it was saved"


def sessions_of(world: World) -> list[Session]:
    return list(world.broker._core.sessions.values())


class BrokerMachine(RuleBasedStateMachine):
    """Arbitrary commands, in any order, with time passing."""

    def __init__(self) -> None:
        super().__init__()
        self.world = self.new_world()
        self.observer = Observer()
        self.history: list[tuple[Command | None, float]] = []
        self.prints: list[str] = []
        self.sessions: dict[int, int] = {}
        self.last_session = 0
        self.count = 0
        #: Queues whose options were changed, by identity, kept so that none is made anew.
        self.touched: dict[int, Queue] = {}

    def new_world(self) -> World:
        """The world to begin in, and to repeat everything in."""
        return World(LIMITS, OPTIONS)

    # --- Doing -----------------------------------------------------------------------------------

    def do(self, command: Command | None) -> list[Effect]:
        """One step, or one deadline, judged by everybody."""
        world = self.world
        exclusive = {
            (queue.channel_name.lower(), queue.queue_id): queue.exclusive
            for queue in world.broker.queues()
        }
        self.history.append((command, world.now))
        if command is None:
            effects = world.broker.on_deadline(world.now)
        else:
            effects = world.broker.step(command, world.now)
        keeping = {
            (queue.channel_name.lower(), queue.queue_id): queue.discipline.stores
            for queue in world.broker.queues()
        }
        if isinstance(command, (CreateQueue, UpdateQueue, RemoveQueue, RemoveChannel)):
            exclusive = {}
            keeping = {}
            self.observer.order.clear()
        world.check(effects)
        self.prints.append(repr(effects))
        self.observer.see(effects, exclusive, keeping)
        work = sum(1 for effect in effects if isinstance(effect, (Deliver, DeliverPulled)))
        assert work <= 2 * LIMITS.max_work_per_step + 8, "a step without end"
        return effects

    def name(self, channel: str, number: int) -> str:
        return channel.upper() if number % 2 else channel

    def connected(self, client: int) -> int:
        """The client's session, connected now if it is not."""
        if client not in self.sessions:
            self.last_session += 1
            self.sessions[client] = self.last_session
            self.world.names[self.last_session] = f"client-{client}"
            self.observer.connected.add(self.last_session)
            self.do(Connect(self.last_session, "r", f"client-{client}"))
        return self.sessions[client]

    # --- Rules -----------------------------------------------------------------------------------

    @initialize(one=changes, two=changes)
    def start(self, one: QueueChanges, two: QueueChanges) -> None:
        for channel in CHANNELS:
            self.do(CreateQueue(self.connected(1), "r", channel, 1, one))
            self.do(CreateQueue(self.connected(1), "r", channel, 2, two))
        # One consumer here and two there: they go different ways.
        self.join(2, CHANNELS[0], -1)
        self.join(2, CHANNELS[1], -1)
        self.join(3, CHANNELS[1], -1)

    @rule(
        what=st.sampled_from(["create", "update", "update", "clear", "remove", "remove channel"]),
        channel=channels,
        queue_id=queue_ids,
        given=changes,
    )
    def administer(self, what: str, channel: str, queue_id: int, given: QueueChanges) -> None:
        number = self.connected(1)
        if what == "create":
            self.do(CreateQueue(number, "r", channel, queue_id, given))
        elif what == "update":
            for queue in self.world.broker.queues():
                if (queue.channel_name, queue.queue_id) == (channel, queue_id):
                    self.touched[id(queue)] = queue
            self.do(UpdateQueue(number, "r", channel, queue_id, given))
        elif what == "clear":
            high = given.wait_for_acknowledge is not True
            self.do(ClearMessages(number, "r", channel, queue_id, high, not high))
        elif what == "remove":
            self.do(RemoveQueue(number, "r", channel, queue_id))
        else:
            self.do(RemoveChannel(number, "r", channel))
            for key in list(self.observer.credit):
                if key[1] == channel.lower():
                    del self.observer.credit[key]

    def join(self, client: int, channel: str, credit: int) -> None:
        number = self.connected(client)
        self.observer.credit[number, channel.lower()] = credit
        self.do(Join(number, "r", self.name(channel, number), credit))

    @rule(
        what=st.sampled_from(["join", "join", "leave", "grant"]),
        client=clients,
        channel=channels,
        credit=st.sampled_from([-1, -1, -1, 0, 1, 3]),
    )
    def belong(self, what: str, client: int, channel: str, credit: int) -> None:
        number = self.connected(client)
        place = (number, channel.lower())
        if what == "join":
            self.join(client, channel, credit)
        elif what == "leave":
            self.observer.credit.pop(place, None)
            self.do(Leave(number, "r", channel))
        else:
            if place in self.observer.credit:
                self.observer.credit[place] = credit
            self.do(Grant(number, channel, credit))

    @rule(what=st.sampled_from(["block", "unblock", "unblock", "disconnect"]), client=clients)
    def connection(self, what: str, client: int) -> None:
        number = self.connected(client)
        if what == "block":
            self.observer.blocked.add(number)
            self.do(Block(number))
        elif what == "unblock":
            self.observer.blocked.discard(number)
            self.do(Unblock(number))
        else:
            del self.sessions[client]
            self.observer.connected.discard(number)
            self.observer.blocked.discard(number)
            for key in list(self.observer.credit):
                if key[0] == number:
                    del self.observer.credit[key]
            for pull in list(self.observer.pulls):
                if pull[0] == number:
                    del self.observer.pulls[pull]
            self.do(Disconnect(number))

    def a_push(
        self,
        client: int,
        channel: str,
        queue_id: int,
        high: bool,
        wants: bool,
        late: int = 0,
        delay: int = 0,
    ) -> Push:
        self.count += 1
        message_id = f"m{self.count}"
        self.observer.pushed.add(message_id)
        number = self.connected(client)
        extras = PushExtras(expires_in_ms=late, delay_ms=delay) if late or delay else None
        name = self.name(channel, queue_id)
        return Push(number, message_id, name, queue_id, high, wants, 10, b"w", extras)

    @rule(
        client=clients,
        channel=channels,
        queue_id=queue_ids,
        high=st.booleans(),
        wants=st.booleans(),
        late=st.sampled_from([0, 0, 0, 900]),
        delay=st.sampled_from([0, 0, 0, 300]),
        times=st.sampled_from([1, 1, 2, 9]),
    )
    def push(
        self,
        client: int,
        channel: str,
        queue_id: int,
        high: bool,
        wants: bool,
        late: int,
        delay: int,
        times: int,
    ) -> None:
        for _ in range(times):
            self.do(self.a_push(client, channel, queue_id, high, wants, late, delay))

    @rule(client=clients, channel=channels, wants=st.booleans(), size=st.integers(0, 6))
    def batch(self, client: int, channel: str, wants: bool, size: int) -> None:
        pushes: list[Command] = [
            self.a_push(client, channel, 1 + each % 2, False, wants) for each in range(size)
        ]
        self.do(Batch(self.connected(client), "r", pushes))

    @rule(
        client=clients,
        channel=channels,
        queue_id=queue_ids,
        count=st.sampled_from([0, 1, 2, 9, 10, 11]),
        newest_first=st.booleans(),
        clear=st.sampled_from(["", "", "", "h", "r", "hr"]),
    )
    def pull(
        self,
        client: int,
        channel: str,
        queue_id: int,
        count: int,
        newest_first: bool,
        clear: str,
    ) -> None:
        self.count += 1
        number = self.connected(client)
        request = f"pull-{self.count}"
        self.observer.pulls[number, request] = 0
        high, regular = "h" in clear, "r" in clear
        self.do(Pull(number, request, channel, queue_id, count, newest_first, high, regular))

    @rule(
        positive=st.sampled_from([True, True, False]),
        data=st.data(),
        times=st.sampled_from([1, 1, 2, 5]),
    )
    def acknowledge(self, positive: bool, data: st.DataObject, times: int) -> None:
        for _ in range(times):
            held = [
                (client.number, queue.channel_name, queue.queue_id, message.message_id)
                for queue in self.world.broker.queues()
                for message in queue.all_flights().values()
                for client in holders_of(message)
                if client.alive
            ]
            if not held:
                return
            number, channel, queue_id, message_id = data.draw(st.sampled_from(held))
            command = Acknowledge(number, message_id, channel, queue_id, positive, "no", "wire")
            effects = self.do(command)
            if not any(
                isinstance(effect, Deliver) and effect.message.message_id == message_id
                for effect in effects
            ):
                self.must_not_hold(number, channel, queue_id, message_id)

    def must_not_hold(self, number: int, channel: str, queue_id: int, message_id: str) -> None:
        """Who has answered has the message no longer."""
        queue = self.world.queue(channel, queue_id)
        message = queue.flight(message_id)
        if message is not None:
            assert all(client.number != number for client in holders_of(message))

    @rule(client=clients, channel=channels, queue_id=queue_ids)
    def acknowledge_nonsense(self, client: int, channel: str, queue_id: int) -> None:
        number = self.connected(client)
        some = f"m{max(self.count - 1, 0)}"
        session = self.world.broker._core.sessions[number]
        if any(
            message.message_id == some and message.is_held_by(session)
            for queue in self.world.broker.queues()
            for message in queue.all_flights().values()
        ):
            return
        before = session.unknown_acks
        self.do(Acknowledge(number, some, channel, queue_id))
        assert session.unknown_acks == before + 1

    @precondition(lambda self: self.observer.unsynced)
    @rule(ok=st.booleans(), data=st.data())
    def sync(self, ok: bool, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.observer.unsynced)))
        del self.observer.unsynced[ticket]
        self.do(Synced(ticket, ok))

    @rule(seconds=st.sampled_from([0.0, 0.1, 0.6, 1.1, 4.0]))
    def wait(self, seconds: float) -> None:
        end = self.world.now + seconds
        for _ in range(2_000):
            deadline = self.world.broker.next_deadline()
            if deadline is None or deadline > end:
                self.world.now = end
                return
            self.world.now = max(self.world.now, deadline)
            self.do(None)
        raise AssertionError("the broker always wants to be called at once")

    @rule()
    def too_early(self) -> None:
        self.do(None)

    # --- What must hold --------------------------------------------------------------------------

    @invariant()
    def limits_hold(self) -> None:
        for queue in self.world.broker.queues():
            # A batch is checked before it is applied, and put-backs may come in between.
            assert queue.count <= LIMITS.max_messages_per_queue + 6
            if queue.held is not None:
                assert queue.options.wait_for_acknowledge
            if id(queue) in self.touched:
                continue
            if queue.waits:
                # One message is out at a time, until somebody answers (F96).
                unanswered = [
                    message
                    for message in queue.all_flights().values()
                    if not message.marks & MARK_ANSWERED or message.marks & MARK_BACK
                ]
                assert len(unanswered) <= 1, "the queue did not wait"
            if queue.discipline.stores:
                assert queue.counters.untracked == 0, "sent without being tracked"
                assert queue.counters.skipped == 0 or queue.exclusive, "somebody was passed over"

    def teardown(self) -> None:
        if not self.history:
            return
        self.heal()
        self.repeat()

    def heal(self) -> None:
        """Nobody is slow any more: what can be delivered is delivered."""
        for client, number in self.sessions.items():
            self.observer.blocked.discard(number)
            self.do(Unblock(number))
            for channel in CHANNELS:
                key = (number, channel.lower())
                if key in self.observer.credit:
                    self.observer.credit[key] = -1
                    self.do(Grant(number, channel, -1))
            assert client
        self.wait(8.0)
        for queue in self.world.broker.queues():
            if not queue.discipline.sends or queue.held is not None:
                continue
            if queue.audience.can_take(queue.exclusive):
                assert queue.high_count + queue.regular_count == 0, f"{queue!r} is stuck"

        # Every pull has ended, but where an acknowledge is awaited for longer than the wait was.
        waiting = [pull.queue for session in sessions_of(self.world) for pull in session.pulls]
        assert all(queue.held is not None for queue in waiting if isinstance(queue, Queue))
        assert len(self.observer.pulls) == len(waiting), "a pull without an end"

    def repeat(self) -> None:
        """The same commands at the same times give the same effects."""
        again = self.new_world().broker
        for (command, now), printed in zip(self.history, self.prints, strict=True):
            effects = again.on_deadline(now) if command is None else again.step(command, now)
            assert repr(effects) == printed


BrokerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestBroker = pytest.mark.timeout(300)(BrokerMachine.TestCase)
