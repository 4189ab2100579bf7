"""Dead letters in durable queues: what a storage that fails leaves of them."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.feeds import waiting_in
from tests.tmqp_server.engine.kept import DURABLE, KeptWorld
from tmqp.constants import STATUS_PULL
from tmqp_server.engine.commands import ClearMessages
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import DEAD_LETTER, QueueChanges

GRAVE = ("g", 1)
AGAIN = QueueChanges(delivery_handler="putback-end", put_back_limit=1, dead_letter=GRAVE)
CAUSES = {
    "put-backs": AGAIN,
    "expired": QueueChanges(
        status=STATUS_PULL,
        message_timeout_ms=500,
        dead_letter=GRAVE,
        expired_to_dead_letter=True,
    ),
    "full": QueueChanges(
        status=STATUS_PULL, message_limit=1, when_full=DEAD_LETTER, dead_letter=GRAVE
    ),
}


def world_with(
    changes: QueueChanges, grave: QueueChanges = DURABLE, limits: EngineLimits | None = None
) -> KeptWorld:
    """A world with a queue, and a durable one for its dead letters."""
    world = KeptWorld(limits)
    world.create(changes)
    world.create(grave, "g")
    world.sync()
    return world


def bury(world: KeptWorld, cause: str, message_id: str = "m1") -> None:
    """Push a message that its queue gives up."""
    world.push(message_id)
    if cause == "full":
        world.push("next")
    elif cause == "expired":
        world.wait(0.7)
    else:
        world.join("a")
        for _ in range(2):
            world.nack("a", message_id)
            world.finish()


def after_a_crash(world: KeptWorld, channel: str = "g") -> list[str]:
    """What a crash leaves in a queue when the storage has worked again for a while."""
    world.state(True)
    world.wait(0.1)
    world.sync()
    world.crash()
    world.fetch()
    return waiting_in(world, channel)


@pytest.mark.parametrize("cause", CAUSES)
def test_a_dead_letter_from_memory_was_lost_when_its_queue_could_not_save_it(cause: str) -> None:
    world = world_with(CAUSES[cause])
    bury(world, cause)
    world.write("no space")
    assert waiting_in(world, "g") == ["m1"], "it was lost"
    assert world.books("g")["messages"] == 1
    world.wait(0.05)
    world.write("no space")  # and again
    assert after_a_crash(world) == ["m1"]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_dead_letter_from_memory_was_dropped_while_the_storage_failed(cause: str) -> None:
    world = world_with(CAUSES[cause])
    world.state(False)
    bury(world, cause)
    assert waiting_in(world, "g") == ["m1"], "it was dropped"
    assert world.wait(1.0) == [], "the storage is left alone"
    assert after_a_crash(world) == ["m1"]


def test_a_dead_letter_that_the_storage_has_no_room_for_at_the_moment_is_saved_later() -> None:
    world = world_with(CAUSES["full"], limits=EngineLimits(max_unsynced_bytes=15))
    for each in ("m1", "m2", "m3"):
        bury(world, "full", each)
    assert waiting_in(world, "g") == ["m1", "next", "m2", "next", "m3"]
    for _ in range(6):
        world.sync()
        world.wait(0.05)
    world.crash()
    world.sync()
    assert sorted(waiting_in(world, "g")) == ["m1", "m2", "m3", "next", "next"]


def test_a_dead_letter_beyond_the_memory_of_its_queue_is_owed_too() -> None:
    world = world_with(CAUSES["full"], QueueChanges(durable=True, memory_limit=1))
    for each in ("m1", "m2", "m3", "m4"):
        world.push(each)
    world.write("no space")
    assert waiting_in(world, "g") == ["m1", "m2", "m3"]
    world.state(True)
    world.wait(0.1)
    world.sync()
    world.crash()
    world.fetch()
    assert world.queue("g").live() == 3


def test_what_is_settled_while_it_is_owed_is_not_remembered() -> None:
    world = world_with(CAUSES["full"], QueueChanges(durable=True, status=STATUS_PULL))
    world.state(False)
    for each in ("m1", "m2", "m3"):
        world.push(each)
    debts = world.broker._outcomes.debts
    assert len(debts._owed) == 2
    world.join("a", "g")
    world.pull("a", channel="g")
    world.ack("a", "m1", "g")
    assert len(debts._owed) == 1
    world.step(ClearMessages(world.numbers["admin"], "clear", "g", 1, True, True))
    world.finish()
    assert not debts._owed
    assert after_a_crash(world) == []


@pytest.mark.parametrize("answered", [True, False])
def test_a_dead_letter_was_lost_whose_message_was_confirmed_while_it_was_being_saved(
    answered: bool,
) -> None:
    """The message is written, and its dead letter is not, in the next batch."""
    changes = QueueChanges(
        durable=True, delivery_handler="putback-end", put_back_limit=1, dead_letter=GRAVE
    )
    world = world_with(changes)
    world.join("a")
    world.push("m1")
    writing = world.journal.take()
    world.nack("a", "m1")
    world.nack("a", "m1")
    assert waiting_in(world, "g") == ["m1"]
    world.store.write(writing.batch, 1)
    world.step(world.journal.finished(writing, True) or AssertionError())  # type: ignore[arg-type]
    world.write("no space")
    assert waiting_in(world, "g") == ["m1"], "it was dropped, and left a copy behind"
    if answered:
        world.join("b", "g")
        world.finish()
        world.ack("b", "m1", "g")
    assert after_a_crash(world) == ([] if answered else ["m1"])
    assert world.books() == {}, "there is no copy where it came from"
    assert world.queue().claims == 0


def test_an_owed_letter_that_is_given_up_again_takes_its_older_copy_along() -> None:
    again = {"durable": True, "delivery_handler": "putback-end", "put_back_limit": 1}
    world = world_with(
        QueueChanges(**again, dead_letter=GRAVE),  # type: ignore[arg-type]
        QueueChanges(**again, dead_letter=("h", 1)),  # type: ignore[arg-type]
    )
    world.create(DURABLE, "h")
    world.join("a")
    world.join("a", "g")
    world.push("m1")
    world.sync()
    for channel in ("ch", "ch", "g", "g"):
        world.nack("a", "m1", channel=channel)
        world.finish()
        world.write("no space")
    assert waiting_in(world, "h") == ["m1"]
    assert after_a_crash(world, "h") == ["m1"]
    assert world.books() == world.books("g") == {}
