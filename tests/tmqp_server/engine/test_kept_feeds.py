"""Feeds of durable queues: what a storage that fails and a server that is killed leave."""

from __future__ import annotations

from collections import deque

import pytest

from tests.tmqp_server.engine.feeds import (
    LATER,
    each_waiting,
    feed,
    feeds_of,
    kept_topic,
    unfeed,
    waiting_in,
)
from tests.tmqp_server.engine.kept import KeptWorld
from tmqp.constants import STATUS_BROADCAST, STATUS_PAUSED, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp.extensions import LIFETIME_CONSUMERS
from tmqp_server.engine.commands import (
    Batch,
    Command,
    CreateQueue,
    Push,
    PushExtras,
    RemoveChannel,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.shell.saving import Saving


def test_a_durable_message_is_confirmed_when_its_copies_are_safe() -> None:
    world = kept_topic("a", "b")
    words = world.push("m1", channel="t", wants=True)
    assert [word.split()[0] for word in words] == ["append", "append", "append", "erase"]
    assert world.write() == ["p: m1 ok F"]
    world.crash()
    world.fetch()
    assert each_waiting(world, "a", "b", "t") == [["m1"], ["m1"], []]
    copy = world.queue("a").regular.messages()[0]
    assert copy.readdressed
    assert copy.channel == "a"
    assert [(each.target, each.copied) for each in feeds_of(world)] == [("a", 0), ("b", 0)]


def test_copies_that_cannot_be_saved_are_refused_to_the_producer() -> None:
    world = kept_topic("a", "b")
    world.push("m1", channel="t", wants=True)
    assert world.write("no space") == ["p: m1 no error F"]
    assert each_waiting(world, "a", "b", "t") == [[], [], []]


AWAITS = PushExtras(awaits_copies=True)


def memory_topic(*targets: str) -> KeptWorld:
    """A broadcast in memory that feeds durable queues, as a topic of JMS does."""
    return kept_topic(*targets, source=QueueChanges(status=STATUS_BROADCAST))


def test_the_confirm_of_a_topic_in_memory_waits_for_its_copies_where_the_push_says_so() -> None:
    world = memory_topic("a", "b")
    assert "p: m1 ok F" in world.push("m1", channel="t", wants=True), "as always"
    world.sync()
    words = world.push("m2", channel="t", wants=True, extras=AWAITS)
    assert [word.split()[0] for word in words] == ["append", "append"]
    assert world.write() == ["p: m2 ok F"]
    world.crash()
    world.fetch()
    assert each_waiting(world, "a", "b") == [["m1", "m2"], ["m1", "m2"]]


def test_such_a_confirm_is_negative_when_the_copies_cannot_be_saved() -> None:
    world = memory_topic("a")
    world.push("m1", channel="t", wants=True, extras=AWAITS)
    assert "p: m1 no error F" in world.write("no space")
    assert waiting_in(world, "a") == ["m1"], "it is owed to the storage"


def test_such_a_confirm_comes_although_the_copy_is_settled_first() -> None:
    world = memory_topic("a")
    world.join("x", "a")
    words = world.push("m1", channel="t", wants=True, extras=AWAITS)
    assert "x <- m1 FA" in words
    assert "p: m1 ok F" not in words
    world.ack("x", "m1", channel="a")
    assert "p: m1 ok F" in world.sync()


def test_such_a_confirm_comes_at_once_where_nothing_is_to_be_saved() -> None:
    world = memory_topic()
    assert world.push("m0", channel="t", wants=True, extras=AWAITS)[-1] == "p: m0 ok F"
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN), "a")
    feed(world, "a")
    world.sync()
    assert "p: m1 ok F" in world.push("m1", channel="t", wants=True, extras=AWAITS)
    assert world.push("m2", channel="t", extras=AWAITS) == []
    assert world.broker._core.tally.confirms == 2


def test_a_feed_without_room_was_passed_over_and_the_producer_told_that_all_is_well() -> None:
    world = memory_topic("a", "b")
    world.update(QueueChanges(message_limit=1, status=STATUS_PAUSED), "a")
    world.push("m0", channel="t", wants=True, extras=AWAITS)
    world.sync()
    words = world.push("m1", channel="t", wants=True, extras=AWAITS)
    (told,) = [word for word in words if word.startswith("p: m1")]
    assert told.startswith("p: m1 no")
    world.sync()
    assert each_waiting(world, "a", "b") == [["m0"], ["m0", "m1"]]
    tally = world.broker._core.tally
    assert (tally.confirms, tally.negative_confirms) == (1, 1)


EVERYTHING = ["m0", "m1", "m2"]


def backlog(*targets: str) -> KeptWorld:
    """A topic with saved messages and no feed, and queues that it can feed."""
    world = kept_topic()
    for name in targets:
        world.create(QueueChanges(status=STATUS_ROUND_ROBIN, durable=True), name)
    for each in EVERYTHING:
        world.push(each, channel="t", wants=True)
    world.sync()
    return world


def test_a_saved_backlog_moves_when_its_copies_are_safe() -> None:
    world = backlog("a")
    world.join("x", "a")
    assert not [word for word in feed(world, "a") if "<-" in word]  # nobody sees what is not safe
    assert world.queue("t").withheld == world.queue("a").withheld == 3
    assert world.sync() == ["admin feed: 0", "x <- m0 FA", "x <- m1 FA", "x <- m2 FA"]
    world.crash()
    world.fetch()
    assert each_waiting(world, "a", "t") == [EVERYTHING, []]


@pytest.mark.parametrize("written", [False, True])
def test_a_crash_while_a_backlog_moves_neither_loses_nor_doubles(written: bool) -> None:
    world = backlog("a", "b")
    world.update(QueueChanges(status=STATUS_PAUSED), "t")
    feed(world, "a")
    feed(world, "b")
    world.sync()
    world.update(QueueChanges(status=STATUS_PUSH), "t")
    if written:
        world.write()
    world.crash()
    world.fetch()
    if not written:  # the status was not kept either
        assert waiting_in(world, "t") == EVERYTHING
        world.update(QueueChanges(status=STATUS_PUSH), "t")
    world.sync()
    assert each_waiting(world, "a", "b", "t") == [EVERYTHING, EVERYTHING, []]


def test_a_backlog_whose_move_cannot_be_written_stays_and_moves_later() -> None:
    world = backlog("a", "b")
    world.update(QueueChanges(status=STATUS_PAUSED), "t")
    feed(world, "a")
    feed(world, "b")
    world.sync()
    world.update(QueueChanges(status=STATUS_PUSH), "t")
    assert world.write("no space") == ["admin update: 503"]
    assert each_waiting(world, "a", "b", "t") == [[], [], EVERYTHING]
    world.wait(0.05)
    world.sync()
    assert each_waiting(world, "a", "b", "t") == [EVERYTHING, EVERYTHING, []]
    world.crash()
    world.fetch()
    assert each_waiting(world, "a", "b", "t") == [EVERYTHING, EVERYTHING, []]


def test_a_backlog_that_a_late_write_has_moved_overtook_what_waited_on_disk() -> None:
    """Seed 31370: the broker took it in as if the storage still failed, so into memory."""
    target = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True, memory_limit=1)
    world = kept_topic()
    world.create(target, "a")
    for each in EVERYTHING:
        world.push(each, channel="a")
        world.push(each.replace("m", "n"), channel="t")
    world.sync()
    assert waiting_in(world, "a") == ["m0"]  # the others wait on disk
    feed(world, "a")
    answers: deque[Command] = deque()
    saving = Saving(world.journal, [], answers)
    saving.patience_s = 0.2
    saving.wake(world.now)
    world.store.write(saving.take().batch, int(world.now * 1e6))
    saving.on_deadline(world.now + 0.2)
    saving.written(None, world.now + 0.3)
    for answer in answers:
        world.step(answer)
    words = world.sync() + world.join("x", "a")
    got: list[str] = []
    while new := [word.split()[2] for word in words if "<-" in word]:
        got += new
        words = [word for each in new for word in world.ack("x", each, "a")] + world.sync()
    assert got == ["m0", "m1", "m2", "n0", "n1", "n2"]


def test_after_a_crash_consumers_get_a_message_that_was_fed_and_feeds_do_not() -> None:
    world = kept_topic("a")
    world.join("x", "t")
    world.push("m1", channel="t", wants=True)
    world.sync()
    world.crash()
    world.fetch()
    world.sync()
    assert waiting_in(world, "a") == ["m1"]
    assert world.queue("t").is_empty()  # no consumer is there, and the feed has it


def test_a_saved_message_is_fed_once_although_a_consumer_gets_it_as_well() -> None:
    world = kept_topic()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN, durable=True), "a")
    world.update(QueueChanges(status=STATUS_PAUSED), "t")
    world.push("m1", channel="t", wants=True)
    world.sync()
    feed(world, "a")
    world.join("x", "t")
    world.update(QueueChanges(status=STATUS_PUSH), "t")
    words = world.sync()
    assert "x <- m1 FA" in words
    assert waiting_in(world, "a") == ["m1"]
    world.crash()
    world.fetch()
    world.sync()
    assert waiting_in(world, "a") == ["m1"]
    assert world.queue("t").is_empty()


def test_a_deferred_copy_survives_a_restart() -> None:
    world = kept_topic("a")
    world.push("m1", channel="t", wants=True, extras=LATER)
    world.sync()
    world.crash()
    world.fetch()
    assert len(world.queue("a").deferred) == 1
    world.wait(2.0)
    assert waiting_in(world, "a") == ["m1"]


def test_feeds_of_temporary_channels_are_not_kept() -> None:
    world = kept_topic("a")
    rules = ChannelChanges(lifetime=LIFETIME_CONSUMERS)
    number = world.numbers["admin"]
    world.step(CreateQueue(number, "create", "b", 1, QueueChanges(status=STATUS_PUSH), rules))
    feed(world, "b")
    world.sync()
    world.crash()
    assert [each.target for each in feeds_of(world)] == ["a"]


def test_a_removed_feed_stays_removed_and_goes_with_its_target() -> None:
    world = kept_topic("a", "b", "c")
    unfeed(world, "a")
    world.step(RemoveChannel(world.numbers["admin"], "gone", "b"))
    world.sync()
    world.crash()
    assert [each.target for each in feeds_of(world)] == ["c"]


@pytest.mark.parametrize("size", [200, 20_000])
def test_a_first_feed_was_refused_for_ever_where_its_saved_backlog_filled_the_memory(
    size: int,
) -> None:
    world = kept_topic(limits=EngineLimits(max_total_bytes=200_000))
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN, durable=True), "a")
    sent = 0
    while "503" not in "".join(world.push(f"m{sent}", channel="t", size=size)):
        world.sync()
        sent += 1
    assert "admin feed: 0" in [*feed(world, "a"), *world.sync()]
    for _ in range(sent):
        world.wait(0.05)
        world.sync()
        assert world.broker._core.total_bytes <= 200_000 + 262_144
    assert (len(waiting_in(world, "t")), len(waiting_in(world, "a"))) == (0, sent)


# --- A source in memory --------------------------------------------------------------------------

IN_MEMORY = QueueChanges(status=STATUS_PUSH)


def test_a_copy_of_a_message_in_memory_that_cannot_be_saved_stays_and_is_saved_later() -> None:
    world = kept_topic("a", source=IN_MEMORY)
    assert world.push("m1", channel="t", wants=True)[0] == "p: m1 ok F"
    assert world.write("no space") == []
    assert waiting_in(world, "a") == ["m1"]  # it was lost
    world.wait(0.05)
    world.sync()
    world.crash()
    world.fetch()
    assert waiting_in(world, "a") == ["m1"]


def test_an_owed_copy_is_saved_only_if_nobody_is_done_with_it_and_when_the_storage_works() -> None:
    world = kept_topic("a", source=IN_MEMORY)
    for each in EVERYTHING:
        world.push(each, channel="t", wants=True)
    world.write("no space")
    world.state(False)
    world.join("x", "a")
    world.ack("x", "m0", "a")
    assert world.wait(5.0) == []
    world.state(True)
    assert [word.split()[0] for word in world.wait(0.05)] == ["append", "append"]
    world.write("no space")  # and again
    world.wait(0.05)
    world.sync()
    world.crash()
    world.fetch()
    assert waiting_in(world, "a") == ["m1", "m2"]


def test_an_owed_copy_waits_until_its_queue_may_have_more_on_disk() -> None:
    target = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True, disk_limit_bytes=60)
    world = kept_topic("a", source=IN_MEMORY, target=target)
    world.push("m1", size=40, channel="t")
    world.write("no space")
    world.state(True)
    world.push("m2", size=40, channel="a", wants=True)
    world.sync()
    world.wait(0.05)
    assert world.queue("a").disk_bytes == 40
    world.join("x", "a")
    world.ack("x", "m2", "a")
    world.wait(0.05)
    world.sync()
    world.crash()
    world.fetch()
    assert waiting_in(world, "a") == ["m1"]


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("status", [STATUS_PUSH, STATUS_BROADCAST, STATUS_ROUND_ROBIN])
def test_no_kind_of_source_in_memory_loses_a_copy_that_cannot_be_saved(
    status: int, chained: bool
) -> None:
    world = kept_topic("a", source=QueueChanges(status=status))
    last = "a"
    if chained:
        world.create(QueueChanges(status=STATUS_ROUND_ROBIN, durable=True), "b")
        feed(world, "b", "a")
        world.sync()
        last = "b"
    world.push("m1", channel="t")
    world.push("m2", channel="t", extras=LATER)
    world.write("no space")
    world.wait(2.1)
    world.sync()
    world.wait(0.1)
    world.sync()
    world.crash()
    world.fetch()
    assert waiting_in(world, last) == ["m1", "m2"]


def test_copies_beyond_the_memory_of_their_queue_stay_there_while_they_cannot_be_saved() -> None:
    target = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True, memory_limit=1)
    world = kept_topic("a", source=IN_MEMORY, target=target)
    for each in EVERYTHING:
        world.push(each, channel="t")
    world.write("no space")
    assert waiting_in(world, "a") == EVERYTHING
    world.wait(0.05)
    world.sync()
    world.crash()
    world.fetch()
    world.join("x", "a")
    world.sync()
    assert sorted(each for each in world.queue("a").flights) == EVERYTHING


def test_a_copy_put_back_before_it_was_safe_was_lost_after_its_producer_had_been_told() -> None:
    """Its first place on the disk was given up for one that the next write did not bring."""
    world = kept_topic("a")
    world.join("x", "a")
    world.push("m1", channel="t", wants=True)
    first = world.journal.take()
    world.release("x", "m1", delay_ms=1_000, channel="a")
    world.store.write(first.batch, 1)
    answer = world.journal.finished(first, True)
    assert answer is not None
    assert "p: m1 ok F" in world.step(answer)
    world.write("no space")
    world.write()  # what the failed batch had to settle
    assert "x <- m1 AR" in world.wait(1.0)
    world.crash()
    world.fetch()
    assert waiting_in(world, "a") == ["m1"]


# --- Batches into a broadcast ---------------------------------------------------------------------


def broadcast(*targets: str, durable: bool = True) -> KeptWorld:
    """A broadcast, which keeps nothing, with queues that it feeds, and a producer."""
    world = kept_topic(
        *targets,
        source=QueueChanges(status=STATUS_BROADCAST),
        target=QueueChanges(status=STATUS_ROUND_ROBIN, durable=durable),
    )
    world.connect("p")
    return world


def batch_of(world: KeptWorld, *message_ids: str) -> list[str]:
    number = world.numbers["p"]
    pushes: list[Command] = [
        Push(number, each, "t", 1, False, False, 10, f"wire of {each}") for each in message_ids
    ]
    return world.step(Batch(number, "batch", pushes))


def test_a_batch_into_a_broadcast_is_done_when_its_durable_copies_are_safe() -> None:
    world = broadcast("a", "b")
    words = batch_of(world, "m1", "m2")
    assert [word.split()[0] for word in words] == ["append"] * 4 + ["CommitBatch"]
    assert world.write() == ["p batch: 0"]
    world.crash()
    world.fetch()
    assert each_waiting(world, "a", "b") == [["m1", "m2"]] * 2


def test_a_batch_whose_copies_cannot_be_saved_says_so_and_they_are_owed() -> None:
    world = broadcast("a")
    batch_of(world, "m1")
    assert world.write("no space") == ["p batch: 503"]
    world.wait(0.05)
    world.sync()
    world.crash()
    world.fetch()
    assert waiting_in(world, "a") == ["m1"]


def test_a_batch_into_a_broadcast_that_feeds_nothing_durable_waits_for_nothing() -> None:
    world = broadcast("a", durable=False)
    assert batch_of(world, "m1") == ["p batch: 0"]


def test_what_the_budget_leaves_to_the_pump_is_copied_before_a_batch_is_done() -> None:
    world = broadcast("a")
    words = batch_of(world, *[f"m{number}" for number in range(900)])
    while "p batch: 0" not in words:
        words = [*world.finish(), *world.write()]
    world.crash()
    world.fetch()
    assert len(waiting_in(world, "a")) == 900
