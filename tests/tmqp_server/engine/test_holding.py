"""Pushes that wait for room instead of being refused with 482 or 503."""

from __future__ import annotations

from collections import deque
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_PULL, STATUS_ROUND_ROBIN, STATUS_STOPPED
from tmqp_server.engine.commands import (
    CloseBranch,
    Connect,
    Disconnect,
    OpenBranch,
    Push,
    PushExtras,
    RemoveQueue,
    branch_number,
)
from tmqp_server.engine.effects import PushDecided
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges

WAITS: Final = PushExtras(wait_ms=-1)
SECOND: Final = PushExtras(wait_ms=1_000)


def full(world: World, limit: int = 1) -> World:
    """A world whose queue has as many messages as it may."""
    world.create(QueueChanges(status=STATUS_PULL, message_limit=limit))
    for number in range(limit):
        world.push(f"m{number}")
    return world


def take(world: World, name: str = "c") -> str:
    """Pull and acknowledge one message; its id, or nothing."""
    world.join(name)
    for word in world.pull(name):
        if " 1/1 " in word:
            found = word.split(" 1/1 ")[1].split()[0]
            world.ack(name, found)
            return found
    return ""


def test_a_push_that_does_not_wait_is_refused_as_ever() -> None:
    world = full(World())
    assert world.push("late") == ["p wire of late: 482"]


def test_a_push_waits_until_a_message_has_left() -> None:
    world = full(World())
    assert world.push("late", wants=True, extras=WAITS) == []
    assert world.broker.holds(world.numbers["p"])
    assert take(world) == "m0"
    assert world.finish() == ["p: late ok F", "p goes on"]
    assert not world.broker.holds(world.numbers["p"])
    assert take(world) == "late"


def test_who_came_first_is_first() -> None:
    world = full(World())
    for name in ("a", "b", "d"):
        world.push(f"of-{name}", producer=name, extras=WAITS)
    found = [take(world)]
    for _ in range(3):
        world.finish()
        found.append(take(world))
    assert found == ["m0", "of-a", "of-b", "of-d"]


def test_as_many_enter_as_there_is_room_for() -> None:
    world = full(World(), 3)
    for name in "abd":
        world.push(f"of-{name}", producer=name, extras=WAITS)
    for _ in range(3):
        take(world)
    assert [word for word in world.finish() if "goes on" in word] == [
        "a goes on",
        "b goes on",
        "d goes on",
    ]


def test_it_is_refused_when_its_time_is_over() -> None:
    world = full(World())
    world.push("late", wants=True, extras=SECOND)
    assert world.wait(0.9) == []
    assert world.wait(0.2) == ["p wire of late: 482", "p: late no limit-exceeded F", "p goes on"]
    assert world.books()["refused"] == 1
    assert world.wait(10.0) == []


def test_it_is_not_refused_when_there_is_room_at_its_last_moment() -> None:
    world = full(World())
    world.push("late", extras=SECOND)
    world.now += 2.0
    take(world)
    assert world.finish() == ["p goes on"]
    assert take(world) == "late"


def test_a_connection_has_one_at_most() -> None:
    world = full(World())
    world.push("first", extras=WAITS)
    assert world.push("second", extras=WAITS) == ["p wire of second: 482"]


def test_what_fits_at_no_time_is_refused_at_once() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL, bytes_limit=100, message_size_limit=150))
    assert world.push("huge", size=151, extras=WAITS) == ["p wire of huge: 482"]
    assert world.push("large", size=101, extras=WAITS) == ["p wire of large: 482"]


def test_what_is_refused_for_another_reason_does_not_wait() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_STOPPED))
    assert world.push("m", extras=WAITS) == ["p wire of m: 401"]
    assert world.push("m", channel="x" * 300, extras=WAITS)[0].startswith("p wire of m: 4")


def test_a_full_memory_is_waited_for_too() -> None:
    world = World(EngineLimits(max_total_bytes=1_000_000))
    world.create(QueueChanges(status=STATUS_PULL))
    world.create(QueueChanges(status=STATUS_PULL), queue_id=2)
    number = 0
    while not world.push(f"m{number}", size=100_000):
        number += 1
    assert world.push("late", size=100_000, queue_id=2, extras=WAITS) == []
    assert take(world) == "m0"
    assert world.wait(0.1) == ["p goes on"], "room comes from another queue"


def test_a_wider_limit_is_room() -> None:
    world = full(World())
    world.push("late", extras=WAITS)
    world.update(QueueChanges(message_limit=2))
    assert world.wait(0.1) == ["p goes on"]


def test_a_queue_that_is_removed_ends_the_wait() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL), queue_id=7)
    full(world)
    world.push("late", extras=WAITS)
    world.step(RemoveQueue(world.numbers["admin"], "remove", "ch", 1))
    words = world.wait(0.1)
    assert words[-1] == "p goes on"
    assert len(words) == 2 or world.queue().count == 1, "refused, or in a queue of that name"


def test_the_end_of_the_connection_ends_the_wait() -> None:
    world = full(World())
    world.push("late", extras=WAITS)
    before = world.broker._core.state_bytes
    world.step(Disconnect(world.numbers["p"]))
    assert world.broker._core.state_bytes < before
    take(world)
    assert world.wait(1.0) == []
    assert take(world) == ""


def test_the_branch_of_a_connection_waits_with_it() -> None:
    world = full(World())
    number = world.numbers["p"]
    branch = branch_number(number, 1)
    world.names[branch] = "branch"
    world.broker.step(OpenBranch(number, None, branch), world.now)
    world.broker.step(Push(branch, "late", "ch", 1, False, False, 10, "w", WAITS), world.now)
    assert world.broker.holds(number)
    assert world.push("more", extras=WAITS) == ["p wire of more: 482"]
    effects = world.broker.step(CloseBranch(number, None, branch), world.now)
    assert any(isinstance(each, PushDecided) for each in effects)
    assert not world.broker.holds(number)


def test_another_server_never_waits() -> None:
    world = World(options=queue_defaults(takes_nodes=True))
    full(world)
    world.names[50] = "node"
    world.numbers["node"] = 50
    world.step(Connect(50, None, "node", node=True, host="there"))
    assert world.push("late", producer="node", extras=WAITS) == ["node wire of late: 482"]


def test_a_row_of_steps_ends_with_a_push_that_waits() -> None:
    world = full(World())
    number = world.numbers["p"]
    pushes = [Push(number, f"n{at}", "ch", 1, False, False, 10, "w", WAITS) for at in range(5)]
    at, effects = world.broker.steps(pushes, 0, world.now, 1 << 30)
    assert (at, effects) == (1, [])
    assert world.broker.take_work() > 0


def test_many_that_wait_are_served_within_the_budget() -> None:
    world = full(World(EngineLimits(max_work_per_step=4)), 20)
    names = [f"p{number}" for number in range(20)]
    for name in names:
        world.push(f"of-{name}", producer=name, extras=WAITS)
    for _ in range(20):
        take(world)
    world.finish()
    assert [take(world) for _ in names] == [f"of-{name}" for name in names]


@pytest.mark.parametrize("count", [0, 1])
def test_a_queue_heeds_its_messages_only_while_somebody_waits(count: int) -> None:
    world = full(World())
    for number in range(count):
        world.push("late", producer=f"p{number}", extras=WAITS)
    assert world.queue().heeded == bool(count)
    take(world)
    world.finish()
    assert not world.queue().heeded


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["push", "push", "take", "wait"]), st.integers(0, 3)), max_size=60
)


@given(st.integers(1, 4), ACTIONS)
def test_against_a_model_of_producers_that_wait(limit: int, actions: list[tuple[str, int]]) -> None:
    """The model: a queue of so many places, and a line of producers each with one message."""
    world = World()
    world.create(QueueChanges(status=STATUS_PULL, message_limit=limit))
    world.connect("c", *[f"p{number}" for number in range(4)])
    queue: deque[str] = deque()
    line: dict[int, str] = {}

    def enter() -> None:
        while line and len(queue) < limit:
            first = next(iter(line))
            queue.append(line.pop(first))

    for at, (what, which) in enumerate(actions):
        if what == "push" and which not in line:
            message = f"m{at}"
            world.push(message, producer=f"p{which}", extras=WAITS)
            if len(queue) < limit:
                queue.append(message)
            else:
                line[which] = message
        elif what == "take":
            assert take(world) == (queue.popleft() if queue else "")
            world.finish()
            enter()
        else:
            world.wait(0.3)
        for number in range(4):
            assert world.broker.holds(world.numbers[f"p{number}"]) == (number in line)
        assert world.queue().expected == len(line)
    while queue:
        assert take(world) == queue.popleft()
        world.finish()
        enter()
    assert take(world) == ""


def test_consumers_that_acknowledge_make_room() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN, message_limit=2, request_acknowledge=True))
    world.push("a")
    world.push("b")
    assert world.push("c", extras=WAITS) == []
    assert world.join("consumer")[0] == "consumer <- a FA"
    assert "p goes on" in world.finish() or "p goes on" in world.wait(0.1)


def test_more_lines_than_a_step_could_try_kept_the_broker_busy_for_ever() -> None:
    """It tried the same ones again and again, and no time passed (seed 9979)."""
    world = World(EngineLimits(max_work_per_step=2))
    for queue_id in range(1, 8):
        world.create(QueueChanges(status=STATUS_PULL, message_limit=1), queue_id=queue_id)
        world.push(f"m{queue_id}", queue_id=queue_id)
        world.push(f"late{queue_id}", queue_id=queue_id, producer=f"p{queue_id}", extras=SECOND)
    world.wait(0.2)
    assert len([word for word in world.wait(1.0) if word.endswith(": 482")]) == 7
