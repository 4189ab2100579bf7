"""Queues where keys count, case by case: owners of buckets, order of a key, what frees one."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.keyed import busy, keyed, sent
from tests.tmqp_server.engine.test_choosing import Kinds
from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    PUT_BACK_START,
    RESULT_BAD_REQUEST,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
    STATUS_STOPPED,
)
from tmqp_server.engine.commands import (
    CancelMessage,
    ClearMessages,
    Join,
    PushExtras,
    RemoveQueue,
    Unblock,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import ALLOW, Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.keyed import KeyedList
from tmqp_server.engine.model.keys import BUCKETS, Owner, bucket_of
from tmqp_server.engine.model.message import MARK_GONE, Message, Wires
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import NO_KEYS, STICKY, STRICT, QueueChanges

# --- Sticky --------------------------------------------------------------------------------------


def test_a_key_stays_with_its_consumer() -> None:
    world = keyed(STICKY)
    world.join("a")
    world.join("b")
    first = {key: sent(world.push(f"{key}-1"))[0][0] for key in "klmnopqr"}
    assert sorted(first.values()) == ["a"] * 4 + ["b"] * 4, "evenly"
    for number in range(2, 6):
        for key, name in first.items():
            assert sent(world.push(f"{key}-{number}")) == [f"{name} <- {key}-{number}"]


def test_without_a_key_they_take_turns() -> None:
    world = keyed(STICKY)
    world.join("a")
    world.join("b")
    assert sent(world.push("k-1")) == ["a <- k-1"]
    names = [sent(world.push(f"x{number}"))[0][0] for number in range(4)]
    assert names == ["b", "a", "b", "a"]
    assert sent(world.push("k-2")) == ["a <- k-2"]


def test_nobody_else_gets_what_a_busy_consumer_is_to_have() -> None:
    world = keyed(STICKY)
    world.join("a")
    world.join("b")
    world.push("k-1")
    busy(world, "a")
    assert sent(world.push("k-2")) == []
    assert sent(world.push("x3")) == ["b <- x3"]
    assert sent(world.step(Unblock(world.numbers["a"]))) == ["a <- k-2"]


def test_a_successor_waits_for_what_his_predecessor_has_in_hand() -> None:
    world = keyed(STICKY, acknowledge_timeout_ms=5_000)
    world.join("a")
    assert sent(world.push("k-1")) == ["a <- k-1"]
    world.wait(1)
    assert sent(world.push("k-2")) == ["a <- k-2"]
    world.join("b")
    assert sent(world.disconnect("a")) == []
    assert sent(world.push("k-3")) == [], "what a has may come back"
    assert sent(world.push("x4")) == ["b <- x4"]
    world.ack("b", "x4")
    assert sent(world.wait(4.5)) == [], "the second is out yet"
    assert sent(world.wait(2)) == ["b <- k-1", "b <- k-2", "b <- k-3"]


def test_what_a_leaving_consumer_returns_comes_first() -> None:
    world = keyed(STICKY)
    world.connect("a")
    world.step(Join(world.numbers["a"], "join", "ch", terms=Terms(returns=PUT_BACK_START)))
    for number in range(3):
        world.push(f"k-{number}")
    world.join("b")
    world.push("k-3")
    assert sent(world.leave("a") + world.finish()) == [f"b <- k-{number}" for number in range(4)]


def test_one_who_answers_for_all_after_leaving_frees_the_bucket() -> None:
    world = keyed(STICKY)
    world.join("a")
    world.join("b")
    world.push("k-1")
    world.leave("a")
    assert sent(world.push("k-2")) == []
    assert sent(world.ack("a", "k-1")) == ["b <- k-2"]


def test_one_who_joins_gets_his_share() -> None:
    world = keyed(STICKY)
    world.join("a")
    for number in range(20):
        world.push(f"k{number}-1")
    table = world.queue().keys
    assert table is not None
    had = len(table.buckets)
    for number in range(10):
        world.ack("a", f"k{number}-1")
    world.join("b")
    for number in range(20):
        world.push(f"k{number}-2")
    at_once = {name: len(owner.buckets) for name, owner in zip("ab", _owners(world), strict=True)}
    assert at_once == {"a": had // 2, "b": had - had // 2}
    # Nobody got a second one while the other had the first.
    queue = world.queue()
    first_hand = {each.partition("-")[0] for each in queue.flights if each.endswith("-1")}
    for each, message in queue.flights.items():
        if each.endswith("-2") and each.partition("-")[0] in first_hand:
            assert message.holder is not None
            assert message.holder.client_id == "a"


def _owners(world: World) -> list[Owner]:
    table = world.queue().keys
    assert table is not None
    return [table.owners[world.numbers[name]] for name in "ab"]


def test_a_bucket_that_moves_waits_for_what_is_in_hand() -> None:
    world = keyed(STICKY)
    world.join("a")
    keys = [f"k{number}" for number in range(40)]
    for key in keys:
        world.push(f"{key}-1")
    world.join("b")
    for key in keys:
        world.push(f"{key}-2")
    taken = {each.partition("-")[0] for each in world.queue().flights if each.endswith("-2")}
    left = [key for key in keys if key not in taken]
    assert left, "half of the buckets move"
    for key in left:
        sent(world.ack("a", f"{key}-1"))
    world.finish()
    assert not world.queue().regular_count
    for key in left:
        holder = world.queue().flights[f"{key}-2"].holder
        assert holder is not None
        assert holder.client_id == "b"


def test_consumers_of_a_higher_priority_take_buckets_first() -> None:
    world = keyed(STICKY)
    world.join("a")
    world.connect("b")
    world.step(Join(world.numbers["b"], "join", "ch", terms=Terms(priority=5)))
    assert {sent(world.push(f"{key}-1"))[0][0] for key in "klmn"} == {"b"}


def test_a_window_bounds_what_one_has_of_his_keys() -> None:
    world = keyed(STICKY)
    world.connect("a")
    world.step(Join(world.numbers["a"], "join", "ch", terms=Terms(window=2)))
    world.join("b")
    assert [sent(world.push(f"k-{number}")) for number in range(4)] == [
        ["a <- k-0"],
        ["a <- k-1"],
        [],
        [],
    ]
    assert sent(world.ack("a", "k-0")) == ["a <- k-2"]


def test_filters_come_first() -> None:
    world = keyed(STICKY)
    world.join("a", filter=Kinds("x"))
    world.join("b", filter=Kinds("xy"))
    assert sent(world.push("k-1x")) == ["a <- k-1x"]
    assert sent(world.push("k-2y")) == ["b <- k-2y"]
    assert sent(world.push("k-3x")) == ["a <- k-3x"]
    assert sent(world.push("k-4z")) == []
    busy(world, "a")
    assert sent(world.push("k-5x")) == []
    world.ack("a", "k-1x")
    world.ack("a", "k-3x")
    assert sent(world.leave("a")) == ["b <- k-5x"]
    assert sent(world.join("c", filter=Kinds("z"))) == ["c <- k-4z"]


def test_another_filter_of_the_same_consumer() -> None:
    world = keyed(STICKY)
    world.join("a", filter=Kinds("x"))
    world.join("b", filter=Kinds("xy"))
    world.push("k-1x")
    busy(world, "a")
    assert sent(world.push("k-2x")) == []
    assert sent(world.join("a", filter=Kinds("z"))) == []
    assert sent(world.ack("a", "k-1x")) == ["b <- k-2x"]


# --- Strict --------------------------------------------------------------------------------------


def test_one_of_a_key_at_a_time() -> None:
    world = keyed(STRICT)
    world.join("a")
    world.join("b")
    assert sent(world.push("k-1")) == ["a <- k-1"]
    assert sent(world.push("k-2")) == []
    assert sent(world.push("l-1")) == ["b <- l-1"]
    assert sent(world.push("x1")) == ["a <- x1"]
    assert sent(world.ack("a", "k-1")) == ["b <- k-2"], "anybody takes the next"


@pytest.mark.parametrize("back", ["putback-start", "putback-end"])
def test_a_refused_message_keeps_its_place(back: str) -> None:
    world = keyed(STRICT, delivery_handler=back)
    world.join("a")
    for number in (1, 2):
        world.push(f"k-{number}")
    world.push("l-1")
    assert sent(world.nack("a", "k-1")) == ["a <- k-1"]
    assert sent(world.ack("a", "k-1")) == ["a <- k-2"]


def test_a_released_message_keeps_its_place_while_it_is_delayed() -> None:
    world = keyed(STRICT)
    world.join("a")
    world.push("k-1")
    world.push("k-2")
    assert sent(world.release("a", "k-1", delay_ms=5_000)) == []
    assert sent(world.push("l-1")) == ["a <- l-1"]
    assert sent(world.wait(4)) == []
    assert sent(world.wait(2)) == ["a <- k-1"]
    assert sent(world.ack("a", "k-1")) == ["a <- k-2"]


def test_one_that_timed_out_comes_again_before_the_next() -> None:
    world = keyed(STRICT, acknowledge_timeout_ms=1_000)
    world.join("a")
    world.push("k-1")
    world.push("k-2")
    assert sent(world.wait(1.5)) == ["a <- k-1"]
    world.disconnect("a")
    world.join("b")
    assert sent(world.wait(1)) == ["b <- k-1"]
    assert sent(world.ack("b", "k-1")) == ["b <- k-2"]


def test_one_that_is_cancelled_frees_its_key() -> None:
    world = keyed(STRICT)
    world.join("a")
    world.push("k-1")
    world.push("k-2")
    world.release("a", "k-1", delay_ms=60_000)
    cancel = CancelMessage(world.numbers["admin"], "cancel", "ch", 1, "k-1")
    assert sent(world.step(cancel) + world.finish()) == ["a <- k-2"]


def test_one_that_expires_frees_its_key() -> None:
    world = keyed(STRICT, message_timeout_ms=10_000)
    world.join("a")
    world.push("k-1")
    world.wait(8)
    world.push("k-2")
    busy(world, "a")
    world.nack("a", "k-1")
    world.wait(3)
    assert sent(world.step(Unblock(world.numbers["a"])) + world.finish()) == ["a <- k-2"]


def test_one_that_becomes_a_dead_letter_frees_its_key() -> None:
    world = keyed(STRICT, put_back_limit=1, dead_letter=("dead", 1))
    world.join("a")
    world.push("k-1")
    world.push("k-2")
    assert sent(world.nack("a", "k-1")) == ["a <- k-1"]
    assert sent(world.nack("a", "k-1") + world.finish()) == ["a <- k-2"]
    dead = world.queue("dead")
    assert dead.live() == 1


@pytest.mark.parametrize("stopped", [False, True])
def test_clearing_frees_keys(stopped: bool) -> None:
    world = keyed(STRICT)
    world.join("a")
    world.push("k-1")
    world.push("k-2")
    world.push("k-3")
    admin = world.numbers["admin"]
    if stopped:
        world.update(QueueChanges(status=STATUS_STOPPED))
        world.finish()
        world.update(QueueChanges(status=STATUS_ROUND_ROBIN))
    else:
        world.step(ClearMessages(admin, "clear", "ch", 1, True, True))
    world.finish()
    assert sent(world.push("k-4")) == (["a <- k-4"] if stopped else [])
    if not stopped:
        assert sent(world.ack("a", "k-1")) == ["a <- k-4"]


def test_clearing_what_is_in_flight_forgets_who_had_it() -> None:
    world = keyed(STICKY)
    world.join("a")
    world.join("b")
    world.push("k-1")
    world.leave("a")
    world.update(QueueChanges(status=STATUS_STOPPED))
    world.update(QueueChanges(status=STATUS_ROUND_ROBIN))
    assert sent(world.push("k-2") + world.finish()) == ["b <- k-2"]


def test_high_priority_goes_first_within_its_key() -> None:
    world = keyed(STRICT)
    world.join("a")
    world.push("k-1")
    world.push("k-2")
    world.push("k-3", high=True)
    assert sent(world.ack("a", "k-1")) == ["a <- k-3"]
    assert sent(world.ack("a", "k-3")) == ["a <- k-2"]


def test_what_is_for_nobody_who_is_there_keeps_its_key() -> None:
    world = keyed(STRICT)
    world.join("a", filter=Kinds("x"))
    assert sent(world.push("k-1y")) == []
    assert sent(world.push("k-2x")) == []
    assert sent(world.push("l-1x")) == ["a <- l-1x"]
    assert sent(world.join("b", filter=Kinds("y"))) == ["b <- k-1y"]
    assert sent(world.ack("b", "k-1y")) == ["a <- k-2x"]


def test_deferred_messages_come_when_they_are_due() -> None:
    world = keyed(STRICT)
    world.join("a")
    world.push("k-1", extras=PushExtras(delay_ms=1_000))
    assert sent(world.push("k-2")) == ["a <- k-2"]
    assert sent(world.wait(2)) == []
    assert sent(world.ack("a", "k-2")) == ["a <- k-1"]


@pytest.mark.parametrize("keys", [STICKY, STRICT])
def test_without_acknowledges_nobody_waits(keys: str) -> None:
    world = keyed(keys, request_acknowledge=False)
    world.join("a")
    assert [sent(world.push(f"k-{number}")) for number in range(3)] == [
        [f"a <- k-{number}"] for number in range(3)
    ]
    table = world.queue().keys
    assert table is not None
    assert not table.locks


def test_more_keys_than_may_wait_for_others_wait_in_line() -> None:
    world = keyed(STRICT, limits=EngineLimits(max_work_per_step=100_000))
    world.join("a")
    world.checked = False
    for number in range(1_100):
        world.push(f"k{number}-1")
        world.push(f"k{number}-2")
    world.check([])
    queue = world.queue()
    assert isinstance(queue.regular, KeyedList)
    assert len(queue.regular.held) == 1_024
    seen = [effect for effect in range(1_100) if f"k{effect}-1" in queue.flights]
    words: list[str] = []
    for number in seen:
        words += sent(world.ack("a", f"k{number}-1") + world.finish())
    for _ in range(3):
        for message_id in list(queue.flights):
            words += sent(world.ack("a", message_id) + world.finish())
    world.check([])
    assert not queue.live()
    for number in range(1_100):
        assert f"a <- k{number}-2" in words


# --- Both ----------------------------------------------------------------------------------------


class Picky(DeliveryHandler):
    """Looks at each consumer."""

    def can_consumer_receive(
        self, queue: QueueFacts, message: Message, consumer: object
    ) -> Decision:
        return ALLOW


@pytest.mark.parametrize("keys", [STICKY, STRICT])
def test_a_handler_that_looks_at_each_consumer(keys: str) -> None:
    world = keyed(keys, handlers={"picky": Picky()}, delivery_handler="picky")
    world.join("a")
    world.join("b")
    first = {key: sent(world.push(f"{key}-1"))[0][0] for key in "klmn"}
    second = {key: sent(world.push(f"{key}-2")) for key in "klmn"}
    if keys == STRICT:
        assert second == {key: [] for key in first}
    else:
        assert second == {key: [f"{name} <- {key}-2"] for key, name in first.items()}
        assert set(first.values()) == {"a", "b"}


@pytest.mark.parametrize("status", [STATUS_PUSH, STATUS_PULL])
def test_other_statuses_know_no_keys(status: int) -> None:
    world = keyed(STRICT, status=status)
    world.join("a")
    if status == STATUS_PUSH:
        assert sent(world.push("k-1")) == ["a <- k-1"]
        assert sent(world.push("k-2")) == ["a <- k-2"]
        return
    world.push("k-1")
    world.push("k-2")
    words = world.pull("a", 2)
    assert [word.split()[3] for word in words if "/2" in word] == ["k-1", "k-2"]


def test_an_unknown_way_is_refused() -> None:
    world = keyed(NO_KEYS)
    assert world.update(QueueChanges(group_keys="loose")) == [f"admin update: {RESULT_BAD_REQUEST}"]


def test_the_way_can_be_changed() -> None:
    world = keyed(STRICT)
    world.join("a")
    world.join("b")
    for number in range(4):
        world.push(f"k-{number}")
    assert sent(world.update(QueueChanges(group_keys=STICKY)) + world.finish()) == [
        f"a <- k-{number}" for number in (1, 2, 3)
    ]
    world.update(QueueChanges(group_keys=STRICT))
    assert sent(world.push("k-4")) == ["b <- k-4"], "of those before it nothing is known"
    assert sent(world.push("k-5")) == []
    assert sent(world.update(QueueChanges(group_keys=NO_KEYS)) + world.finish()) == ["a <- k-5"]
    world.update(QueueChanges(group_keys=STRICT))
    world.ack("b", "k-4")
    assert sent(world.push("k-6")) == ["b <- k-6"]
    assert sent(world.push("k-7")) == []


@pytest.mark.parametrize("keys", [STICKY, STRICT])
def test_a_queue_that_is_removed_gives_everything_back(keys: str) -> None:
    world = keyed(keys)
    world.join("a")
    for number in range(5):
        world.push(f"k{number}-1")
        world.push(f"k{number}-2")
    before = world.broker._core.state_bytes
    world.step(RemoveQueue(world.numbers["admin"], "remove", "ch", 1))
    world.finish()
    assert world.broker._core.state_bytes < before
    assert world.broker._core.message_bytes == 0


class Unreadable(Wires):
    def key_of(self, message: Message) -> str:
        raise LookupError


def test_what_cannot_be_read_has_no_key() -> None:
    world = keyed(STRICT)
    world.broker.know_wires(Unreadable())
    world.join("a")
    assert sent(world.push("k-1")) == ["a <- k-1"]
    assert sent(world.push("k-2")) == ["a <- k-2"]
    assert world.books()["errors"] == 2


def test_buckets() -> None:
    assert bucket_of("customer-7") == 328
    assert len({bucket_of(f"k{number}") for number in range(20_000)}) == BUCKETS


def test_displaced_messages_free_their_keys() -> None:
    world = keyed(STRICT, message_limit=2, when_full="drop-oldest")
    world.join("a")
    world.push("k-1")
    for number in range(2, 6):
        world.push(f"k-{number}")
    queue = world.queue()
    shown = [each for part in queue.regular.snapshot() for each in part.messages()]
    waiting = [each for each in shown if not each.marks & MARK_GONE]
    assert [each.message_id for each in waiting] == ["k-4", "k-5"]
    assert sent(world.ack("a", "k-1")) == ["a <- k-4"]
