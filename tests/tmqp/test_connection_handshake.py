"""The checks of how a connection begins, on both sides, and with strangers (B3)."""

from __future__ import annotations

import pytest

from tests.tmqp.ends import (
    HELLO,
    HELLO_TEXT,
    PING,
    PONG,
    PREAMBLE,
    open_client,
    server,
    types,
    violation,
    waiting_client,
)
from tmqp import (
    AbuseError,
    Connection,
    ConnectionClosed,
    ConnectionInformation,
    Frame,
    HandshakeAccepted,
    HandshakeReceived,
    HandshakeRefused,
    Limits,
    LocalProtocolError,
    MessageReceived,
    MessageType,
    PreambleReceived,
    Role,
    State,
    TerminateReceived,
)
from tmqp.testing import (
    write_frame,
)

# --- Handshake: client ---------------------------------------------------------------------------


def test_a_client_says_everything_at_once() -> None:
    connection = Connection(Role.CLIENT)
    assert repr(connection) == "<Connection CLIENT IDLE client_id=''>"
    assert connection.data_to_send() == b""
    information = ConnectionInformation("prod-1", "producer", "ptype")
    connection.initiate(information, "0" * 32)
    hello = Frame.build(
        0x10,
        "",
        101,
        b"CONNECT /\r\nClient-Name: producer\r\nClient-Type: ptype\r\nClient-Id: prod-1\r\n",
        message_id="0" * 32,
        source="prod-1",
        first_acquirer=True,
    )
    assert connection.data_to_send() == PREAMBLE + hello.raw
    assert connection.data_to_send() == b""
    assert connection.state == State.AWAIT_REPLY
    assert connection.client_id == "prod-1"
    assert connection.information is information


def test_a_client_adopts_the_id_it_is_accepted_under() -> None:
    connection = waiting_client()
    reply = Frame.build(0x10, "other-id", 202, message_id="1" * 32, first_acquirer=True)
    events = connection.receive(PREAMBLE + reply.raw, 0.0)
    assert types(events) == [PreambleReceived, HandshakeAccepted]
    assert isinstance(events[1], HandshakeAccepted)
    assert events[1].client_id == connection.client_id == "other-id"
    assert connection.state == State.OPEN


def test_an_acceptance_without_a_target_keeps_the_own_id() -> None:
    connection = waiting_client()
    events = connection.receive(PREAMBLE + Frame.build(0x10, "", 202).raw, 0.0)
    assert repr(events[1]) == "<HandshakeAccepted 'c'>"


@pytest.mark.parametrize("code", [400, 401, 482, 503, 65_535])
def test_a_refusal_ends_a_client(code: int) -> None:
    connection = waiting_client()
    events = connection.receive(PREAMBLE + Frame.build(0x10, "", code).raw, 0.0)
    assert types(events) == [PreambleReceived, HandshakeRefused, ConnectionClosed]
    assert isinstance(events[1], HandshakeRefused)
    assert events[1].code == code
    assert repr(events[2]) == "<ConnectionClosed refused>"
    assert connection.error is None
    assert connection.data_to_send() == b""


def test_a_refusal_tells_where_another_server_takes_clients() -> None:
    refusing = server(PREAMBLE + HELLO)
    refusing.refuse(421, "3" * 32, "tmqs://b:2622")
    connection = waiting_client()
    refused = connection.receive(refusing.data_to_send(), 0.0)[1]
    assert isinstance(refused, HandshakeRefused)
    assert (refused.code, refused.address) == (421, "tmqs://b:2622")


def test_a_refusal_with_headers_that_are_no_text_raises_nothing() -> None:
    frame = Frame.build(0x10, "", 421, headers=[("Node-Address", "x")]).raw
    connection = waiting_client()
    events = connection.receive(PREAMBLE + frame.replace(b": x", b": \xff"), 0.0)
    assert types(events)[-1] == ConnectionClosed


@pytest.mark.parametrize(
    "reply", [b"TMQ/1.01", b"TMQP/2.1", b"HTTP/1.1 400 Bad", b"X", b"TMQP/2\0"]
)
def test_a_client_takes_no_other_protocol(reply: bytes) -> None:
    connection = waiting_client()
    assert violation(connection.receive(reply, 0.0)).rule == "preamble"
    assert connection.data_to_send() == b""


def test_a_server_must_not_speak_first() -> None:
    connection = Connection(Role.CLIENT)
    assert violation(connection.receive(b"SSH-2.0-x\r\n", 0.0)).rule == "unexpected-message"
    assert connection.data_to_send() == b""


def test_a_client_may_send_and_receive_before_it_is_accepted() -> None:
    """F21, F35, F36: nobody has to wait for anything."""
    connection = waiting_client()
    pushed = Frame.build(0x11, "orders", payload=b"early")
    connection.send(pushed)
    assert connection.data_to_send() == pushed.raw
    event = Frame.build(0x16, source="ClientConnected")
    info = Frame.build(0x10, "c", 200)
    events = connection.receive(PREAMBLE + event.raw + PING + info.raw, 0.0)
    assert [type(each).__name__ for each in events] == [
        "PreambleReceived",
        "EventNotificationReceived",
        "PingReceived",
        "ServerMessageReceived",
    ]
    connection.ping()
    assert connection.data_to_send() == PONG + PING
    assert connection.state == State.AWAIT_ACCEPT


def test_after_the_acceptance_a_servers_word_is_only_a_message() -> None:
    connection = open_client()
    for code in (101, 202, 401):
        events = connection.receive(Frame.build(0x10, "x", code).raw, 0.0)
        assert [type(each).__name__ for each in events] == ["ServerMessageReceived"]
    assert connection.client_id == "c"


# --- Handshake: server ---------------------------------------------------------------------------


@pytest.mark.parametrize("preamble", [PREAMBLE, b"TMQ/1.01"])
def test_a_server_answers_the_preamble_at_once_with_the_same_bytes(preamble: bytes) -> None:
    connection = Connection(Role.SERVER)
    assert connection.receive(preamble[:7], 0.0) == []
    assert connection.data_to_send() == b""
    (event,) = connection.receive(preamble[7:], 0.0)
    assert isinstance(event, PreambleReceived)
    assert event.preamble == preamble
    assert connection.data_to_send() == preamble
    assert connection.state == State.AWAIT_HELLO


def test_a_server_learns_who_a_client_is_and_accepts() -> None:
    connection = Connection(Role.SERVER)
    text = (
        b"CONNECT /\r\nClient-Id: prod-1\r\nClient-Name: n\r\nClient-Type: t\r\nClient-Token: s\r\n"
    )
    hello = Frame.build(0x10, "", 101, text, message_id="m")
    events = connection.receive(PREAMBLE + hello.raw, 0.0)
    assert types(events) == [PreambleReceived, HandshakeReceived]
    assert isinstance(events[1], HandshakeReceived)
    expected = ConnectionInformation("prod-1", "n", "t", "s")
    assert events[1].information == connection.information == expected
    assert events[1].frame == hello
    assert connection.state == State.AWAIT_DECISION
    assert connection.data_to_send() == PREAMBLE
    assert connection.accept("prod-1", "2" * 32) == []
    assert connection.data_to_send() == (
        Frame.build(0x10, "prod-1", 202, message_id="2" * 32, first_acquirer=True).raw
    )
    assert (connection.client_id, connection.state) == ("prod-1", State.OPEN)


def test_a_server_refuses() -> None:
    connection = server(PREAMBLE + HELLO)
    connection.data_to_send()
    (closed,) = connection.refuse(503, "3" * 32)
    assert repr(closed) == "<ConnectionClosed refused>"
    assert connection.data_to_send() == (
        Frame.build(0x10, "", 503, message_id="3" * 32, first_acquirer=True).raw
    )
    assert connection.error is None


@pytest.mark.parametrize(
    "hello",
    [
        Frame.build(0x10, "", 101, HELLO_TEXT, ttl=0),  # F12: exempt from the hops
        Frame.build(0x10, "", 101, HELLO_TEXT, first_acquirer=True, message_id="m", source="c"),
        Frame.build(0x10, "somebody", 101, HELLO_TEXT, headers=[("a", "b")]),
    ],
)
def test_of_a_hello_only_type_content_type_and_payload_count(hello: Frame) -> None:
    connection = server(PREAMBLE + hello.raw)
    assert connection.state == State.AWAIT_DECISION
    assert connection.information == ConnectionInformation("c")


@pytest.mark.parametrize(
    ("first", "rule"),
    [
        (Frame.build(0x10, "", 100, HELLO_TEXT), "hello-expected"),
        (Frame.build(0x10, "x", 601), "hello-expected"),
        (Frame.build(0x11, "orders", 101, HELLO_TEXT), "hello-expected"),
        (Frame.build(0x3F, "", 101, HELLO_TEXT), "hello-expected"),
        (Frame.build(MessageType.PING), "hello-expected"),
        (Frame.build(0x10, "", 101), "hello-invalid"),
        (Frame.build(0x10, "", 101, b"CONNECT /\r\nClient-Id: a\r\nclient-id: b"), "hello-invalid"),
        (Frame.build(0x10, "", 101, b"CONNECT /\r\nClient-Id: \xff"), "hello-invalid"),
    ],
)
def test_another_first_message_ends_the_connection_with_an_answer(first: Frame, rule: str) -> None:
    """F34 leaves such a client hanging until its time is out; we say what is wrong."""
    connection = server(PREAMBLE)
    connection.data_to_send()
    error = violation(connection.receive(first.raw + PING, 0.0))
    assert (error.rule, int(error.code)) == (rule, 400)
    assert connection.data_to_send() == Frame.build(0x10, "", 400, first_acquirer=True).raw
    assert connection.error is error


def test_a_client_that_terminates_instead_of_introducing_itself_is_let_go() -> None:
    connection = server(PREAMBLE)
    connection.data_to_send()
    events = connection.receive(Frame.build(0x08).raw, 0.0)
    assert types(events) == [TerminateReceived, ConnectionClosed]
    assert repr(events[1]) == "<ConnectionClosed terminated>"
    assert connection.data_to_send() == b""


def test_messages_behind_the_hello_wait_for_the_decision() -> None:
    messages = [Frame.build(0x11, "orders", payload=bytes([n])) for n in range(3)]
    connection = server(PREAMBLE + HELLO + messages[0].raw, messages[1].raw, messages[2].raw[:4])
    events = connection.accept("c")
    assert [event.frame for event in events if isinstance(event, MessageReceived)] == messages[:2]
    (last,) = connection.receive(messages[2].raw[4:], 0.0)
    assert isinstance(last, MessageReceived)
    assert last.frame == messages[2]


def test_what_waited_may_end_the_connection_when_it_is_accepted() -> None:
    connection = server(PREAMBLE + HELLO, Frame.build(0x08).raw + PING)
    assert types(connection.accept("c")) == [TerminateReceived, ConnectionClosed]
    connection = server(PREAMBLE + HELLO, write_frame(message_id=b"\xff"))
    assert violation(connection.accept("c")).rule == "utf8"
    assert connection.data_to_send().endswith(Frame.build(0x08, "", 400).raw)


def test_a_client_that_sends_too_much_early_is_refused() -> None:
    limits = Limits(max_early_bytes=20)
    connection = server(PREAMBLE + HELLO, b"x" * 20, limits=limits)
    assert connection.state == State.AWAIT_DECISION
    error = violation(connection.receive(b"x", 0.0))
    assert (error.rule, int(error.code)) == ("early-limit", 482)
    assert isinstance(error, AbuseError)
    at_once = Connection(Role.SERVER, limits)
    events = at_once.receive(PREAMBLE + HELLO + b"x" * 21, 0.0)
    assert violation(events).rule == "early-limit"
    assert types(events)[:2] == [PreambleReceived, HandshakeReceived]


def test_the_end_of_the_stream_while_the_program_decides_is_no_fault() -> None:
    connection = server(PREAMBLE + HELLO, b"half a mess")
    (closed,) = connection.receive_eof(0.0)
    assert repr(closed) == "<ConnectionClosed end-of-stream>"
    with pytest.raises(LocalProtocolError, match="cannot accept in state CLOSED"):
        connection.accept("c")


# --- Another protocol (B3) -----------------------------------------------------------------------

STRANGERS = [
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a TLS handshake"),
    (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH banner"),
    (b"AMQP\x00\x00\x09\x01", "an AMQP greeting"),
    (b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04test", "an MQTT greeting"),
    (b'CONNECT {"verbose":false}\r\nPING\r\n', "a NATS client's greeting"),
    (b"CONNECT\naccept-version:1.2\nhost:x\n\n\0", "a STOMP client's greeting"),
    (b"STOMP\naccept-version:1.2\n\n\0", "a STOMP client's greeting"),
    (b"  V2SUB topic channel\n", "an NSQ client's greeting"),
]


@pytest.mark.parametrize(("greeting", "name"), STRANGERS)
def test_another_protocol_is_refused_on_the_first_read_and_named(
    greeting: bytes, name: str
) -> None:
    connection = Connection(Role.SERVER)
    error = violation(connection.receive(greeting, 0.0))
    assert (error.rule, error.message) == ("preamble", f"not TMQP: the peer sent {name}")
    assert connection.data_to_send() == b""
    assert connection.state == State.CLOSED


@pytest.mark.parametrize(("greeting", "name"), STRANGERS)
def test_another_protocol_is_refused_at_its_first_wrong_byte(greeting: bytes, name: str) -> None:
    connection = Connection(Role.SERVER)
    assert violation(connection.receive(greeting[:1], 0.0)).rule == "preamble"
    assert connection.data_to_send() == b""


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_preamble_cut_short_is_torn(cut: int) -> None:
    for connection in (Connection(Role.SERVER), waiting_client()):
        assert connection.receive(PREAMBLE[:cut], 0.0) == []
        assert violation(connection.receive_eof(0.0)).rule == "torn"
        assert connection.data_to_send() == b""
