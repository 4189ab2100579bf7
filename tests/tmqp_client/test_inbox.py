"""Inboxes: both bounds, both marks, and which inbox a message belongs into."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_client.peer import delivery
from tmqp_client._core.inbox import Inbox, Mailboxes
from tmqp_client.config import ClientLimits
from tmqp_client.errors import AlreadyConsuming

LIMITS = ClientLimits(consumer_messages=4, unclaimed_messages=2, unclaimed_bytes=10_000)


def marks(inbox: Inbox[Any]) -> str:
    """How full an inbox says it is, in one word."""
    if inbox.overfull:
        return "overfull"
    return "congested" if inbox.congested else "easy"


def test_the_number_of_items_congests_until_half_is_left() -> None:
    inbox: Inbox[int] = Inbox(4, 1_000, 2.0)
    for item in range(3):
        inbox.put(item, 1)
    assert marks(inbox) == "easy"
    inbox.put(3, 1)
    assert marks(inbox) == "congested"
    assert inbox.take() == 0
    assert marks(inbox) == "congested", "half of it is left only after the second"
    assert inbox.take() == 1
    assert marks(inbox) == "easy"
    assert len(inbox) == 2


def test_bytes_congest_too_and_overfull_comes_at_the_factor() -> None:
    inbox: Inbox[str] = Inbox(100, 100, 2.0)
    inbox.put("a", 100)
    assert marks(inbox) == "congested"
    inbox.put("b", 99)
    assert marks(inbox) == "congested"
    inbox.put("c", 1)
    assert marks(inbox) == "overfull"
    assert inbox.size_bytes == 200
    assert [inbox.take(), inbox.take(), inbox.take()] == ["a", "b", "c"]
    assert inbox.size_bytes == 0
    assert marks(inbox) == "easy"


def test_items_alone_make_it_overfull() -> None:
    inbox: Inbox[int] = Inbox(2, 1_000, 1.5)
    inbox.put(1, 1)
    inbox.put(2, 1)
    assert marks(inbox) == "congested"
    inbox.put(3, 1)
    assert marks(inbox) == "overfull"


def test_an_offer_is_refused_at_either_bound_and_changes_nothing() -> None:
    inbox: Inbox[int] = Inbox(2, 100)
    assert inbox.offer(1, 60)
    assert not inbox.offer(2, 41)
    assert inbox.offer(2, 40)
    assert not inbox.offer(3, 0)
    assert len(inbox) == 2
    assert inbox.size_bytes == 100


def test_extracting_keeps_the_order_of_the_rest_and_may_end_congestion() -> None:
    inbox: Inbox[int] = Inbox(4, 1_000)
    for item in range(4):
        inbox.put(item, 10)
    assert inbox.extract(lambda item: item % 2 == 0) == [(0, 10), (2, 10)]
    assert inbox.size_bytes == 20
    assert not inbox.congested
    assert [inbox.take(), inbox.take()] == [1, 3]


def test_taking_from_an_empty_inbox_is_an_error() -> None:
    with pytest.raises(IndexError):
        Inbox[int](1, 1).take()


def test_clearing_says_how_many() -> None:
    inbox: Inbox[int] = Inbox(1, 10)
    inbox.put(1, 5)
    inbox.put(2, 5)
    assert inbox.clear() == 2
    assert inbox.size_bytes == 0
    assert not inbox.congested


def test_the_queues_own_inbox_comes_before_the_channels() -> None:
    boxes = Mailboxes(LIMITS)
    whole = boxes.open("Orders", None)
    second = boxes.open("orders", 2)
    assert boxes.inbox_for(delivery("ORDERS", 2, b"")) is second
    assert boxes.inbox_for(delivery("orders", 1, b"")) is whole
    assert boxes.inbox_for(delivery("other", 1, b"")) is None
    assert boxes.has_channel("oRDERS")
    assert not boxes.has_channel("other")


def test_one_consumer_for_each_queue() -> None:
    boxes = Mailboxes(LIMITS)
    boxes.open("orders", 1)
    with pytest.raises(AlreadyConsuming, match="queue 1 of 'ORDERS'"):
        boxes.open("ORDERS", 1)
    boxes.open("orders", None)
    with pytest.raises(AlreadyConsuming, match="channel 'orders'"):
        boxes.open("orders", None)
    assert boxes.close("Orders", 1) == 0
    boxes.open("orders", 1)


def test_what_nobody_consumes_is_kept_for_a_consumer_to_come() -> None:
    boxes = Mailboxes(LIMITS)
    assert boxes.keep(delivery("orders", 1, b"a"))
    assert boxes.keep(delivery("orders", 2, b"b"))
    assert not boxes.keep(delivery("orders", 1, b"c")), "two is the bound"
    inbox = boxes.open("orders", 2)
    assert inbox.take().payload == b"b"
    assert len(inbox) == 0
    assert boxes.open("orders", None).take().payload == b"a"


def test_closing_says_what_was_left_and_leaving_forgets() -> None:
    boxes = Mailboxes(LIMITS)
    inbox = boxes.open("orders", 1)
    inbox.put(delivery("orders", 1, b"a"), 10)
    assert boxes.close("orders", 1) == 1
    assert boxes.close("orders", 1) == 0
    boxes.keep(delivery("Orders", 1, b"a"))
    boxes.keep(delivery("other", 1, b"a"))
    assert boxes.forget("orders") == 1
    assert len(boxes.open("other", 1)) == 1


def test_a_full_inbox_crowds_unless_an_answer_is_awaited_and_it_is_not_overfull() -> None:
    boxes = Mailboxes(LIMITS)
    inbox = boxes.open("orders", 1)
    for _ in range(4):
        inbox.put(delivery("orders", 1, b""), 1)
    assert boxes.crowded(awaited=False)
    assert not boxes.crowded(awaited=True)
    for _ in range(12):
        inbox.put(delivery("orders", 1, b""), 1)
    assert boxes.crowded(awaited=True)


def test_a_lost_connection_takes_what_can_be_answered_no_more() -> None:
    boxes = Mailboxes(LIMITS)
    inbox = boxes.open("orders", 1)
    inbox.put(delivery("orders", 1, b"owed"), 1)
    inbox.put(delivery("orders", 1, b"final", acknowledge=False), 1)
    boxes.keep(delivery("other", 1, b""))
    dropped, inboxes = boxes.lose()
    assert dropped == 2
    assert inboxes == [inbox]
    assert inbox.take().payload == b"final"
    assert len(inbox) == 0
