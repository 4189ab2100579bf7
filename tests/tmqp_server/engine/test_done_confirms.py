"""Confirms of durable messages that were acknowledged before the storage had them."""

from __future__ import annotations

from tests.tmqp_server.engine.feeds import feed
from tests.tmqp_server.engine.kept import KeptWorld
from tmqp.constants import STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import PushExtras
from tmqp_server.engine.options import QueueChanges

DONE = PushExtras(done_confirms=True)


def world_of(status: int = STATUS_ROUND_ROBIN, retain_bytes: int | None = None) -> KeptWorld:
    """A durable queue with a consumer."""
    world = KeptWorld()
    world.create(
        QueueChanges(
            status=status, durable=True, request_acknowledge=True, retain_bytes=retain_bytes
        )
    )
    world.join("c")
    world.sync()
    return world


def told(words: list[str]) -> list[str]:
    """What the producer is told."""
    return [word for word in words if word.startswith("p: ")]


def pushed(world: KeptWorld, extras: PushExtras | None = DONE) -> None:
    """A message whose producer waits."""
    assert told(world.push("m", wants=True, extras=extras)) == []


def test_who_has_done_with_a_message_lets_its_producer_go_on() -> None:
    world = world_of()
    pushed(world)
    assert told(world.ack("c", "m")) == ["p: m ok F"]
    assert told(world.write()) == [], "once"
    world.crash()
    assert world.queue().live() == 0, "nobody is owed it"


def test_a_message_that_is_done_before_it_is_written_is_not_written() -> None:
    world = world_of()
    pushed(world)
    world.ack("c", "m")
    writing = world.journal.take()
    assert writing.batch.is_empty()


def test_a_message_that_was_being_written_comes_back_after_a_crash_and_is_not_lost() -> None:
    world = world_of()
    pushed(world)
    writing = world.journal.take()
    assert told(world.ack("c", "m")) == ["p: m ok F"]
    world.store.write(writing.batch, 0)
    world.crash()
    assert world.queue().live() == 1, "its end was not written"


def test_a_storage_that_fails_behind_it_changes_nothing() -> None:
    world = world_of()
    pushed(world)
    assert told(world.ack("c", "m")) == ["p: m ok F"]
    assert told(world.write("no space")) == []


def test_nobody_is_told_early_who_has_not_asked_for_it() -> None:
    world = world_of()
    pushed(world, None)
    assert told(world.ack("c", "m")) == []
    assert told(world.write()) == ["p: m ok F"]


def test_a_message_that_was_only_sent_waits_for_the_storage() -> None:
    world = world_of()
    pushed(world)
    assert told(world.write()) == ["p: m ok F"]


def test_a_message_that_was_refused_waits_for_the_storage() -> None:
    world = world_of()
    pushed(world)
    assert told(world.nack("c", "m")) == []
    assert told(world.write()) == ["p: m ok F"]


def test_a_message_for_several_waits_for_the_storage() -> None:
    world = world_of(STATUS_PUSH)
    world.join("d")
    pushed(world)
    assert told(world.ack("c", "m")) == []
    assert told(world.ack("d", "m")) == []
    assert told(world.write()) == ["p: m ok F"]


def test_a_message_that_readers_get_later_waits_for_the_storage() -> None:
    world = world_of(retain_bytes=1_000)
    pushed(world)
    assert told(world.ack("c", "m")) == []
    assert told(world.write()) == ["p: m ok F"]


def test_a_message_with_copies_elsewhere_waits_for_the_storage() -> None:
    world = world_of()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN, durable=True), "a")
    feed(world, "a", "ch")
    world.sync()
    pushed(world)
    assert told(world.ack("c", "m")) == []
    assert told(world.write()) == ["p: m ok F"]


def test_a_copy_does_not_stand_for_its_siblings() -> None:
    world = KeptWorld()
    world.create(QueueChanges(status=STATUS_PUSH), "t")
    shape = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True, request_acknowledge=True)
    for name in ("a", "b"):
        world.create(shape, name)
        feed(world, name)
    world.join("c", "b")
    world.sync()
    extras = PushExtras(awaits_copies=True, done_confirms=True)
    assert told(world.push("m", channel="t", wants=True, extras=extras)) == []
    assert told(world.ack("c", "m", "b")) == []
    assert told(world.write()) == ["p: m ok F"]


def test_a_message_that_was_put_back_is_confirmed_when_the_next_one_has_done_with_it() -> None:
    world = world_of()
    world.join("d")
    pushed(world)
    assert told(world.release(holder_of(world), "m")) == []
    assert told(world.ack(holder_of(world), "m")) == ["p: m ok F"]


def holder_of(world: KeptWorld) -> str:
    """Who has the message."""
    holder = world.queue().flights["m"].holder
    assert holder is not None
    return world.names[holder.number]
