"""No step works without end: what is too much for one step goes on in the next ``on_deadline``."""

from __future__ import annotations

import pytest

from tests.machine import Stopwatch, thrice
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_PAUSED, STATUS_PUSH, STATUS_STOPPED
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    AddFeed,
    Block,
    ClearMessages,
    Command,
    Connect,
    CreateChannel,
    CreateQueue,
    Disconnect,
    Grant,
    Join,
    Leave,
    ListChannels,
    Push,
    PushExtras,
    RemoveChannel,
    RemoveChannels,
    Unblock,
    UpdateQueue,
)
from tmqp_server.engine.effects import Deliver, Effect, Notify, Reply
from tmqp_server.engine.events import LIFECYCLE_EVENTS, ChannelFact
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import (
    PUT_BACK_AT_START,
    Decision,
    DeliveryHandler,
    QueueFacts,
)
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import BrokerOptions, ChannelChanges, QueueChanges

SMALL = EngineLimits(max_work_per_step=10)


def deliveries(effects: list[Effect]) -> int:
    return sum(1 for effect in effects if isinstance(effect, Deliver))


def test_a_join_delivers_a_portion_and_the_rest_follows_in_order() -> None:
    world = World(SMALL)
    for number in range(35):
        world.push(f"m{number:02}")
    words = world.join("a")
    assert 1 <= deliveries(world.last) <= 10
    assert words[-1] == "a join: 0"
    assert world.broker.next_deadline() == world.now
    words = words[:-1]
    portions = 0
    while (deadline := world.broker.next_deadline()) is not None and deadline <= world.now:
        words += world.told(world.broker.on_deadline(world.now))
        assert deliveries(world.last) <= 10
        portions += 1
    assert words == [f"a <- m{number:02} FA" for number in range(35)]
    assert portions >= 3


def test_commands_in_between_keep_the_order() -> None:
    world = World(SMALL)
    for number in range(15):
        world.push(f"m{number:02}")
    words = world.join("a")[:-1]
    words += world.push("m15")
    words += world.finish()
    assert words == [f"a <- m{number:02} FA" for number in range(16)]


def test_many_consumers_cost_more_than_one() -> None:
    world = World(SMALL)
    for name in "abcdefgh":
        world.join(name)
    for name in "abcdefgh":
        world.step(Block(world.numbers[name]))
    for number in range(10):
        world.push(f"m{number}")
    for name in "abcdefgh":
        world.step(Unblock(world.numbers[name]))
    # Each message counts for itself and for each acknowledge that is awaited.
    assert deliveries(world.last) == 2 * 1
    world.finish()
    assert world.books()["in_flight"] == 10


def test_queues_take_turns() -> None:
    world = World(EngineLimits(max_work_per_step=200))
    for number in range(1_000):
        world.push(f"a{number}")
    world.push("b", queue_id=2)
    words = world.join("c")
    assert "c <- b FA" not in words
    assert "c <- b FA" in world.told(world.broker.on_deadline(world.now))


def test_a_put_back_storm_is_bounded() -> None:
    class Storm(DeliveryHandler):
        """Puts everything back, always."""

        def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
            return Decision(False, False, 1)

        def end_send(self, queue: QueueFacts, message: Message) -> Decision:
            return PUT_BACK_AT_START

    world = World(SMALL, handlers={"storm": Storm()})
    world.create(QueueChanges(delivery_handler="storm", put_back_limit=1_000))
    world.join("a")
    assert world.push("m") == []
    assert world.books()["requeued"] <= 11
    steps = 0
    while (deadline := world.broker.next_deadline()) is not None and deadline <= world.now:
        world.told(world.broker.on_deadline(world.now))
        steps += 1
    assert world.books()["dropped"] == 1
    assert steps >= 90


def test_time_outs_come_in_portions() -> None:
    world = World(SMALL)
    world.create(QueueChanges(delivery_handler="putback-end", acknowledge_timeout_ms=1_000))
    world.join("a")
    for number in range(35):
        world.push(f"m{number:02}")
    world.leave("a")
    world.now += 2
    steps = 0
    while (deadline := world.broker.next_deadline()) is not None and deadline <= world.now:
        before = world.books().get("ack_timeouts", 0)
        world.told(world.broker.on_deadline(world.now))
        assert world.books().get("ack_timeouts", 0) - before <= 10
        steps += 1
    assert steps >= 4
    assert world.books()["messages"] == 35
    assert [message.message_id for message in all_waiting(world)] == [
        f"m{number:02}" for number in range(35)
    ]


def all_waiting(world: World) -> list[Message]:
    queue = world.queue()
    return [queue.take() for _ in range(queue.high_count + queue.regular_count)]


def test_expiry_comes_in_portions() -> None:
    world = World(SMALL)
    world.create(QueueChanges(message_timeout_ms=1_000))
    for number in range(35):
        world.push(f"m{number}")
    world.now += 2
    world.told(world.broker.on_deadline(world.now))
    assert world.books()["expired"] <= 10
    assert world.finish() == []
    assert world.books()["expired"] == 35


def test_clearing_is_booked_at_once_and_disposed_of_in_portions() -> None:
    world = World(SMALL)
    world.create()
    for number in range(35):
        world.push(f"m{number}")
    world.step(ClearMessages(world.numbers["admin"], None, "ch", 1, True, True))
    assert world.books() == {"accepted": 35, "cleared": 35, "received_messages": 35}
    assert world.queue().bytes == 350
    world.told(world.broker.on_deadline(world.now))
    assert world.queue().bytes == 250
    world.finish()
    assert world.queue().bytes == 0
    assert world.broker.next_deadline() is None


def crowded_world(limits: EngineLimits, count: int) -> World:
    """A channel ``ch`` of ``a`` with so many queues, each with a message."""
    world = World(limits=limits, options=BrokerOptions(events=LIFECYCLE_EVENTS))
    world.connect("a")
    number = world.numbers["a"]
    world.step(CreateChannel(number, None, "ch"))
    for queue_id in range(count):
        world.broker.step(CreateQueue(number, None, "ch", queue_id), world.now)
        world.broker.step(Push(number, f"m{queue_id}", "ch", queue_id, False, False, 1, b""), 0.0)
    return world


MANY_QUEUES = EngineLimits(max_queues_per_channel=5_000)


def test_a_channel_of_many_queues_is_removed_in_portions_and_then_answered() -> None:
    """F51: the answer is the last word, and what comes between is removed as well."""
    world = crowded_world(MANY_QUEUES, 2_500)
    number = world.numbers["a"]
    broker = world.broker
    effects = broker.step(RemoveChannel(number, "r", "ch"), 0.0)
    assert len(effects) == 1_000
    assert {type(effect) for effect in effects} == {Notify}
    assert broker.next_deadline() == 0.0
    again = broker.step(RemoveChannel(number, "again", "ch"), 0.0)
    assert [type(effect) for effect in again] == [Notify] * 1_000
    broker.step(CreateQueue(number, None, "ch", 4_000), 0.0)
    told: list[Effect] = []
    steps = 0
    while (deadline := broker.next_deadline()) is not None and deadline <= 0.0:
        step = broker.on_deadline(0.0)
        assert len(step) <= 1_003
        told += step
        steps += 1
        assert steps < 100
    facts = [effect.fact for effect in told if isinstance(effect, Notify)]
    assert len(facts) == 502
    assert isinstance(facts[-1], ChannelFact)
    replies = [effect for effect in told if isinstance(effect, Reply)]
    assert sorted(str(reply.request) for reply in replies) == ["again", "r"]
    assert all(reply.code == 0 for reply in replies)
    assert told.index(replies[0]) > max(
        place for place, effect in enumerate(told) if isinstance(effect, Notify)
    )
    assert broker.queues() == []
    assert (broker.statistics().channels, broker.statistics().bytes) == (0, 0)


def test_several_channels_are_removed_in_portions_and_answered_when_all_have_gone() -> None:
    world = crowded_world(MANY_QUEUES, 2_500)
    number = world.numbers["a"]
    broker = world.broker
    for name in ("x", "y"):
        broker.step(CreateQueue(number, None, name, 1), 0.0)
    told = broker.step(RemoveChannels(number, "r", ["gone", "ch", "x", "CH"]), 0.0)
    while (deadline := broker.next_deadline()) is not None and deadline <= 0.0:
        assert broker.statistics().channels == 1 or not any(isinstance(e, Reply) for e in told)
        step = broker.on_deadline(0.0)
        assert len(step) <= 1_003
        told += step
    (answer,) = [effect for effect in told if isinstance(effect, Reply)]
    assert (answer.request, answer.code) == ("r", 0)
    assert told[-1] is answer
    assert [each.channel_name for each in broker.queues()] == ["y"]
    (none,) = broker.step(RemoveChannels(number, "r", ["gone", "ch"]), 0.0)
    assert isinstance(none, Reply)
    assert none.code == 404


def fed_world() -> World:
    """A queue that feeds two others, each in a channel of its own, with a consumer and messages."""
    world = World(options=BrokerOptions(events=LIFECYCLE_EVENTS))
    world.connect("a")
    world.connect("b")
    number = world.numbers["a"]
    for name in ("t", "x", "y"):
        world.broker.step(CreateQueue(number, None, name, 1, QueueChanges(status=STATUS_PUSH)), 0.0)
    for name in ("x", "y"):
        world.broker.step(AddFeed(number, None, "t", 1, name, 1), 0.0)
        world.broker.step(Join(world.numbers["b"], None, name), 0.0)
    for place in range(3):
        world.broker.step(Push(number, f"m{place}", "t", 1, False, False, 1, b""), 0.0)
    return world


def test_several_channels_are_removed_as_one_after_the_other() -> None:
    for names in (["x", "y", "t"], ["t", "x"], ["y", "gone", "t", "Y"]):
        together, singly = fed_world(), fed_world()
        number = together.numbers["a"]
        told = together.broker.step(RemoveChannels(number, "r", names), 0.0)
        (answer,) = [effect for effect in told if isinstance(effect, Reply)]
        assert (answer.code, told.pop()) == (0, answer)
        same: list[Effect] = []
        for name in names:
            same += singly.broker.step(RemoveChannel(number, None, name), 0.0)
        assert [repr(each) for each in told] == [repr(each) for each in same]
        statistics = [repr(each.broker.statistics()) for each in (together, singly)]
        assert statistics[0] == statistics[1]


def test_whoever_removed_it_may_have_gone() -> None:
    world = crowded_world(MANY_QUEUES, 1_500)
    number = world.numbers["a"]
    world.broker.step(RemoveChannel(number, "r", "ch"), 0.0)
    world.broker.step(Disconnect(number), 0.0)
    left = world.broker.on_deadline(0.0)
    assert not any(isinstance(effect, Reply) for effect in left)
    assert world.broker.queues() == []


def test_a_deserted_channel_stays_when_somebody_comes_while_it_goes() -> None:
    """F101, in portions."""
    limits = EngineLimits(max_queues_per_channel=5_000)
    world = World(limits=limits)
    world.join("a", "other")
    number = world.numbers["a"]
    world.step(CreateChannel(number, None, "ch", ChannelChanges(destroy_when_empty=True)))
    for queue_id in range(1_500):
        world.broker.step(CreateQueue(number, None, "ch", queue_id), 0.0)
    world.broker.step(Join(number, None, "ch"), 0.0)
    world.broker.step(Leave(number, None, "ch"), 0.0)
    assert len(world.broker.queues()) == 500
    world.broker.step(Join(number, "r", "ch"), 0.0)
    world.broker.on_deadline(0.0)
    assert len(world.broker.queues()) == 500
    assert not world.broker._core.removals
    world.broker.step(Leave(number, None, "ch"), 0.0)
    assert world.broker.queues() == []
    assert world.broker.statistics().channels == 1


def test_big_messages_come_in_small_portions() -> None:
    """A consumer must be able to say that its buffer is full before a step has overfilled it."""
    world = World()
    for number in range(10):
        world.push(f"m{number}", size=400 * 1024)
    world.join("a")
    assert deliveries(world.last) == 3
    world.step(Block(world.numbers["a"]))
    assert world.finish() == []
    world.step(Unblock(world.numbers["a"]))
    assert deliveries(world.last) == 3
    world.finish()
    assert world.books()["in_flight"] == 10


def test_time_does_not_wait_for_a_backlog() -> None:
    world = World(EngineLimits(max_work_per_step=20))
    changes = QueueChanges(delivery_handler="putback-end", acknowledge_timeout_ms=1_000)
    world.create(changes, queue_id=2)
    world.create(QueueChanges(request_acknowledge=False))
    world.join("a", credit=1)
    world.push("timed", queue_id=2)
    for number in range(500):
        world.push(f"m{number}")
    world.now += 1.0
    world.step(Grant(world.numbers["a"], "ch", -1))
    words: list[str] = []
    for _ in range(3):
        words += world.told(world.broker.on_deadline(world.now))
    assert "a <- timed AR" in words
    assert len(words) < 100


def test_clearing_does_not_wait_for_a_backlog() -> None:
    world = World(EngineLimits(max_work_per_step=200))
    world.create(QueueChanges(status=STATUS_PAUSED), queue_id=2)
    world.checked = False
    for number in range(50):
        world.push(f"x{number}", queue_id=2)
    for number in range(5_000):
        world.push(f"m{number}")
    world.checked = True
    world.join("a")
    world.step(ClearMessages(world.numbers["admin"], None, "ch", 2, True, True))
    world.told(world.broker.on_deadline(world.now))
    assert world.queue(queue_id=2).bytes == 0
    assert world.broker.next_deadline() == world.now


@pytest.mark.parametrize("work", [1, 2, 3])
def test_the_smallest_steps_get_there(work: int) -> None:
    world = World(EngineLimits(max_work_per_step=work))
    world.create(QueueChanges(delivery_handler="putback-end", acknowledge_timeout_ms=1_000))
    for number in range(5):
        world.push(f"m{number}")
    world.join("a")
    world.join("b")
    assert world.wait(0.0) != []
    assert world.books()["in_flight"] == 5
    world.wait(1.5)
    assert world.books()["requeued"] == 5
    assert world.books()["in_flight"] == 5


# --- The clock's word (no step over 20 ms) -------------------------------------------------------


#: What a step may take, in machines (``tests/machine.py``): all of it at once would take twenty.
PATIENCE = 2
MANY = 100_000


class Paced(Stopwatch):
    """A broker, and a stopwatch for its steps."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self.broker = broker

    def step(self, command: Command, now: float = 0.0) -> list[Effect]:
        return self.run(self.broker.step, command, now)

    def finish(self, now: float) -> int:
        steps = 0
        while True:
            deadline = self.broker.next_deadline()
            if deadline is None or deadline > now:
                return steps
            self.run(self.broker.on_deadline, now)
            steps += 1


def crowded(changes: QueueChanges | None = None, count: int = MANY) -> Paced:
    """A queue with many messages and nobody to take them."""
    broker = Broker(EngineLimits(), None, built_in_handlers())
    watch = Paced(broker)
    watch.step(Connect(1, None, "p"))
    watch.step(Connect(2, None, "c"))
    watch.step(CreateQueue(1, None, "ch", 1, changes))
    for number in range(count):
        watch.step(Push(1, f"m{number}", "ch", 1, number % 7 == 0, False, 100, b"x"))
    watch.longest_s = 0.0
    return watch


@pytest.mark.alone
@thrice
def test_pace_of_draining() -> None:
    watch = crowded(QueueChanges(request_acknowledge=False))
    watch.step(Join(2, None, "ch"))
    assert watch.finish(0.0) >= MANY / 1_000 - 2
    assert watch.broker.queues()[0].counters.done == MANY
    watch.within(PATIENCE)


@pytest.mark.alone
@thrice
def test_pace_of_expiry() -> None:
    watch = crowded(QueueChanges(message_timeout_ms=1_000))
    watch.finish(10.0)
    assert watch.broker.queues()[0].counters.expired == MANY
    watch.within(PATIENCE)


@pytest.mark.alone
@thrice
def test_pace_of_mixed_expiry() -> None:
    """Messages expire in the middle of the list, behind ones that stay."""
    watch = crowded(QueueChanges(status=STATUS_PAUSED), 10)
    extras = PushExtras(expires_in_ms=1_000)
    for number in range(MANY):
        chosen = extras if number % 10 else None
        watch.step(Push(1, f"x{number}", "ch", 1, False, False, 100, b"x", chosen))
    watch.longest_s = 0.0
    watch.finish(10.0)
    queue = watch.broker.queues()[0]
    assert queue.counters.expired == MANY * 9 // 10
    watch.within(PATIENCE)
    assert queue.imbalance() == 0


@pytest.mark.alone
@pytest.mark.parametrize("how", ["clear", "stop", "remove"])
@thrice
def test_pace_of_clearing(how: str) -> None:
    watch = crowded()
    if how == "clear":
        watch.step(ClearMessages(1, None, "ch", 1, True, True))
    elif how == "stop":
        watch.step(UpdateQueue(1, None, "ch", 1, QueueChanges(status=STATUS_STOPPED)))
    else:
        watch.step(RemoveChannel(1, None, "ch"))
    watch.finish(0.0)
    assert watch.broker.statistics().bytes == 0
    watch.within(PATIENCE)


@pytest.mark.alone
@thrice
def test_pace_of_time_outs() -> None:
    watch = crowded(
        QueueChanges(delivery_handler="putback-end", status=STATUS_PUSH, put_back_limit=2)
    )
    watch.step(Join(2, None, "ch"))
    now = 0.0
    for _ in range(40):
        watch.finish(now)
        now += 15.0
    assert watch.broker.queues()[0].counters.requeued > 0
    watch.within(PATIENCE)


@pytest.mark.alone
@thrice
def test_pace_of_lists() -> None:
    broker = Broker()
    watch = Paced(broker)
    watch.step(Connect(1, None, "p"))
    for number in range(broker.limits.max_channels):
        watch.step(CreateQueue(1, None, f"channel-{number}", 1))
    watch.within(PATIENCE)
    effects = watch.step(ListChannels(1, "r"))
    assert len(effects) == 1
    # The longest answer there can be; it is asked for by people.
    watch.within(5 * PATIENCE)
