"""OpenWire by itself: round trips, every cut, limits, both sides against each other."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_wires.openwire.strategies import COMMANDS, ENTRIES, MESSAGES
from tmqp_wires.openwire import ClientConnection, Command, Fault, ServerConnection, WireFormat
from tmqp_wires.openwire.commands import (
    ConnectionError_,
    KeepAliveInfo,
    Response,
    SessionInfo,
    ShutdownInfo,
    Throwable,
)
from tmqp_wires.openwire.connection import Event, frame_of
from tmqp_wires.openwire.data import (
    BOOLEAN,
    BYTE,
    INTEGER,
    LIST,
    MAX_DEPTH,
    STRING,
    Reader,
    WireError,
    decode_text,
    encode_map,
    encode_primitive,
    encode_string,
    encode_text,
    read_map,
    read_stream,
)
from tmqp_wires.openwire.ids import QUEUE, ConsumerId, Destination, SessionId
from tmqp_wires.openwire.messages import (
    KEPT_VERSION,
    Message,
    MessageDispatch,
    dispatch_frame,
    older_dispatch_frame,
)
from tmqp_wires.openwire.reading import read_command, read_kept_message

CHARACTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
#: As ActiveMQ writes a map of two entries.
EXAMPLE = bytes.fromhex("00000002 0001 6e 05 00000001 0001 73 09 0001 76".replace(" ", ""))


def agreed(
    mine: WireFormat | None = None, theirs: WireFormat | None = None
) -> tuple[ClientConnection, ServerConnection]:
    """Two sides that have agreed."""
    client, server = ClientConnection(0.0, theirs), ServerConnection(0.0, mine)
    assert server.receive(client.data_to_send(), 0.0) == []
    assert client.receive(server.data_to_send(), 0.0) == []
    return client, server


def fault(events: list[Event]) -> str:
    (event,) = events
    assert isinstance(event, Fault)
    assert event.text in repr(event)
    return event.text


# --- Texts and primitive values -------------------------------------------------------------------


@given(CHARACTERS)
def test_a_text_is_read_as_it_was(text: str) -> None:
    data = encode_text(text)
    assert decode_text(data) == text
    assert b"\0" not in data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a", b"a"),
        ("\0", b"\xc0\x80"),
        ("\u00e4\u20ac", b"\xc3\xa4\xe2\x82\xac"),
        ("\U0001f600", b"\xed\xa0\xbd\xed\xb8\x80"),
        ("\ud83d", b"\xed\xa0\xbd"),
    ],
)
def test_texts_are_written_as_java_writes_them(text: str, data: bytes) -> None:
    assert encode_text(text) == data
    assert decode_text(data) == text.replace("\ud83d", "\ufffd")


def test_what_is_no_text() -> None:
    with pytest.raises(WireError, match="not modified UTF-8"):
        decode_text(b"\xff")
    with pytest.raises(WireError, match="longer than 65,535"):
        encode_string("x" * 65_536)


@given(ENTRIES)
def test_a_map_is_read_as_it_was(entries: list[Any]) -> None:
    found = read_map(encode_map(entries))
    assert [each[0] for each in found] == [each[0] for each in entries]
    assert encode_map(found) == encode_map(entries)
    values = [encode_primitive(*each[1:]) for each in entries]
    assert [encode_primitive(*each) for each in read_stream(b"".join(values))] == values


def test_the_example_of_a_map() -> None:
    assert encode_map([("n", INTEGER, 1), ("s", STRING, "v")]) == EXAMPLE
    assert read_map(EXAMPLE) == [("n", INTEGER, 1), ("s", STRING, "v")]
    assert read_map(pack(">i", -1)) == []
    assert read_map(None) == []


@pytest.mark.parametrize(
    ("tag", "value"),
    [(BYTE, 128), (BYTE, "x"), (BOOLEAN, 1), (INTEGER, True), (99, 1), (LIST, 3), (STRING, b"")],
)
def test_a_value_that_its_tag_does_not_allow(tag: int, value: object) -> None:
    with pytest.raises(WireError):
        encode_primitive(tag, value)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\0\0\2\0\1a\1\1", pack(">i", 1 << 30), b"\0\0\0\1\0\1a\x63", b"\0\0\0\1\0\1a\x0a"],
)
def test_what_is_no_map(data: bytes) -> None:
    with pytest.raises(WireError):
        read_map(data)


def test_lists_in_lists_have_a_bound() -> None:
    deep = b"\x0c\0\0\0\1" * MAX_DEPTH + b"\0"
    assert read_stream(deep)
    with pytest.raises(WireError, match="deep"):
        read_stream(b"\x0c\0\0\0\1" + deep)
    with pytest.raises(WireError, match="not have enough bytes"):
        read_stream(b"\x0c\x7f\xff\xff\xff")


# --- Commands -------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(COMMANDS, st.integers(9, 12))
def test_a_command_is_read_as_it_was(command: Command, version: int) -> None:
    data = command.whole(version)
    found = read_command(data, version)
    assert type(found) is type(command)
    assert found.command_id == command.command_id
    assert found.response_required == command.response_required
    assert found.whole(version) == data


@settings(max_examples=50)
@given(COMMANDS, st.data())
def test_a_command_that_is_cut_off_is_an_error(command: Command, draw: st.DataObject) -> None:
    data = command.whole(12)
    size = draw.draw(st.integers(0, len(data) - 1))
    with pytest.raises(WireError):
        read_command(data[:size], 12)


@given(st.binary(max_size=60), st.integers(0, 255), st.integers(9, 12))
def test_any_bytes_are_a_command_or_an_error(data: bytes, kind: int, version: int) -> None:
    try:
        found = read_command(bytes((kind,)) + data, version)
    except WireError:
        return
    assert found.type == kind


@settings(max_examples=50)
@given(MESSAGES, st.integers(9, 12), st.integers(0, 1 << 62), st.integers(0, 1 << 20))
def test_a_kept_message_is_dispatched_with_what_is_the_brokers(
    message: Message, version: int, sequence: int, counter: int
) -> None:
    read = read_command(message.whole(version), version)
    assert isinstance(read, Message)
    kept = read.kept
    assert kept is not None
    assert kept.raw == read.body(KEPT_VERSION)
    content = kept.raw[kept.content_at : kept.content_at + kept.content_size]
    assert content == (message.content or b"")
    consumer = ConsumerId("c", 1, 2)
    head = MessageDispatch(consumer, Destination(QUEUE, "q"), None).head(version)
    if version >= 10:
        frame = dispatch_frame(head, kept, sequence, counter)
    else:
        again = read_kept_message(kept.type, kept.raw, KEPT_VERSION)
        assert again.message_id is not None
        again.message_id.broker_sequence = sequence
        again.redelivery_counter = counter
        frame = older_dispatch_frame(head, again, counter, version)
    assert pack(">i", len(frame) - 4) == frame[:4]
    dispatch = read_command(frame[4:], version)
    assert isinstance(dispatch, MessageDispatch)
    found = dispatch.message
    assert found is not None
    assert found.message_id is not None
    assert dispatch.redelivery_counter == found.redelivery_counter == counter
    assert found.message_id.broker_sequence == sequence
    assert (found.content, found.properties) == (message.content, message.properties)
    assert dispatch.consumer is not None
    assert dispatch.consumer.key == consumer.key


def test_a_message_without_an_id_is_kept_by_nobody() -> None:
    message = read_command(Message(23, None, None).whole(12), 12)
    assert isinstance(message, Message)
    assert message.kept is None
    with pytest.raises(WireError, match="not a message"):
        read_kept_message(1, b"", 12)


def test_things_in_things_have_a_bound() -> None:
    frame = KeepAliveInfo().whole(12)
    for _ in range(MAX_DEPTH + 1):
        # A message whose structure is a message.
        frame = bytes((23,)) + bytes(5) + bytes(39) + b"\1" + frame
    with pytest.raises(WireError):
        read_command(frame, 12)


def test_a_number_of_a_type_that_is_none() -> None:
    with pytest.raises(WireError, match="no command of type 99"):
        read_command(b"\x63\0\0\0\1\0", 12)
    with pytest.raises(WireError, match="not a session"):
        read_command(SessionInfo(SessionId("c", 1)).whole(12).replace(b"\1\x79", b"\1\x78"), 12)


# --- Connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("theirs", "version"), [(9, 9), (10, 10), (12, 12), (13, 12)])
def test_the_smaller_version_holds(theirs: int, version: int) -> None:
    client = ClientConnection(0.0, WireFormat(theirs, max_frame_bytes=100))
    server = ServerConnection()
    server.receive(client.data_to_send(), 0.0)
    assert server.version == version
    assert server.peer.version == theirs


def test_an_old_version_is_refused_by_name() -> None:
    client, server = ClientConnection(0.0, WireFormat(8)), ServerConnection()
    assert "version 8 of OpenWire" in fault(server.receive(client.data_to_send(), 0.0))
    server.send_refusal("too old")
    data = server.data_to_send()
    frame = read_command(data[4 + int.from_bytes(data[:4]) + 4 :], 12)
    assert isinstance(frame, ConnectionError_)
    assert frame.exception.message == "too old"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT\n\n\0",
        b"\0\0\0\7\1Active",
        b"\0\0\0\7\2Act",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\x0e\1ActiveMR\0\0\0\x0c\0",
    ],
)
def test_strangers_are_told_apart_at_once_and_get_no_answer(data: bytes) -> None:
    server = ServerConnection()
    assert fault(server.receive(data, 0.0))
    server.send_refusal("who are you")
    assert server.data_to_send() == b""
    assert server.receive(b"more", 0.0) == []


@settings(max_examples=20)
@given(st.lists(COMMANDS, max_size=3), st.lists(st.integers(0, 400), max_size=6))
def test_every_cut_gives_the_same_commands(commands: list[Command], places: list[int]) -> None:
    client, server = agreed()
    for each in commands:
        client.send(each)
    data = client.data_to_send()
    ends = sorted({min(place, len(data)) for place in places} | {len(data)})
    found: list[Event] = []
    start = 0
    for end in ends:
        found += server.receive(data[start:end], 0.0)
        start = end
    assert server.held_bytes == 0
    told = [each.whole(12) for each in found if isinstance(each, Command)]
    assert told == [each.whole(12) for each in commands]


def test_a_long_frame_is_refused_before_it_is_read() -> None:
    client, server = agreed(WireFormat(max_frame_bytes=50))
    client.send(ConnectionError_(Throwable("x" * 20, "y" * 12), ""))
    assert server.receive(client.data_to_send(), 0.0)
    client.send(ConnectionError_(Throwable("x" * 20, "y" * 30), ""))
    assert "is too long, at most 50 are allowed" in fault(
        server.receive(client.data_to_send()[:4], 0.0)
    )
    assert server.held_bytes == 0


def test_the_null_command_says_nothing() -> None:
    _, server = agreed()
    assert server.receive(b"\0\0\0\1\0", 0.0) == []


def test_a_second_negotiation_is_a_fault() -> None:
    _, server = agreed()
    data = WireFormat().encoded()
    assert fault(server.receive(pack(">i", len(data)) + data, 0.0)) == "WireFormatInfo came twice"


def test_a_command_that_cannot_be_read_is_a_fault() -> None:
    _, server = agreed()
    good = frame_of(ShutdownInfo(), 12)
    events = server.receive(good + b"\0\0\0\2\x1e\0" + good, 0.0)
    assert isinstance(events[0], ShutdownInfo)
    assert fault(events[1:])


def test_signs_of_life() -> None:
    quick = WireFormat(silence_ms=3_000, max_frame_bytes=1_000)
    client, server = agreed(quick)
    assert server.next_deadline() == 1.0
    assert server.on_deadline(1.0) == []
    assert client.receive(server.data_to_send(), 1.0) == []
    server.send(Response(1))
    server.on_deadline(2.0)
    assert len(client.receive(server.data_to_send(), 2.0)) == 1, "it has spoken"
    assert fault(server.on_deadline(4.5)) == "nothing was heard for 4.5 seconds"
    assert server.next_deadline() is None


def test_who_asks_for_a_sign_of_life_gets_one() -> None:
    client, server = agreed()
    asking = KeepAliveInfo()
    asking.response_required = True
    client.send(asking)
    assert server.receive(client.data_to_send(), 0.0) == []
    assert client.receive(server.data_to_send(), 0.0) == []
    assert client.next_deadline() == 10.0


def test_silence_is_excused_and_may_be_without_a_bound() -> None:
    client, server = agreed(WireFormat(silence_ms=3_000, max_frame_bytes=1_000))
    server.excuse_silence(4.4)
    assert server.on_deadline(4.6) == []
    client, server = agreed(WireFormat(silence_ms=0, max_frame_bytes=1_000))
    server.excuse_silence(9.0)
    assert client.next_deadline() is server.next_deadline() is None


def test_a_reader_says_where_it_ends() -> None:
    reader = Reader(b"\1\0", 12)
    assert reader.flag()
    assert reader.left() == 1
    with pytest.raises(WireError, match="3 bytes should follow, 1 do"):
        reader.take(3)
    reader.byte()
    with pytest.raises(WireError, match="too early"):
        reader.byte()
