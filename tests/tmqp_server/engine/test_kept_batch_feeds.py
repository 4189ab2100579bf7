"""Batches of pushes into topics in memory: the copies for durable queues are part of the batch."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.feeds import (
    Begins,
    each_waiting,
    feed,
    feeds_of,
    kept_topic,
    waiting_in,
)
from tests.tmqp_server.engine.kept import KeptWorld
from tmqp.constants import STATUS_BROADCAST, STATUS_PAUSED
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Push, PushExtras
from tmqp_server.engine.options import QueueChanges

AWAITS = PushExtras(awaits_copies=True)


def topic(*targets: str) -> KeptWorld:
    """A broadcast in memory that feeds durable queues, as a topic of JMS does."""
    world = kept_topic(*targets, source=QueueChanges(status=STATUS_BROADCAST))
    world.connect("p")
    return world


def push(world: KeptWorld, message_id: str, extras: PushExtras | None = AWAITS) -> Push:
    number = world.numbers["p"]
    wire = f"wire of {message_id}"
    return Push(number, message_id, "t", 1, False, False, 10, wire, extras)


def batch(world: KeptWorld, *parts: Command) -> list[str]:
    return world.step(Batch(world.numbers["p"], "batch", list(parts)))


@pytest.mark.parametrize("written", [False, True])
def test_a_transaction_was_safe_before_its_messages_for_durable_subscribers(written: bool) -> None:
    world = topic("a", "b")
    words = batch(world, push(world, "m1"), push(world, "m2"))
    assert not [word for word in words if word.endswith("batch: 0")]
    if written:
        words = world.write()
        assert words[-1].endswith("batch: 0")
    world.crash()
    world.fetch()
    expected = ["m1", "m2"] if written else []
    assert each_waiting(world, "a", "b") == [expected, expected]


def test_live_subscribers_get_it_once_the_batch_is_safe_and_feeds_get_it_once() -> None:
    world = topic("a")
    world.join("x", "t")
    words = batch(world, push(world, "m1"))
    assert not [word for word in words if " <- " in word]
    assert [word for word in world.sync() if " <- " in word] == ["x <- m1 FA"]
    assert each_waiting(world, "a", "t") == [["m1"], []]
    assert [each.copied for each in feeds_of(world)] == [1]
    copy = world.queue("a").regular.messages()[0]
    assert (copy.readdressed, copy.saved, copy.channel) == (True, True, "a")


def test_nothing_of_it_is_done_when_a_subscriber_has_no_room() -> None:
    world = topic("a", "b")
    world.update(QueueChanges(message_limit=1, status=STATUS_PAUSED), "b")
    words = batch(world, push(world, "m1"), push(world, "m2"))
    assert words[-1].endswith("batch: 482")
    world.sync()
    assert each_waiting(world, "a", "b") == [[], []]
    assert [each.skipped for each in feeds_of(world)] == [0, 1]


def test_nothing_of_it_is_done_when_the_disk_fails() -> None:
    world = topic("a")
    world.create(QueueChanges(), "q")
    world.join("p", "q")
    world.push("m0", channel="q", producer="o")
    batch(world, push(world, "m1"), Acknowledge(world.numbers["p"], "m0", "q", 1))
    words = world.write("no space")
    assert words[-1].endswith("batch: 503")
    assert each_waiting(world, "a") == [[]]
    assert list(world.queue("q").flights) == ["m0"]


def test_a_batch_that_was_done_was_called_void_when_a_feed_added_meanwhile_was_not_saved() -> None:
    world = topic()
    world.create(QueueChanges(durable=True, status=STATUS_PAUSED), "q")
    world.sync()
    number = world.numbers["p"]
    batch(world, push(world, "m1"), Push(number, "m2", "q", 1, False, False, 10, "wire of m2"))
    first = world.journal.take()
    world.create(QueueChanges(durable=True, status=STATUS_PAUSED), "a")
    feed(world, "a")
    world.store.write(first.batch, 1)
    answer = world.journal.finished(first, True)
    assert answer is not None
    assert world.step(answer)[-1].endswith("batch: 0")
    assert each_waiting(world, "a", "q") == [["m1"], ["m2"]]
    assert not [word for word in world.write("no space") if "batch" in word]
    assert each_waiting(world, "a", "q") == [["m1"], ["m2"]]
    world.wait(0.05)
    world.sync()
    world.crash()
    world.fetch()
    assert waiting_in(world, "q") == ["m2"]


def test_filters_of_feeds_choose_in_a_batch_too() -> None:
    world = topic("a")
    world.create(QueueChanges(durable=True, status=STATUS_PAUSED), "b")
    feed(world, "b", chosen=Begins("n"))
    world.sync()
    batch(world, push(world, "m1"), push(world, "n1"), push(world, "n!"))
    world.sync()
    assert each_waiting(world, "a", "b") == [["m1", "n1", "n!"], ["n1"]]


def test_a_batch_that_does_not_ask_for_it_is_copied_afterwards_as_ever() -> None:
    world = topic("a")
    batch(world, push(world, "m1", None))
    assert world.sync()[-1].endswith("batch: 0")
    assert each_waiting(world, "a") == [["m1"]]
