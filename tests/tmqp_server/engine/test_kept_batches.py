"""Batches with a storage: all of one is seen when it is safe, nothing of one that fails."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.kept import DURABLE, KeptWorld
from tests.tmqp_server.engine.test_spilling import delivered
from tmqp.constants import STATUS_BROADCAST, STATUS_CACHE, STATUS_PULL
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES as OVERHEAD
from tmqp_server.engine.books import batch_bytes
from tmqp_server.engine.commands import (
    Acknowledge,
    Batch,
    ClearMessages,
    Command,
    Push,
    PushExtras,
    Release,
    RemoveQueue,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import ALLOW, SAVE, Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueChanges


def ready(
    limits: EngineLimits | None = None,
    handlers: dict[str, DeliveryHandler] | None = None,
    **changes: object,
) -> KeptWorld:
    """A world with a durable queue 1, an ordinary queue 2 and a client."""
    world = KeptWorld(limits, handlers)
    world.create(QueueChanges(durable=True, **changes), owner="t")  # type: ignore[arg-type]
    world.create(QueueChanges(durable=False), queue_id=2)
    world.sync()
    return world


def push(message_id: str, queue_id: int = 1, wants: bool = False, size: int = 10) -> Push:
    return Push(1, message_id, "ch", queue_id, False, wants, size, f"wire of {message_id}")


def ack(message_id: str, queue_id: int = 1, positive: bool = True) -> Acknowledge:
    return Acknowledge(1, message_id, "ch", queue_id, positive, "" if positive else "no")


def batch(world: KeptWorld, *commands: Command) -> list[str]:
    return world.step(Batch(1, "batch", list(commands)))


def owed(world: KeptWorld) -> list[str]:
    """What would be there after a crash, in order."""
    world.crash()
    words = world.join("later")
    return delivered(words + world.sync())


def in_hand(world: KeptWorld, *message_ids: str, queue_id: int = 1) -> None:
    """Let the client have messages."""
    world.join("t")
    for message_id in message_ids:
        world.push(message_id, queue_id=queue_id)
    world.sync()


# --- The way through -----------------------------------------------------------------------------


def test_nothing_is_seen_before_it_is_safe() -> None:
    world = ready()
    in_hand(world, "in")
    (word,) = batch(world, push("m1"), ack("in"), push("m2", 2))
    assert word.startswith("CommitBatch")
    assert world.finish() == []
    words = world.write()
    assert delivered(words) == ["m1", "m2"]
    assert words[-1] == "t batch: 0"
    assert [word for word in words if word.startswith("erase")] == []
    assert world.books()["done"] == 1
    assert owed(world) == ["m1"]


def test_a_batch_that_cannot_be_saved_has_never_been() -> None:
    world = ready()
    in_hand(world, "in")
    books, others = world.books(), world.books(queue_id=2)
    batch(world, push("m1"), ack("in"), push("m2", 2))
    assert world.write(fails="full") == ["t batch: 503"]
    assert (world.books(), world.books(queue_id=2)) == (books, others)
    # The delivery is in its hands as before.
    batch(world, ack("in"), push("m3"))
    assert world.write()[-1] == "t batch: 0"
    assert world.sync() == []
    assert owed(world) == ["m3"]


@pytest.mark.parametrize("written", [False, True])
def test_a_server_that_is_killed_does_all_or_nothing(written: bool) -> None:
    world = ready()
    in_hand(world, "in")
    batch(world, push("m1"), ack("in"), push("m2", 2), push("m3"))
    if written:
        writing = world.journal.take()
        world.store.write(writing.batch, 0)  # and the answer never comes
    assert owed(world) == (["m1", "m3"] if written else ["in"])


def test_pushes_that_come_after_it_keep_their_own_way() -> None:
    world = ready()
    world.join("a")
    batch(world, push("m1"))
    assert delivered(world.push("m2")) == ["m2"]
    assert delivered(world.write()) == ["m1"]


def test_producers_that_ask_are_told_when_it_is_safe() -> None:
    world = ready()
    assert len(batch(world, push("m1", wants=True), push("m2", 2, wants=True))) == 1
    assert world.write() == ["t: m1 ok F", "t: m2 ok F", "t batch: 0"]


def test_a_batch_without_anything_to_keep_is_done_at_once() -> None:
    world = ready()
    in_hand(world, "in", queue_id=2)
    assert batch(world, ack("in", 2), push("m1", 2))[-1] == "t batch: 0"
    assert world.journal.is_empty


def test_a_client_that_leaves_has_its_batch_all_the_same() -> None:
    world = ready()
    in_hand(world, "in")
    batch(world, push("m1"), ack("in"))
    world.disconnect("t")
    assert world.write() == []
    assert world.books()["done"] == 1
    assert owed(world) == ["m1"]


# --- Deliveries that are promised ----------------------------------------------------------------


@pytest.mark.parametrize("ok", [True, False])
def test_nobody_else_answers_for_a_promised_delivery(ok: bool) -> None:
    world = ready()
    in_hand(world, "in")
    batch(world, ack("in"))
    assert world.ack("t", "in") == []
    assert batch(world, ack("in")) == ["t batch: 404"]
    assert world.books()["unknown_acks"] == 1
    assert world.write(fails="" if ok else "full") == [f"t batch: {0 if ok else 503}"]
    assert world.books().get("done", 0) == int(ok)
    assert world.queue().live() == int(not ok)


def test_a_promised_delivery_does_not_time_out() -> None:
    world = ready(acknowledge_timeout_ms=1_000, delivery_handler="putback-end")
    in_hand(world, "in")
    batch(world, ack("in"))
    assert world.wait(3.5) == []
    assert world.write(fails="full") == ["t batch: 503"]
    assert delivered(world.wait(0.6)) == ["in"]  # it has been prolonged, and not for ever


def test_what_is_not_in_hand_refuses_the_batch() -> None:
    world = ready()
    in_hand(world, "in", "more")
    assert batch(world, push("m1"), ack("in"), ack("nothing")) == ["t batch: 404"]
    assert batch(world, push("m1"), ack("in"), ack("in")) == ["t batch: 404"]
    assert batch(world, push("m1"), ack("in", 7)) == ["t batch: 404"]
    assert world.queue().live() == 2
    batch(world, ack("in"), ack("more"))
    assert world.write() == ["t batch: 0"]
    assert world.queue().live() == 0


def test_one_answer_for_each_of_two_messages_of_one_id() -> None:
    world = ready()
    in_hand(world, "twice", "twice")
    batch(world, ack("twice"), ack("twice"))
    assert world.write() == ["t batch: 0"]
    assert owed(world) == []


def test_a_delivery_that_another_has_too_is_settled_by_the_last() -> None:
    world = ready()
    world.join("a")
    in_hand(world, "in")
    batch(world, ack("in"), push("m1"))
    assert world.ack("a", "in") == []
    assert world.queue().live() == 2  # the batch may fail yet
    words = world.write()
    assert "t batch: 0" in words
    assert [word for word in words if word.startswith("erase")]
    assert world.queue().live() == 1


def test_a_batch_that_fails_lowers_no_counter() -> None:
    """Who adds up differences, as Prometheus does, would take a lower one for a new server."""
    world = ready()
    batch(world, push("m1"), push("m2"))
    counters = world.queue().counters
    assert (counters.received, counters.accepted, counters.undone) == (2, 2, 0)
    assert world.write(fails="full") == ["t batch: 503"]
    assert (counters.received, counters.accepted, counters.undone) == (2, 2, 2)
    assert world.queue().imbalance() == 0
    assert world.books() == {}  # to users it is as if nothing had been pushed


@pytest.mark.parametrize("ok", [True, False])
def test_a_queue_is_cleared_or_removed_meanwhile(ok: bool) -> None:
    for command in (
        ClearMessages(2, "r", "ch", 1, True, True),
        RemoveQueue(2, "r", "ch", 1),
    ):
        world = ready()
        in_hand(world, "in")
        queue = world.queue()
        batch(world, push("m1"), ack("in"), push("m2", 2))
        world.step(command)
        world.finish()
        words = world.write(fails="" if ok else "full")
        assert f"t batch: {0 if ok else 503}" in words
        world.sync()
        assert queue.imbalance() == 0
        assert world.broker._core.unsynced_bytes == 0
        if isinstance(command, RemoveQueue):
            assert (queue.count, queue.bytes) == (0, 0)
            assert world.queue(queue_id=2).live() == int(ok)


def test_a_refusal_in_a_batch_puts_back_what_its_queue_puts_back() -> None:
    world = ready(delivery_handler="putback-start")
    in_hand(world, "in")
    batch(world, push("m1"), ack("in", positive=False))
    words = world.write()
    assert sorted(delivered(words)) == ["in", "m1"]
    assert world.books()["requeued"] == 1
    assert owed(world) == ["in", "m1"]


def test_a_refusal_that_settles_is_part_of_the_batch() -> None:
    world = ready()
    in_hand(world, "in")
    batch(world, push("m1"), ack("in", positive=False))
    world.write()
    assert owed(world) == ["m1"]


@pytest.mark.parametrize("ok", [True, False])
def test_a_release_is_part_of_the_batch(ok: bool) -> None:
    world = ready()
    in_hand(world, "in", "other")
    batch(world, Release(1, None, "in", "ch", 1, delay_ms=5_000), ack("other"), push("m1", 2))
    assert world.wait(6.0) == []
    words = world.write(fails="" if ok else "full")
    assert f"t batch: {0 if ok else 503}" in words
    assert world.books().get("released", 0) == int(ok)
    assert delivered(world.wait(4.9)) == []
    assert delivered(world.wait(0.2)) == (["in"] if ok else [])
    assert owed(world) == (["in"] if ok else ["in", "other"])


def test_deferred_messages_are_bounded_in_batches_too() -> None:
    world = ready(EngineLimits(max_deferred_per_queue=1))
    late = [push("a"), push("b")]
    for each in late:
        each.extras = PushExtras(delay_ms=1_000)
    assert batch(world, *late) == ["t batch: 482"]
    assert batch(world, late[0])[0].startswith("CommitBatch")


# --- Room ----------------------------------------------------------------------------------------


def test_its_room_is_kept_meanwhile() -> None:
    world = ready(message_limit=2)
    batch(world, push("m1"), push("m2"))
    assert world.push("m3") == ["p wire of m3: 482"]
    assert batch(world, push("m3")) == ["t batch: 482"]
    world.write(fails="full")
    assert delivered(world.push("m3")) == []
    assert world.books()["messages"] == 1


def test_it_counts_as_memory_until_it_is_safe() -> None:
    world = ready()
    before = world.broker.statistics().state_bytes
    batch(world, push("m1"), push("m2", 2))
    assert world.broker.statistics().state_bytes == before + batch_bytes(2, 0)
    world.write()
    assert world.broker.statistics().state_bytes == before


def test_memory_that_is_short_refuses_it() -> None:
    world = ready()
    room = world.broker._core.total_bytes + 2 * (10 + OVERHEAD) + batch_bytes(2, 0)
    for less, answer in ((1, ["t batch: 503"]), (0, [])):
        world = ready(EngineLimits(max_total_bytes=room - less))
        words = batch(world, push("m1"), push("m2"))
        assert [word for word in words if not word.startswith("CommitBatch")] == answer


def test_what_it_settles_makes_room_for_what_it_pushes() -> None:
    world = ready()
    in_hand(world, "in")
    full = world.broker._core.total_bytes
    world = ready(EngineLimits(max_total_bytes=full + 9))
    in_hand(world, "in")
    assert batch(world, push("m1")) == ["t batch: 503"]
    assert batch(world, ack("in"), push("m1", size=11)) == ["t batch: 503"]
    batch(world, ack("in"), push("m1"))
    assert "t batch: 0" in world.write()


def test_a_storage_that_fails_refuses_what_needs_it() -> None:
    world = ready()
    in_hand(world, "in")
    world.state(False)
    assert batch(world, push("m1")) == ["t batch: 503"]
    assert batch(world, ack("in"), push("m2", 2)) == ["t batch: 503"]
    assert batch(world, push("m2", 2))[-1] == "t batch: 0"


def test_what_the_storage_has_not_answered_for_is_bounded() -> None:
    world = ready(EngineLimits(max_unsynced_bytes=25))
    assert batch(world, push("m1"), push("m2"), push("m3")) == ["t batch: 503"]
    batch(world, push("m1"), push("m2"))
    assert world.push("m3") == ["p wire of m3: 503"]
    assert world.write() == ["t batch: 0"]
    assert world.push("m3")[0].startswith("append")


def test_it_waits_on_disk_where_memory_has_no_room() -> None:
    world = ready(memory_limit=2)
    for number in range(4):
        world.push(f"old{number}")
    world.sync()
    batch(world, push("m1"), push("m2"))
    world.push("new")
    world.sync()
    assert world.queue().spilled > 0
    found = delivered(world.join("a"))
    words: list[str] = []
    while found:
        words += found
        told: list[str] = []
        for message_id in found:
            told += world.ack("a", message_id)
        found = delivered(told + world.sync())
    assert sorted(words) == ["m1", "m2", "new", "old0", "old1", "old2", "old3"]
    assert owed(world) == []


# --- Kinds of queues and messages ----------------------------------------------------------------


def test_deferred_messages_and_time_outs() -> None:
    world = ready()
    world.join("a")
    late = push("late")
    late.extras = PushExtras(delay_ms=5_000)
    short = push("short")
    short.extras = PushExtras(expires_in_ms=100)
    batch(world, late, short)
    world.now += 1.0  # the storage takes its time
    assert world.write() == ["t batch: 0"] or world.books()["expired"] == 1
    assert world.books()["expired"] == 1
    assert delivered(world.wait(3.0)) == []
    assert delivered(world.wait(2.0)) == ["late"]


def test_a_broadcast_goes_out_when_the_rest_is_safe() -> None:
    world = ready()
    world.create(QueueChanges(status=STATUS_BROADCAST), queue_id=3)
    world.sync()
    world.join("a")
    batch(world, push("all", 3), push("m1"))
    assert sorted(delivered(world.write())) == ["all", "m1"]


def test_a_cache_queue_keeps_the_last() -> None:
    world = ready()
    world.create(QueueChanges(status=STATUS_CACHE, durable=True), queue_id=3)
    world.sync()
    batch(world, push("a", 3), push("b", 3))
    world.sync()
    assert world.queue(queue_id=3).waiting_count() == 1
    world.restart()
    world.connect("t")
    world.sync()
    assert world.queue(queue_id=3).waiting_count() == 1


def test_a_pull_queue_has_it_when_it_is_safe() -> None:
    world = ready(status=STATUS_PULL)
    world.join("a")
    batch(world, push("m1"))
    assert world.pull("a") == ["a pull Empty"]
    world.write()
    assert "m1" in world.pull("a")[0]


class Asked(DeliveryHandler):
    """Refuses what is called bad, saves the rest, and counts the questions."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        self.asked.append(message.message_id)
        return (
            Decision(False, False, ALLOW.put_back, ALLOW.acknowledge)
            if (message.message_id == "bad")
            else SAVE
        )

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Client, positive: bool, reason: str
    ) -> Decision:
        self.asked.append(f"{consumer.client_id} {reason}")
        return ALLOW


def test_a_handler_is_asked_before_anything_is_done() -> None:
    handler = Asked()
    world = KeptWorld(handlers={"asked": handler})
    world.create(QueueChanges(delivery_handler="asked"), owner="t")
    world.sync()
    assert batch(world, push("m1"), push("bad")) == ["t batch: 406"]
    assert "messages" not in world.books()
    world.join("t")
    batch(world, push("m1"))
    assert delivered(world.write()) == ["m1"]
    batch(world, ack("m1"))
    assert world.write() == ["t batch: 0"]
    assert handler.asked == ["m1", "bad", "m1", "t "]
    assert owed(world) == []


def test_a_cluster_takes_no_batches() -> None:
    world = KeptWorld(takes_nodes=True)
    world.create(QueueChanges(durable=True), owner="t")
    world.sync()
    assert batch(world, push("m1")) == ["t batch: 501"]


def test_a_durable_queue_is_made_by_the_batch() -> None:
    world = KeptWorld()
    world.connect("t")
    made = push("m1", 9)
    made.extras = PushExtras(changes=DURABLE)
    batch(world, made)
    assert world.write()[-1] == "t batch: 0"
    assert owed(world) == ["m1"]
