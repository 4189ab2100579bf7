"""The checks of ``tmqp.connection``: messages, sending, endings, and what holds for all bytes.

The handshake stands in ``test_connection_handshake``, keep-alive in ``test_connection_time``, pulls
in ``test_pulls``.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp.ends import (
    HELLO,
    PING,
    PONG,
    PREAMBLE,
    open_client,
    open_server,
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
    Limits,
    LocalProtocolError,
    MessageDropped,
    MessageReceived,
    MessageType,
    PingReceived,
    PongReceived,
    ProtocolViolated,
    RemoteProtocolError,
    Role,
    State,
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


def test_portions_end_whatever_stands_behind_the_last_large_piece() -> None:
    for sizes in ([200_000], [200_000, 1], [200_000, 1, 1], [1, 200_000, 1, 1], [1, 1]):
        server = open_server()
        frames = [Frame.build(int(MessageType.RESPONSE), payload=b"p" * size) for size in sizes]
        server.data_to_send()
        for frame in frames:
            server.send_bytes(frame.raw)
        given = b""
        while piece := server.next_to_send():
            given += piece
        assert given == b"".join(frame.raw for frame in frames)
        assert server.next_to_send() == b""


def test_a_connection_says_how_much_is_missing_of_a_message() -> None:
    client = open_client()
    raw = Frame.build(int(MessageType.QUEUE_MESSAGE), "c", 1, b"p" * 1_000).raw
    assert client.wanted == 0
    client.receive(raw[:100], 1.0)
    assert client.wanted == len(raw) - 100
    assert len(client.receive(raw[100:], 1.0)) == 1
    assert client.wanted == 0


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
