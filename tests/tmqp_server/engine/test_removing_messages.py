"""Removing one message that waits: in memory, parked, on the disk, on its way from there."""

from __future__ import annotations

from random import Random

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_PULL, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import PushExtras, RemoveMessage
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges


def remove(world: World, message_id: str) -> list[str]:
    world.connect("r") if "r" not in world.numbers else None
    return world.step(RemoveMessage(world.numbers["r"], "remove", "ch", 1, message_id))


def waiting(world: World) -> list[str]:
    queue = world.queue()
    return [each.message_id for each in [*queue.high.messages(), *queue.regular.messages()]]


def test_the_message_goes_and_nothing_else_does() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL))
    for message_id in ("m1", "m2", "twice", "m3", "twice"):
        world.push(message_id)
    world.push("h", high=True)
    assert remove(world, "m2") == ["r remove: 0"]
    assert remove(world, "m2") == ["r remove: 404"]
    assert remove(world, "twice") == ["r remove: 0"]
    assert waiting(world) == ["h", "m1", "m3", "twice"], "the first of them"
    assert remove(world, "h") == ["r remove: 0"]
    assert world.books()["cleared"] == 3
    world.join("a")
    assert [word.split()[3] for word in world.pull("a", 9)[:-1]] == ["m1", "m3", "twice"]
    assert remove(world, "m1") == ["r remove: 404"], "it is in flight"


def test_a_deferred_message_is_left_to_cancelling() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL))
    world.push("m1", extras=PushExtras(delay_ms=1_000))
    assert remove(world, "m1") == ["r remove: 404"]
    world.wait(1)
    assert remove(world, "m1") == ["r remove: 0"]


def test_its_producer_hears_that_it_was_cancelled() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="ack-consumer"))
    world.push("m1", wants=True)
    assert remove(world, "m1") == ["p: m1 no cancelled F", "r remove: 0"]


def test_there_must_be_such_a_queue() -> None:
    assert remove(World(), "m1") == ["r remove: 404"]


@pytest.mark.parametrize("place", range(6))
def test_a_message_on_the_disk_goes_and_is_not_there_after_a_crash(place: int) -> None:
    world = KeptWorld()
    world.create(QueueChanges(status=STATUS_PULL, durable=True, memory_limit=2))
    ids = [f"m{each}" for each in range(6)]
    for message_id in ids:
        world.push(message_id)
        world.sync()
    words = remove(world, ids[place])
    assert "r remove: 0" not in words, "it is not forgotten yet"
    assert world.sync()[-1] == "r remove: 0"
    ids.remove(ids[place])
    assert (world.books()["messages"], world.books()["cleared"]) == (5, 1)
    world.crash()
    world.sync()
    world.join("a")
    got: list[str] = []
    while len(got) < 5:
        words = [*world.pull("a", 1), *world.sync()]
        got += [word.split()[3] for word in words if word.startswith("a pull 1/")]
    assert got == ids


def test_one_on_its_way_from_the_disk_does_not_come_back() -> None:
    world = KeptWorld()
    world.create(QueueChanges(status=STATUS_PULL, durable=True, memory_limit=2))
    for number in range(6):
        world.push(f"m{number}")
        world.sync()
    world.join("a")
    world.pull("a", 2)
    assert world.fetches, "the next ones are asked for"
    mine, world.fetches = world.fetches, []
    remove(world, "m3")
    world.sync()
    world.fetches = mine
    world.sync()
    assert waiting(world) == ["m2", "m4"]
    assert world.queue().imbalance() == 0


def test_most_of_a_large_queue_is_looked_through_in_portions() -> None:
    world = World(EngineLimits(max_work_per_step=10))
    world.create(QueueChanges(status=STATUS_PULL))
    world.checked = False
    for number in range(9_000):
        world.push(f"m{number}")
    world.checked = True
    assert remove(world, "m8999") == []
    world.push("m9000")
    assert world.finish() == ["r remove: 0"]
    assert remove(world, "m1") == []
    world.queue()
    world.disconnect("r")
    assert world.finish() == []
    assert world.books()["cleared"] == 1


@pytest.mark.parametrize("seed", range(6))
def test_exactly_what_was_removed_is_missing(seed: int) -> None:
    """Beside a list of ids, with a queue that spills, and crashes."""
    chance = Random(seed)
    world = KeptWorld()
    world.create(
        QueueChanges(
            status=chance.choice((STATUS_PULL, STATUS_ROUND_ROBIN)),
            durable=seed % 2 == 0,
            overflow=seed % 2 == 1,
            memory_limit=chance.choice((1, 3, 50)),
        )
    )
    world.sync()
    there: list[str] = []
    moved = 0
    for number in range(120):
        act = chance.random()
        if act < 0.5:
            world.push(f"m{number}")
            there.append(f"m{number}")
        elif act < 0.8 and there:
            message_id = chance.choice(there)
            if chance.random() < 0.5:
                world.sync()
            words = remove(world, message_id) + world.sync()
            if "r remove: 503" in words:
                words = remove(world, message_id) + world.sync()
                moved += 1
            assert "r remove: 0" in words
            there.remove(message_id)
        elif act < 0.95:
            world.sync()
        elif seed % 2 == 0:
            world.sync()
            world.crash()
            world.sync()
        queue = world.queue()
        assert queue.waiting_count() + queue.spilled == len(there)
    world.sync()
    words = world.join("a")
    got: list[str] = []
    for _ in range(300):
        if world.queue().options.status == STATUS_PULL:
            words += world.pull("a", 1)
        words += world.sync()
        heard, words = words, []
        for word in heard:
            if word.startswith(("a pull 1/", "a <- ")):
                got.append(word.replace("pull 1/1", "<-").split()[2])
                words += world.ack("a", got[-1])
    assert sorted(got) == sorted(there)
    assert moved < 20, "it is on its way to the disk for a moment only"
