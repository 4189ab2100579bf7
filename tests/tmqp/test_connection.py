"""Owns the checks of ``tmqp.connection``: handshake, messages, endings, and what bytes mean when.

Keep-alive stands in ``test_connection_time``, pulls in ``test_pulls``.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmqp import (
    AbuseError,
    Connection,
    ConnectionClosed,
    ConnectionInformation,
    Event,
    Frame,
    HandshakeAccepted,
    HandshakeReceived,
    HandshakeRefused,
    Limits,
    LocalProtocolError,
    MessageDropped,
    MessageReceived,
    MessageType,
    PingReceived,
    PongReceived,
    PreambleReceived,
    ProtocolViolated,
    RemoteProtocolError,
    Role,
    State,
    TerminateReceived,
)
from tmqp.state import WIDTH, Input
from tmqp.testing import (
    ConnectionPair,
    check_connection_chunking,
    check_connection_no_escape,
    converse,
    write_frame,
)
from tmqp.testing.strategies import Conversation, chunkings, conversations, hostile_bytes

PREAMBLE = b"TMQP/2.0"
HELLO_TEXT = b"CONNECT /\r\nClient-Id: c\r\n"
HELLO = Frame.build(0x10, "", 101, HELLO_TEXT).raw
ACCEPTED = Frame.build(0x10, "c", 202).raw
PING = bytes.fromhex("89ff000000000000")
PONG = bytes.fromhex("8aff000000000000")


def server(*chunks: bytes, limits: Limits | None = None) -> Connection:
    """A server that has been sent these bytes, with nothing decided."""
    connection = Connection(Role.SERVER, limits)
    for chunk in chunks:
        connection.receive(chunk, 0.0)
    return connection


def open_server(limits: Limits | None = None) -> Connection:
    """A server on which messages flow."""
    connection = server(PREAMBLE + HELLO, limits=limits)
    connection.accept("c")
    connection.data_to_send()
    return connection


def waiting_client(limits: Limits | None = None) -> Connection:
    """A client that has said everything and heard nothing."""
    connection = Connection(Role.CLIENT, limits)
    connection.initiate(ConnectionInformation("c"))
    connection.data_to_send()
    return connection


def open_client(limits: Limits | None = None) -> Connection:
    """A client on which messages flow."""
    connection = waiting_client(limits)
    connection.receive(PREAMBLE + ACCEPTED, 0.0)
    return connection


def types(events: list[Event]) -> list[type[Event]]:
    """The classes of events."""
    return [type(event) for event in events]


def violation(events: list[Event]) -> RemoteProtocolError:
    """The one violation at the end of these events."""
    *_, found, closed = events
    assert isinstance(found, ProtocolViolated)
    assert isinstance(closed, ConnectionClosed)
    return found.error


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


# --- Messages ------------------------------------------------------------------------------------

VERDICTS = {
    MessageType.CUSTOM: ("CustomMessageReceived", "CustomMessageReceived"),
    MessageType.SERVER: ("ServerMessageReceived", "ServerMessageReceived"),
    MessageType.QUEUE_MESSAGE: ("QueueMessageReceived", "QueueMessageReceived"),
    MessageType.DIRECT_MESSAGE: ("DirectMessageReceived", "DirectMessageReceived"),
    MessageType.ACKNOWLEDGE: ("AcknowledgeReceived", "AcknowledgeReceived"),
    MessageType.RESPONSE: ("ResponseReceived", "ResponseReceived"),
    MessageType.PULL_REQUEST: ("PullRequestReceived", "MessageDropped"),
    MessageType.EVENT: ("EventSubscriptionReceived", "EventNotificationReceived"),
    MessageType.ROUTER: ("RouterMessageReceived", "RouterMessageReceived"),
    MessageType.PING: ("PingReceived", "PingReceived"),
    MessageType.PONG: ("PongReceived", "PongReceived"),
    MessageType.TERMINATE: ("TerminateReceived", "TerminateReceived"),
}


@pytest.mark.parametrize("kind", range(64))
@pytest.mark.parametrize("shape", ["plain", "full", "wide"])
def test_every_type_has_its_verdict(kind: int, shape: str) -> None:
    """A8: known types are handed on as what they are, unknown ones are dropped (F17), whatever
    flags, names, payload and length form they come with."""
    if shape == "plain":
        data = write_frame(kind)
    elif shape == "full":
        data = write_frame(
            kind,
            first_acquirer=True,
            high_priority=True,
            pending_response=True,
            pending_acknowledge=True,
            ttl=31,
            message_id=b"m",
            source=b"s",
            target=b"t",
            content_type=777,
            payload=b"p",
        )
    else:
        data = write_frame(kind, payload=b"p", tier=255)
    verdicts = VERDICTS[MessageType(kind)] if kind in VERDICTS else ("MessageDropped",) * 2
    for connection, verdict in zip((open_server(), open_client()), verdicts, strict=True):
        event, *more = connection.receive(data, 0.0)
        assert type(event).__name__ == verdict
        if isinstance(event, MessageReceived):
            assert event.frame.raw == data
        if isinstance(event, MessageDropped):
            unknown = kind not in list(MessageType)
            assert event.reason == ("unknown-type" if unknown else "not-for-this-role")
        ends = kind == MessageType.TERMINATE
        assert types(more) == ([ConnectionClosed] if ends else [])
        assert connection.state == (State.CLOSED if ends else State.OPEN)
        assert connection.data_to_send() == (PONG if kind == MessageType.PING else b"")


@pytest.mark.parametrize("kind", range(64))
def test_a_message_without_hops_left_is_dropped_unseen(kind: int) -> None:
    """F11, F13: a ping gets no pong, a terminate does not end anything."""
    data = write_frame(kind, ttl=0)
    for connection in (open_server(), open_client()):
        (event,) = connection.receive(data, 0.0)
        assert isinstance(event, MessageDropped)
        assert (event.reason, event.frame.raw) == ("ttl", data)
        assert connection.data_to_send() == b""
        assert connection.state == State.OPEN


@pytest.mark.parametrize("hops", [1, 16, 31])
def test_a_message_with_hops_left_is_handed_on_as_it_came(hops: int) -> None:
    data = write_frame(0x12, ttl=hops)
    (event,) = open_server().receive(data, 0.0)
    assert isinstance(event, MessageReceived)
    assert event.frame.ttl == hops


@pytest.mark.parametrize("hops", [16, 32, 63])
def test_any_ping_with_hops_is_answered(hops: int) -> None:
    for connection in (open_server(), open_client()):
        events = connection.receive(write_frame(0x09, ttl=hops) * 3 + PONG, 0.0)
        assert types(events) == [PingReceived] * 3 + [PongReceived]
        assert connection.data_to_send() == PONG * 3


def test_nothing_is_read_behind_a_terminate() -> None:
    """F40."""
    for connection in (open_server(), open_client()):
        stream = Frame.build(0x11).raw + Frame.build(0x08).raw + PING + b"\xff" * 30
        names = [type(event).__name__ for event in connection.receive(stream, 0.0)]
        assert names == ["QueueMessageReceived", "TerminateReceived", "ConnectionClosed"]
        assert connection.data_to_send() == b""
        assert connection.error is None


def test_messages_before_a_fault_count_and_the_fault_is_answered() -> None:
    for connection in (open_server(), open_client()):
        stream = Frame.build(0x11).raw + PING + write_frame(source=b"\xff")
        events = connection.receive(stream, 0.0)
        assert types(events)[1:] == [PingReceived, ProtocolViolated, ConnectionClosed]
        assert violation(events).rule == "utf8"
        assert connection.data_to_send() == PONG + Frame.build(0x08, "", 400).raw


def test_a_limit_is_answered_with_its_code() -> None:
    connection = open_server(Limits(max_payload_bytes=10))
    error = violation(connection.receive(write_frame(payload=b"p" * 11), 0.0))
    assert error.rule == "payload-limit"
    assert isinstance(error, AbuseError)
    assert connection.data_to_send() == Frame.build(0x08, "", 482).raw


def test_input_may_be_any_bytes_and_nothing_means_nothing() -> None:
    connection = open_server()
    data = Frame.build(0x11, payload=b"p").raw
    assert connection.receive(b"", 0.0) == []
    for kind in (bytes, bytearray, memoryview):
        (event,) = connection.receive(kind(data), 0.0)
        assert isinstance(event, MessageReceived)
        assert event.frame.payload == b"p"


def test_a_pull_is_followed_from_the_request_to_its_end() -> None:
    """The rest of it stands in ``test_pulls``."""
    connection = open_client()
    for request_id in ("r1", "r2", "r3"):
        connection.send(Frame.build(MessageType.PULL_REQUEST, "q", message_id=request_id))
    connection.forget_pull("r3")
    headers = [("Request-Id", "r1"), ("Count", "1"), ("Index", "1")]
    stream = [
        Frame.build(MessageType.QUEUE_MESSAGE, "q", payload=b"p", headers=headers),
        Frame.build(MessageType.QUEUE_MESSAGE, "q", headers=[("Request-Id", "r3")]),
        Frame.build(MessageType.RESPONSE, "c", 404, message_id="r2"),
        Frame.build(MessageType.RESPONSE, "c", 404, message_id="r3"),
    ]
    events = connection.receive(b"".join(frame.raw for frame in stream), 0.0)
    assert [type(event).__name__ for event in events] == [
        "PullMessageReceived",
        "QueueMessageReceived",
        "ResponseReceived",
        "PullCompleted",
        "ResponseReceived",
    ]


@pytest.mark.cold
def test_what_the_table_does_not_name_is_a_violation() -> None:
    """The table is the only judge: take a cell away, and the message is refused."""
    connection = open_client()
    connection._cells = list(connection._cells)
    connection._cells[int(State.OPEN) * WIDTH + int(Input.ROUTER)] = int(State.CLOSED)
    error = violation(connection.receive(Frame.build(MessageType.ROUTER).raw, 0.0))
    assert (error.rule, error.message) == (
        "unexpected-message",
        "a message of type 0x17 is not legal here",
    )


# --- Sending and misuse --------------------------------------------------------------------------


def test_what_is_sent_goes_out_in_order() -> None:
    connection = open_client()
    one, two = Frame.build(0x11, payload=b"1"), Frame.build(0x11, payload=b"2")
    connection.send(one)
    connection.send_bytes(two.raw + one.raw)
    connection.ping()
    assert connection.data_to_send() == one.raw + two.raw + one.raw + PING
    connection.send(one)
    assert connection.data_to_send() is one.raw


@pytest.mark.parametrize(
    ("connection", "call", "arguments"),
    [
        (Connection(Role.CLIENT), "send", (Frame.build(0x11),)),
        (Connection(Role.CLIENT), "send_bytes", (b"x",)),
        (Connection(Role.CLIENT), "ping", ()),
        (Connection(Role.CLIENT), "accept", ("c",)),
        (Connection(Role.CLIENT), "refuse", (401,)),
        (Connection(Role.SERVER), "initiate", (ConnectionInformation("c"),)),
        (Connection(Role.SERVER), "send", (Frame.build(0x11),)),
        (server(PREAMBLE), "accept", ("c",)),
        (server(PREAMBLE + HELLO), "send_bytes", (b"x",)),
        (waiting_client(), "initiate", (ConnectionInformation("c"),)),
        (open_server(), "accept", ("c",)),
    ],
)
def test_misuse_is_told_and_changes_nothing(
    connection: Connection, call: str, arguments: tuple[Any, ...]
) -> None:
    state, printed = connection.state, repr(connection)
    connection.data_to_send()
    with pytest.raises(LocalProtocolError, match=f"in state {state.name}"):
        getattr(connection, call)(*arguments)
    assert connection.state == state
    assert repr(connection) == printed
    assert connection.data_to_send() == b""


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("accept", ("",)),
        ("accept", ("x" * 256,)),
        ("accept", ("c", "\ud800")),
        ("refuse", (65_536,)),
        ("refuse", (401, "x" * 256)),
    ],
)
def test_an_answer_that_cannot_be_written_decides_nothing(
    call: str, arguments: tuple[Any, ...]
) -> None:
    connection = server(PREAMBLE + HELLO)
    connection.data_to_send()
    with pytest.raises(LocalProtocolError):
        getattr(connection, call)(*arguments)
    assert connection.state == State.AWAIT_DECISION
    assert connection.data_to_send() == b""
    connection.accept("c")


def test_information_that_cannot_be_written_begins_nothing() -> None:
    connection = Connection(Role.CLIENT)
    for wrong in (ConnectionInformation("x" * 256), ConnectionInformation("c", method="a b")):
        with pytest.raises(LocalProtocolError):
            connection.initiate(wrong)
    assert (connection.state, connection.data_to_send()) == (State.IDLE, b"")
    connection.initiate(ConnectionInformation("c"))


# --- Ending --------------------------------------------------------------------------------------


def test_closing_is_announced_where_messages_flow() -> None:
    terminate = Frame.build(0x08).raw
    waiting = waiting_client()
    waiting.receive(PREAMBLE, 0.0)
    for connection, said in (
        (open_server(), terminate),
        (open_client(), terminate),
        (waiting, terminate),
        (waiting_client(), b""),
        (Connection(Role.CLIENT), b""),
        (Connection(Role.SERVER), b""),
    ):
        (closed,) = connection.close()
        assert repr(closed) == "<ConnectionClosed local>"
        assert connection.data_to_send() == said
        assert connection.close() == []


def test_a_rule_the_caller_checks_ends_it_like_any_other() -> None:
    """F42: a forged source is the server's to find."""
    connection = open_server()
    error = RemoteProtocolError("source", "the source is not the client's id")
    assert types(connection.reject(error)) == [ProtocolViolated, ConnectionClosed]
    assert connection.error is error
    assert connection.data_to_send() == Frame.build(0x08, "", 400).raw
    assert connection.reject(error) == []
    undecided = server(PREAMBLE + HELLO)
    undecided.data_to_send()
    undecided.reject(AbuseError("connections", "too many"))
    assert undecided.data_to_send() == Frame.build(0x10, "", 482, first_acquirer=True).raw


def test_a_stream_that_ends_between_messages_ends_well() -> None:
    for connection in (open_server(), open_client(), server(PREAMBLE), Connection(Role.CLIENT)):
        connection.data_to_send()
        (closed,) = connection.receive_eof(0.0)
        assert repr(closed) == "<ConnectionClosed end-of-stream>"
        assert connection.data_to_send() == b""
        assert connection.error is None


def test_a_connection_prints_what_matters() -> None:
    assert repr(open_client()) == "<Connection CLIENT OPEN client_id='c'>"


# --- Properties ----------------------------------------------------------------------------------


def start_client() -> Connection:
    """A client that has sent its hello, with room for anything early."""
    connection = Connection(Role.CLIENT)
    connection.initiate(ConnectionInformation("c"))
    return connection


def start_server() -> Connection:
    """A server that has heard nothing."""
    return Connection(Role.SERVER)


@settings(max_examples=40)
@given(conversations(), st.data())
def test_a_conversation_gives_the_same_however_it_is_cut(
    conversation: Conversation, data: st.DataObject
) -> None:
    for start, stream in (
        (start_server, conversation.client),
        (start_client, conversation.server),
    ):
        ways = [data.draw(chunkings(stream)) for _ in range(3)]
        check_connection_chunking(start, stream, ways, end=True)


@settings(max_examples=40)
@given(conversations())
def test_a_conversation_reaches_the_other_side_whole(conversation: Conversation) -> None:
    """What one connection sends, the other understands: message by message, in order."""
    pair = ConnectionPair(chunk_bytes=100)
    pair.handshake(conversation.information)
    for frame in conversation.client_frames[1:]:
        pair.client.send_bytes(frame.raw)
    for frame in conversation.server_frames[1:]:
        pair.server.send_bytes(frame.raw)
    pair.exchange()
    assert pair.server.information == conversation.information
    assert pair.client.client_id == pair.server.client_id == conversation.client_id
    for events, frames in (
        (pair.server_events, conversation.client_frames[1:]),
        (pair.client_events, conversation.server_frames[1:]),
    ):
        handed_on = [event.frame for event in events if isinstance(event, MessageReceived)]
        assert handed_on == [frame for frame in frames if frame.type not in (0x09, 0x0A)]
    assert pair.client.state == pair.server.state == State.OPEN


@settings(max_examples=40)
@given(st.data())
def test_hostile_bytes_end_at_the_worst_that_connection(data: st.DataObject) -> None:
    conversation = data.draw(conversations(most=3))
    for start, stream in (
        (start_server, conversation.client),
        (start_client, conversation.server),
    ):
        hostile = data.draw(hostile_bytes(st.just(stream)))
        ways = data.draw(chunkings(hostile))
        check_connection_no_escape(start, ways)
        whole = converse(start(), [hostile], end=True)
        assert whole == converse(start(), ways, end=True)
        assert whole.state == State.CLOSED
