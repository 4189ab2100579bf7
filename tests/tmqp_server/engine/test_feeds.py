"""Feeds: queues that take the messages of others at once and answer at once."""

from __future__ import annotations

import itertools

import pytest

from tests.tmqp_server.engine.feeds import (
    LATER,
    Begins,
    each_waiting,
    feed,
    feeds_of,
    topic,
    unfeed,
    waiting_in,
)
from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    STATUS_BROADCAST,
    STATUS_PAUSED,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
    STATUS_STOPPED,
)
from tmqp.extensions import KEYS_STICKY, LIFETIME_CONSUMERS
from tmqp_server.engine.commands import (
    CancelMessage,
    ClearMessages,
    CreateQueue,
    Join,
    ListFeeds,
    PushExtras,
    RemoveChannel,
    RemoveQueue,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import ChannelChanges, QueueChanges

# --- By status -----------------------------------------------------------------------------------


def test_every_feed_gets_a_copy_and_the_topic_keeps_nothing() -> None:
    world = topic("a", "b")
    assert world.push("m1", channel="t", wants=True) == ["p: m1 ok F"]
    assert world.push("m2", channel="t", high=True) == []
    assert waiting_in(world, "a") == waiting_in(world, "b") == ["m2", "m1"]
    assert world.books("t")["accepted"] == world.books("t")["done"] == 2
    assert "messages" not in world.books("t")
    assert world.books("t")["deliveries"] == 4
    copy = world.queue("a").regular.messages()[0]
    assert (copy.channel, copy.queue_id, copy.source) == ("a", 1, "p")
    assert copy.wire == "wire of m1"
    assert copy.readdressed
    assert not copy.is_dead_letter


def test_the_first_feed_gets_the_backlog_and_a_later_one_what_comes_then() -> None:
    world = topic()
    world.push("m1", channel="t")
    world.push("m2", channel="t")
    for name in ("a", "b"):
        world.create(QueueChanges(status=STATUS_ROUND_ROBIN), name)
    assert feed(world, "a") == ["admin feed: 0"]
    assert feed(world, "b") == ["admin feed: 0"]
    world.push("m3", channel="t")
    assert waiting_in(world, "a") == ["m1", "m2", "m3"]
    assert waiting_in(world, "b") == ["m3"]


def test_consumers_get_it_as_well_and_what_they_give_back_is_not_copied_again() -> None:
    world = topic("a", source=QueueChanges(delivery_handler="putback-end"))
    world.join("x", "t")
    world.join("y", "t")
    assert world.push("m1", channel="t") == ["x <- m1 FA", "y <- m1 A"]
    assert waiting_in(world, "a") == ["m1"]
    world.ack("y", "m1", "t")
    assert world.nack("x", "m1", channel="t") == ["x y <- m1 AR"]
    world.disconnect("x")
    world.disconnect("y")
    world.wait(4_000.0)
    assert waiting_in(world, "a") == ["m1"]
    assert world.queue("t").is_empty()  # all consumers have gone, and the feed has it
    assert world.books("t")["done"] == 1


def test_a_slow_consumer_holds_the_topic_and_feeds_wait_with_it() -> None:
    world = topic("a")
    world.join("x", "t", credit=1)
    world.push("m1", channel="t")
    assert world.push("m2", channel="t") == []
    assert waiting_in(world, "a") == ["m1"]
    assert world.leave("x", "t") == ["x leave: 0"]
    assert waiting_in(world, "a") == ["m1", "m2"]


def test_a_broadcast_goes_to_those_who_are_there_and_to_feeds_with_room() -> None:
    world = topic(
        "a",
        source=QueueChanges(status=STATUS_BROADCAST),
        target=QueueChanges(status=STATUS_PAUSED, message_limit=2),
    )
    for number in range(4):
        world.push(f"m{number}", channel="t")
    assert waiting_in(world, "a") == ["m0", "m1"]
    (found,) = feeds_of(world)
    assert (found.copied, found.passed, found.skipped) == (2, 0, 2)
    assert (world.books("t")["done"], world.books("t")["dropped"]) == (2, 2)


def test_consumers_and_feeds_take_turns_in_round_robin() -> None:
    world = topic("a", "b", source=QueueChanges(status=STATUS_ROUND_ROBIN))
    world.join("x", "t")
    taken = [world.push(f"m{number}", channel="t") for number in range(6)]
    assert taken == [["x <- m0 FA"], [], [], ["x <- m3 FA"], [], []]
    assert waiting_in(world, "a") == ["m1", "m4"]
    assert waiting_in(world, "b") == ["m2", "m5"]


def test_round_robin_passes_over_a_full_feed_and_waits_when_all_are_full() -> None:
    world = topic(
        "a",
        "b",
        source=QueueChanges(status=STATUS_ROUND_ROBIN),
        target=QueueChanges(status=STATUS_PAUSED, message_limit=1),
    )
    for number in range(4):
        world.push(f"m{number}", channel="t")
    assert each_waiting(world, "a", "b", "t") == [["m0"], ["m1"], ["m2", "m3"]]
    world.update(QueueChanges(message_limit=3), "b")
    world.wait(0.1)
    assert waiting_in(world, "b") == ["m1", "m2", "m3"]


def test_consumers_of_a_higher_priority_come_before_feeds() -> None:
    world = topic("a", source=QueueChanges(status=STATUS_ROUND_ROBIN))
    world.connect("x")
    terms = Terms(priority=5, window=1)
    world.step(Join(world.numbers["x"], "join", "t", -1, None, terms))
    assert world.push("m1", channel="t") == ["x <- m1 FA"]
    assert world.push("m2", channel="t") == []
    assert waiting_in(world, "a") == ["m2"]


def test_pausing_the_topic_keeps_and_pausing_the_channel_fills() -> None:
    world = topic("a")
    world.join("x", "a")
    world.update(QueueChanges(status=STATUS_PAUSED), "t")
    world.push("m1", channel="t")
    assert each_waiting(world, "t", "a") == [["m1"], []]
    assert "x <- m1 FA" in world.update(QueueChanges(status=STATUS_PUSH), "t")
    world.update(QueueChanges(status=STATUS_PAUSED), "a")
    assert world.push("m2", channel="t") == []
    assert each_waiting(world, "t", "a") == [[], ["m2"]]
    words = world.update(QueueChanges(status=STATUS_ROUND_ROBIN), "a")
    assert words == ["x <- m2 FA", "admin update: 0"]


def test_what_a_stopped_queue_or_one_for_smaller_messages_does_not_take_is_passed_over() -> None:
    world = topic("a", "b", target=QueueChanges(status=STATUS_PAUSED, message_size_limit=20))
    world.update(QueueChanges(status=STATUS_STOPPED), "a")
    world.push("m1", channel="t")
    world.push("large", channel="t", size=21)
    world.push("m2", channel="t")
    assert each_waiting(world, "a", "b", "t") == [[], ["m1", "m2"], []]
    assert [each.skipped for each in feeds_of(world)] == [3, 1]


# --- Full ----------------------------------------------------------------------------------------


def test_a_full_feed_holds_the_topic_and_nothing_is_lost() -> None:
    world = topic("a", "b", target=QueueChanges(status=STATUS_ROUND_ROBIN, message_limit=2))
    world.join("y", "b")
    for number in range(4):
        world.push(f"m{number}", channel="t")
    assert each_waiting(world, "a", "t") == [["m0", "m1"], ["m2", "m3"]]
    assert world.join("x", "a", credit=1) == ["x <- m0 FA", "x join: 0"]
    # It goes on when a message has left for good, and in any case a little later.
    assert world.ack("x", "m0", "a") == ["y <- m2 FA"]
    assert each_waiting(world, "a", "t") == [["m1", "m2"], ["m3"]]
    assert [each.waiting for each in feeds_of(world)] == [1, 1]
    world.step(ClearMessages(world.numbers["admin"], "clear", "a", 1, True, True))
    world.finish()
    world.wait(0.1)
    assert each_waiting(world, "a", "t") == [["m3"], []]


def test_what_a_consumer_has_in_hand_makes_room_a_little_later() -> None:
    """A consumer that collects messages before it answers would wait for ever otherwise."""
    world = topic("a", target=QueueChanges(status=STATUS_ROUND_ROBIN, message_limit=1))
    world.push("m1", channel="t")
    world.push("m2", channel="t")
    assert world.join("x", "a") == ["x <- m1 FA", "x join: 0"]
    assert world.wait(0.05) == ["x <- m2 FA"]


def test_the_topic_meets_its_own_limit_behind_a_full_feed() -> None:
    world = topic(
        "a",
        source=QueueChanges(status=STATUS_PUSH, message_limit=1),
        target=QueueChanges(status=STATUS_PAUSED, message_limit=1),
    )
    world.push("m1", channel="t")
    world.push("m2", channel="t")
    assert world.push("m3", channel="t") == ["p wire of m3: 482"]
    assert each_waiting(world, "a", "t") == [["m1"], ["m2"]]


def test_a_full_feed_that_drops_its_oldest_never_holds_the_topic() -> None:
    world = topic(
        "a", target=QueueChanges(status=STATUS_PAUSED, message_limit=2, when_full="drop-oldest")
    )
    for number in range(5):
        world.push(f"m{number}", channel="t")
    assert each_waiting(world, "a", "t") == [["m3", "m4"], []]
    assert world.books("a")["displaced"] == 3


def test_a_server_without_memory_for_all_copies_waits_until_there_is_some() -> None:
    limits = EngineLimits(max_total_bytes=8_100_000)
    world = topic("a", "b", "c", limits=limits)
    world.join("x", "a")
    sent = 0
    while not waiting_in(world, "t"):
        assert world.push(f"m{sent}", channel="t", size=200_000) in ([], [f"x <- m{sent} FA"])
        sent += 1
    assert sent > 5
    for number in range(sent):
        if f"m{number}" in world.queue("a").flights:
            world.ack("x", f"m{number}", "a")
    world.step(ClearMessages(world.numbers["admin"], "clear", "b", 1, True, True))
    world.finish()
    world.wait(0.1)
    assert (waiting_in(world, "t"), waiting_in(world, "c")) == (
        [],
        [f"m{number}" for number in range(sent)],
    )


def test_a_message_too_large_for_all_its_copies_together_passes_alone() -> None:
    """Copies share their bytes, so what counts as more than there is need not be."""
    limits = EngineLimits(max_total_bytes=300_000)
    world = topic("a", "b", "c", "d", limits=limits)
    assert world.push("m1", channel="t", size=100_000) == []
    assert [waiting_in(world, name) for name in "abcd"] == [["m1"]] * 4


@pytest.mark.parametrize("size", [100, 20_000])
def test_a_first_feed_was_refused_for_ever_where_its_backlog_filled_the_memory(size: int) -> None:
    world = topic(limits=EngineLimits(max_total_bytes=200_000))
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN), "a")
    sent = 0
    while "503" not in "".join(world.push(f"m{sent}", channel="t", size=size)):
        sent += 1
    assert feed(world, "a") == ["admin feed: 0"]  # 503, or 0 and nothing moved
    world.finish()
    assert (len(waiting_in(world, "t")), len(waiting_in(world, "a"))) == (0, sent)
    world.join("x", "a")
    for number in range(sent):
        world.ack("x", f"m{number}", "a")
    assert world.push("more", channel="t") == ["x <- more FA"]


# --- Filters -------------------------------------------------------------------------------------


def test_each_feed_has_its_own_filter() -> None:
    world = topic()
    for name, chosen in (("a", Begins("a")), ("b", Begins("b")), ("all", None)):
        world.create(QueueChanges(status=STATUS_ROUND_ROBIN), name)
        feed(world, name, chosen=chosen)
    for each in ("a1", "b1", "c1", "a2", "a!"):
        world.push(each, channel="t")
    assert waiting_in(world, "a") == ["a1", "a2"]
    assert waiting_in(world, "b") == ["b1"]
    assert waiting_in(world, "all") == ["a1", "b1", "c1", "a2", "a!"]
    assert [(each.copied, each.passed) for each in feeds_of(world)] == [(2, 3), (1, 4), (5, 0)]
    assert world.books("t")["errors"] == 2  # a filter that raises has refused
    unfeed(world, "all")
    world.push("c2", channel="t")
    assert world.books("t")["dropped"] == 1  # nobody wants it, and somebody is there


def test_a_full_feed_holds_only_what_it_wants() -> None:
    world = topic("b", target=QueueChanges(status=STATUS_PAUSED))
    world.create(QueueChanges(status=STATUS_PAUSED, message_limit=1), "a")
    feed(world, "a", chosen=Begins("a"))
    for each in ("a1", "b1", "a2", "b2"):
        world.push(each, channel="t")
    assert each_waiting(world, "a", "b", "t") == [["a1"], ["a1", "b1"], ["a2", "b2"]]


def test_round_robin_gives_a_message_to_a_feed_that_wants_it() -> None:
    world = topic(source=QueueChanges(status=STATUS_ROUND_ROBIN))
    for name in "ab":
        world.create(QueueChanges(status=STATUS_ROUND_ROBIN), name)
        feed(world, name, chosen=Begins(name))
    for each in ("b1", "b2", "a1", "c1", "a2"):
        world.push(each, channel="t")
    assert each_waiting(world, "a", "b") == [["a1"], ["b1", "b2"]]
    # What nobody wants waits for somebody who does, and what is behind it waits with it.
    assert waiting_in(world, "t") == ["c1", "a2"]
    assert world.join("x", "t") == ["x <- c1 FA", "x join: 0"]
    assert waiting_in(world, "a") == ["a1", "a2"]


# --- Deferred and expiring -----------------------------------------------------------------------


def test_a_deferred_message_passes_at_once_and_waits_in_each_target() -> None:
    world = topic("a", "b")
    world.join("x", "a")
    world.join("y", "b")
    assert world.push("m1", channel="t", wants=True, extras=LATER) == ["p: m1 ok F"]
    assert world.queue("t").is_empty()
    assert [len(world.queue(name).deferred) for name in "ab"] == [1, 1]
    assert world.wait(1.9) == []
    cancel = CancelMessage(world.numbers["admin"], "cancel", "b", 1, "m1")
    assert world.step(cancel) == ["admin cancel: 0"]
    assert world.wait(0.2) == ["x <- m1 FA"]


def test_consumers_of_the_topic_get_a_deferred_message_when_it_is_due() -> None:
    world = topic("a")
    world.join("z", "t")
    world.push("m1", channel="t", extras=LATER)
    assert (len(world.queue("t").deferred), len(world.queue("a").deferred)) == (1, 1)
    assert world.wait(2.0) == ["z <- m1 FA"]
    assert waiting_in(world, "a") == ["m1"]
    world.push("m2", channel="t", extras=LATER)
    world.leave("z", "t")
    world.wait(2.0)
    assert not world.queue("t").deferred
    assert not world.queue("t").waiting_count()
    assert waiting_in(world, "a") == ["m1", "m2"]


def test_what_cannot_pass_at_once_passes_when_it_is_due() -> None:
    world = topic("a")
    world.update(QueueChanges(status=STATUS_PAUSED), "t")
    world.push("m1", channel="t", extras=LATER)
    world.update(QueueChanges(status=STATUS_PUSH), "t")
    assert (len(world.queue("t").deferred), len(world.queue("a").deferred)) == (1, 0)
    world.wait(2.0)
    assert waiting_in(world, "a") == ["m1"]


def test_copies_expire_as_the_message_does_or_earlier() -> None:
    world = topic("a", target=QueueChanges(status=STATUS_PAUSED, message_timeout_ms=1_000))
    world.create(QueueChanges(status=STATUS_PAUSED), "b")
    feed(world, "b")
    world.push("m1", channel="t", extras=PushExtras(expires_in_ms=3_000))
    world.push("m2", channel="t", extras=PushExtras(expires_in_ms=500))
    world.wait(0.7)
    assert each_waiting(world, "a", "b") == [["m1"], ["m1"]]
    world.wait(0.6)
    assert each_waiting(world, "a", "b") == [[], ["m1"]]
    world.wait(2.0)
    assert waiting_in(world, "b") == []


# --- Who is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        ("ack-if-asked", ["p: m1 ok F"]),
        ("ack-received", ["p: m1 ok F"]),
        ("ack-sent", ["p: m1 ok"]),
        ("ack-consumer", ["p: m1 ok F"]),
        ("allow-all", []),
    ],
)
def test_a_feed_answers_at_once(handler: str, words: list[str]) -> None:
    world = topic("a", "b", source=QueueChanges(delivery_handler=handler))
    assert world.push("m1", channel="t", wants=True) == words
    assert world.queue("t").is_empty()


def test_nobody_is_told_of_a_copy() -> None:
    handlers = QueueChanges(status=STATUS_ROUND_ROBIN, delivery_handler="ack-consumer")
    world = topic("a", source=QueueChanges(delivery_handler="allow-all"), target=handlers)
    world.join("x", "a")
    assert world.push("m1", channel="t", wants=True) == ["x <- m1 FA"]
    assert world.ack("x", "m1", "a") == []


def test_a_copy_that_the_handler_of_its_queue_refuses_is_refused_there() -> None:
    world = topic("a", target=QueueChanges(delivery_handler="reject"))
    assert world.push("m1", channel="t", wants=True) == ["p: m1 ok F"]
    assert world.books("a")["refused"] == 1
    assert world.queue("t").is_empty()


def test_each_feed_counts_as_a_receiver() -> None:
    world = topic("a", "b")
    world.join("x", "t")
    world.push("m1", channel="t", wants=True, extras=PushExtras(counts_receivers=True))
    confirm = world.last[0]
    assert getattr(confirm, "receivers") == 3  # noqa: B009


# --- In a row ------------------------------------------------------------------------------------


def test_feeds_in_a_row_and_side_by_side() -> None:
    world = topic("a", "b")
    for name, source in (("c", "a"), ("d", "a"), ("d", "b")):
        if name not in [queue.channel_name for queue in world.broker.queues()]:
            world.create(QueueChanges(status=STATUS_PUSH), name)
        feed(world, name, source)
    world.update(QueueChanges(status=STATUS_PUSH), "a")
    world.update(QueueChanges(status=STATUS_PUSH), "b")
    world.push("m1", channel="t")
    world.finish()
    assert each_waiting(world, "a", "b") == [[], []]
    assert each_waiting(world, "c", "d") == [["m1"], ["m1", "m1"]]


def test_messages_do_not_come_back_to_where_they_were() -> None:
    world = topic("a", "b")
    world.create(QueueChanges(status=STATUS_PUSH), "c")
    feed(world, "c", "b")
    assert feed(world, "t", "t") == ["admin feed: 406"]
    assert feed(world, "t", "c") == ["admin feed: 406"]
    assert feed(world, "b", "c") == ["admin feed: 406"]
    assert feed(world, "a", "c") == ["admin feed: 0"]
    assert feed(world, "t", "a") == ["admin feed: 406"]


def test_a_long_row_takes_several_steps() -> None:
    world = World()
    names = [f"q{number}" for number in range(30)]
    for name in names:
        world.create(QueueChanges(status=STATUS_PUSH), name)
    for source, target in itertools.pairwise(names):
        feed(world, target, source)
    world.push("m1", channel="q0")
    assert not world.queue("q29").waiting_count()
    world.finish()
    assert waiting_in(world, "q29") == ["m1"]


# --- Adding and removing -------------------------------------------------------------------------


def test_what_cannot_be_added() -> None:
    world = topic("a", limits=EngineLimits(max_feeds_per_queue=2, max_feeds=3))
    assert feed(world, "a") == ["admin feed: 481"]
    assert feed(world, "missing") == ["admin feed: 404"]
    assert feed(world, "a", "missing") == ["admin feed: 404"]
    assert unfeed(world, "missing") == ["admin unfeed: 404"]
    for name in "bcde":
        world.create(QueueChanges(status=STATUS_ROUND_ROBIN), name)
    assert feed(world, "b") == ["admin feed: 0"]
    assert feed(world, "c") == ["admin feed: 482"]
    assert feed(world, "c", "b") == ["admin feed: 0"]
    assert feed(world, "d", "c") == ["admin feed: 482"]
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN, group_keys=KEYS_STICKY), "keys")
    assert feed(world, "e", "keys") == ["admin feed: 406"]
    assert world.update(QueueChanges(group_keys=KEYS_STICKY), "t") == ["admin update: 406"]
    assert world.step(ListFeeds(1, "list", "missing")) == ["admin list: 404"]


def test_feeds_are_listed_by_queue_or_by_channel() -> None:
    world = topic("a", "b")
    assert [(each.channel, each.target, each.target_queue) for each in feeds_of(world)] == [
        ("t", "a", 1),
        ("t", "b", 1),
    ]
    world.create(None, "t", 2)
    assert feeds_of(world, "t", 2) == []
    assert world.step(ListFeeds(world.numbers["admin"], "list", "t", 3)) == ["admin list: 404"]


def test_without_its_last_feed_a_topic_keeps_messages_again() -> None:
    world = topic("a", "b")
    world.push("m1", channel="t")
    assert unfeed(world, "a") == ["admin unfeed: 0"]
    assert unfeed(world, "a") == ["admin unfeed: 404"]
    world.push("m2", channel="t")
    assert each_waiting(world, "a", "b") == [["m1"], ["m1", "m2"]]
    unfeed(world, "b")
    world.finish()
    world.push("m3", channel="t")
    assert waiting_in(world, "t") == ["m3"]
    assert feeds_of(world) == []
    assert world.queue("t").plain


@pytest.mark.parametrize("whole", [True, False])
def test_a_feed_goes_with_its_target_and_lets_the_topic_go_on(whole: bool) -> None:
    world = topic("b")
    world.create(QueueChanges(status=STATUS_PAUSED, message_limit=1), "a")
    feed(world, "a")
    for number in range(3):
        world.push(f"m{number}", channel="t")
    assert waiting_in(world, "b") == ["m0"]
    number = world.numbers["admin"]
    gone = RemoveChannel(number, "gone", "a") if whole else RemoveQueue(number, "gone", "a", 1)
    assert world.step(gone) == ["admin gone: 0"]
    world.finish()
    assert waiting_in(world, "b") == ["m0", "m1", "m2"]
    assert [each.target for each in feeds_of(world)] == ["b"]


def test_a_feed_goes_with_its_source() -> None:
    world = topic("a")
    world.push("m1", channel="t")
    world.step(RemoveChannel(world.numbers["admin"], "gone", "t"))
    world.finish()
    assert waiting_in(world, "a") == ["m1"]
    assert world.queue("a").fed_by == []
    world.create(QueueChanges(status=STATUS_PUSH), "t")
    world.push("m2", channel="t")
    assert waiting_in(world, "a") == ["m1"]


def test_an_ephemeral_topic_ends_with_its_last_feed() -> None:
    world = World()
    world.connect("admin")
    for name, status in (("t", STATUS_PUSH), ("a", STATUS_ROUND_ROBIN)):
        rules = ChannelChanges(lifetime=LIFETIME_CONSUMERS)
        world.step(CreateQueue(1, "create", name, 1, QueueChanges(status=status), rules))
    feed(world, "a")
    world.join("z", "t")
    world.leave("z", "t")
    assert world.broker.has_queue("t", 1)  # there is a feed
    world.join("x", "a")
    assert world.push("m1", channel="t") == ["x <- m1 FA"]
    assert world.leave("x", "a") == ["x leave: 0"]
    assert not world.broker.has_queue("a", 1)
    world.finish()
    assert not world.broker.has_queue("t", 1)


def test_a_queue_that_is_fed_or_feeds_is_not_destroyed_when_it_is_empty() -> None:
    world = World()
    world.connect("admin")
    for name, status in (("t", STATUS_PUSH), ("a", STATUS_ROUND_ROBIN)):
        rules = ChannelChanges(destroy_when_empty=True)
        world.step(CreateQueue(1, "create", name, 1, QueueChanges(status=status), rules))
    feed(world, "a")
    world.push("m1", channel="t")
    world.join("x", "a")
    world.ack("x", "m1", "a")
    world.leave("x", "a")
    assert world.broker.has_queue("t", 1)
    assert world.broker.has_queue("a", 1)
    unfeed(world, "a")
    world.finish()
    assert not world.broker.has_queue("t", 1)
    assert not world.broker.has_queue("a", 1)


def test_a_queue_that_is_to_be_fed_is_created_only_beside_its_source() -> None:
    world = World()
    world.connect("admin")
    fed = CreateQueue(world.numbers["admin"], "fed", "to", 1, source=("from", 2))
    assert world.step(fed) == ["admin fed: 404"]
    world.create(channel="from", queue_id=1)
    assert world.step(fed) == ["admin fed: 404"]
    assert world.broker.statistics().channels == 1
    world.create(channel="from", queue_id=2)
    assert world.step(fed) == ["admin fed: 0"]
    assert world.step(fed) == ["admin fed: 481"]
