"""The client's machine under pressure and at its end: pauses, losses, and whatever may come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_client.machine_pair import LIMITS, Pair, only
from tests.tmqp_client.peer import delivery
from tmqp import (
    ConnectionInformation,
    Frame,
    MessageType,
)
from tmqp.constants import PING_BYTES, PONG_BYTES, PREAMBLE
from tmqp_client import (
    ClientClosed,
    ConnectionLost,
)
from tmqp_client._core import requests
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Lost, Outcome
from tmqp_client._core.pending import Pending

# --- Flow ----------------------------------------------------------------------------------------


def fill(pair: Pair, count: int) -> Inbox[Frame]:
    inbox = pair.machine.subscribe("orders", 1)
    pair.say(*[delivery("orders", 1, b"x")] * count)
    return inbox


def test_reading_pauses_while_a_consumer_is_congested() -> None:
    pair = Pair()
    inbox = fill(pair, 4)
    assert pair.machine.must_pause(0)
    inbox.take()
    assert pair.machine.must_pause(0)
    inbox.take()
    assert not pair.machine.must_pause(0)


def test_an_awaited_answer_keeps_reading_up_to_the_hard_bound() -> None:
    pair = Pair()
    inbox = fill(pair, 4)
    pending = pair.push()
    assert not pair.machine.must_pause(0)
    pair.say(*[delivery("orders", 1, b"x")] * 4)
    assert pair.machine.must_pause(0)
    inbox.take()
    assert not pair.machine.must_pause(0)
    pair.machine.abandon(pending)
    assert pair.machine.must_pause(0)


def test_closing_the_congested_consumer_lets_reading_go_on() -> None:
    pair = Pair()
    fill(pair, 8)
    pair.machine.unsubscribe("orders", 1)
    assert not pair.machine.must_pause(0)
    assert pair.machine.counters.dropped == 8


def test_a_server_that_does_not_read_is_not_read_either() -> None:
    pair = Pair()
    pair.machine.receive(PING_BYTES * 200, 0.0)
    assert pair.machine.queued_bytes == 1_600
    assert not pair.machine.must_pause(400)
    assert pair.machine.must_pause(401)
    assert len(pair.machine.data_to_send()) == 1_600
    assert not pair.machine.must_pause(401)


def test_queued_bytes_are_counted_exactly() -> None:
    pair = Pair()
    pair.push()
    pair.machine.ping(0.0)
    pair.machine.request(requests.join("orders"), 0.0)
    pair.machine.receive(PING_BYTES, 0.0)
    inbox = pair.machine.subscribe("orders", 1)
    pair.say(delivery("orders", 1, b"x"))
    pair.machine.acknowledge(inbox.take(), None)
    queued = pair.machine.queued_bytes
    assert len(pair.machine.data_to_send()) == queued
    assert pair.machine.queued_bytes == 0


def test_while_reading_pauses_the_machine_makes_itself_heard() -> None:
    pair = Pair()
    fill(pair, 4)
    pair.machine.pause(5.0)
    pair.machine.pause(6.0)
    assert pair.machine.counters.pauses == 1
    assert pair.machine.next_deadline() == 25.0
    for now in (25.0, 45.0, 65.0):
        assert pair.machine.on_deadline(now) == []
        assert pair.machine.data_to_send() == PING_BYTES
    pair.machine.resume(80.0)
    assert pair.machine.next_deadline() == 100.0, "silence counts from here"
    assert pair.machine.receive(PONG_BYTES * 3, 81.0) == []
    assert pair.machine.next_deadline() == 101.0


def test_a_server_that_died_during_a_pause_is_given_up_in_time() -> None:
    pair = Pair()
    pair.machine.pause(5.0)
    pair.machine.resume(500.0)
    assert pair.machine.on_deadline(519.9) == []
    assert pair.machine.on_deadline(520.0) == []
    assert pair.machine.data_to_send() == PING_BYTES
    assert pair.machine.on_deadline(530.0) == []
    (lost,) = only(pair.machine.on_deadline(540.0), Lost)
    assert lost.reason == "lifeless"


def test_a_time_out_during_a_pause_says_so() -> None:
    pair = Pair()
    fill(pair, 8)
    pending = pair.push(now=1.0)
    pair.machine.pause(1.0)
    pair.machine.on_deadline(16.0)
    assert "reading was paused" in str(pending.error)


# --- The end -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "reason", "words"),
    [
        (lambda pair: pair.machine.receive_eof(1.0), "end-of-stream", "closed the connection"),
        (
            lambda pair: pair.say(Frame.build(MessageType.TERMINATE)),
            "terminated",
            "ended it",
        ),
        (lambda pair: pair.machine.fail("reset"), "transport", "reset"),
        (
            lambda pair: pair.machine.receive(b"\x11\x10\x01\x00\x00\x00\x00\x00\xff", 1.0),
            "violation",
            "UTF-8",
        ),
    ],
)
def test_an_end_settles_everything_and_names_the_cause(end: Any, reason: str, words: str) -> None:
    pair = Pair()
    inbox = pair.machine.subscribe("orders", 1)
    pair.say(delivery("orders", 1, b"owed"), delivery("orders", 1, b"final", acknowledge=False))
    pendings = [pair.push(), pair.machine.ping(0.0), pair.push()]
    outcomes = end(pair)
    assert outcomes[:3] == pendings
    assert outcomes[3:5] == [inbox, pair.machine.unclaimed]
    assert isinstance(outcomes[5], Lost)
    assert len(outcomes) == 6
    errors = [pending.error for pending in pendings]
    assert len({id(error) for error in errors}) == 3, "each who waits gets an exception of its own"
    for error in errors:
        assert isinstance(error, ConnectionLost)
        assert error.reason == reason
        assert words in str(error)
    assert inbox.take().payload == b"final"
    assert len(inbox) == 0
    with pytest.raises(ConnectionLost, match=words):
        pair.push()
    assert pair.machine.receive(b"more", 2.0) == []
    assert pair.machine.receive_eof(2.0) == []
    assert pair.machine.fail("again") == []
    assert not pair.machine.must_pause(10**9)


def test_closing_says_terminate_behind_everything_else() -> None:
    pair = Pair()
    pair.push()
    pending = pair.machine.ping(0.0)
    outcomes = pair.machine.close()
    assert isinstance(pending.error, ClientClosed)
    assert only(outcomes, Lost)[0].reason == "local"
    events = [type(event).__name__ for event in pair.to_server()]
    assert events == [
        "QueueMessageReceived",
        "PingReceived",
        "TerminateReceived",
        "ConnectionClosed",
    ]
    with pytest.raises(ClientClosed):
        pair.push()
    assert pair.machine.close() == []


def test_closing_before_it_began_is_no_error() -> None:
    machine = ClientMachine(ConnectionInformation("c1"), LIMITS, lambda: "id")
    assert machine.close() == []
    assert machine.next_deadline() is None
    assert machine.data_to_send() == b""
    with pytest.raises(ClientClosed):
        machine.ping(0.0)


# --- Whatever comes ------------------------------------------------------------------------------

FRAMES = st.builds(
    Frame.build,
    st.sampled_from([0, 8, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23, 63]),
    st.sampled_from(["orders", "ORDERS", "c1", ""]),
    st.sampled_from([0, 1, 2, 202, 404, 503]),
    st.binary(max_size=20),
    message_id=st.sampled_from(["id2", "id3", "id4", "id5", "other", ""]),
    pending_acknowledge=st.booleans(),
    ttl=st.sampled_from([0, 1, 16]),
)


@given(
    st.lists(
        st.one_of(
            FRAMES.map(lambda frame: frame.raw),
            st.binary(max_size=30),
            st.sampled_from(["push", "join", "ping", "take", "tick", "pause", "resume"]),
        ),
        max_size=40,
    )
)
def test_whatever_the_server_says_everything_asked_is_settled_once(steps: list[Any]) -> None:
    pair = Pair()
    machine = pair.machine
    inbox = machine.subscribe("orders", None)
    asked: list[Pending] = []
    settled: list[Pending] = []
    now = 0.0
    for step in steps:
        now += 1.0
        outcomes: list[Outcome] = []
        if isinstance(step, bytes):
            outcomes = machine.receive(step, now)
        elif step == "tick":
            now += 10.0
            outcomes = machine.on_deadline(now)
        elif step == "take" and len(inbox):
            inbox.take()
        elif step == "pause":
            machine.pause(now)
        elif step == "resume":
            machine.resume(now)
        elif machine.lost is None and not machine.full:
            if step == "push":
                asked.append(pair.push(now=now))
            elif step == "join":
                asked.append(machine.request(requests.join("orders"), now))
            elif step == "ping":
                asked.append(machine.ping(now))
        settled += only(outcomes, Pending)
        assert machine.queued_bytes >= 0
        due = machine.next_deadline()
        assert (due is None) == (machine.lost is not None)
    settled += only(machine.receive_eof(now), Pending)
    assert sorted(map(id, settled)) == sorted(map(id, asked)), "each exactly once"
    assert machine.outstanding == 0


@given(st.binary(max_size=300))
def test_bytes_after_the_preamble_never_raise(data: bytes) -> None:
    pair = Pair(accept=False)
    pair.machine.receive(PREAMBLE + data, 0.0)
    pair.machine.receive_eof(1.0)
    assert pair.machine.lost is not None
