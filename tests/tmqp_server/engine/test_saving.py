"""Rule 1: a confirm for a message that is being saved is released by Synced alone."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    DECIDE_ACK_ALWAYS,
    DECIDE_ACK_IF_SAVED,
    DECIDE_ACK_NONE,
    PUT_BACK_NO,
    STATUS_BROADCAST,
)
from tmqp_server.engine.commands import ClearMessages, Synced
from tmqp_server.engine.effects import Append
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    ACKNOWLEDGE,
    ALLOW,
    Decision,
    DeliveryHandler,
    QueueFacts,
)
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueChanges


class SaveFirst(DeliveryHandler):
    """Saves on receipt, and acknowledges as told then or at the consumer's answer."""

    def __init__(self, at_receipt: int, at_answer: Decision = ALLOW, willing: bool = True) -> None:
        self.at_receipt = Decision(True, True, PUT_BACK_NO, at_receipt)
        self.at_answer = at_answer
        self.willing = willing

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        return self.at_receipt

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Client, positive: bool, reason: str
    ) -> Decision:
        return self.at_answer

    def save_message(self, queue: QueueFacts, message: Message) -> bool:
        return self.willing


def saving(handler: DeliveryHandler) -> World:
    world = World(handlers={"test": handler})
    world.create(QueueChanges(delivery_handler="test"))
    return world


@pytest.mark.parametrize("acknowledge", [DECIDE_ACK_ALWAYS, DECIDE_ACK_IF_SAVED])
def test_the_confirm_waits_for_the_storage(acknowledge: int) -> None:
    world = saving(SaveFirst(acknowledge))
    assert world.push("m1", wants=True) == ["append 1 m1"]
    (append,) = world.last
    assert isinstance(append, Append)
    assert (append.channel, append.queue_id, append.message.message_id) == ("ch", 1, "m1")
    assert world.wait(60) == []
    assert world.broker.statistics().unsynced == 1
    assert world.step(Synced(1, True)) == ["p: m1 ok F"]
    assert world.books()["saved_messages"] == 1
    assert world.step(Synced(1, True)) == []
    assert world.broker.statistics().unknown_tickets == 1


def test_the_delivery_does_not_wait() -> None:
    world = saving(SaveFirst(DECIDE_ACK_IF_SAVED))
    world.join("a")
    assert world.push("m1") == ["append 1 m1", "a <- m1 FA"]
    assert world.step(Synced(1, True)) == ["p: m1 ok F"]
    assert world.ack("a", "m1") == ["erase 1"]


def test_a_failed_save_is_a_negative_confirm() -> None:
    world = saving(SaveFirst(DECIDE_ACK_IF_SAVED))
    world.push("m1")
    assert world.step(Synced(1, False)) == ["p: m1 no error F"]
    assert "saved_messages" not in world.books()
    world.join("a")
    assert world.ack("a", "m1") == []  # nothing to erase


def test_a_consumers_answer_waits_for_the_storage_too() -> None:
    world = saving(SaveFirst(DECIDE_ACK_NONE, ACKNOWLEDGE))
    world.join("a")
    world.push("m1")
    assert world.ack("a", "m1", wire="raw") == ["erase 1"]
    assert world.step(Synced(1, True)) == ["p: m1 ok from a"]


def test_a_consumers_answer_if_saved() -> None:
    if_saved = Decision(acknowledge=DECIDE_ACK_IF_SAVED)
    world = saving(SaveFirst(DECIDE_ACK_NONE, if_saved))
    world.join("a")
    world.push("m1")
    world.step(Synced(1, True))
    assert world.ack("a", "m1", wire="raw") == ["p: m1 ok from a", "erase 1"]
    world = saving(SaveFirst(DECIDE_ACK_NONE, if_saved, willing=False))
    world.join("a")
    world.push("m1")
    assert world.ack("a", "m1", wire="raw") == []


def test_a_negative_answer_need_not_wait() -> None:
    world = saving(SaveFirst(DECIDE_ACK_NONE, ACKNOWLEDGE))
    world.join("a")
    world.push("m1")
    assert world.nack("a", "m1", "bad", wire="raw") == ["p: m1 no bad from a", "erase 1"]
    assert world.step(Synced(1, True)) == []


def test_nobody_is_told_when_the_producer_went_in_between() -> None:
    world = saving(SaveFirst(DECIDE_ACK_IF_SAVED))
    world.push("m1")
    world.disconnect("p")
    assert world.step(Synced(1, True)) == []
    assert world.broker.statistics().confirms_skipped == 1


def test_a_message_is_saved_once() -> None:
    both = Decision(True, True, PUT_BACK_NO, DECIDE_ACK_NONE)
    world = saving(SaveFirst(DECIDE_ACK_NONE, both))
    world.join("a")
    assert world.push("m1") == ["append 1 m1", "a <- m1 FA"]
    world.step(Synced(1, True))
    assert world.ack("a", "m1") == ["erase 1"]


def test_a_handler_may_refuse_to_save_after_all() -> None:
    world = saving(SaveFirst(DECIDE_ACK_IF_SAVED, willing=False))
    assert world.push("m1") == []
    world = saving(SaveFirst(DECIDE_ACK_ALWAYS, willing=False))
    assert world.push("m1") == ["p: m1 ok F"]


def test_a_broadcast_is_never_saved() -> None:
    world = saving(SaveFirst(DECIDE_ACK_IF_SAVED))
    world.update(QueueChanges(status=STATUS_BROADCAST))
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA"]


def test_expired_cleared_and_dropped_messages_are_erased() -> None:
    world = saving(SaveFirst(DECIDE_ACK_NONE))
    world.update(QueueChanges(message_timeout_ms=1000))
    world.push("m1")
    world.step(Synced(1, True))
    assert world.wait(1.5) == ["erase 1"]
    world.update(QueueChanges(message_timeout_ms=0))
    world.push("m2")
    number = world.numbers["admin"]
    assert world.step(ClearMessages(number, "clear", "ch", 1, True, True)) == ["admin clear: 0"]
    assert world.finish() == ["erase 2"]
    assert world.step(Synced(2, True)) == []


def test_a_dead_letter_stays_saved() -> None:
    class Both(SaveFirst):
        def acknowledge_timed_out(
            self, queue: QueueFacts, message: Message, consumer: Client
        ) -> Decision:
            return Decision(True, False, 1)

    world = World(handlers={"test": Both(DECIDE_ACK_IF_SAVED)})
    world.create(
        QueueChanges(
            delivery_handler="test",
            acknowledge_timeout_ms=1000,
            put_back_limit=1,
            dead_letter=("g", 1),
        )
    )
    world.join("a")
    world.push("m1")
    assert world.step(Synced(1, True)) == ["p: m1 ok F"]
    assert world.wait(2.5) == ["a <- m1 AR", "append 2 m1 for 1/1"]


def test_a_refused_message_that_was_saved_is_erased() -> None:
    class Odd(DeliveryHandler):
        def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
            return Decision(False, True)

    world = saving(Odd())
    assert world.push("m1") == ["append 1 m1", "erase 1"]
