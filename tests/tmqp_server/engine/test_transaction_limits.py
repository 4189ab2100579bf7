"""What transactions may cost: work, memory, time, and how many there may be."""

from __future__ import annotations

import time

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.staging import (
    DURABLE,
    commit,
    listed,
    message_set,
    opened,
    push,
    ready,
    t,
)
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import AbortTransaction, CommitTransaction, OpenTransaction
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions

# --- Work ----------------------------------------------------------------------------------------


def test_a_commit_is_one_short_step_whatever_it_holds() -> None:
    """F8 of docs/reliability.md: less than 20 ms of processor time, interpreted."""
    world = ready()
    number = opened(world)
    for _ in range(300):
        # What it holds is not looked at: it counts as a million messages, and weighs nothing.
        many = message_set("m")
        many.count = 3_334
        push(world, number, many)
    took: list[float] = []
    for ticket in range(3):
        began = time.process_time()
        (word,) = commit(world, 1, number)
        took.append(time.process_time() - began)
        assert word == f"CommitStored {ticket + 3}"
        assert world.queue().spilled == 1_000_200
        began = time.process_time()
        assert world.synced(ticket + 3, ok=False) == ["t commit: 503"]
        took.append(time.process_time() - began)
        assert world.queue().spilled == 0
    assert min(took[0::2]) < 0.020
    assert min(took[1::2]) < 0.020


# --- Bounds --------------------------------------------------------------------------------------


def test_transactions_are_bounded_in_number() -> None:
    world = ready(EngineLimits(max_transactions=2))
    first = opened(world, part=1)
    opened(world)
    assert world.step(OpenTransaction(t(world), "open", "app", 1)) == ["t open: 482"]
    assert opened(world, part=1) != first, "in the place of the same attempt"
    world.step(AbortTransaction(t(world), "abort", "app", None, 1))
    opened(world)


def test_transactions_are_bounded_in_bytes() -> None:
    one = message_set("m1")
    size = len(one.data) + 512
    world = ready(EngineLimits(max_transaction_bytes=2 * size, max_transactions_bytes=3 * size))
    first, second = opened(world), opened(world)
    assert push(world, first, one, one) == ["t push: 0 with body"]
    assert push(world, second, one) == ["t push: 0 with body"]
    assert push(world, second, one) == ["t push: 503"]
    world.step(AbortTransaction(t(world), "abort", "app", second))
    assert push(world, first, one) == ["t push: 482"]
    world.step(AbortTransaction(t(world), "abort", "app", first))
    third = opened(world)
    assert push(world, third, one, one) == ["t push: 0 with body"], "what is gone makes room"


def test_transactions_are_bounded_in_queues() -> None:
    world = ready(EngineLimits(max_queues_per_transaction=2))
    for queue_id in (2, 3):
        world.create(DURABLE, queue_id=queue_id)
    world.sync()
    number = opened(world)
    assert push(world, number, message_set("m1"), message_set("m2", queue_id=2)) == [
        "t push: 0 with body"
    ]
    assert push(world, number, message_set("m3"), message_set("m4", queue_id=3)) == ["t push: 482"]


def test_time_outs_and_names_are_bounded() -> None:
    world = ready(EngineLimits(max_transaction_timeout_ms=1_000, max_name_bytes=5))
    opened(world, timeout_ms=1_000)
    long = OpenTransaction(t(world), "open", "app", 1, None, 0, 1_001)
    assert world.step(long) == ["t open: 482"]
    assert world.step(OpenTransaction(t(world), "open", "", 1)) == ["t open: 400"]
    assert world.step(OpenTransaction(t(world), "open", "123456", 1)) == ["t open: 400"]
    assert world.step(OpenTransaction(t(world), "open", "a\x9b", 1)) == ["t open: 400"]
    world.wait(1.5)
    assert listed(world) == []
    opened(world)
    world.wait(1.5)
    assert listed(world) == [], "the usual time is no longer than the longest"


def test_marks_are_bounded_in_number_and_age() -> None:
    world = ready(EngineLimits(max_transaction_marks=2, max_mark_age_ms=60_000))
    for name in ("one", "two"):
        world.step(CommitTransaction(t(world), "commit", name, 1, [], []))
        world.sync()
        world.wait(20.0)
    third = CommitTransaction(t(world), "commit", "three", 1, [], [])
    assert world.step(third) == ["t commit: 482"]
    world.step(CommitTransaction(t(world), "commit", "one", 2, [], []))
    world.sync()
    world.wait(45.0)
    assert listed(world) == [("one", 2, "committed")], "two has had its time"
    world.sync()
    world.crash()
    world.connect("t")
    assert listed(world) == [("one", 2, "committed")]
    world.step(third)
    world.sync()
    world.wait(61.0)
    world.sync()
    assert listed(world) == []


def test_no_storage_no_transactions() -> None:
    world = World(None, BrokerOptions())
    world.connect("t")
    assert world.step(OpenTransaction(1, "open", "app", 1)) == ["t open: 501"]
    assert commit(world, 1) == ["t commit: 501"]


def test_in_a_cluster_there_are_no_transactions() -> None:
    world = KeptWorld(takes_nodes=True)
    world.connect("t")
    assert world.step(OpenTransaction(t(world), "open", "app", 1)) == ["t open: 501"]
