"""Answers, silence, consumers that vanish, put-backs and where they end."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_BROADCAST, STATUS_STOPPED
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import Acknowledge
from tmqp_server.engine.effects import Deliver
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueChanges


def test_an_answer_for_nothing_is_ignored_and_counted() -> None:
    world = World()
    world.join("a")
    world.join("b")
    world.push("m1")
    world.join("c")
    assert world.ack("c", "m1") == []  # it joined too late to have it
    assert world.ack("a", "nope") == []
    assert world.nack("p", "m1") == []
    assert world.ack("a", "m1", queue_id=9) == []
    assert world.ack("a", "m1", "no-such-channel") == []
    books = world.books()
    assert books["unknown_acks"] == 3
    assert (books["acks"], books["negative_acks"]) == (2, 1)
    assert books["in_flight"] == 1
    assert world.broker.statistics().unknown_acks == 2
    world.ack("a", "m1")
    assert world.ack("a", "m1") == []  # twice
    assert world.books()["unknown_acks"] == 4


def test_an_answer_from_nobody_is_counted() -> None:
    world = World()
    assert world.broker.step(Acknowledge(77, "m", "ch", 1), 1.0) == []
    assert world.broker.statistics().stray_commands == 1


def test_silence_counts_as_a_negative_answer() -> None:
    world = World()
    world.create(QueueChanges(acknowledge_timeout_ms=1500, delivery_handler="allow-all"))
    world.join("a")
    world.push("m1")
    assert world.wait(1.5) == []
    books = world.books()
    assert (books["negative_acks"], books["ack_timeouts"], books["dropped"]) == (1, 1, 1)


def test_time_outs_count_from_each_sending() -> None:
    world = World()
    world.create(QueueChanges(acknowledge_timeout_ms=1000, delivery_handler="putback-end"))
    world.join("a")
    world.push("m1")
    world.wait(0.5)
    world.push("m2")
    assert world.wait(0.6) == ["a <- m1 AR"]
    assert world.wait(0.5) == ["a <- m2 AR"]
    assert world.wait(0.5) == ["a <- m1 AR"]


def test_a_changed_time_out_holds_for_what_is_in_flight() -> None:
    world = World()
    world.create(QueueChanges(acknowledge_timeout_ms=60_000, delivery_handler="putback-end"))
    world.join("a")
    world.push("m1")
    world.update(QueueChanges(acknowledge_timeout_ms=1_000))
    assert world.wait(1.1) == ["a <- m1 AR"]


def test_without_a_time_out_the_engines_longest_holds() -> None:
    limits = EngineLimits(max_acknowledge_timeout_ms=5_000)
    world = World(limits, queue_defaults(acknowledge_timeout_ms=5_000))
    world.create(QueueChanges(acknowledge_timeout_ms=0, delivery_handler="putback-end"))
    world.join("a")
    world.push("m1")
    assert world.wait(4.9) == []
    assert world.wait(0.2) == ["a <- m1 AR"]


def test_deliveries_of_one_sending_are_judged_together() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="putback-start", acknowledge_timeout_ms=1000))
    for name in "abc":
        world.join(name)
    world.push("m1")
    assert world.nack("a", "m1") == []
    assert world.nack("b", "m1") == []
    assert world.books()["in_flight"] == 1
    assert world.ack("c", "m1") == ["a b c <- m1 AR"]
    assert world.books()["requeued"] == 1
    world.ack("a", "m1")
    world.ack("b", "m1")
    # c keeps silent: with this handler that is a put-back too.
    assert world.wait(1.1) == ["a b c <- m1 AR"]


def test_two_messages_with_one_id_are_two_messages() -> None:
    world = World()
    world.join("a")
    world.join("b")
    for wire in range(3):
        assert len(world.push("same")) == 2, wire
    assert world.books()["in_flight"] == 3
    world.ack("a", "same")
    world.ack("b", "same")
    assert world.books()["in_flight"] == 2
    world.ack("b", "same")
    world.ack("b", "same")
    assert world.books()["in_flight"] == 2
    world.ack("a", "same")
    world.ack("a", "same")
    assert world.books()["done"] == 3
    assert "unknown_acks" not in world.books()
    assert world.ack("a", "same") == []
    assert world.books()["unknown_acks"] == 1
    assert world.queue().duplicates == {}


def test_a_duplicate_that_outlived_the_first_is_older_than_one_that_comes_later() -> None:
    """Seed 1412 of the simulator: the answer was taken for the younger one."""
    world = World()
    world.create(QueueChanges(acknowledge_timeout_ms=1000))
    world.join("a")
    world.push("same")
    world.push("same")
    world.ack("a", "same")
    assert world.wait(0.5) == []
    world.push("same")
    world.ack("a", "same")
    (left,) = world.queue().flights.values()
    assert left.sequence == 3
    assert world.wait(0.6) == [], "the second one was answered for in time"
    world.ack("a", "same")
    assert world.books()["done"] == 3
    assert world.queue().duplicates == {}


def test_messages_without_an_id_can_be_answered_for_in_order() -> None:
    world = World()
    world.join("a")
    world.push("")
    world.push("")
    world.ack("a", "")
    world.ack("a", "")
    assert world.books()["done"] == 2


# --- Consumers that vanish (F99) -----------------------------------------------------------------


def test_a_vanished_consumers_message_returns_at_its_time_out() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="putback-start", acknowledge_timeout_ms=1200))
    world.join("a")
    world.push("m1")
    world.disconnect("a")
    assert world.join("b") == ["b join: 0"]
    assert world.wait(1.1) == []
    assert world.wait(0.2) == ["b <- m1 AR"]
    assert world.wait(1.3) == ["b <- m1 AR"]


@pytest.mark.parametrize("handler", ["allow-all", "ack-received", "ack-sent", "ack-if-asked"])
def test_it_is_not_lost_whatever_the_handler_thinks_of_silence(handler: str) -> None:
    world = World()
    world.create(QueueChanges(delivery_handler=handler, acknowledge_timeout_ms=1000))
    world.join("a")
    world.push("m1")
    world.disconnect("a")
    world.wait(2)
    assert world.books()["messages"] == 1
    assert world.join("b") == ["b <- m1 AR", "b join: 0"]


def test_but_silence_of_one_who_is_there_is_the_handlers_business() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="allow-all", acknowledge_timeout_ms=1000))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.disconnect("a")
    assert world.wait(2) == []
    assert world.books()["dropped"] == 1


def test_and_an_answer_by_another_settles_it() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="allow-all", acknowledge_timeout_ms=1000))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.disconnect("a")
    world.nack("b", "m1")
    assert world.wait(2) == []
    assert world.books()["done"] == 1


def test_and_a_producer_that_was_told_no_has_it_back() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="ack-consumer", acknowledge_timeout_ms=1000))
    world.join("a")
    world.push("m1")
    world.disconnect("a")
    assert world.wait(2) == ["p: m1 no timeout"]
    assert world.books()["dropped"] == 1


def test_one_who_left_the_channel_can_still_answer() -> None:
    world = World()
    world.join("a")
    world.push("m1")
    world.leave("a")
    world.ack("a", "m1")
    assert world.books()["done"] == 1


# --- Put-backs (F98) -----------------------------------------------------------------------------


def test_the_put_back_limit_counts_put_backs() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="putback-start", put_back_limit=3))
    world.join("a")
    words = world.push("m1", wants=True)
    for _ in range(3):
        words += world.nack("a", "m1")
    assert words == ["a <- m1 FA", "a <- m1 AR", "a <- m1 AR", "a <- m1 AR"]
    assert world.nack("a", "m1") == ["p: m1 no error"]
    books = world.books()
    assert (books["dropped"], books["requeued"], books["sent_messages"]) == (1, 3, 4)


def test_the_default_limit_is_twenty() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="putback-end"))
    world.join("a")
    world.push("m1")
    sent = 1
    while world.nack("a", "m1"):
        sent += 1
    assert sent == 21


def test_no_limit_is_the_engines() -> None:
    world = World(EngineLimits(max_put_backs=30))
    world.create(QueueChanges(delivery_handler="putback-end", put_back_limit=0))
    world.join("a")
    world.push("m1")
    sent = 1
    while world.nack("a", "m1"):
        sent += 1
    assert sent == 31


def test_a_message_put_back_too_often_goes_to_the_dead_letters() -> None:
    world = World()
    world.create(
        QueueChanges(delivery_handler="putback-start", put_back_limit=1, dead_letter=("Graves", 7))
    )
    world.join("a")
    world.join("b", "graves")
    world.push("m1", high=True)
    world.nack("a", "m1")
    assert world.nack("a", "m1") == []
    assert world.finish() == ["b <- m1 FA"]
    (delivery,) = world.last
    assert isinstance(delivery, Deliver)
    letter = delivery.message
    assert (letter.channel, letter.queue_id, letter.readdressed) == ("graves", 7, True)
    assert (letter.wire, letter.source, letter.high_priority) == ("wire of m1", "p", True)
    assert world.books()["dead"] == 1
    assert world.books("graves", 7)["accepted"] == 1
    assert world.broker.statistics().dead_lettered == 1
    world.ack("b", "m1", "graves", 7)
    assert world.books("graves", 7)["done"] == 1


def test_a_dead_letter_was_lost_when_the_memory_of_all_queues_was_full() -> None:
    """Seed 6516 of the simulation: it moves, so it takes no more memory than it has."""

    def prepare(limits: EngineLimits) -> World:
        world = World(limits)
        world.create(
            QueueChanges(delivery_handler="putback-start", put_back_limit=1, dead_letter=("g", 7))
        )
        world.create(channel="g", queue_id=7)
        world.join("a")
        world.join("b", "g")
        world.push("m1", size=10)
        return world

    state = prepare(EngineLimits()).broker.statistics().state_bytes
    world = prepare(EngineLimits(max_total_bytes=state + 10 + MESSAGE_OVERHEAD_BYTES))
    assert world.push("m2", size=10) == ["p wire of m2: 503"]
    world.nack("a", "m1")
    world.nack("a", "m1")
    assert world.finish() == ["b <- m1 FA"]


def test_the_producer_of_a_dead_letter_hears_of_it_once() -> None:
    world = World()
    world.create(
        QueueChanges(delivery_handler="putback-start", put_back_limit=1, dead_letter=("g", 1))
    )
    world.create(QueueChanges(delivery_handler="ack-consumer"), channel="g")
    world.join("a")
    world.push("m1", wants=True)
    world.nack("a", "m1")
    assert world.nack("a", "m1") == ["p: m1 no error"]
    assert world.finish() == []
    world.leave("a")
    assert world.join("a", "g") == ["a <- m1 FA", "a join: 0"]
    assert world.ack("a", "m1", "g", wire="raw") == []


def test_a_queue_of_dead_letters_that_cannot_be_is_refused() -> None:
    assert World().create(QueueChanges(dead_letter=("a b", 1))) == ["admin create: 400"]


@pytest.mark.parametrize(
    "changes",
    [
        QueueChanges(status=STATUS_STOPPED),
        QueueChanges(status=STATUS_BROADCAST),
        QueueChanges(message_size_limit=5),
    ],
)
def test_dead_letters_that_nobody_takes_are_dropped(changes: QueueChanges) -> None:
    world = World()
    world.create(
        QueueChanges(delivery_handler="putback-start", put_back_limit=1, dead_letter=("g", 1))
    )
    world.create(changes, channel="g")
    world.join("a")
    world.push("m1")
    world.nack("a", "m1")
    world.nack("a", "m1")
    assert world.books()["dropped"] == 1
    assert world.broker.statistics().dead_lettered == 0


def test_a_queue_is_not_its_own_grave() -> None:
    world = World()
    assert world.create(QueueChanges(dead_letter=("CH", 1))) == ["admin create: 400"]
    world.create()
    assert world.update(QueueChanges(dead_letter=("CH", 1)))[0].endswith(": 400")


def test_dead_letters_do_not_go_round_for_ever() -> None:
    world = World(EngineLimits(max_dead_letter_hops=4))
    one = QueueChanges(delivery_handler="putback-start", put_back_limit=1, dead_letter=("ch", 2))
    two = QueueChanges(delivery_handler="putback-start", put_back_limit=1, dead_letter=("ch", 1))
    world.create(one)
    world.create(two, queue_id=2)
    world.join("a")
    world.push("m1")
    where = 1
    hops = 0
    for _ in range(20):
        world.nack("a", "m1", queue_id=where)
        if not world.nack("a", "m1", queue_id=where) and not world.finish():
            break
        where = 3 - where
        hops += 1
    assert hops == 4
    assert world.books(queue_id=where)["dropped"] == 1


def test_a_message_shows_its_history() -> None:
    world = World()
    world.create(QueueChanges(delivery_handler="putback-start", message_timeout_ms=60_000))
    world.join("a")
    world.push("m1", wants=True)
    world.nack("a", "m1")
    (delivery,) = world.last
    assert isinstance(delivery, Deliver)
    message: Message = delivery.message
    assert (message.attempts, message.put_backs, message.sequence) == (2, 1, 1)
    assert message.expires_at == world.now + 60
    assert (message.wants_confirm, message.confirmed, message.saved) == (True, False, False)
    assert "m1" in repr(message)
