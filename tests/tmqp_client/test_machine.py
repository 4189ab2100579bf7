"""The client's machine without any I/O: what it asks, what it makes of what comes, and when."""

from __future__ import annotations

import pytest

from tests.tmqp_client.machine_pair import Pair, only
from tests.tmqp_client.peer import ack_of, delivery, response_to
from tmqp import (
    Frame,
    LocalProtocolError,
    MessageType,
    QueueMessageReceived,
    ServerMessageReceived,
)
from tmqp.constants import PING_BYTES, PONG_BYTES
from tmqp_client import (
    ClientClosed,
    NegativeAcknowledge,
    OperationFailed,
    OperationTimeout,
)
from tmqp_client._core import requests
from tmqp_client._core.board import DIRECT_MESSAGES
from tmqp_client._core.outcomes import Accepted, Lost

# --- Connecting ----------------------------------------------------------------------------------


def test_the_server_may_give_another_id() -> None:
    pair = Pair(accept=False)
    assert not pair.machine.accepted
    pair.server.accept("other")
    (accepted,) = pair.to_client()
    assert isinstance(accepted, Accepted)
    assert accepted.client_id == pair.machine.client_id == "other"
    pair.push()
    assert pair.asked()[0].source == "other", "what is sent now is sent under that id (F42)"


def test_nothing_can_be_asked_before_the_server_has_accepted() -> None:
    pair = Pair(accept=False)
    with pytest.raises(ClientClosed, match="not connected"):
        pair.push()


def test_a_refusal_says_its_code() -> None:
    pair = Pair(accept=False)
    pair.server.refuse(401)
    (lost,) = only(pair.to_client(), Lost)
    assert (lost.reason, lost.code) == ("refused", 401)
    assert "401 unauthorized" in lost.message


def test_a_server_that_hangs_up_before_accepting_is_told_apart() -> None:
    pair = Pair(accept=False)
    (lost,) = only(pair.machine.receive_eof(1.0), Lost)
    assert "before it accepted" in lost.message


def test_a_silent_server_ends_the_handshake_in_time() -> None:
    pair = Pair(accept=False)
    assert pair.machine.next_deadline() == 10.0
    assert pair.machine.on_deadline(9.9) == []
    (lost,) = only(pair.machine.on_deadline(10.0), Lost)
    assert lost.rule == "handshake-timeout"
    assert pair.machine.next_deadline() is None


def test_an_http_server_is_named() -> None:
    pair = Pair(accept=False)
    (lost,) = only(pair.machine.receive(b"HTTP/1.1 400 Bad Request\r\n", 0.0), Lost)
    assert "not TMQP" in lost.message


def test_a_machine_is_started_once_for_each_connection() -> None:
    pair = Pair()
    with pytest.raises(LocalProtocolError, match="is still open"):
        pair.machine.start(1.0)


# --- Asking --------------------------------------------------------------------------------------


def test_a_push_is_confirmed_by_its_acknowledge() -> None:
    pair = Pair()
    pending = pair.push(b"one", now=1.0)
    (frame,) = pair.asked()
    assert frame.pending_acknowledge
    assert frame.payload == b"one"
    assert pair.say(ack_of(frame), now=2.5) == [pending]
    assert pending.done
    assert pending.error is None
    assert pending.settled_at == 2.5
    assert pair.machine.counters.confirmed == 1
    assert pair.machine.outstanding == 0


def test_a_negative_acknowledge_says_why() -> None:
    pair = Pair()
    pending = pair.push()
    pair.say(ack_of(pair.asked()[0], "out of cheese"))
    assert isinstance(pending.error, NegativeAcknowledge)
    assert pending.error.reason == "out of cheese"
    assert "push to 'orders'/1" in str(pending.error)


def test_a_push_can_be_refused_by_a_response_and_the_echo_is_nothing_new() -> None:
    pair = Pair()
    pending = pair.push()
    (frame,) = pair.asked()
    outcomes = pair.say(response_to(frame, 404), ack_of(frame, "not-found"))
    assert outcomes == [pending]
    assert isinstance(pending.error, OperationFailed)
    assert pending.error.code == 404
    assert pair.machine.counters.unmatched_answers == 1
    assert len(pair.machine.unclaimed) == 0


def test_a_response_that_says_ok_confirms_no_push() -> None:
    pair = Pair()
    pending = pair.push()
    (frame,) = pair.asked()
    assert pair.say(response_to(frame, 0)) == []
    assert not pending.done
    assert pair.say(ack_of(frame)) == [pending]


def test_an_operation_takes_either_kind_of_answer() -> None:
    pair = Pair()
    for answer, code in ((response_to, None), (ack_of, None), (response_to, 482)):
        pending = pair.machine.request(requests.join("orders"), 0.0)
        (frame,) = pair.asked()
        pair.say(answer(frame) if code is None else response_to(frame, code))
        assert pending.done
        assert (pending.error is None) == (code is None)


def test_unmatched_answers_are_counted_and_negatives_is_kept() -> None:
    pair = Pair()
    push = pair.push(confirm=False)
    assert push.done
    (frame,) = pair.asked()
    assert not frame.pending_acknowledge
    assert pair.say(ack_of(frame)) == []
    assert pair.machine.counters.unmatched_answers == 1
    (inbox,) = pair.say(response_to(frame, 401))
    assert inbox is pair.machine.unclaimed
    assert pair.machine.unclaimed.take().frame.content_type == 401


def test_two_answers_settle_once() -> None:
    pair = Pair()
    pending = pair.push()
    (frame,) = pair.asked()
    assert pair.say(ack_of(frame), ack_of(frame), ack_of(frame, "late")) == [
        pending,
        pair.machine.unclaimed,
    ]
    assert pending.error is None
    assert pair.machine.counters.unmatched_answers == 2


def test_an_id_that_is_outstanding_cannot_be_used_again() -> None:
    pair = Pair()
    pair.push(message_id="own")
    for message_id, reason in (("own", "'own' is already awaiting an answer"), ("", "is empty")):
        with pytest.raises(LocalProtocolError, match=reason):
            pair.push(message_id=message_id)
    assert [frame.message_id for frame in pair.asked()] == ["own"]


def test_too_much_outstanding_is_refused_and_nothing_is_sent() -> None:
    pair = Pair()
    for _ in range(5):
        pair.push()
    pair.asked()
    assert pair.machine.full
    with pytest.raises(LocalProtocolError, match="max_outstanding"):
        pair.push()
    with pytest.raises(LocalProtocolError, match="max_outstanding"):
        pair.machine.ping(0.0)
    assert pair.machine.data_to_send() == b""
    pair.push(confirm=False)  # nothing is awaited for it


@pytest.mark.parametrize("timeout_s", [0, -1.0, float("nan")])
def test_a_time_out_is_positive(timeout_s: float) -> None:
    pair = Pair()
    with pytest.raises(LocalProtocolError, match="timeout"):
        pair.push(timeout_s=timeout_s)
    assert pair.machine.outstanding == 0
    assert pair.machine.queued_bytes == 0
    assert pair.machine.data_to_send() == b""


def test_an_abandoned_push_is_answered_to_nobody() -> None:
    pair = Pair()
    pending = pair.push()
    (frame,) = pair.asked()
    pair.machine.abandon(pending)
    pair.machine.abandon(pending)
    assert pair.say(ack_of(frame)) == []
    assert pair.machine.counters.unmatched_answers == 1


# --- Time ----------------------------------------------------------------------------------------


def test_what_is_not_answered_in_time_says_so() -> None:
    pair = Pair()
    push = pair.push(now=1.0)
    join = pair.machine.request(requests.join("orders"), 1.0)
    quick = pair.push(now=1.0, timeout_s=0.5)
    assert pair.machine.next_deadline() == 1.5
    assert pair.machine.on_deadline(1.5) == [quick]
    assert pair.machine.next_deadline() == 16.0
    assert pair.machine.on_deadline(16.0) == [push]
    assert isinstance(push.error, OperationTimeout)
    assert push.error.timeout_s == 15.0
    assert "delivery handler" in str(push.error)
    assert "no answer within 30 s" not in str(push.error)
    pair.machine.on_deadline(31.0)
    assert isinstance(join.error, OperationTimeout)
    assert str(join.error) == "join channel 'orders': no answer within 30 s"
    assert pair.machine.counters.timed_out == 3


def test_a_silent_server_is_pinged_and_given_up() -> None:
    pair = Pair()
    assert pair.machine.next_deadline() == 20.0
    assert pair.machine.on_deadline(20.0) == []
    assert pair.machine.data_to_send() == PING_BYTES
    assert pair.machine.next_deadline() == 40.0
    (lost,) = only(pair.machine.on_deadline(40.0), Lost)
    assert (lost.reason, lost.rule) == ("lifeless", "ping-timeout")
    assert "40.0 seconds" in lost.message


def test_a_pong_belongs_to_the_ping_before_it() -> None:
    pair = Pair()
    pair.machine.on_deadline(20.0)  # the keep-alive's own ping goes first
    mine = pair.machine.ping(20.5)
    abandoned = pair.machine.ping(20.6)
    last = pair.machine.ping(20.7)
    pair.machine.abandon(abandoned)
    assert pair.machine.receive(PONG_BYTES, 21.0) == []
    assert pair.machine.receive(PONG_BYTES, 22.0) == [mine]
    assert mine.settled_at - mine.asked_at == 1.5
    assert pair.machine.receive(PONG_BYTES, 23.0) == []
    assert pair.machine.receive(PONG_BYTES, 24.0) == [last]
    assert pair.machine.receive(PONG_BYTES, 25.0) == [], "one that nobody asked for"


def test_pings_without_pongs_are_bounded() -> None:
    pair = Pair()
    for number in range(5):
        pair.machine.abandon(pair.machine.ping(float(number)))
    with pytest.raises(LocalProtocolError, match="pings"):
        pair.machine.ping(6.0)


# --- Messages ------------------------------------------------------------------------------------


def test_messages_reach_their_consumer_and_it_is_told_once_for_each_chunk() -> None:
    pair = Pair()
    inbox = pair.machine.subscribe("Orders", None)
    assert pair.say(delivery("orders", 1, b"a"), delivery("ORDERS", 2, b"b")) == [inbox]
    inbox.fresh = False
    assert pair.say(delivery("orders", 1, b"c")) == [inbox]
    assert [inbox.take().payload for _ in range(3)] == [b"a", b"b", b"c"]
    assert pair.machine.counters.delivered == 3


def test_the_answer_to_a_message_goes_back_as_it_came() -> None:
    pair = Pair()
    inbox = pair.machine.subscribe("orders", 1)
    pair.say(delivery("Orders", 1, b"a", message_id="m7", first=False))
    message = inbox.take()
    pair.machine.acknowledge(message, None)
    pair.machine.acknowledge(message, "broken")
    plain, negative = pair.asked()
    assert (plain.target, plain.content_type, plain.message_id) == ("Orders", 1, "m7")
    assert plain.source == "c1"
    assert not plain.first_acquirer
    assert plain.headers == []
    assert negative.headers == [("Nack-Reason", "broken")]
    with pytest.raises(LocalProtocolError, match="CR or LF"):
        pair.machine.acknowledge(message, "two\r\nlines")
    assert pair.machine.counters.acknowledged == 2


def test_what_nobody_consumes_is_bounded_and_counted() -> None:
    pair = Pair()
    for number in range(3):
        pair.say(delivery("orders", 1, b"%d" % number))
    assert pair.machine.counters.dropped == 1
    inbox = pair.machine.subscribe("orders", 1)
    assert [inbox.take().payload for _ in range(2)] == [b"0", b"1"]
    pair.machine.unsubscribe("orders", 1)
    assert not pair.machine.subscribed("orders")


def test_leaving_a_channel_forgets_what_was_kept_of_it() -> None:
    pair = Pair()
    pair.say(delivery("orders", 1, b"old"))
    pair.machine.request(requests.leave("orders"), 0.0)
    pair.say(response_to(pair.asked()[0], 404))
    assert len(pair.machine.subscribe("orders", 1)) == 0
    assert pair.machine.counters.dropped == 1


def test_all_else_is_for_whoever_asks_for_the_unclaimed() -> None:
    pair = Pair()
    kinds = (MessageType.DIRECT_MESSAGE, MessageType.EVENT, MessageType.CUSTOM)
    outcomes = pair.say(*[Frame.build(kind, "c1", message_id="x") for kind in kinds])
    assert outcomes == [pair.machine.unclaimed]
    taken = [pair.machine.unclaimed.take().frame.type for _ in range(2)]
    assert taken == [MessageType.DIRECT_MESSAGE, MessageType.EVENT]
    assert pair.machine.counters.unclaimed == 3
    assert pair.machine.counters.dropped == 1, "two is the bound"


def test_who_listens_gets_the_direct_messages_that_came_before_but_no_old_events() -> None:
    pair = Pair()
    kinds = (MessageType.DIRECT_MESSAGE, MessageType.EVENT)
    pair.say(*[Frame.build(kind, "c1", message_id="x") for kind in kinds])
    assert len(pair.machine.listen(("ClientConnected", "", 0))) == 0
    inbox = pair.machine.listen(DIRECT_MESSAGES)
    assert [event.frame.type for event, _ in inbox.items] == [MessageType.DIRECT_MESSAGE]
    assert (pair.machine.counters.unclaimed, pair.machine.board.directs) == (1, 1)
    assert pair.say(Frame.build(MessageType.DIRECT_MESSAGE, "c1", message_id="y")) == [inbox]


def test_what_has_no_time_to_live_is_dropped_and_counted() -> None:
    pair = Pair()
    pair.say(Frame.build(MessageType.DIRECT_MESSAGE, "c1", ttl=0))
    assert pair.machine.counters.dropped == 1
    assert pair.machine.counters.unclaimed == 0


# --- Membership ----------------------------------------------------------------------------------


def joined(pair: Pair, channel: str, code: int = 0) -> None:
    pair.machine.request(requests.join(channel), 0.0)
    pair.say(response_to(pair.asked()[0], code))


def test_joins_are_remembered_when_they_were_granted() -> None:
    pair = Pair()
    joined(pair, "Orders")
    joined(pair, "refused", 401)
    joined(pair, "other")
    joined(pair, "ORDERS")
    assert list(pair.machine.joins) == ["Orders", "other"]
    pair.machine.request(requests.leave("oRDERS"), 0.0, answer=False)
    assert list(pair.machine.joins) == ["other"]
    (frame,) = pair.asked()
    assert not frame.pending_response


def test_a_next_connection_begins_where_this_one_ended() -> None:
    pair = Pair(max_sends=2)
    joined(pair, "orders")
    inbox = pair.machine.subscribe("orders", 1)
    pair.machine.receive_eof(2.0)
    pair.start(3.0, accept=False)
    pair.server.accept("c1")
    (accepted,) = pair.to_client()
    assert isinstance(accepted, Accepted)
    assert pair.machine.lost is None
    (frame,) = pair.asked()
    assert (frame.content_type, frame.target) == (601, "orders")
    assert pair.say(response_to(frame), delivery("orders", 1, b"new")) == [inbox]


def test_the_events_it_is_tested_with_are_the_servers() -> None:
    pair = Pair()
    pair.push()
    pair.machine.request(requests.join("orders"), 0.0)
    kinds = [type(event) for event in pair.to_server()]
    assert kinds == [QueueMessageReceived, ServerMessageReceived]
