"""Who wants it is told when a delivery is its own no more, though it has not answered for it."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_PULL, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import (
    Acknowledge,
    ClearMessages,
    Command,
    Connect,
    Extend,
    Join,
    OpenBranch,
    RemoveChannel,
    RemoveQueue,
    branch_number,
)
from tmqp_server.engine.options import QueueChanges

LOST = "a lost m1: timed-out"


def ready(
    status: int = STATUS_ROUND_ROBIN, hears: bool = True, *, takes_nodes: bool = False
) -> World:
    """A queue with a timeout of two seconds, and a consumer a."""
    world = World(options=queue_defaults(takes_nodes=takes_nodes))
    world.create(QueueChanges(status=status, acknowledge_timeout_ms=2_000))
    join(world, "a", hears)
    return world


def join(world: World, name: str, hears: bool = True) -> None:
    world.connect(name)
    world.step(Join(world.numbers[name], "join", "ch", hears_lapses=hears))


def lost(words: list[str]) -> list[str]:
    return [each for each in words if " lost " in each]


def test_it_is_told_before_the_message_is_sent_again() -> None:
    world = ready()
    assert world.push("m1") == ["a <- m1 FA"]
    world.update(QueueChanges(delivery_handler="retry-timeouts"))
    assert world.wait(2.1)[:2] == [LOST, "a <- m1 AR"]


def test_whoever_has_not_asked_is_not_told() -> None:
    world = ready(hears=False)
    world.push("m1")
    assert lost(world.wait(5)) == []


def test_a_client_may_ask_when_it_connects() -> None:
    world = ready(hears=False)
    world.numbers["b"], world.names[99] = 99, "b"
    world.step(Connect(99, "hello", "b", hears_lapses=True))
    world.leave("a")
    world.join("b")
    world.push("m1")
    assert lost(world.wait(5)) == ["b lost m1: timed-out"]


def test_a_join_that_fails_asks_for_nothing() -> None:
    world = ready(hears=False)
    number = world.numbers["a"]
    words = world.step(Join(number, "join", "none", creates=False, hears_lapses=True))
    assert words == ["a join: 404"]
    world.push("m1")
    assert lost(world.wait(5)) == []


def test_a_branch_is_told_as_its_connection_is() -> None:
    world = ready()
    branch = branch_number(world.numbers["a"], 1)
    world.names[branch] = world.names[world.numbers["a"]] + "/1"
    world.broker.step(OpenBranch(world.numbers["a"], None, branch), world.now)
    world.step(Join(branch, None, "ch"))
    world.leave("a")
    world.push("m1")
    assert lost(world.wait(5)) == ["a/1 lost m1: timed-out"]


def test_each_of_several_is_told_at_its_own_time() -> None:
    world = ready(STATUS_PUSH)
    join(world, "b")
    join(world, "c", hears=False)
    world.push("m1")
    world.step(Extend(world.numbers["b"], "extend", "m1", "ch", 1, 3_000))
    assert lost(world.wait(2.5)) == [LOST]
    assert lost(world.wait(1)) == ["b lost m1: timed-out"]


@pytest.mark.parametrize("answer", ["ack", "nack", "release"])
def test_whoever_answers_is_not_told(answer: str) -> None:
    world = ready()
    world.push("m1")
    words: list[str] = getattr(world, answer)("a", "m1")
    if answer == "release":
        words += world.ack("a", "m1")
    assert lost(words + world.wait(5)) == []


def test_whoever_has_gone_is_not_told() -> None:
    world = ready()
    world.push("m1")
    world.disconnect("a")
    assert lost(world.wait(5)) == []


def test_a_pulled_message_lapses_too() -> None:
    world = ready(STATUS_PULL)
    world.push("m1")
    world.pull("a")
    assert lost(world.wait(5)) == [LOST]


@pytest.mark.parametrize(
    "remove",
    [
        ClearMessages(1, "clear", "ch", 1, False, False, True),
        RemoveQueue(1, "remove", "ch", 1),
        RemoveChannel(1, "remove", "ch"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_is_cleared_or_removed_is_told_once(remove: Command) -> None:
    world = ready()
    world.push("m1")
    world.push("m2")
    words = lost(world.step(remove) + world.finish())
    assert sorted(words) == ["a lost m1: removed", "a lost m2: removed"]
    assert lost(world.wait(5)) == []


def test_what_was_answered_at_another_node_is_told() -> None:
    world = ready(STATUS_PUSH, takes_nodes=True)
    world.numbers["node"], world.names[50] = 50, "node"
    world.step(Connect(50, None, "node", node=True, host="there"))
    world.push("m1")
    words = world.step(Acknowledge(50, "m1", "ch", 1, True))
    assert lost(words) == ["a lost m1: answered"]
    assert lost(world.wait(5)) == []
