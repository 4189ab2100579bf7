"""The client's machine with cuts at any point: what it keeps, in which order, and what it settles.

The server here remembers what it has read, answers what the test tells it to, and may be cut off in
the middle of any message, in either direction.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.tmqp_client.machine_pair import Pair
from tests.tmqp_client.peer import ack_of, response_to
from tmqp import (
    Connection,
    ConnectionInformation,
    Frame,
    HandshakeReceived,
    MessageReceived,
    MessageType,
    Role,
)
from tmqp.errors import LocalProtocolError, TmqpError
from tmqp_client import ClientLimits, ConnectionLost, OperationTimeout
from tmqp_client._core import requests
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Lost
from tmqp_client._core.pending import Pending

LIMITS = ClientLimits(max_outstanding=6, buffered_messages=8, unclaimed_messages=2)
MAX_SENDS = 4


class Cuts(RuleBasedStateMachine):
    """One machine, one server after the other."""

    def __init__(self) -> None:
        super().__init__()
        counter = itertools.count(1)
        self.now = 0.0
        self.machine = ClientMachine(
            ConnectionInformation("c1"), LIMITS, lambda: f"id{next(counter)}", MAX_SENDS
        )
        self.server = Connection(Role.SERVER)
        self.wire = b""
        self.asked: list[Pending] = []
        self.order: list[str] = []
        self.receipts: dict[str, int] = {}
        self.open: list[Frame] = []
        self.settled: dict[int, int] = {}
        self.granted: set[str] = set()
        self.joined_now: list[str] = []
        self.connect()

    # -- the world ------------------------------------------------------------------------------

    def connect(self) -> None:
        self.machine.start(self.now)
        self.server = Connection(Role.SERVER, now=self.now)
        self.wire = b""
        self.open = []
        self.joined_now = []

    def note(self, outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Pending):
                assert outcome.done
                assert not outcome.restoring
                count = self.settled.get(id(outcome), 0)
                assert count == 0, "each is settled once"
                self.settled[id(outcome)] = 1

    def read(self, data: bytes) -> None:
        for event in self.server.receive(data, self.now):
            if isinstance(event, HandshakeReceived):
                self.server.accept("c1")
            elif isinstance(event, MessageReceived):
                frame = event.frame
                self.open.append(frame)
                if frame.type == MessageType.QUEUE_MESSAGE:
                    first = frame.message_id not in self.receipts
                    self.receipts[frame.message_id] = self.receipts.get(frame.message_id, 0) + 1
                    if first:
                        self.order.append(frame.message_id)
                else:
                    self.joined_now.append(frame.target)

    @property
    def alive(self) -> bool:
        return self.machine.lost is None

    # -- what may happen ------------------------------------------------------------------------

    @precondition(lambda self: not self.machine.full and not self.machine.buffer_full)
    @rule(confirm=st.booleans(), size=st.integers(0, 300), timeout_s=st.sampled_from([3.0, 60.0]))
    def push(self, confirm: bool, size: int, timeout_s: float) -> None:
        if self.machine.epoch == 0:
            return
        pending = self.machine.push(
            "orders", 1, b"x" * size, (), self.now, confirm=confirm, timeout_s=timeout_s
        )
        self.asked.append(pending)

    @precondition(lambda self: not self.machine.full and self.machine.epoch > 0)
    @rule(channel=st.sampled_from(["a", "b", "c"]), repeat=st.booleans())
    def join(self, channel: str, repeat: bool) -> None:
        pending = self.machine.request(requests.join(channel), self.now, repeat=repeat)
        self.asked.append(pending)

    @rule(share=st.floats(0, 1))
    def carry_to_server(self, share: float) -> None:
        if self.alive:
            self.wire += self.machine.data_to_send()
            size = round(len(self.wire) * share)
            data, self.wire = self.wire[:size], self.wire[size:]
            self.read(data)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        if not self.alive:
            return
        frame = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        if frame.type == MessageType.QUEUE_MESSAGE:
            if frame.pending_acknowledge:
                self.server.send(ack_of(frame))
        else:
            self.server.send(response_to(frame))

    @rule(share=st.floats(0, 1))
    def carry_to_client(self, share: float) -> None:
        if self.alive:
            data = self.server.data_to_send()
            self.note(self.machine.receive(data[: round(len(data) * share)], self.now))
            if share < 1 and data:
                self.cut(False)  # the rest is lost with the connection

    @rule(orderly=st.booleans())
    def cut(self, orderly: bool) -> None:
        if self.alive:
            machine = self.machine
            outcomes = machine.receive_eof(self.now) if orderly else machine.fail("broken")
            assert isinstance(outcomes[-1], Lost)
            self.note(outcomes)

    @precondition(lambda self: not self.alive)
    @rule()
    def reconnect(self) -> None:
        self.connect()

    @rule(seconds=st.floats(0.1, 4.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.note(self.machine.on_deadline(self.now))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        pending = data.draw(st.sampled_from(self.asked))
        self.machine.abandon(pending)
        self.asked.remove(pending)

    # -- what must hold -------------------------------------------------------------------------

    @invariant()
    def what_is_kept_is_counted(self) -> None:
        machine = self.machine
        waiting = [pending for pending in machine._pendings.in_order() if not pending.restoring]
        kept = [pending.frame.raw for pending in waiting if pending.frame is not None]
        assert machine._pendings.held_bytes == sum(len(raw) for raw in kept)
        assert machine.outbox.size_bytes >= 0
        assert len(machine.outbox) >= 0
        if not len(machine.outbox):
            assert machine.outbox.size_bytes == 0

    @invariant()
    def the_first_receipts_come_in_order(self) -> None:
        numbers = [int(message_id[2:]) for message_id in self.order]
        assert numbers == sorted(numbers)

    @invariant()
    def nothing_is_sent_more_often_than_it_may(self) -> None:
        assert all(count <= MAX_SENDS for count in self.receipts.values())

    def teardown(self) -> None:
        """The world heals: everything still owed is settled, and nothing is kept."""
        if not self.alive:
            self.connect()
        if self.machine.epoch == 0 or not self.machine.accepted:
            self.machine.data_to_send()
            self.cut(True)
            self.connect()
        for _ in range(6):
            self.wire += self.machine.data_to_send()
            self.read(self.wire)
            self.wire = b""
            for frame in self.open:
                if frame.type != MessageType.QUEUE_MESSAGE:
                    self.server.send(response_to(frame))
                elif frame.pending_acknowledge:
                    self.server.send(ack_of(frame))
            self.open = []
            self.note(self.machine.receive(self.server.data_to_send(), self.now))
        assert self.machine.outstanding == 0
        assert len(self.machine.outbox) == 0
        assert self.machine._pendings.held_bytes == 0
        for pending in self.asked:
            assert pending.done
            if pending.error is None and pending.frame is not None and pending.request is None:
                assert pending.message_id in self.receipts, "confirmed means received"
            elif pending.error is not None:
                assert isinstance(pending.error, ConnectionLost | OperationTimeout | TmqpError)
        assert len(set(self.joined_now)) >= len(self.machine.joins), "what is joined is joined here"


TestCuts = Cuts.TestCase


def test_pushes_go_out_again_in_order_before_what_came_meanwhile() -> None:
    pair = Pair(max_sends=3)
    pair.push(b"0")
    pair.push(b"1")
    pair.asked()
    pair.machine.fail("broken")
    pair.push(b"2")
    pair.push(b"3", confirm=False)
    pair.start(1.0)
    assert [frame.payload for frame in pair.asked()] == [b"0", b"1", b"2", b"3"]
    assert pair.machine.counters.resent == 2
    assert len(pair.machine.outbox) == 0


def test_what_is_not_to_be_repeated_is_lost() -> None:
    pair = Pair(max_sends=3)
    lost = pair.machine.request(requests.create_channel("a", None), 0.0)
    again = pair.machine.request(requests.join("a"), 0.0, repeat=True)
    pair.asked()
    outcomes = pair.machine.fail("broken")
    assert outcomes[0] is lost
    assert isinstance(lost.error, ConnectionLost)
    assert again not in outcomes
    pair.start(1.0)
    (frame,) = pair.asked()
    pair.say(response_to(frame))
    assert again.done
    assert again.error is None


def test_a_channel_that_was_being_left_is_not_joined_again() -> None:
    pair = Pair(max_sends=3)
    pair.machine.request(requests.join("a"), 0.0)
    pair.say(response_to(pair.asked()[0]))
    pair.machine.request(requests.leave("a"), 0.0)
    pair.machine.fail("broken")
    pair.start(1.0)
    assert pair.asked() == []


def test_a_machine_that_is_over_starts_no_more() -> None:
    pair = Pair(max_sends=3)
    pair.machine.fail("broken")
    pending = pair.push()
    outcomes = pair.machine.give_up(Lost("transport", "no hope"))
    assert pending in outcomes
    with pytest.raises(ConnectionLost, match="no hope"):
        pair.machine.start(1.0)
    with pytest.raises(ConnectionLost, match="no hope"):
        pair.push()


def test_the_bytes_kept_for_another_connection_are_bounded() -> None:
    pair = Pair(ClientLimits(unconfirmed_bytes=500), max_sends=3)
    while not pair.machine.full:
        pair.push(b"x" * 100)
    assert 3 <= pair.machine.outstanding <= 5
    with pytest.raises(LocalProtocolError, match="awaited"):
        pair.push(b"x")
    pair.push(b"x", confirm=False)
    pair.say(ack_of(pair.asked()[0]))
    assert not pair.machine.full


def test_the_bytes_that_wait_for_a_connection_are_bounded() -> None:
    pair = Pair(ClientLimits(buffered_bytes=500), max_sends=3)
    pair.machine.fail("broken")
    count = 0
    while not pair.machine.buffer_full:
        pair.push(b"x" * 100, confirm=False)
        count += 1
    assert 3 <= count <= 5
    pair.start(1.0)
    assert len(pair.asked()) == count
    assert not pair.machine.buffer_full


def test_what_is_abandoned_in_an_outage_is_not_sent_and_not_kept() -> None:
    pair = Pair(ClientLimits(), max_sends=3)
    pair.machine.fail("broken")
    pendings = [pair.push(b"x" * 100) for _ in range(1_000)]
    for pending in pendings[:-1]:
        pair.machine.abandon(pending)
    assert len(pair.machine.outbox) == 1
    assert len(pair.machine.outbox._entries) < 200, "swept out"
    pair.start(1.0)
    assert [frame.message_id for frame in pair.asked()] == [pendings[-1].message_id]


def test_a_message_goes_out_again_under_the_id_the_server_gives_now() -> None:
    pair = Pair(max_sends=3)
    pending = pair.push(b"x")
    pair.asked()
    pair.machine.fail("broken")
    pair.start(1.0, accept=False)
    pair.server.accept("other")
    pair.to_client()
    (frame,) = pair.asked()
    assert (frame.source, frame.message_id) == ("other", pending.message_id)
    assert frame.payload == b"x"
