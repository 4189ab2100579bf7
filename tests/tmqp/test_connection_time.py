"""The checks of time in ``tmqp.connection``: the handshake's deadline and keep-alive (B4)."""

from __future__ import annotations

import pytest

from tmqp import (
    AbuseError,
    Connection,
    ConnectionClosed,
    ConnectionInformation,
    Event,
    Frame,
    Limits,
    PingReceived,
    PongReceived,
    ProtocolViolated,
    Role,
    State,
)
from tmqp.testing import ConnectionPair

PREAMBLE = b"TMQP/2.0"
HELLO = Frame.build(0x10, "", 101, b"CONNECT /\r\nClient-Id: c\r\n").raw
ACCEPTED = Frame.build(0x10, "c", 202).raw
PING = bytes.fromhex("89ff000000000000")
PONG = bytes.fromhex("8aff000000000000")
LIMITS = Limits(handshake_timeout_s=5.0, ping_interval_s=20.0)


def open_connection(role: Role, at_s: float, limits: Limits = LIMITS) -> Connection:
    """A connection on which messages flow since then."""
    connection = Connection(role, limits, now=at_s)
    if role == Role.SERVER:
        connection.receive(PREAMBLE + HELLO, at_s)
        connection.accept("c")
    else:
        connection.initiate(ConnectionInformation("c"))
        connection.receive(PREAMBLE + ACCEPTED, at_s)
    connection.data_to_send()
    assert connection.state == State.OPEN
    return connection


def rule_of(events: list[Event]) -> str:
    """The violation that these two events are about."""
    violated, closed = events
    assert isinstance(violated, ProtocolViolated)
    assert isinstance(closed, ConnectionClosed)
    assert int(violated.error.code) == 408
    return f"{violated.error.rule}, {closed.reason}"


# --- Handshake -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "chunks"),
    [
        (Role.SERVER, []),
        (Role.SERVER, [b"TMQ"]),
        (Role.SERVER, [PREAMBLE]),
        (Role.SERVER, [PREAMBLE, HELLO[:9]]),
        (Role.SERVER, [PREAMBLE + HELLO]),
        (Role.CLIENT, []),
        (Role.CLIENT, [b"TMQ"]),
        (Role.CLIENT, [PREAMBLE]),
        (Role.CLIENT, [PREAMBLE, ACCEPTED[:8]]),
    ],
)
def test_a_handshake_ends_in_time_whatever_drips_in(role: Role, chunks: list[bytes]) -> None:
    """The deadline counts from the connection's beginning; bytes do not move it (B2)."""
    connection = Connection(role, LIMITS, now=100.0)
    if role == Role.CLIENT:
        connection.initiate(ConnectionInformation("c"))
    for number, chunk in enumerate(chunks):
        assert connection.next_deadline() == 105.0
        connection.receive(chunk, 101.0 + number)
    connection.data_to_send()
    assert connection.next_deadline() == 105.0
    assert connection.on_deadline(104.999) == []
    assert connection.state != State.CLOSED
    assert rule_of(connection.on_deadline(105.0)) == "handshake-timeout, violation"
    assert isinstance(connection.error, AbuseError)
    assert connection.data_to_send() == b""
    assert connection.next_deadline() is None
    assert connection.on_deadline(1e9) == []


def test_a_client_that_never_begins_ends_in_time_too() -> None:
    connection = Connection(Role.CLIENT, LIMITS, now=7.0)
    assert connection.next_deadline() == 12.0
    assert rule_of(connection.on_deadline(12.0)) == "handshake-timeout, violation"


# --- Keep-alive ----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("missed", [1, 2, 5])
def test_silence_is_cut_after_exactly_that_many_intervals(role: Role, missed: int) -> None:
    connection = open_connection(role, 10.0, Limits(ping_interval_s=20.0, max_missed_pings=missed))
    for ping in range(1, missed + 1):
        due = 10.0 + 20.0 * ping
        assert connection.next_deadline() == due
        assert connection.on_deadline(due - 0.001) == []
        assert connection.data_to_send() == b""
        assert connection.on_deadline(due) == []
        assert connection.data_to_send() == PING
        assert connection.on_deadline(due) == []
        assert connection.data_to_send() == b""
    end = 10.0 + 20.0 * (missed + 1)
    assert connection.next_deadline() == end
    assert connection.on_deadline(end - 0.001) == []
    assert rule_of(connection.on_deadline(end)) == "ping-timeout, lifeless"
    assert f"{end - 10.0:.1f} seconds" in str(connection.error)
    assert connection.data_to_send() == b""
    assert connection.next_deadline() is None


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(
    "traffic",
    [
        PONG,
        PING,
        Frame.build(0x11).raw,
        b"\x11",
        Frame.build(0x3F).raw,
        Frame.build(0x11, ttl=0).raw,
    ],
)
def test_anything_received_postpones_it(role: Role, traffic: bytes) -> None:
    """F38: any bytes prove that the peer lives, a pong is not needed."""
    connection = open_connection(role, 0.0)
    connection.receive(traffic, 19.0)
    assert connection.next_deadline() == 39.0
    assert connection.on_deadline(20.0) == []
    connection.data_to_send()
    connection.on_deadline(39.0)
    assert connection.data_to_send() == PING
    more = traffic if len(traffic) > 1 else b"\x10\0\0\0\0\0\0"
    connection.receive(more, 58.9)
    assert connection.next_deadline() == 78.9
    connection.data_to_send()
    assert connection.on_deadline(78.0) == []
    assert connection.data_to_send() == b""


def test_what_is_sent_does_not_postpone_it() -> None:
    connection = open_connection(Role.SERVER, 0.0)
    connection.send(Frame.build(0x11))
    assert connection.next_deadline() == 20.0


def test_a_pong_for_nothing_is_only_traffic() -> None:
    connection = open_connection(Role.SERVER, 0.0)
    (event,) = connection.receive(PONG, 5.0)
    assert isinstance(event, PongReceived)
    assert connection.data_to_send() == b""
    assert connection.next_deadline() == 25.0


def test_a_late_call_sends_one_ping_and_leaves_time_to_answer_it() -> None:
    """A process that was frozen must not give up peers it did not listen to."""
    connection = open_connection(Role.SERVER, 0.0)
    assert connection.on_deadline(1_000.0) == []
    assert connection.data_to_send() == PING
    assert connection.next_deadline() == 1_020.0
    assert connection.on_deadline(1_000.0) == []
    assert connection.on_deadline(1_019.0) == []
    assert connection.data_to_send() == b""
    assert rule_of(connection.on_deadline(1_020.0)) == "ping-timeout, lifeless"


@pytest.mark.parametrize("role", list(Role))
def test_the_deadline_named_is_the_deadline_kept(role: Role) -> None:
    """Calling before ``next_deadline`` does nothing, calling then does something, always."""
    connection = open_connection(role, 0.0, Limits(ping_interval_s=0.7, max_missed_pings=3))
    served = 0
    while (due := connection.next_deadline()) is not None:
        for early in (due - 0.5, due - 1e-6):
            assert connection.on_deadline(early) == []
            assert connection.data_to_send() == b""
            assert connection.next_deadline() == due
        assert connection.on_deadline(due) or connection.data_to_send()
        served += 1
    assert served == 4


# --- Both ends -----------------------------------------------------------------------------------


def test_two_idle_peers_keep_each_other_alive() -> None:
    pair = ConnectionPair(LIMITS, LIMITS)
    pair.handshake()
    client_events, server_events = pair.advance(3_600.0)
    # The client asks and is asked in the same instant, every 20 s.
    assert len([event for event in client_events if isinstance(event, PongReceived)]) == 180
    assert len([event for event in server_events if isinstance(event, PingReceived)]) == 180
    assert pair.client.state == pair.server.state == State.OPEN


def test_a_half_open_connection_is_cut_by_both_after_two_intervals() -> None:
    pair = ConnectionPair(LIMITS, LIMITS, now=50.0)
    pair.handshake()
    pair.cut = True
    assert pair.advance(39.9) == ([], [])
    client_events, server_events = pair.advance(0.1)
    assert rule_of(client_events) == rule_of(server_events) == "ping-timeout, lifeless"
    assert pair.client.state == pair.server.state == State.CLOSED


def test_no_ping_is_sent_while_traffic_flows() -> None:
    pair = ConnectionPair(LIMITS, LIMITS)
    pair.handshake()
    for _ in range(20):
        pair.client.send(Frame.build(0x11, "orders"))
        pair.server.send(Frame.build(0x13, "orders"))
        pair.advance(19.0)
    names = {type(event).__name__ for event in pair.client_events + pair.server_events}
    assert "PingReceived" not in names
    assert "PongReceived" not in names
