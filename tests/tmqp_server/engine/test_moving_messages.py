"""Moves of single messages from one queue to another: all of it or nothing, whatever happens."""

from __future__ import annotations

from random import Random

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.letters import Letter
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_PULL
from tmqp_server.engine.commands import ClearMessages, MoveMessage, Push, RemoveQueue
from tmqp_server.engine.options import QueueChanges

PULLED = QueueChanges(status=STATUS_PULL)
KEPT = QueueChanges(status=STATUS_PULL, durable=True, memory_limit=2)


def move(world: World, message_id: str, to: int = 2) -> list[str]:
    """Have a message moved from the queue 1."""
    if "m" not in world.numbers:
        world.connect("m")
    number = world.numbers["m"]
    copy = Push(number, message_id, "ch", to, False, True, 10, Letter(message_id))
    return world.step(MoveMessage(number, "move", "ch", 1, message_id, copy))


def pulled(world: World, queue_id: int) -> list[str]:
    """All that a queue has, taken out."""
    world.join("a")
    found: list[str] = []
    while True:
        words = world.pull("a", 1, queue_id=queue_id)
        if isinstance(world, KeptWorld):
            words = [*words, *world.sync()]
        got = [word.split()[3] for word in words if word.startswith("a pull 1/")]
        if not got:
            return found
        found += got
        for message_id in got:
            world.ack("a", message_id, queue_id=queue_id)


def two_queues(changes: QueueChanges, count: int) -> KeptWorld:
    world = KeptWorld()
    for queue_id in (1, 2):
        world.create(changes, queue_id=queue_id)
    for number in range(count):
        world.push(f"m{number}")
        world.sync()
    return world


def test_a_message_that_is_in_memory_only_is_moved_at_once() -> None:
    world = World()
    for queue_id in (1, 2):
        world.create(PULLED, queue_id=queue_id)
    for message_id in ("m1", "m2", "m3"):
        world.push(message_id)
    assert move(world, "m2")[-1] == "m move: 0"
    assert world.books()["cleared"] == 1
    assert (pulled(world, 1), pulled(world, 2)) == (["m1", "m3"], ["m2"])


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("moment", ["asked", "written", "answered"])
def test_a_server_that_is_killed_has_it_in_one_queue(place: int, moment: str) -> None:
    """It was pushed and then removed: a crash in between left it in both queues."""
    world = two_queues(KEPT, 6)
    words = move(world, f"m{place}")
    while world.fetches:
        words += world.fetch()
    assert "m move: 0" not in words, "it is not safe yet"
    if moment == "written":
        world.store.write(world.journal.take().batch, int(world.now * 1e6))
    elif moment == "answered":
        assert world.sync()[-1] == "m move: 0"
        assert world.queue(queue_id=1).imbalance() == 0
        assert world.queue(queue_id=2).imbalance() == 0
    world.crash()
    world.sync()
    left = [f"m{each}" for each in range(6)]
    moved = [] if moment == "asked" else [f"m{place}"]
    assert pulled(world, 1) == [each for each in left if each not in moved]
    assert pulled(world, 2) == moved


@pytest.mark.parametrize("place", range(6))
def test_one_that_cannot_be_saved_waits_where_it_was(place: int) -> None:
    world = two_queues(KEPT, 6)
    move(world, f"m{place}")
    while world.fetches:
        world.fetch()
    assert world.write("no space")[-1] == "m move: 503"
    world.state(ok=True)
    for queue_id in (1, 2):
        assert world.queue(queue_id=queue_id).imbalance() == 0
    assert sorted(pulled(world, 1)) == [f"m{each}" for each in range(6)]
    assert pulled(world, 2) == []


def test_nobody_sees_a_message_that_is_on_its_way() -> None:
    world = two_queues(KEPT, 1)
    move(world, "m0")
    world.join("a")
    for queue_id in (1, 2):
        assert "m0" not in str(world.pull("a", 1, queue_id=queue_id))
    assert move(world, "m0") == ["m move: 404"]
    world.step(ClearMessages(world.numbers["admin"], "clear", "ch", 1, True, True))
    assert "m move: 0" in world.sync()
    assert pulled(world, 2) == ["m0"]


@pytest.mark.parametrize("gone", [1, 2])
@pytest.mark.parametrize("fails", [False, True])
def test_a_queue_may_be_removed_meanwhile(gone: int, fails: bool) -> None:
    world = two_queues(KEPT, 2)
    move(world, "m0")
    world.step(RemoveQueue(world.numbers["admin"], "remove", "ch", gone))
    world.write("no space" if fails else "")
    world.state(ok=True)
    world.sync()
    left = 3 - gone
    assert world.queue(queue_id=left).imbalance() == 0
    kept = ["m0", "m1"] if left == 1 and fails else ["m1"] if left == 1 else []
    assert sorted(pulled(world, left)) == (kept if left == 1 or fails else ["m0"])


def test_why_a_message_cannot_be_moved() -> None:
    world = World()
    world.create(PULLED)
    world.create(QueueChanges(status=STATUS_PULL, message_limit=1), queue_id=2)
    world.push("full", queue_id=2)
    world.push("m1")
    assert move(world, "m1") == ["m move: 482"]
    assert move(world, "other") == ["m move: 404"]
    assert move(world, "m1", to=1) == ["m move: 406"]
    assert pulled(world, 1) == ["m1"]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_each_message_is_in_one_queue(seed: int) -> None:
    """Moves there and back, writes that fail and crashes, beside a queue that spills."""
    chance = Random(seed)
    world = two_queues(KEPT, 8)
    ids = [f"m{each}" for each in range(8)]
    for _ in range(60):
        what = chance.choice(("move", "move", "move", "sync", "write", "fail", "crash"))
        if what == "move":
            if "m" not in world.numbers:
                world.connect("m")
            number = world.numbers["m"]
            source = chance.choice((1, 2))
            wanted = chance.choice(ids)
            copy = Push(number, wanted, "ch", 3 - source, False, True, 10, Letter(wanted))
            world.step(MoveMessage(number, "move", "ch", source, wanted, copy))
        elif what == "sync":
            world.sync()
        elif what == "crash":
            world.crash()
        else:
            world.write("no space" if what == "fail" else "")
            world.state(ok=True)
    world.sync()
    for queue_id in (1, 2):
        assert world.queue(queue_id=queue_id).imbalance() == 0
    assert sorted(pulled(world, 1) + pulled(world, 2)) == ids
