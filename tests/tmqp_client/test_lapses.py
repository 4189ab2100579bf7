"""Deliveries that the server has taken back: what the client makes of being told."""

from __future__ import annotations

import pytest

from tests.tmqp_client.machine_pair import Pair
from tmqp import Frame
from tmqp.constants import MessageType
from tmqp.extensions import OP_LAPSED
from tmqp_client._core.lapses import Lapses
from tmqp_client._core.requests import PullRequest


def delivery(name: str, channel: str = "Orders", queue_id: int = 1) -> Frame:
    """A message of a queue."""
    kind = MessageType.QUEUE_MESSAGE
    return Frame.build(kind, channel, queue_id, b"x", message_id=name, pending_acknowledge=True)


def lapse(name: str, *headers: tuple[str, str]) -> Frame:
    """What a server says of one of the queue ``orders;1``."""
    told = headers or (("Queue-Id", "1"), ("Reason", "timed-out"))
    return Frame.build(MessageType.SERVER, "orders", OP_LAPSED, message_id=name, headers=told)


@pytest.mark.parametrize("queue_id", [1, None])
def test_what_lapses_before_it_is_taken_is_not_handed_out(queue_id: int | None) -> None:
    pair = Pair()
    inbox = pair.machine.subscribe("orders", queue_id)
    pair.say(delivery("m1"), delivery("m2"), lapse("m1"), delivery("m1"))
    assert [inbox.take().message_id for _ in range(len(inbox))] == ["m2", "m1"]
    assert (pair.machine.counters.lapsed, pair.machine.counters.dropped) == (1, 1)


def test_what_lapses_before_anybody_consumes_is_not_kept() -> None:
    pair = Pair()
    pair.say(delivery("m1"), lapse("m1"))
    assert len(pair.machine.subscribe("orders", 1)) == 0


@pytest.mark.parametrize("is_taken", [True, False])
def test_what_lapses_after_its_queue_got_an_inbox_of_its_own_was_handed_out(is_taken: bool) -> None:
    """Only one of the inboxes was searched: which one depended on whether it was empty."""
    pair = Pair()
    of_channel = pair.machine.subscribe("orders", None)
    pair.say(delivery("m1"))
    of_queue = pair.machine.subscribe("orders", 1)
    pair.say(delivery("m2"))
    if is_taken:
        of_queue.take()
    pair.say(lapse("m1"))
    assert len(of_channel) == 0
    assert len(of_queue) == (0 if is_taken else 1)


def test_what_was_pulled_and_lapses_is_not_handed_out() -> None:
    pair = Pair()
    pull = pair.machine.pull(PullRequest("orders", 1, 2, "fifo", "None", False))
    (asked,) = pair.asked()
    answer = delivery("m1").replace(
        more_headers=[("Request-ID", asked.message_id), ("Count", "2"), ("Index", "1")]
    )
    pair.say(answer)
    before = len(pull.inbox)
    pair.say(lapse("m1"))
    assert (before, len(pull.inbox)) == (1, 0)


def test_what_was_handed_out_before_has_lapsed_and_what_came_since_has_not() -> None:
    table = Lapses()
    first = table.count
    table.note(lapse("m1"))
    second = table.count
    message = delivery("m1")
    assert (table.reason(message, first), table.reason(message, second)) == ("timed-out", "")
    table.note(lapse("m2"))
    assert table.reason(message, second) == ""
    assert table.reason(delivery("m1", queue_id=2), first) == ""


def test_of_many_lapses_the_oldest_are_forgotten() -> None:
    table = Lapses()
    table.note(lapse("m1"))
    for name in ("m2", "m2", "m3"):
        table.note(lapse(name))
    of_many = lapse("more")
    for number in range(9_998):
        table.note(of_many.replace(message_id=f"more{number}"))
    assert [bool(table.reason(delivery(name), 0)) for name in ("m1", "m2", "m3")] == [
        False,
        True,
        True,
    ]


def test_a_lapse_that_says_nothing_sensible_hurts_nobody() -> None:
    pair = Pair()
    inbox = pair.machine.subscribe("orders", 1)
    pair.say(delivery("m1"), lapse("m1", ("Queue-Id", "x")), lapse("", ("Other", "1")))
    assert len(inbox) == 1
