"""Deliveries that consumers give back: where to, when they come again, how often that may be."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    PUT_BACK_END,
    PUT_BACK_START,
    STATUS_BROADCAST,
    STATUS_PULL,
    STATUS_ROUND_ROBIN,
)
from tmqp_server.engine.commands import Acknowledge, Command, Join, Push, Release
from tmqp_server.engine.effects import Append, Deliver
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import ALLOW, Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import BrokerOptions, QueueChanges


def ready(changes: QueueChanges | None = None, limits: EngineLimits | None = None) -> World:
    """A queue whose messages go to one consumer, a, who may have one at a time."""
    world = World(limits)
    world.create(changes or QueueChanges(wait_for_acknowledge=True))
    world.join("a")
    return world


@pytest.mark.parametrize(
    ("to", "next_one"), [(PUT_BACK_START, "a <- m1 AR"), (PUT_BACK_END, "a <- m2 FA")]
)
def test_it_goes_to_the_front_or_the_end(to: int, next_one: str) -> None:
    world = ready()
    world.push("m1")
    world.push("m2")
    assert world.release("a", "m1", to) == [next_one]
    books = world.books()
    assert (books["released"], books["requeued"]) == (1, 1)
    assert "acks" not in books
    assert "negative_acks" not in books


def test_another_consumer_gets_it_in_turn() -> None:
    world = ready(QueueChanges(status=STATUS_ROUND_ROBIN))
    world.join("b")
    world.push("m1")
    assert world.release("a", "m1") == ["b <- m1 AR"]
    assert world.release("a", "m1") == ["a release: 403"]
    assert world.release("b", "m1") == ["a <- m1 AR"]


@pytest.mark.parametrize("to", [PUT_BACK_START, PUT_BACK_END])
def test_after_a_delay_it_comes_to_its_place(to: int) -> None:
    world = ready()
    for number in (1, 2, 3):
        world.push(f"m{number}")
    assert world.release("a", "m1", to, 1_500) == ["a <- m2 FA"]
    assert world.books()["deferred"] == 1
    assert world.wait(1.4) == []
    assert world.wait(0.2) == []
    expected = ["a <- m1 AR", "a <- m3 FA"]
    if to == PUT_BACK_END:
        expected.reverse()
    assert world.ack("a", "m2") + world.ack("a", expected[0][5:7]) == expected


def test_a_delay_longer_than_allowed_is_shortened() -> None:
    world = ready(limits=EngineLimits(max_delay_ms=2_000))
    world.push("m1")
    assert world.release("a", "m1", delay_ms=10**18) == []
    assert world.wait(1.9) == []
    assert world.wait(0.2) == ["a <- m1 AR"]


class Strict(DeliveryHandler):
    """Refuses to say anything about answers."""

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: object, positive: bool, reason: str
    ) -> Decision:
        raise AssertionError("a release is no answer")

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: object
    ) -> Decision:
        return ALLOW


def test_no_handler_is_asked_and_no_producer_told() -> None:
    world = World(handlers={"strict": Strict()})
    world.create(QueueChanges(delivery_handler="strict"))
    world.join("a")
    world.push("m1", wants=True)
    assert world.release("a", "m1") == ["a <- m1 AR"]
    assert "errors" not in world.books()


def test_what_counts_is_given_up_at_last() -> None:
    world = ready(QueueChanges(put_back_limit=2, dead_letter=("graves", 7)))
    world.push("m1")
    assert world.release("a", "m1") == ["a <- m1 AR"]
    assert world.release("a", "m1") == ["a <- m1 AR"]
    assert world.release("a", "m1") == []
    assert world.books()["dead"] == 1
    assert world.books("graves", 7)["messages"] == 1


def test_a_first_sending_was_counted_as_the_second_of_its_step() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN))
    world.join("a")
    number = world.numbers["a"]
    commands: list[Command] = [
        Push(number, "m1", "ch", 1, False, False, 9, b"m1"),
        Release(number, None, "m1", "ch", 1, PUT_BACK_START),
    ]
    at, effects = world.broker.steps(commands, 0, world.now, 1 << 20)
    assert at == len(commands), "they are carried out together"
    sent = [each for each in effects if isinstance(each, Deliver)]
    assert [(each.attempt, each.redelivered) for each in sent] == [(1, False), (2, True)]
    assert sent[0].message.attempts == 2


def test_what_does_not_count_is_not() -> None:
    world = ready(QueueChanges(put_back_limit=1))
    world.push("m1")
    for _ in range(9):
        assert world.release("a", "m1", counted=False) == ["a <- m1 AR"]
    assert world.release("a", "m1") == ["a <- m1 AR"]
    assert world.release("a", "m1") == []
    assert world.books()["dropped"] == 1


@pytest.mark.parametrize("counts", [True, False])
def test_what_goes_back_from_who_leaves_counts_unless_its_terms_say_otherwise(
    counts: bool,
) -> None:
    world = World()
    world.create(QueueChanges(put_back_limit=1))
    world.connect("a")
    world.push("m1")
    terms = Terms(returns=PUT_BACK_START, counts=counts)
    for times in range(4):
        sent = world.step(Join(world.numbers["a"], "join", "ch", terms=terms))
        world.leave("a")
        is_there = not counts or times < 2
        assert ("a <- m1" in " ".join(sent)) == is_there


def test_a_queue_without_a_limit_puts_back_for_ever() -> None:
    world = ready(QueueChanges(put_back_limit=-1), EngineLimits(max_put_backs=20))
    world.push("m1")
    for _ in range(50):
        assert world.release("a", "m1") == ["a <- m1 AR"]


def test_of_several_consumers_the_last_decides_when() -> None:
    world = World()
    world.create(QueueChanges(put_back_limit=1))
    for name in ("a", "b", "c"):
        world.join(name)
    world.push("m1")
    assert world.release("a", "m1", PUT_BACK_END, 500, counted=False) == []
    assert world.release("a", "m1") == ["a release: 403"]
    assert world.release("b", "m1", PUT_BACK_END, 2_000, counted=False) == []
    assert world.ack("c", "m1") == []
    assert world.wait(1.9) == []
    assert world.wait(0.2) == ["a b c <- m1 AR"]
    # Two did not count; of the next three one does, so it is put back once more.
    world.release("a", "m1", counted=False)
    world.release("b", "m1")
    assert world.release("c", "m1", counted=False) == ["a b c <- m1 AR"]
    world.release("a", "m1")
    world.release("b", "m1")
    assert world.release("c", "m1") == []
    assert world.books()["dropped"] == 1


def test_a_handler_that_puts_back_makes_it_count() -> None:
    world = World()
    world.create(QueueChanges(put_back_limit=1, delivery_handler="putback-end"))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.release("a", "m1", counted=False)
    assert world.nack("b", "m1") == ["a b <- m1 AR"]
    world.release("a", "m1", counted=False)
    assert world.nack("b", "m1") == []
    assert world.books()["dropped"] == 1


def test_a_broadcast_takes_nothing_back() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_BROADCAST))
    world.join("a")
    world.push("m1")
    assert world.release("a", "m1") == []
    books = world.books()
    assert (books["released"], books["dropped"]) == (1, 1)


def test_what_was_pulled_can_be_given_back() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL))
    world.join("a")
    world.push("m1")
    world.pull("a")
    assert world.release("a", "m1") == []
    assert world.books()["messages"] == 1


def test_who_has_nothing_is_told_so() -> None:
    world = ready()
    world.join("b")
    world.push("m1")
    assert world.release("a", "m2") == ["a release: 404"]
    assert world.release("p", "m1") == ["p release: 403"]
    assert world.release("a", "m1", queue_id=9) == ["a release: 404"]
    assert world.release("a", "m1", channel="none") == ["a release: 404"]
    assert world.step(Release(world.numbers["a"], None, "m2", "ch", 1)) == []
    assert world.books()["unknown_acks"] == 3
    assert world.broker.statistics().unknown_acks == 2


def test_an_answer_may_ask_to_be_told_that_it_was_for_nothing() -> None:
    world = ready()
    world.push("m1")
    number, other = world.numbers["a"], world.numbers["p"]

    def answer(who: int, message_id: str, queue_id: int = 1) -> list[str]:
        return world.step(Acknowledge(who, message_id, "ch", queue_id, True, "", None, 0, "answer"))

    assert answer(number, "m2") == ["a answer: 404"]
    assert answer(other, "m1") == ["p answer: 403"]
    assert answer(number, "m1", 9) == ["a answer: 404"]
    assert answer(number, "m1") == []
    assert answer(number, "m1") == ["a answer: 404"]


def test_what_is_on_disk_is_kept_with_its_time() -> None:
    world = World(options=BrokerOptions(storage=True))
    world.create(QueueChanges(durable=True))
    world.join("a")
    world.push("m1")
    world.release("a", "m1", PUT_BACK_START, 5_000)
    (kept,) = [effect for effect in world.last if isinstance(effect, Append)]
    rare = kept.message.rare
    assert rare is not None
    assert rare.due_at == world.now + 5.0
