"""The work of feeds: what targets are asked, and what one step does (F8).

What a step does is counted, in copies, deliveries or questions, and not timed.
"""

from __future__ import annotations

import itertools

import pytest

from tests.tmqp_server.engine.feeds import each_waiting, feed, feeds_of, topic, unfeed, waiting_in
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_BROADCAST, STATUS_PAUSED, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    AddFeed,
    Connect,
    CreateQueue,
    Join,
    Push,
    RemoveChannel,
    UpdateQueue,
)
from tmqp_server.engine.delivery.feed_rooms import FeedRooms
from tmqp_server.engine.effects import Deliver
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import QueueChanges


@pytest.mark.cold
@pytest.mark.parametrize("status", [STATUS_PUSH, STATUS_ROUND_ROBIN, STATUS_BROADCAST])
def test_a_target_is_asked_once_for_each_copy_whether_it_has_room(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    room = FeedRooms.room

    def counted(rooms: FeedRooms, target: Queue, message: Message) -> int:
        asked.append(target.channel_name)
        return room(rooms, target, message)

    monkeypatch.setattr(FeedRooms, "room", counted)
    world = topic("a", "b", source=QueueChanges(status=status))
    world.push("m1", channel="t")
    world.push("m2", channel="t")
    both = ["a", "b", "a", "b"]
    assert sorted(asked) == sorted(["b", "a"] if status == STATUS_ROUND_ROBIN else both)


def test_a_target_that_a_copy_has_filled_by_another_way_is_asked_again() -> None:
    world = topic("a", "b", target=QueueChanges(status=STATUS_PUSH, message_limit=1))
    feed(world, "b", "a")
    world.push("m1", channel="t")
    # It came by way of a, so t's own copy finds no room.
    assert each_waiting(world, "a", "b") == [[], ["m1"]]
    assert [(each.copied, each.skipped) for each in feeds_of(world)] == [(1, 0), (0, 1)]


def test_f8_pushes_into_many_feeds_in_a_row_kept_others_waiting_for_a_thousand_copies() -> None:
    world = topic(*[f"q{number}" for number in range(256)])
    world.connect("p")
    number = world.numbers["p"]
    pushes = [Push(number, f"m{each}", "t", 1, False, False, 10, "m", None) for each in range(20)]
    world.broker.take_work()
    at = 0
    while at < len(pushes):
        begun = at
        at, _ = world.broker.steps(pushes, at, world.now, 1 << 20)
        world.broker.take_work()
        copies = (at - begun) * 256
        assert 0 < copies <= 512
        assert world.broker.next_deadline() is None
    assert waiting_in(world, "q255") == [f"m{each}" for each in range(20)]


def test_f8_a_row_of_queues_with_many_feeds_each_was_copied_in_one_step() -> None:
    broker = Broker()
    broker.step(Connect(1, None, "p"), 0.0)
    names = [f"t{number}" for number in range(8)]

    def create(name: str, status: int) -> None:
        broker.step(CreateQueue(1, None, name, 1, QueueChanges(status=status)), 0.0)

    for name in names:
        create(name, STATUS_PUSH)
    create("end", STATUS_PAUSED)
    for source, target in itertools.pairwise([*names, "end"]):
        # The first feed goes on to the next row, which begins before the others are done.
        broker.step(AddFeed(1, None, source, 1, target, 1), 0.0)
        for place in range(1, 128):
            create(f"{source}-{place}", STATUS_PAUSED)
            broker.step(AddFeed(1, None, source, 1, f"{source}-{place}", 1), 0.0)
    queues = {queue.channel_name: queue for queue in broker.queues()}

    def copies() -> int:
        return sum(feed.copied for name in names for feed in queues[name].feeds or ())

    broker.step(Push(1, "m1", "t0", 1, False, False, 10, "m", None), 0.0)
    done = [copies()]
    while broker.next_deadline() == 0.0:
        broker.on_deadline(0.0)
        done.append(copies())
    steps = [after - before for before, after in itertools.pairwise([0, *done])]
    assert max(steps) <= 512, "within the work of one step, but for the last message"
    assert done[-1] == 8 * 128
    assert queues["end"].waiting_count() == 1


def test_f8_turns_among_many_slow_consumers_and_a_feed_kept_others_waiting() -> None:
    world = topic("a", source=QueueChanges(status=STATUS_PAUSED))
    world.join("ready", channel="t")
    for number in range(1_000, 1_800):
        world.broker.step(Connect(number, None, f"c{number}"), world.now)
        world.broker.step(Join(number, None, "t", 0), world.now)
    for number in range(100):
        push = Push(world.numbers["ready"], f"m{number}", "t", 1, False, False, 9, "m", None)
        world.broker.step(push, world.now)
    full = QueueChanges(message_limit=1)
    world.broker.step(UpdateQueue(1, None, "a", 1, full), world.now)
    resumed = UpdateQueue(1, None, "t", 1, QueueChanges(status=STATUS_ROUND_ROBIN))
    effects = world.broker.step(resumed, world.now)
    sent = sum(isinstance(effect, Deliver) for effect in effects)
    assert 0 < sent <= 20, "each message passes 800 consumers that take none"
    while world.broker.next_deadline() == world.now:
        effects = world.broker.on_deadline(world.now)
        assert sum(isinstance(effect, Deliver) for effect in effects) <= 20
    assert world.queue("t").waiting_count() == 0


@pytest.mark.cold
def test_f8_queues_that_wait_for_one_full_target_asked_all_others_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PAUSED, message_limit=1), "full")
    targets = [f"q{number}" for number in range(30)]
    for name in targets:
        world.create(QueueChanges(status=STATUS_PAUSED), name)
    for source in ("s", "t"):
        world.create(QueueChanges(status=STATUS_PUSH), source)
        for name in (*targets, "full"):
            feed(world, name, source)
        world.push(f"to {source}", channel=source)
    assert (waiting_in(world, "s"), waiting_in(world, "t")) == ([], ["to t"])
    asked: list[str] = []
    room = FeedRooms.room

    def counted(rooms: FeedRooms, target: Queue, message: Message) -> int:
        asked.append(target.channel_name)
        return room(rooms, target, message)

    monkeypatch.setattr(FeedRooms, "room", counted)
    for _ in range(3):
        world.wait(0.021)
    assert asked == ["full"] * 3
    unfeed(world, "full", "t")
    world.finish()
    assert waiting_in(world, "t") == []
    assert waiting_in(world, "q29") == ["to s", "to t"]


def test_f8_a_channel_that_many_feed_was_removed_in_one_step() -> None:
    broker = Broker(EngineLimits(max_queues_per_channel=200))
    broker.step(Connect(1, None, "p"), 0.0)
    for queue_id in range(120):
        broker.step(CreateQueue(1, None, "to", queue_id), 0.0)
    for source in range(10):
        broker.step(CreateQueue(1, None, "from", source), 0.0)
        for queue_id in range(120):
            broker.step(AddFeed(1, None, "from", source, "to", queue_id), 0.0)
    broker.step(RemoveChannel(1, None, "to"), 0.0)
    left = [queue for queue in broker.queues() if queue.channel_name == "to"]
    assert 0 < len(left) < 120, "2,000 units of work, of which each feed takes two"
    while broker.next_deadline() == 0.0:
        broker.on_deadline(0.0)
    assert {queue.channel_name for queue in broker.queues()} == {"from"}
    assert all(queue.feeds is None for queue in broker.queues())


def test_many_copies_of_copies_are_made_within_the_work_of_a_step() -> None:
    world = World(EngineLimits(max_work_per_step=50))
    world.create(QueueChanges(status=STATUS_PUSH), "t")
    for number in range(20):
        world.create(QueueChanges(status=STATUS_PUSH), f"a{number}")
        feed(world, f"a{number}")
        for other in range(20):
            if number == 0:
                world.create(QueueChanges(status=STATUS_PAUSED), f"b{other}")
            feed(world, f"b{other}", f"a{number}")
    world.push("m1", channel="t")
    done = sum(world.queue(f"b{number}").waiting_count() for number in range(20))
    assert done < 100
    world.finish()
    assert [world.queue(f"b{number}").waiting_count() for number in range(20)] == [20] * 20
