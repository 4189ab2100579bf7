"""Batches: everything at once, or nothing."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES as OVERHEAD
from tmqp_server.engine.commands import (
    Acknowledge,
    Batch,
    Command,
    Join,
    Push,
    PushExtras,
    Synced,
)
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions, QueueChanges


def push(message_id: str, queue_id: int = 1, size: int = 10, wants: bool = False) -> Push:
    return Push(1, message_id, "ch", queue_id, False, wants, size, f"wire of {message_id}")


def batch(world: World, *commands: Command) -> list[str]:
    if not world.numbers:
        world.connect("t")
    return world.step(Batch(1, "batch", list(commands)))


def test_pushes_and_acknowledges_at_once() -> None:
    world = World()
    world.join("t")
    world.push("in", producer="t")
    words = batch(world, push("m1"), Acknowledge(1, "in", "ch", 1), push("m2", 2))
    assert words == ["t <- m1 FA", "t <- m2 FA", "t batch: 0"]
    assert world.books()["done"] == 1


def test_an_empty_batch() -> None:
    assert batch(World()) == ["t batch: 0"]


def test_no_answer_when_none_is_wanted() -> None:
    world = World()
    world.connect("t")
    assert world.step(Batch(1, None, [push("m1")])) == []
    assert world.books()["messages"] == 1


@pytest.mark.parametrize(
    "stranger",
    [Join(1, None, "ch"), Synced(1, True), Push(2, "x", "ch", 1, False, False, 1, "w")],
)
def test_other_commands_and_other_sessions(stranger: Command) -> None:
    world = World()
    assert batch(world, push("m1"), stranger) == ["t batch: 406"]
    assert world.broker.queues() == []


def test_the_length_is_bounded() -> None:
    world = World(EngineLimits(max_batch_length=3))
    assert batch(world, *[push(f"m{number}") for number in range(3)]) == ["t batch: 0"]
    assert batch(world, *[push(f"m{number}") for number in range(4)]) == ["t batch: 482"]
    assert world.books()["messages"] == 3


def test_limits_count_the_batch_itself() -> None:
    world = World()
    world.create(QueueChanges(message_limit=2), owner="t")
    assert batch(world, push("m1"), push("m2"), push("m3")) == ["t batch: 482"]
    assert "messages" not in world.books()
    assert batch(world, push("m1"), push("m2")) == ["t batch: 0"]
    assert batch(world, push("m3", wants=True)) == ["t batch: 482"]
    assert batch(world, push("a", 2), push("b", 3)) == ["t batch: 0"]


def test_bytes_count_the_batch_itself() -> None:
    world = World()
    batch(world, push("m1"), push("a", 2), push("b", 3))
    state = world.broker.statistics().state_bytes
    world = World(EngineLimits(max_queue_bytes=100, max_total_bytes=state + 150 + 4 * OVERHEAD))
    assert batch(world, push("m1", size=60), push("m2", size=60)) == ["t batch: 482"]
    assert batch(world, push("m1", size=60), push("m2", size=40)) == ["t batch: 0"]
    assert batch(world, push("a", 2, 30), push("b", 3, 30)) == ["t batch: 503"]
    assert batch(world, push("a", 2, 30), push("b", 3, 20)) == ["t batch: 0"]


def test_every_queue_must_be_there_or_creatable() -> None:
    options = BrokerOptions(auto_queue_creation=False, events=NO_EVENTS)
    world = World(options=options)
    world.create(owner="t")
    assert batch(world, push("m1"), push("m2", 2)) == ["t batch: 404"]
    assert "messages" not in world.books()
    changes = PushExtras(changes=QueueChanges(delivery_handler="nope"))
    world = World()
    bad = Push(1, "m", "ch", 1, False, False, 1, "w", changes)
    assert batch(world, bad) == ["t batch: 406"]
