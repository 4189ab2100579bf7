"""Confirms that wait for copies of a message whose turn to be copied comes later."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.feeds import each_waiting, feed
from tests.tmqp_server.engine.kept import KeptWorld
from tmqp.constants import STATUS_BROADCAST, STATUS_PAUSED, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import ClearMessages, PushExtras
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges

AWAITS = PushExtras(awaits_copies=True)
IDS = ["m1", "m2"]


def busy() -> tuple[KeptWorld, list[str]]:
    """A topic in memory with a durable subscriber, which another queue feeds with more than a step
    can copy, then a message whose producer wants to be told when its copy is safe; and what was
    told at once."""
    world = KeptWorld(EngineLimits(max_work_per_step=2))
    world.connect("p")
    world.create(QueueChanges(status=STATUS_BROADCAST), "t")
    durable = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True)
    world.create(durable, "a")
    feed(world, "a")
    world.create(QueueChanges(status=STATUS_PUSH), "s")
    feed(world, "t", source="s")
    world.sync()
    for each in IDS:
        world.push(each, channel="s")
    words = world.push("last", channel="t", wants=True, extras=AWAITS)
    assert world.queue("t").waiting_count(), "its turn has not come"
    return world, words


def told(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("p: last")]


@pytest.mark.parametrize("written", [False, True])
def test_a_message_that_waited_behind_others_was_confirmed_before_its_copy_was_made(
    written: bool,
) -> None:
    world, words = busy()
    assert told(words) == []
    assert told(world.wait(1.0)) == [], "copied, and not on disk"
    if written:
        assert told(world.write()) == ["p: last ok F"]
    world.crash()
    world.fetch()
    assert each_waiting(world, "a") == [[*IDS, "last"] if written else []]


def test_its_confirm_is_negative_when_its_turn_comes_and_there_is_no_room() -> None:
    world, _ = busy()
    world.update(QueueChanges(message_limit=2, status=STATUS_PAUSED), "a")
    assert told(world.wait(1.0)) == ["p: last no storage F"]
    tally = world.broker._core.tally
    assert (tally.confirms, tally.negative_confirms) == (0, 1)


def test_it_is_confirmed_when_an_operator_clears_it_first() -> None:
    world, _ = busy()
    words = world.step(ClearMessages(world.numbers["admin"], "clear", "t", 1, True, True))
    words += world.wait(1.0)
    assert told(words) == ["p: last ok F"]
    world.sync()
    assert "last" not in each_waiting(world, "a")[0]


def test_a_producer_that_has_gone_meanwhile_is_told_nothing() -> None:
    world, _ = busy()
    world.disconnect("p")
    assert told(world.wait(1.0) + world.sync()) == []
    assert each_waiting(world, "a") == [[*IDS, "last"]]
    assert world.broker.statistics().confirms_skipped == 1
