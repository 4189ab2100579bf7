"""The checks of ``tmqp.testing.pair``: two connections, a wire and a clock."""

from __future__ import annotations

import pytest

from tmqp import (
    Connection,
    ConnectionInformation,
    Event,
    Frame,
    HandshakeReceived,
    Limits,
    MessageType,
    QueueMessageReceived,
    State,
)
from tmqp.testing import ConnectionPair


def names(events: list[Event]) -> list[str]:
    """The classes of events."""
    return [type(event).__name__ for event in events]


def test_the_example_of_the_documentation() -> None:
    pair = ConnectionPair()
    pair.handshake()
    pair.client.send(Frame.build(MessageType.QUEUE_MESSAGE, "orders", 1, b"tea"))
    pair.exchange()
    assert isinstance(pair.server_events[-1], QueueMessageReceived)
    pair.advance(20.0)
    assert pair.now == 20.0
    assert names(pair.client_events)[-2:] == ["PingReceived", "PongReceived"]


def test_a_handshake_tells_both_sides_events() -> None:
    pair = ConnectionPair()
    client_events, server_events = pair.handshake(ConnectionInformation("prod-1", "n"))
    assert names(client_events) == ["PreambleReceived", "HandshakeAccepted"]
    assert names(server_events) == ["PreambleReceived", "HandshakeReceived"]
    assert client_events == pair.client_events
    assert pair.client.client_id == pair.server.client_id == "prod-1"
    assert pair.exchange() == ([], [])


def test_a_client_without_an_id_gets_one() -> None:
    pair = ConnectionPair()
    pair.handshake(ConnectionInformation())
    assert pair.client.client_id == "client-1"


def test_the_server_may_refuse_or_leave_it_undecided() -> None:
    def refuse(connection: Connection, event: HandshakeReceived) -> list[Event]:
        assert event.information.client_id == "client-1"
        return connection.refuse(401)

    pair = ConnectionPair(decide=refuse)
    client_events, server_events = pair.handshake()
    assert names(client_events) == ["PreambleReceived", "HandshakeRefused", "ConnectionClosed"]
    assert names(server_events)[-1] == "ConnectionClosed"
    undecided = ConnectionPair(decide=None)
    undecided.handshake()
    assert undecided.server.state == State.AWAIT_DECISION
    undecided.server.accept("c")
    undecided.exchange()
    assert undecided.client.state == State.OPEN


def test_a_client_that_is_closed_in_the_same_breath_is_not_decided_on() -> None:
    pair = ConnectionPair(server_limits=Limits(max_early_bytes=10))
    pair.client.initiate(ConnectionInformation("c"))
    pair.client.send_bytes(b"x" * 11)
    _, server_events = pair.exchange()
    assert names(server_events)[1:] == ["HandshakeReceived", "ProtocolViolated", "ConnectionClosed"]


def test_one_side_closing_is_the_end_of_the_stream_for_the_other() -> None:
    pair = ConnectionPair()
    pair.handshake()
    pair.client_events += pair.client.close()
    _, server_events = pair.exchange()
    assert names(server_events) == ["TerminateReceived", "ConnectionClosed"]
    silent = ConnectionPair()
    silent.server_events += silent.server.close()
    client_events, _ = silent.exchange()
    assert repr(client_events[-1]) == "<ConnectionClosed end-of-stream>"


@pytest.mark.parametrize("chunk_bytes", [1, 3, 1_000])
def test_the_wire_cuts_as_it_is_told(chunk_bytes: int) -> None:
    pair = ConnectionPair(chunk_bytes=chunk_bytes)
    pair.handshake()
    pair.server.send(Frame.build(0x11, "orders", payload=b"p" * 500))
    client_events, _ = pair.exchange()
    assert names(client_events) == ["QueueMessageReceived"]


def test_a_cut_wire_swallows_everything() -> None:
    pair = ConnectionPair()
    pair.handshake()
    pair.cut = True
    pair.client.send(Frame.build(0x11))
    assert pair.exchange() == ([], [])
    pair.cut = False
    assert pair.exchange() == ([], [])


def test_time_passes_even_when_both_are_closed() -> None:
    pair = ConnectionPair(now=5.0)
    pair.client.close()
    pair.server.close()
    assert pair.advance(10.0) == ([], [])
    assert pair.now == 15.0


def test_talking_in_circles_is_an_error() -> None:
    pair = ConnectionPair()
    pair.handshake()

    class Echo(list[Event]):
        """Answers whatever comes with another ping."""

        def append(self, event: Event) -> None:
            super().append(event)
            pair.server.ping()

    pair.server_events = Echo()
    pair.client.ping()
    pair.server.ping()
    with pytest.raises(AssertionError, match="still talk after 1000 turns"):
        pair.exchange()


def test_a_deadline_that_does_not_move_is_an_error() -> None:
    tiny = Limits(ping_interval_s=1e-9, max_missed_pings=10**6)
    pair = ConnectionPair(tiny, tiny)
    pair.handshake()
    with pytest.raises(AssertionError, match="is due 1000 times"):
        pair.advance(1.0)
