"""Deferred messages: their limits, cancelling them, and what a restart leaves of both."""

from __future__ import annotations

import random

import pytest

from tests.tmqp_server.engine.kept import DURABLE, KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.books import DEFERRAL_BYTES, MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import ApplyDecision, Batch, CancelMessage, Push, PushExtras
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.deferrals import Deferrals
from tmqp_server.engine.model.message import MARK_HIGH, Message
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.options import BrokerOptions, QueueChanges

LATER = PushExtras(delay_ms=2_000)


def cancel(world: World, message_id: str, queue_id: int = 1, client: str = "p") -> list[str]:
    if client not in world.numbers:
        world.connect(client)
    command = CancelMessage(world.numbers[client], "cancel", "ch", queue_id, message_id)
    return world.step(command)


def durable(limits: EngineLimits | None = None) -> KeptWorld:
    world = KeptWorld(limits)
    world.create(DURABLE)
    world.sync()
    return world


# --- The order of time ---------------------------------------------------------------------------


def message(message_id: str, sequence: int, marks: int = 0, size: int = 10) -> Message:
    return Message(message_id, Origin(1, "p", None, None, ""), "ch", 1, size, None, marks, sequence)


@pytest.mark.parametrize("seed", range(40))
def test_deferrals_do_as_a_sorted_list_does(seed: int) -> None:
    """Random entries, few ids among them; each is found, taken, removed where the model says."""
    draw = random.Random(seed)
    each = Deferrals()
    model: list[tuple[float, int, Message]] = []
    now = 0.0
    for sequence in range(1, 400):
        what = draw.random()
        if what < 0.55:
            made = message(f"m{draw.randrange(30)}", sequence, draw.choice([0, MARK_HIGH]))
            due_at = now + draw.choice([0.5, 1.0, 1.0, 2.0, 7.0])
            each.add(made, due_at)
            model.append((due_at, sequence, made))
        elif what < 0.75 and model:
            gone = draw.choice(model)
            each.remove(gone[2])
            model.remove(gone)
        elif what < 0.95:
            now += draw.choice([0.0, 0.25, 0.5])
            while (taken := each.take(now)) is not None:
                first = min(model, key=lambda entry: entry[:2])
                assert taken is first[2]
                assert first[0] <= now
                model.remove(first)
            assert not [entry for entry in model if entry[0] <= now]
        elif draw.random() < 0.2:
            high = draw.random() < 0.5
            detached = {one.sequence for one in each.detach(high)}
            kept = [one for one in model if one[2].high_priority is not high]
            assert detached == {one[1] for one in model} - {one[1] for one in kept}
            model = kept
        assert len(each) == len(model)
        assert each.size() == 10 * len(model)
        assert each.next_due() == min([one[0] for one in model], default=NEVER)
        for number in range(30):
            there = [one[2] for one in model if one[2].message_id == f"m{number}"]
            there.sort(key=lambda one: (not one.high_priority, one.sequence))
            assert each.find(f"m{number}", 1_000) == there
            assert len(each.find(f"m{number}", 1)) == min(1, len(there))


# --- Cancelling ----------------------------------------------------------------------------------


def test_a_cancelled_message_does_not_come() -> None:
    world = World()
    world.join("a")
    world.push("m1", extras=LATER)
    world.push("m2", extras=LATER)
    assert cancel(world, "m1") == ["p cancel: 0"]
    assert world.books()["cleared"] == 1
    assert world.books()["deferred"] == 1
    assert cancel(world, "m1") == ["p cancel: 404"]
    assert world.wait(2.0) == ["a <- m2 FA"]
    assert cancel(world, "m2") == ["p cancel: 404"]  # it is due, and on its way


def test_what_is_not_deferred_is_not_cancelled() -> None:
    world = World()
    world.push("m1")
    assert cancel(world, "m1") == ["p cancel: 404"]
    assert cancel(world, "m1", queue_id=7) == ["p cancel: 404"]
    assert world.books()["messages"] == 1


def test_all_messages_of_an_id_are_cancelled() -> None:
    """A producer that pushed again after its connection broke has pushed twice."""
    world = World()
    world.join("a")
    for delay_ms in (2_000, 1_000, 3_000):
        world.push("same", extras=PushExtras(delay_ms=delay_ms))
    assert cancel(world, "same") == ["p cancel: 0"]
    assert world.books()["cleared"] == 3
    assert world.wait(5.0) == []


def test_no_more_of_an_id_than_a_batch_may_hold_are_cancelled_at_once() -> None:
    world = World(EngineLimits(max_batch_length=2))
    for _ in range(5):
        world.push("same", extras=LATER)
    left = []
    for _ in range(4):
        left.append((*cancel(world, "same"), world.books().get("deferred", 0)))
    assert left == [
        ("p cancel: 0", 3),
        ("p cancel: 0", 1),
        ("p cancel: 0", 0),
        ("p cancel: 404", 0),
    ]


def test_who_waits_for_the_confirm_is_told_that_it_was_cancelled() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="ack-if-asked"))
    world.push("m1", wants=True, extras=LATER)
    words = cancel(world, "m1")
    assert words[-1] == "p cancel: 0"
    assert len(words) <= 2


def test_the_answer_waits_until_the_storage_has_forgotten_the_message() -> None:
    world = durable()
    world.push("m1", extras=LATER)
    world.sync()
    words = cancel(world, "m1")
    assert "p cancel: 0" not in words
    assert "p cancel: 0" in world.sync()
    world.crash()
    world.join("a")
    assert world.wait(10.0) == []


def test_a_cancel_that_cannot_be_written_is_answered_503_and_tried_again() -> None:
    world = durable()
    world.push("m1", extras=LATER)
    world.sync()
    cancel(world, "m1")
    assert "p cancel: 503" in world.write(fails="no room")
    assert "deferred" not in world.books()  # nobody gets it as long as this server lives
    world.sync()
    world.crash()
    world.join("a")
    assert world.wait(10.0) == []


def test_a_cancel_overtakes_the_writing_of_its_message() -> None:
    world = durable()
    world.push("m1", wants=True, extras=LATER)
    cancel(world, "m1")
    words = world.sync()
    assert "p cancel: 0" in words
    world.crash()
    world.join("a")
    assert world.wait(10.0) == []


def test_a_cancel_that_was_not_written_is_undone_by_a_crash() -> None:
    world = durable()
    world.push("m1", extras=LATER)
    world.sync()
    cancel(world, "m1")
    world.crash()  # its client was told nothing
    world.join("a")
    assert world.wait(10.0) == ["a <- m1 AR"]


def test_other_nodes_are_told_of_a_cancel() -> None:
    world = World(options=BrokerOptions(events=NO_EVENTS, shares_decisions=True))
    world.push("m1", extras=LATER)
    assert cancel(world, "m1") == ["nodes: ch/1 m1 refused", "p cancel: 0"]
    world.push("m2", extras=LATER)
    world.step(ApplyDecision("ch", 1, "m2", False))  # it was cancelled elsewhere
    world.join("a")
    assert world.wait(5.0) == []
    assert "deferred" not in world.books()


# --- Limits --------------------------------------------------------------------------------------


def test_each_limit_of_deferring() -> None:
    world = World(EngineLimits(max_delay_ms=2_000))
    assert world.push("m1", extras=LATER) == []
    assert world.push("m2", extras=PushExtras(delay_ms=2_001)) == ["p wire of m2: 482"]
    world = World(EngineLimits(max_deferred_per_queue=2))
    assert [world.push(f"m{n}", extras=LATER) for n in range(3)] == [[], [], ["p wire of m2: 482"]]
    assert world.push("m3") == []  # another message has room
    cancel(world, "m0")
    assert world.push("m4", extras=LATER) == []
    world = World(EngineLimits(max_deferred_bytes_per_queue=20))
    assert [world.push(f"m{n}", extras=LATER) for n in range(3)] == [[], [], ["p wire of m2: 482"]]
    assert world.books()["refused"] == 1


def test_a_batch_is_refused_as_a_whole() -> None:
    world = World(EngineLimits(max_deferred_per_queue=2))
    world.connect("p")
    pushes = [Push(1, f"m{n}", "ch", 1, False, False, 10, "w", LATER) for n in range(3)]
    assert world.step(Batch(1, "batch", list(pushes))) == ["p batch: 482"]
    assert world.books().get("deferred", 0) == 0
    assert world.step(Batch(1, "batch", list(pushes[:2]))) == ["p batch: 0"]
    assert world.books()["deferred"] == 2


def test_being_deferred_is_charged() -> None:
    world = World()
    world.create()
    core = world.broker._core
    before = core.total_bytes
    world.push("m1", size=100, extras=LATER)
    taken = core.total_bytes - before
    assert taken >= 100 + MESSAGE_OVERHEAD_BYTES + DEFERRAL_BYTES
    cancel(world, "m1")
    assert core.total_bytes == before + taken - 100 - MESSAGE_OVERHEAD_BYTES - DEFERRAL_BYTES
