"""The built-in delivery handlers: who is told what, in which order, with which flags."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import Synced
from tmqp_server.engine.effects import Confirm
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.delivery import REFUSE, Decision, QueueFacts
from tmqp_server.engine.model.handlers import AckIfAsked, built_in_handlers, receipt_of
from tmqp_server.engine.model.message import MARK_WANTS, Message
from tmqp_server.engine.options import DEFAULT_HANDLER, QueueChanges, QueueOptions


def world_with(handler: str, **changes: object) -> World:
    world = World()
    world.create(QueueChanges(delivery_handler=handler, **changes))  # type: ignore[arg-type]
    return world


def test_the_names() -> None:
    assert sorted(built_in_handlers().names()) == [
        "ack-consumer",
        "ack-if-asked",
        "ack-ifsaved",
        "ack-received",
        "ack-sent",
        "allow-all",
        "putback-end",
        "putback-start",
        "reject",
        "reject-nack",
        "retry-timeouts",
    ]
    assert DEFAULT_HANDLER == "ack-if-asked"


@pytest.mark.parametrize("name", built_in_handlers().names())
def test_a_receipt_that_needs_no_call_is_what_the_handler_would_say(name: str) -> None:
    handler = built_in_handlers().find(name)
    assert handler is not None
    receipt = receipt_of(handler)
    assert receipt is not None
    producer = Origin(1, "p", None, None, "")
    queue = QueueFacts("ch", 1, QueueOptions())
    for asked in (False, True):
        marks = MARK_WANTS if asked else 0
        message = Message("m", producer, "ch", 1, 0, b"", marks, 1)
        assert handler.received_from_producer(queue, message) is receipt[asked]


def test_a_handler_made_from_a_built_in_one_is_called() -> None:
    class Own(AckIfAsked):
        """Says no."""

        def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
            return REFUSE

    assert receipt_of(Own()) is None
    world = World(handlers={"own": Own()})
    world.create(QueueChanges(delivery_handler="own"))
    assert world.push("m1", wants=True) == []
    assert world.books()["refused"] == 1


def test_allow_all_tells_nobody_anything() -> None:
    world = world_with("allow-all")
    world.join("a")
    assert world.push("m1", wants=True) == ["a <- m1 FA"]
    assert world.ack("a", "m1") == []


def test_ack_received_comes_before_the_delivery_asked_or_not() -> None:
    world = world_with("ack-received")
    assert world.push("m1", wants=True) == ["p: m1 ok F"]
    assert world.push("m2", high=True) == ["p: m2 ok F"]
    world.join("a")
    assert world.push("m3") == ["p: m3 ok F", "a <- m3 FA"]


def test_ack_sent_comes_after_the_delivery() -> None:
    world = world_with("ack-sent")
    assert world.push("m1", wants=True) == []
    assert world.join("a") == ["a <- m1 FA", "p: m1 ok", "a join: 0"]
    assert world.push("m2", wants=True) == ["a <- m2 FA", "p: m2 ok"]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_ack_sent_says_nothing_of_a_message_nobody_got(status: int) -> None:
    world = world_with("ack-sent", status=status)
    assert world.push("m1", wants=True) == []


def test_ack_consumer_passes_the_answer_on() -> None:
    world = world_with("ack-consumer")
    world.join("a")
    assert world.push("m1", wants=True) == ["a <- m1 FA"]
    assert world.ack("a", "m1", wire="raw ack") == ["p: m1 ok from a"]
    (confirm,) = world.last
    assert isinstance(confirm, Confirm)
    assert confirm.forwarded == "raw ack"
    world.push("m2")
    assert world.nack("a", "m2", "my-reason", wire="raw") == ["p: m2 no my-reason from a"]


def test_ack_consumer_makes_silence_negative() -> None:
    world = world_with("ack-consumer", acknowledge_timeout_ms=1200)
    world.join("a")
    world.push("m1", wants=True)
    assert world.wait(1.1) == []
    assert world.wait(0.2) == ["p: m1 no timeout"]
    assert world.wait(60) == []
    assert world.ack("a", "m1") == []
    assert world.books()["dropped"] == 1


def test_at_most_one_confirm_whoever_answers() -> None:
    world = world_with("ack-consumer")
    world.join("a")
    world.join("b")
    world.push("m1")
    assert world.ack("b", "m1", wire="b's") == ["p: m1 ok from b"]
    assert world.nack("a", "m1", wire="a's") == []


def test_nobody_is_told_when_the_producer_has_gone() -> None:
    world = world_with("ack-consumer")
    world.join("a")
    world.push("m1")
    world.disconnect("p")
    assert world.ack("a", "m1") == []
    assert world.broker.statistics().confirms_skipped == 1


def test_reject() -> None:
    world = world_with("reject")
    world.join("a")
    assert world.push("m1", wants=True) == []
    assert world.books() == {"received_messages": 1, "removed_messages": 1, "refused": 1}


def test_reject_nack() -> None:
    world = world_with("reject-nack")
    assert world.push("m1", wants=True) == ["p: m1 no none F"]
    assert world.push("m2") == ["p: m2 no none F"]


def test_putback_start_redelivers_at_once() -> None:
    world = world_with("putback-start")
    world.join("a")
    assert world.push("m1") == ["a <- m1 FA"]
    assert world.push("m2") == ["a <- m2 FA"]
    assert world.nack("a", "m1", "retry") == ["a <- m1 AR"]
    assert world.ack("a", "m1") == []
    assert world.books()["done"] == 1


def test_putback_end_redelivers_after_the_others() -> None:
    world = world_with("putback-end", wait_for_acknowledge=True)
    world.join("a")
    world.push("m1")
    world.push("m2")
    assert world.nack("a", "m1") == ["a <- m2 FA"]
    assert world.ack("a", "m2") == ["a <- m1 AR"]


def test_putback_redelivers_after_every_time_out() -> None:
    world = world_with("putback-end", acknowledge_timeout_ms=1200)
    world.join("a")
    world.push("m2")
    assert world.wait(4) == ["a <- m2 AR"] * 3


def test_the_default_tells_who_asked_and_owes_what_it_promised() -> None:
    world = world_with(DEFAULT_HANDLER, acknowledge_timeout_ms=1000)
    world.join("a")
    assert world.push("asked", wants=True) == ["p: asked ok F", "a <- asked FA"]
    assert world.push("plain") == ["a <- plain FA"]
    assert world.wait(1.5) == ["a <- asked AR"]
    assert world.books()["dropped"] == 1
    assert world.nack("a", "asked") == []
    assert world.books()["done"] == 1


def test_ack_ifsaved_owes_what_it_saved() -> None:
    world = world_with("ack-ifsaved", acknowledge_timeout_ms=1000)
    world.join("a")
    assert world.push("m1") == ["append 1 m1", "a <- m1 FA"]
    assert world.step(Synced(1, True)) == ["p: m1 ok F"]
    assert world.wait(1.5) == ["append 2 m1 for 1/1", "a <- m1 AR"]
    assert world.nack("a", "m1") == ["erase 1/1", "erase 2"]
