"""What is forgotten of clients that have gone, and what is refused when the memory is full."""

from __future__ import annotations

import sys

from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_PULL, STATUS_PUSH
from tmqp_server.engine.commands import (
    Acknowledge,
    Connect,
    CreateChannel,
    Push,
    PushExtras,
    RemoveQueue,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges


def greedy(status: int, limits: EngineLimits | None = None) -> World:
    """A world with a client that says much of itself, which has joined."""
    world = World(limits)
    world.create(QueueChanges(status=status))
    world.names[90] = "greedy"
    world.numbers["greedy"] = 90
    kept = {f"key {number}": "v" * 100 for number in range(30)}
    words = world.step(Connect(90, "hello", "greedy", "N" * 200, "T" * 200, kept=kept))
    assert words == ["greedy accepted"]
    world.join("greedy")
    return world


def test_a_message_that_waits_kept_its_producers_session() -> None:
    world = greedy(STATUS_PULL)
    world.push("m", producer="greedy")
    before = world.broker.statistics().state_bytes
    session = world.broker._core.sessions[90]
    world.disconnect("greedy")
    message = world.queue().look(False)
    assert message is not None
    producer = message.producer
    assert (producer.client_id, producer.alive) == ("greedy", False)
    assert (producer.name, producer.client_type) == (None, None)
    assert (session.properties, session.name, session.memory) == (None, None, 0)
    assert before - world.broker.statistics().state_bytes > 10_000


def test_a_delivery_in_flight_keeps_what_is_left_of_its_consumer_in_the_books() -> None:
    world = greedy(STATUS_PUSH)
    empty = world.broker.statistics().state_bytes
    world.push("m")
    session = world.broker._core.sessions[90]
    world.disconnect("greedy")
    assert 0 < session.memory < 1_000
    assert (session.properties, session.name, session.subscriptions) == (None, None, {})
    left = world.broker.statistics().state_bytes
    world.wait(16)
    assert session.memory == 0
    assert world.broker.statistics().state_bytes < left < empty


def test_a_removed_queue_was_held_until_its_last_message_would_have_expired() -> None:
    world = World()
    for _ in range(600):
        world.create(QueueChanges(status=STATUS_PULL))
        world.push("m", extras=PushExtras(expires_in_ms=10**12))
        timer = world.queue().timer
        world.step(RemoveQueue(world.numbers["admin"], "remove", "ch", 1))
        assert timer.queue is None
    assert len(world.broker._core.wakeups) < 600


def test_a_table_of_deliveries_in_flight_kept_the_size_that_it_had_once() -> None:
    world = World()
    world.create()
    world.join("a")
    for number in range(1_000):
        world.broker.step(
            Push(world.numbers["a"], f"m{number}", "ch", 1, False, False, 1, "w"), world.now
        )
    for number in range(1_000):
        world.broker.step(Acknowledge(world.numbers["a"], f"m{number}", "ch", 1), world.now)
    assert sys.getsizeof(world.queue().flights) > 10_000
    world.wait(16)
    assert sys.getsizeof(world.queue().flights) < 100


def test_consumers_can_connect_when_messages_fill_the_memory() -> None:
    world = World()
    world.create()
    world.push("first")
    taken = world.broker.statistics()
    world = World(EngineLimits(max_total_bytes=taken.state_bytes + 10 * taken.bytes))
    world.create()
    for number in range(10):
        assert world.push(f"m{number}") == []
    assert world.push("m10") == ["p wire of m10: 503"]
    admin = world.numbers["admin"]
    assert world.step(CreateChannel(admin, "create", "more")) == ["admin create: 503"]
    assert world.create(queue_id=2) == ["admin create: 503"]
    assert world.join("a")[-1] == "a join: 0"
    for number in range(10):
        world.ack("a", f"m{number}")
    assert world.push("m11") == ["a <- m11 FA"]


def test_a_client_is_refused_when_the_reserve_is_taken_too() -> None:
    world = World(EngineLimits(max_total_bytes=1_000))
    words: list[str] = []
    for number in range(1, 1_000):
        world.names[number] = f"c{number}"
        words = world.step(Connect(number, "hello", f"c{number}"))
        if words != [f"c{number} accepted"]:
            break
    assert words == [f"session {number} refused 482"]
    assert 200 < number < 400, "there are 256 KiB"
