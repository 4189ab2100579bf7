"""A message's plain way: pushed, delivered, answered for, in the orders that were recorded."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    STATUS_BROADCAST,
    STATUS_CACHE,
    STATUS_PAUSED,
    STATUS_PULL,
    STATUS_PUSH,
    STATUS_ROUND_ROBIN,
    STATUS_STOPPED,
)
from tmqp_server.engine.commands import PushExtras
from tmqp_server.engine.effects import Deliver
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.options import BrokerOptions, QueueChanges


def test_push_to_a_joined_consumer() -> None:
    world = World()
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA"]
    (delivery,) = world.last
    assert isinstance(delivery, Deliver)
    assert delivery.message.wire == "wire of m1"
    assert delivery.message.source == "p"
    assert world.books()["in_flight"] == 1
    assert world.ack("a", "m1") == []
    assert world.books() == {
        "accepted": 1,
        "done": 1,
        "received_messages": 1,
        "sent_messages": 1,
        "deliveries": 1,
        "acks": 1,
        "removed_messages": 1,
    }


def test_all_consumers_get_it_and_only_the_first_is_the_first_acquirer() -> None:
    world = World()
    for name in "abc":
        world.join(name)
    assert world.push("m1") == ["a <- m1 FA", "b c <- m1 A"]
    world.ack("b", "m1")
    world.ack("a", "m1")
    assert world.books()["in_flight"] == 1
    world.ack("c", "m1")
    assert world.books()["done"] == 1
    assert world.books()["deliveries"] == 3
    assert world.books()["sent_messages"] == 1


def test_recipients_share_one_list_from_message_to_message() -> None:
    world = World()
    for name in "abc":
        world.join(name)
    world.push("m1")
    first = world.last[1]
    world.push("m2")
    second = world.last[1]
    assert isinstance(first, Deliver)
    assert isinstance(second, Deliver)
    assert first.sessions is second.sessions
    world.leave("c")
    assert [world.names[number] for number in first.sessions] == ["b", "c"]


def test_stored_messages_come_before_the_answer_to_join_high_priority_first() -> None:
    world = World()
    world.create()
    for name in ("m0", "m1", "m2"):
        assert world.push(name) == []
    assert world.push("hp", high=True) == []
    assert world.join("a") == ["a <- hp FA", "a <- m0 FA", "a <- m1 FA", "a <- m2 FA", "a join: 0"]


def test_the_channels_case_does_not_matter_and_the_producers_spelling_is_kept() -> None:
    world = World()
    world.join("a", "Mch")
    assert world.push("m", channel="MCH") == ["a <- m FA"]
    (delivery,) = world.last
    assert isinstance(delivery, Deliver)
    assert delivery.message.channel == "MCH"
    assert delivery.channel == "Mch"
    assert world.ack("a", "m", "mch") == []
    assert world.books("Mch")["done"] == 1


def test_without_acknowledges_a_sent_message_is_done() -> None:
    world = World()
    world.create(QueueChanges(request_acknowledge=False))
    world.join("a")
    assert world.push("m1") == ["a <- m1 F"]
    assert world.books()["done"] == 1
    assert world.ack("a", "m1") == []
    assert world.books()["unknown_acks"] == 1


def test_hidden_names() -> None:
    world = World()
    world.create(QueueChanges(hide_client_names=True, delivery_handler="ack-consumer"))
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA hidden"]
    assert world.ack("a", "m1", wire="raw") == ["p: m1 ok from ?"]


# --- Statuses ------------------------------------------------------------------------------------


def test_a_broadcast_reaches_all_and_is_not_kept() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_BROADCAST))
    assert world.push("lost") == []
    assert world.books()["dropped"] == 1
    world.join("a")
    world.join("b")
    assert world.push("live") == ["a <- live FA", "b <- live A"]
    world.ack("a", "live")
    assert world.wait(60) == []
    assert world.books()["done"] == 1
    assert world.books()["negative_acks"] == 1


def test_a_broadcast_nobody_answers_for_is_not_sent_again() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_BROADCAST, delivery_handler="putback-start"))
    world.join("a")
    assert world.push("m") == ["a <- m FA"]
    world.disconnect("a")
    world.join("b")
    assert world.wait(60) == []
    assert world.books()["dropped"] == 1


def test_round_robin_takes_turns_in_join_order() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN))
    for name in "abc":
        world.join(name)
    got = [world.push(f"m{number}")[0] for number in range(7)]
    assert [word[0] for word in got] == ["a", "b", "c", "a", "b", "c", "a"]
    assert got[0] == "a <- m0 FA"
    assert got[1] == "b <- m1 FA"


def test_round_robin_keeps_what_nobody_is_there_for() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN))
    for number in range(3):
        assert world.push(f"m{number}") == []
    assert world.join("a") == ["a <- m0 FA", "a <- m1 FA", "a <- m2 FA", "a join: 0"]


def test_round_robin_begins_anew_when_the_turn_is_past_the_last_consumer() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN))
    for name in "abcd":
        world.join(name)
    for number in range(3):
        world.push(f"m{number}")
    world.leave("c")
    world.leave("d")
    # Position 3 is next, and there are two: the first has it, not the third modulo two.
    assert world.push("m3") == ["a <- m3 FA"]


def test_round_robin_goes_on_after_a_leave_and_gives_a_put_back_to_the_next() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN, delivery_handler="putback-start"))
    world.join("a")
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA"]
    assert world.nack("a", "m1") == ["b <- m1 AR"]
    world.ack("b", "m1")
    world.leave("b")
    assert world.push("m2") == ["a <- m2 FA"]


@pytest.mark.parametrize("status", [STATUS_PULL, STATUS_PAUSED])
def test_a_status_that_does_not_send_keeps_and_delivers_when_set_to_push(status: int) -> None:
    world = World()
    world.create(QueueChanges(status=status))
    world.join("a")
    assert world.push("kept") == []
    assert world.wait(60) == []
    # Seen: the message comes before the answer to the update.
    assert world.update(QueueChanges(status=STATUS_PUSH)) == ["a <- kept FA", "admin update: 0"]


def test_a_cache_keeps_the_latest_message_only() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_CACHE))
    world.push("old")
    world.push("older", high=True)
    world.push("new")
    world.finish()
    assert world.books() == {
        "messages": 1,
        "accepted": 3,
        "cleared": 2,
        "received_messages": 3,
    }
    assert world.queue().take().message_id == "new"


def test_a_stopped_queue_refuses_and_forgets() -> None:
    world = World()
    world.create()
    world.push("m1")
    world.join("a")
    assert world.push("m2") == ["a <- m2 FA"]
    assert world.books()["in_flight"] == 2
    assert world.update(QueueChanges(status=STATUS_STOPPED)) == ["admin update: 0"]
    assert world.push("m3", wants=True) == ["p wire of m3: 401", "p: m3 no unauthorized F"]
    world.finish()
    assert world.queue().bytes == 0
    assert world.ack("a", "m1") == []
    assert world.books()["unknown_acks"] == 1
    assert world.books()["cleared"] == 2
    assert world.update(QueueChanges(status=STATUS_PUSH)) == ["admin update: 0"]
    assert world.push("m4") == ["a <- m4 FA"]


def test_changing_to_the_same_status_changes_nothing() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PAUSED))
    world.push("m1")
    world.update(QueueChanges(status=STATUS_PAUSED))
    assert world.books()["messages"] == 1


def test_a_broadcast_waits_behind_what_an_earlier_status_stored() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PAUSED))
    world.push("m1")
    world.update(QueueChanges(status=STATUS_BROADCAST))
    assert world.push("m2") == []
    assert world.join("a") == ["a <- m1 FA", "a <- m2 FA", "a join: 0"]
    assert world.push("m3") == ["a <- m3 FA"]


# --- Options -------------------------------------------------------------------------------------


def test_only_the_first_acquirer_gets_it_and_again_after_a_put_back() -> None:
    world = World()
    changes = QueueChanges(send_only_first_acquirer=True, delivery_handler="putback-start")
    world.create(changes)
    world.join("a")
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA"]
    # The original loses the message here (contradiction 45).
    assert world.nack("a", "m1") == ["a <- m1 AR"]
    world.ack("a", "m1")
    assert world.push("m2") == ["a <- m2 FA"]


def test_a_broadcast_for_the_first_acquirer_only() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_BROADCAST, send_only_first_acquirer=True))
    world.join("a")
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA"]


def test_wait_for_acknowledge_holds_the_next_message() -> None:
    world = World()
    world.create(QueueChanges(wait_for_acknowledge=True))
    world.join("a")
    assert world.push("w1") == ["a <- w1 FA"]
    assert world.push("w2") == []
    assert world.push("w3") == []
    assert world.ack("a", "unknown") == []  # the original would go on here
    assert world.ack("a", "w1") == ["a <- w2 FA"]
    assert world.nack("a", "w2") == ["a <- w3 FA"]


def test_wait_for_acknowledge_is_released_by_the_time_out() -> None:
    world = World()
    world.create(QueueChanges(wait_for_acknowledge=True, acknowledge_timeout_ms=1200))
    world.join("a")
    world.push("m0")
    world.push("m1")
    assert world.wait(1.1) == []
    assert world.wait(0.2) == ["a <- m1 FA"]


def test_wait_for_acknowledge_goes_on_at_the_first_answer() -> None:
    world = World()
    world.create(QueueChanges(wait_for_acknowledge=True))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.push("m2")
    assert world.nack("b", "m1") == ["a <- m2 FA", "b <- m2 A"]


def test_wait_for_acknowledge_lets_a_put_back_go_first() -> None:
    world = World()
    world.create(QueueChanges(wait_for_acknowledge=True, delivery_handler="putback-start"))
    world.join("a")
    world.join("b")
    world.push("m1")
    world.push("m2")
    assert world.nack("b", "m1") == []
    assert world.ack("a", "m1") == ["a b <- m1 AR"]


def test_waiting_ends_when_the_option_is_taken_back() -> None:
    world = World()
    world.create(QueueChanges(wait_for_acknowledge=True))
    world.join("a")
    world.push("m1")
    world.push("m2")
    assert world.update(QueueChanges(wait_for_acknowledge=False)) == [
        "a <- m2 FA",
        "admin update: 0",
    ]


def test_a_message_expires_while_it_waits() -> None:
    world = World()
    world.create(QueueChanges(message_timeout_ms=1000))
    world.push("m1")
    assert world.wait(0.9) == []
    assert world.books()["messages"] == 1
    world.wait(0.25)
    assert world.books() == {
        "accepted": 1,
        "expired": 1,
        "received_messages": 1,
        "timeout_messages": 1,
    }
    assert world.join("a") == ["a join: 0"]


def test_a_message_that_is_too_old_is_not_sent_even_within_its_tick() -> None:
    world = World()
    world.create(QueueChanges(message_timeout_ms=1000))
    world.push("m1")
    world.now += 1.0
    world.push("m2")
    assert world.join("a") == ["a <- m2 FA", "a join: 0"]
    assert world.books()["expired"] == 1


def test_a_message_does_not_expire_in_a_consumers_hands_but_when_put_back() -> None:
    world = World()
    world.create(QueueChanges(message_timeout_ms=1000, delivery_handler="putback-start"))
    world.join("a")
    world.push("m1")
    assert world.wait(5) == []
    assert world.nack("a", "m1") == []
    assert world.books()["expired"] == 1


def test_a_message_may_bring_its_own_time_out() -> None:
    world = World()
    world.create()
    world.push("short", extras=PushExtras(expires_in_ms=500))
    world.push("long")
    world.push("high", high=True, extras=PushExtras(expires_in_ms=500))
    world.wait(1)
    assert world.books()["expired"] == 2
    assert world.join("a") == ["a <- long FA", "a join: 0"]


def test_a_deferred_message_comes_later_and_in_order_of_its_time() -> None:
    world = World()
    world.join("a")
    assert world.push("late", extras=PushExtras(delay_ms=2000)) == []
    assert world.push("soon", extras=PushExtras(delay_ms=1000)) == []
    assert world.books()["deferred"] == 2
    assert world.push("now") == ["a <- now FA"]
    assert world.wait(0.9) == []
    assert world.wait(0.2) == ["a <- soon FA"]
    assert world.wait(1) == ["a <- late FA"]


def test_a_deferred_message_can_expire_before_its_time() -> None:
    world = World()
    world.join("a")
    world.push("m", extras=PushExtras(delay_ms=2000, expires_in_ms=1000))
    assert world.wait(3) == []
    assert world.books()["expired"] == 1


# --- Errors (F75, contradiction 22) --------------------------------------------------------------


def test_unknown_channels_and_queues_without_automatic_creation() -> None:
    options = BrokerOptions(False, False, events=NO_EVENTS)
    world = World(options=options)
    assert world.push("m1") == ["p wire of m1: 404"]
    assert world.push("m2", wants=True) == ["p wire of m2: 404", "p: m2 no not-found F"]
    assert world.push("m3", extras=PushExtras(silent=True), wants=True) == []
    assert world.broker.queues() == []


def test_a_bad_channel_name() -> None:
    world = World()
    assert world.push("m1", channel="a b") == ["p wire of m1: 400"]
    assert world.push("m2", channel="") == ["p wire of m2: 400"]
    assert world.push("m3", channel="a\x9bb") == ["p wire of m3: 400"]
    assert world.push("m4", channel="\N{RIGHT-TO-LEFT OVERRIDE}b") == ["p wire of m4: 400"]


def test_message_limit_and_size_limit() -> None:
    world = World()
    world.create(QueueChanges(message_limit=2, message_size_limit=100))
    assert world.push("m0") == []
    assert world.push("m1", size=100) == []
    assert world.push("m2") == ["p wire of m2: 482"]
    assert world.push("m3", wants=True) == ["p wire of m3: 482", "p: m3 no limit-exceeded F"]
    world.join("a")
    assert world.push("m4", size=101) == ["p wire of m4: 482"]
    assert world.push("m5", size=100) == ["a <- m5 FA"]
    assert world.books()["refused"] == 3


def test_a_push_creates_with_the_options_it_brings() -> None:
    world = World()
    changes = QueueChanges(status=STATUS_PAUSED, tag="tag-x", wait_for_acknowledge=True)
    assert world.push("m1", extras=PushExtras(changes=changes)) == []
    options = world.queue().options
    assert (options.status, options.tag, options.wait_for_acknowledge) == (5, "tag-x", True)
    # An existing queue is not changed by what a push brings.
    world.push("m2", extras=PushExtras(changes=QueueChanges(status=STATUS_PUSH)))
    assert world.queue().options.status == STATUS_PAUSED


def test_a_push_that_names_an_unknown_handler_creates_nothing() -> None:
    world = World()
    changes = QueueChanges(delivery_handler="nope")
    assert world.push("m1", extras=PushExtras(changes=changes)) == ["p wire of m1: 406"]
    assert world.broker.statistics().channels == 0
