"""Deferred messages of queues that are not durable, but may overflow: on disk to save memory."""

from __future__ import annotations

import re

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.test_browsing import Looks
from tests.tmqp_server.engine.test_deferring import cancel
from tests.tmqp_server.engine.test_shelving import FAR, defer, got, places, shelving, wait
from tmqp.constants import STATUS_PULL
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import ClearMessages, PushExtras, RemoveQueue, SubscribeEvent
from tmqp_server.engine.events import MESSAGE_PRODUCED
from tmqp_server.engine.flights import LOOK_AHEAD_S
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges


def spilling(limits: EngineLimits | None = None, **changes: object) -> KeptWorld:
    """A world with a queue in memory that keeps two deferred messages there, the rest on disk."""
    return shelving(limits, **({"durable": False, "overflow": True} | changes))


def push(world: KeptWorld, *ids: str, delay_ms: int = FAR) -> list[str]:
    """Push messages that are deferred; nothing is written yet."""
    words: list[str] = []
    for each in ids:
        words += world.push(each, extras=PushExtras(delay_ms=delay_ms))
    return words


def assert_nothing_on_disk(world: KeptWorld) -> None:
    world.sync()
    assert world.queue().disk_bytes == 0
    assert world.store._queues[1].owed == set()


def test_what_the_memory_has_no_room_for_is_on_disk_only_and_comes_in_time() -> None:
    world = spilling()
    world.join("a")
    before = world.broker.statistics().bytes
    words = defer(world, "m1", "m2", "m3", "m4", wants=True)
    assert [word for word in words if word.startswith("p: ")] == [
        f"p: m{each} ok F" for each in range(1, 5)
    ]
    assert places(world) == (["m1", "m2"], ["m3", "m4"])
    assert world.broker.statistics().bytes == before + 2 * (10 + MESSAGE_OVERHEAD_BYTES)
    assert world.queue().disk_bytes == 20
    assert world.books() == world.books() | {"deferred": 4, "accepted": 4}
    assert "saved" not in world.books()
    assert got(wait(world, 60.0 - LOOK_AHEAD_S - 0.1)) == []
    assert places(world)[1] == ["m3", "m4"]
    assert got(wait(world, 0.2)) == []
    assert places(world) == (["m1", "m2", "m3", "m4"], [])
    assert_nothing_on_disk(world)
    assert got(wait(world, LOOK_AHEAD_S)) == ["m1", "m2", "m3", "m4"]
    for each in ("m1", "m2", "m3", "m4"):
        assert world.ack("a", each) == []
    assert_nothing_on_disk(world)


def test_a_message_that_is_due_before_it_is_written_is_sent_and_leaves_no_copy() -> None:
    world = spilling()
    world.join("a")
    push(world, "m1", "m2")
    push(world, "s1", "s2", "s3", delay_ms=1_000)
    assert world.queue().disk_bytes == 10
    assert got(world.wait(1.1)) == ["s1", "s2", "s3"]
    assert world.queue().disk_bytes == 0
    assert_nothing_on_disk(world)
    for each in ("s1", "s2", "s3"):
        assert world.ack("a", each) == []


def test_the_answer_to_an_older_copy_does_not_put_a_newer_one_away() -> None:
    world = spilling(memory_limit=1)
    world.join("a")
    push(world, "far")
    push(world, "back", "s1", "s2", delay_ms=1_000)
    writing = world.journal.take()
    assert got(world.wait(1.1)) == ["back", "s1", "s2"]
    world.release("a", "s2", delay_ms=FAR)
    world.store.write(writing.batch, int(world.now * 1e6))
    answer = world.journal.finished(writing, True)
    assert answer is not None
    world.step(answer)
    assert places(world) == (["far", "s2"], [])
    world.sync()
    assert places(world) == (["far"], ["s2"])
    assert world.queue().disk_bytes == 10
    assert len(world.store._queues[1].owed) == 1


@pytest.mark.parametrize("written", [True, False])
def test_a_cancelled_message_leaves_no_copy(written: bool) -> None:
    world = spilling()
    push(world, "m1", "m2", "m3", "m4")
    if written:
        world.sync()
    assert "p cancel: 0" in cancel(world, "m3") + world.sync()
    assert world.books() == world.books() | {"deferred": 3, "cleared": 1}
    assert places(world) == (["m1", "m2"], ["m4"])
    assert len(world.store._queues[1].owed) == 1


@pytest.mark.parametrize("written", [True, False])
def test_cleared_messages_leave_no_copies(written: bool) -> None:
    world = spilling()
    push(world, *(f"m{each}" for each in range(6)))
    if written:
        world.sync()
    world.step(ClearMessages(world.numbers["admin"], "clear", "ch", 1, True, True))
    assert_nothing_on_disk(world)
    assert world.books() == world.books() | {"cleared": 6}
    assert wait(world, 61.0) == []


def test_room_that_gets_free_before_the_disk_answers_keeps_a_message_in_memory() -> None:
    world = spilling()
    push(world, "m1", "m2", "m3")
    cancel(world, "m1")
    assert places(world) == (["m2", "m3"], [])
    world.sync()
    assert places(world) == (["m2", "m3"], [])
    assert_nothing_on_disk(world)
    world.join("a")
    assert got(wait(world, 61.0)) == ["m2", "m3"]


def test_what_cannot_be_written_stays_in_memory_and_is_not_lost() -> None:
    world = spilling()
    world.join("a")
    push(world, "m1", "m2", "m3", "m4")
    world.write("no space")
    assert places(world) == (["m1", "m2", "m3", "m4"], [])
    assert_nothing_on_disk(world)
    assert got(wait(world, 61.0)) == ["m1", "m2", "m3", "m4"]
    assert "dropped" not in world.books()


def test_pushes_that_would_go_to_disk_are_refused_while_it_fails() -> None:
    world = spilling()
    world.join("a")
    world.push("back")
    world.state(False)
    assert push(world, "m1", "m2") == []
    assert push(world, "m3") == ["p wire of m3: 503"]
    assert "503" not in " ".join(push(world, "s1", "s2", delay_ms=1_000)), "as many that are soon"
    world.release("a", "back", delay_ms=FAR)
    assert places(world) == (["back", "m1", "m2", "s1", "s2"], [])
    world.state(True)
    assert push(world, "m3")[0].startswith("append")


def test_more_than_the_disk_quota_is_refused() -> None:
    world = spilling(disk_limit_bytes=25)
    world.join("a")
    world.push("back")
    defer(world, "m1", "m2", "m3", "m4")
    assert push(world, "m5") == ["p wire of m5: 482"]
    world.release("a", "back", delay_ms=FAR)
    world.sync()
    assert places(world) == (["back", "m1", "m2"], ["m3", "m4"]), "it is not refused"
    cancel(world, "m4")
    world.sync()
    assert push(world, "m5")[0].startswith("append")


def test_a_restart_loses_them_as_what_waits_on_disk_to_save_memory() -> None:
    world = spilling()
    defer(world, *(f"m{each}" for each in range(9)))
    world.crash()
    assert "deferred" not in world.books()
    assert_nothing_on_disk(world)


def test_what_a_handler_saves_is_put_away_and_survives() -> None:
    world = spilling(delivery_handler="ack-ifsaved")
    defer(world, *(f"m{each}" for each in range(9)), wants=True)
    assert len(places(world)[1]) == 7
    assert world.queue().disk_bytes == 90
    world.crash()
    world.sync()
    assert world.books()["deferred"] == 9
    world.join("a")
    assert sorted(got(wait(world, 61.0))) == [f"m{each}" for each in range(9)]


def test_what_its_producer_must_be_told_of_stays_in_memory() -> None:
    world = spilling(delivery_handler="ack-consumer")
    defer(world, "m1", "m2", "m3", wants=True)
    assert places(world) == (["m1", "m2", "m3"], [])


def test_what_is_given_back_with_a_delay_is_put_away_as_it_is_then() -> None:
    world = spilling()
    world.join("a")
    world.push("back")
    defer(world, "m1", "m2")
    world.release("a", "back", delay_ms=FAR)
    world.sync()
    assert places(world) == (["m1", "m2"], ["back"])
    words = wait(world, 61.0)
    assert [word for word in words if "back" in word] == ["a <- back AR"]
    assert world.queue().flights["back"].put_backs == 1


def test_the_event_of_a_message_does_not_wait_for_a_copy_that_only_saves_memory() -> None:
    world = spilling(memory_limit=1, status=STATUS_PULL)
    world.connect("e")
    world.step(SubscribeEvent(world.numbers["e"], "r", MESSAGE_PRODUCED, "ch", 1))
    words = push(world, "far") + world.push("waits")
    assert world.queue().is_full()
    words += push(world, "soon1", "soon2", "soon3", delay_ms=1_000)
    assert len([word for word in words if word.startswith("e ")]) == 5
    assert world.queue().disk_bytes > 0
    assert [word for word in world.sync() if word.startswith("e ")] == []


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_who_looks_into_the_queue_sees_them(limit: int) -> None:
    world = spilling(status=STATUS_PULL)
    for number in range(12):
        extras = PushExtras(delay_ms=FAR + number * 1_000) if number % 3 else None
        world.push(f"m{number}", extras=extras)
    world.sync()
    before = places(world)
    shown = [each.message_id for each in Looks(world).everything(limit)]
    assert shown == [f"m{number}" for number in range(12)]
    assert places(world) == before


def test_messages_that_wait_on_disk_and_those_that_are_deferred_there_do_not_mix() -> None:
    world = spilling(status=STATUS_PULL)
    for number in range(40):
        extras = PushExtras(delay_ms=5_000 + number) if number % 2 else None
        world.push(f"m{number:02}", extras=extras)
        if number % 7 == 0:
            world.sync()
    world.sync()
    assert world.queue().spilled == 18
    assert len(places(world)[1]) == 18
    wait(world, 6.0)
    world.join("a")
    words = " ".join(" ".join(world.pull("a", 1) + world.sync()) for _ in range(40))
    assert sorted(re.findall(r"\bm\d\d\b", words)) == [f"m{number:02}" for number in range(40)]
    assert_nothing_on_disk(world)


def test_a_queue_goes_with_what_it_has_on_disk() -> None:
    world = spilling()
    before = world.broker.statistics().bytes
    push(world, *(f"m{each}" for each in range(6)))
    world.step(RemoveQueue(world.numbers["admin"], "remove", "ch", 1))
    world.sync()
    assert world.broker.statistics().bytes == before
    assert 1 not in world.store._queues


def test_a_queue_that_may_overflow_no_more_still_delivers_what_is_on_disk() -> None:
    world = spilling()
    world.join("a")
    defer(world, "m1", "m2", "m3", "m4")
    world.update(QueueChanges(overflow=False))
    assert got(wait(world, 61.0)) == ["m1", "m2", "m3", "m4"]
    assert_nothing_on_disk(world)
