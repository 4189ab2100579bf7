"""Offsets whose answer is held: what is new, what is safe, when the wait is over, and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.staging import commit, message_set, opened, push
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import (
    Acknowledge,
    CommitCursor,
    Disconnect,
    KnownQueue,
    ListOffsets,
    NameStore,
    OffsetsFound,
    RemoveChannel,
    RemoveQueue,
)
from tmqp_server.engine.effects import FindOffsets, Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.snapshots import KeptOffsets
from tmqp_server.engine.options import QueueChanges

NOTHING = KeptOffsets(0, 0, 0, 0, 0)
KEPT = QueueChanges(durable=True, retain_for_readers=True)
THREE = [KeptOffsets(1, 3, 3, 30, 7)]


def ready(limits: EngineLimits | None = None) -> KeptWorld:
    """A world with queue 1 of channel ``ch``, three messages in it, and two clients."""
    world = KeptWorld(limits)
    world.step(NameStore("disk"))
    world.create(KEPT)
    world.connect("a", "b")
    for name in ("m1", "m2", "m3"):
        world.push(name)
    world.sync()
    return world


def ask(
    world: World,
    latest: int = 3,
    wait_ms: int = 1_000,
    incarnation: str = "",
    who: str = "a",
    pattern: str = "*",
) -> list[str]:
    known = [KnownQueue("CH", 1, latest, incarnation)] if latest >= 0 else []
    number = world.numbers[who]
    return world.step(ListOffsets(number, "list", pattern, wait_ms=wait_ms, known=known))


def body(world: World) -> Any:
    (reply,) = [each for each in world.last if isinstance(each, Reply)]
    return reply.body


def hold(world: World) -> None:
    """The first question finds nothing new, so the answer is held."""
    assert ask(world) == ["find 1 [1]"]
    assert world.step(OffsetsFound(1, 0, THREE)) == []


def test_what_is_there_already_is_answered_at_once() -> None:
    world = ready()
    assert ask(world, 2) == ["find 1 [1]"]
    assert world.step(OffsetsFound(1, 0, THREE)) == ["a list: 0 with body"]
    assert ask(world, -1) == ["find 2 [1]"]
    assert world.step(OffsetsFound(2, 0, THREE)) == ["a list: 0 with body"]
    assert ask(world, 3, incarnation="disk-9") == ["find 3 [1]"]
    assert world.step(OffsetsFound(3, 0, THREE)) == ["a list: 0 with body"]
    assert ask(world, wait_ms=0) == ["find 4 [1]"]
    assert world.step(OffsetsFound(4, 0, THREE)) == ["a list: 0 with body"]
    # Nobody waits any more, and nothing is due.
    assert world.wait(5) == []


def test_new_is_what_is_safe_and_nothing_before() -> None:
    world = ready()
    hold(world)
    world.push("m4")
    assert world.finish() == [], "it is not on the disk yet"
    world.write()
    assert world.finish() == ["find 2 [1]"]
    found = KeptOffsets(1, 4, 4, 40, 7)
    assert world.step(OffsetsFound(2, 0, [found])) == ["a list: 0 with body"]
    assert body(world)[0].latest == 4
    world.push("m5")
    world.write()
    assert world.finish() == [], "nobody waits any more"


def test_a_write_that_fails_is_nothing_new() -> None:
    world = ready()
    hold(world)
    world.push("m4")
    world.write("full")
    assert world.finish() == []


def test_nothing_but_what_is_known_is_held_again() -> None:
    world = ready()
    hold(world)
    world.push("m4")
    world.write()
    assert world.finish() == ["find 2 [1]"]
    # Consumed and let go of before anybody looked.
    assert world.step(OffsetsFound(2, 0, THREE)) == []
    assert world.finish() == []
    world.push("m5")
    world.write()
    assert world.finish() == ["find 3 [1]"]


def test_what_becomes_safe_while_the_storage_looks_is_not_missed() -> None:
    world = ready()
    assert ask(world) == ["find 1 [1]"]
    world.push("m4")
    world.write()
    assert world.finish() == []
    assert world.step(OffsetsFound(1, 0, THREE)) == []
    assert world.finish() == ["find 2 [1]"]


def test_the_wait_is_over_at_its_time_and_not_before() -> None:
    world = ready()
    hold(world)
    assert world.wait(0.9) == []
    assert world.wait(0.2) == ["find 2 [1]"]
    assert world.step(OffsetsFound(2, 0, THREE)) == ["a list: 0 with body"]
    assert world.wait(10) == []


def test_nobody_waits_longer_than_the_limit() -> None:
    world = ready(EngineLimits(max_read_wait_ms=500))
    ask(world, wait_ms=10**9)
    world.step(OffsetsFound(1, 0, THREE))
    assert world.wait(0.4) == []
    assert world.wait(0.2) == ["find 2 [1]"]


def test_each_of_several_waits_has_its_own_end() -> None:
    world = ready()
    for number, wait_ms in enumerate((3_000, 1_000, 2_000), 1):
        ask(world, wait_ms=wait_ms, who="b" if number == 2 else "a")
        world.step(OffsetsFound(number, 0, THREE))
    assert world.wait(1.1) == ["find 4 [1]"]
    assert world.step(OffsetsFound(4, 0, THREE)) == ["b list: 0 with body"]
    assert world.wait(1) == ["find 5 [1]"]
    assert world.step(OffsetsFound(5, 0, THREE)) == ["a list: 0 with body"]
    assert world.wait(1) == ["find 6 [1]"]


def test_a_queue_that_comes_or_goes_is_new() -> None:
    world = ready()
    hold(world)
    world.create(KEPT, "other", 1)
    assert world.finish() == ["find 2 [1, 2]"]
    assert world.step(OffsetsFound(2, 0, [*THREE, NOTHING])) == ["a list: 0 with body"]
    assert len(body(world)) == 2
    ask(world, pattern="ch")
    assert world.step(OffsetsFound(3, 0, THREE)) == []
    world.create(KEPT, "third", 1)
    assert world.finish() == [], "it does not pass the filter"
    world.step(RemoveQueue(world.numbers["b"], None, "ch", 1))
    assert world.finish() == ["find 4 []"]
    assert world.step(OffsetsFound(4, 0, [])) == ["a list: 0 with body"]
    assert body(world) == []


def test_a_queue_that_comes_while_the_storage_looks_is_not_missed() -> None:
    world = ready()
    ask(world)
    world.create(KEPT, "other", 1)
    assert world.step(OffsetsFound(1, 0, THREE)) == []
    assert world.finish() == ["find 2 [1, 2]"]
    # And the same with one that is held already.
    world = ready()
    hold(world)
    ask(world, who="b")
    world.create(KEPT, "other", 1)
    assert world.finish() == ["find 3 [1, 2]"]
    assert world.step(OffsetsFound(2, 0, THREE)) == []
    assert world.finish() == ["find 4 [1, 2]"]


def test_a_queue_with_other_options_is_nothing_new() -> None:
    world = ready()
    hold(world)
    world.update(QueueChanges(tag="new"))
    assert world.finish() == []
    world.step(RemoveChannel(world.numbers["b"], None, "ch"))
    assert "find 2 []" in world.finish()


def test_the_end_of_a_session_ends_its_waits() -> None:
    world = ready()
    hold(world)
    ask(world)
    world.step(Disconnect(world.numbers["a"]))
    world.push("m4")
    world.write()
    assert world.finish() == []
    assert world.step(OffsetsFound(2, 0, THREE)) == []
    assert world.wait(5) == []
    assert not world.broker._watching._all


def test_held_answers_are_bounded() -> None:
    world = ready(EngineLimits(max_held_reads=3, max_held_reads_per_session=2, max_reads=1))
    for number, who in enumerate(("a", "a"), 1):
        assert ask(world, who=who) == [f"find {number} [1]"]
        assert world.step(OffsetsFound(number, 0, THREE)) == []
    assert ask(world) == ["a list: 503"]
    assert ask(world, who="b") == ["find 3 [1]"]
    # One question is under way, and no more are let in.
    assert ask(world, wait_ms=0) == ["a list: 503"]
    assert world.step(OffsetsFound(3, 0, THREE)) == []
    assert ask(world, who="b") == ["b list: 503"]
    # Those that were let in are asked for all the same, however many they are.
    world.push("m4")
    world.write()
    assert world.finish() == ["find 4 [1]", "find 5 [1]", "find 6 [1]"]
    assert ask(world, wait_ms=0) == ["find 7 [1]"]
    assert world.step(OffsetsFound(4, 503, [])) == ["a list: 503"]
    assert ask(world) == ["a list: 503"], "one question is under way"
    world.step(OffsetsFound(7, 0, THREE))
    assert ask(world) == ["find 8 [1]"]


def test_too_many_queues_are_refused() -> None:
    world = ready(EngineLimits(max_queues_per_read=1))
    known = [KnownQueue("ch", 1, 3), KnownQueue("ch", 2, 3)]
    command = ListOffsets(world.numbers["a"], "list", "*", wait_ms=5, known=known)
    assert world.step(command) == ["a list: 482"]
    hold(world)
    assert world.create(KEPT, "other", 1)
    assert world.finish() == ["a list: 482"]
    assert world.wait(5) == []


def test_a_small_budget_serves_all_in_the_end() -> None:
    world = ready(EngineLimits(max_work_per_step=1))
    for number in range(1, 6):
        ask(world)
        world.step(OffsetsFound(number, 0, THREE))
    world.push("m4")
    world.write()
    assert world.finish() == [f"find {number} [1]" for number in range(6, 11)]


@pytest.mark.parametrize("settled", [False, True])
def test_what_is_pushed_and_consumed_before_it_is_safe_wakes_no_sooner(settled: bool) -> None:
    world = ready()
    hold(world)
    world.connect("c")
    world.join("c")
    world.push("m4")
    if settled:
        world.step(Acknowledge(world.numbers["c"], "m4", "ch", 1, True))
    assert not any(isinstance(each, FindOffsets) for each in world.last)
    world.write()
    assert "find 2 [1]" in world.finish()


def test_cursor_and_timestamp_are_told_with_the_offsets() -> None:
    world = ready()
    world.step(CommitCursor(world.numbers["a"], None, "ch", 1, "r", 2))
    world.write()
    number = world.numbers["a"]
    world.step(ListOffsets(number, "list", "", cursor="r", timestamp_ms=5))
    (effect,) = world.last
    assert isinstance(effect, FindOffsets)
    assert effect.timestamp_us == 5_000
    world.step(OffsetsFound(1, 0, [KeptOffsets(1, 3, 3, 30, 7, 2)]))
    (item,) = body(world)
    assert (item.committed, item.at) == (2, 2)
    world.step(ListOffsets(number, "list", "", cursor="none", timestamp_ms=5))
    world.step(OffsetsFound(2, 0, THREE))
    (item,) = body(world)
    assert (item.committed, item.at) == (-1, 4)
    world.step(ListOffsets(number, "list", ""))
    world.step(OffsetsFound(3, 0, THREE))
    (item,) = body(world)
    assert (item.committed, item.at) == (None, None)


@pytest.mark.parametrize("fails", [False, True])
def test_a_commit_of_transactions_is_new_when_it_is_safe(fails: bool) -> None:
    world = ready()
    world.connect("t")
    hold(world)
    number = opened(world)
    push(world, number, message_set("m4"))
    commit(world, 1, number)
    assert world.finish() == []
    world.write(fails="no luck" if fails else "")
    assert [word for word in world.finish() if word.startswith("find")] == (
        [] if fails else ["find 2 [1]"]
    )
