"""OpenWire as activemq-client 5.16.4 and ActiveMQ 5.16.4 have said it, frame by frame.

``recorded.txt`` has who said it and the frame without its size; loose encoding, version 12.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tmqp_wires.openwire import ClientConnection, Command, Message, ServerConnection, WireFormat
from tmqp_wires.openwire.commands import (
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    ProducerAck,
    TransactionInfo,
)
from tmqp_wires.openwire.data import BOOLEAN, WireError, read_map, read_stream
from tmqp_wires.openwire.ids import TEMP_QUEUE, TOPIC, XaTransactionId
from tmqp_wires.openwire.messages import (
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    PLAIN_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    MessageAck,
    MessageDispatch,
    dispatch_frame,
)
from tmqp_wires.openwire.negotiation import WIRE_FORMAT
from tmqp_wires.openwire.reading import read_command, read_kept_message

LINES = Path(__file__).with_name("recorded.txt").read_text(encoding="ascii").splitlines()
FRAMES = [(who, bytes.fromhex(frame)) for who, frame in map(str.split, LINES)]
COMMANDS = [(who, frame) for who, frame in FRAMES if frame[0] != WIRE_FORMAT]


def read(frame: bytes) -> Command:
    return read_command(frame, 12)


def of(kind: type[Command]) -> list[Command]:
    return [found for _, frame in COMMANDS if isinstance(found := read(frame), kind)]


@pytest.mark.parametrize("at", range(len(COMMANDS)))
def test_what_was_recorded_is_written_as_it_was(at: int) -> None:
    frame = COMMANDS[at][1]
    assert read(frame).whole(12) == frame


@pytest.mark.parametrize("at", range(len(COMMANDS)))
def test_a_recorded_frame_that_is_cut_off_is_an_error(at: int) -> None:
    frame = COMMANDS[at][1]
    for size in (1, 5, len(frame) // 2, len(frame) - 1):
        if size < len(frame):
            with pytest.raises(WireError):
                read(frame[:size])
    with pytest.raises(ValueError, match="extra bytes"):
        read(frame + b"\0")


def test_both_sides_say_what_they_can_do() -> None:
    said = {who: WireFormat.read(frame) for who, frame in FRAMES if frame[0] == WIRE_FORMAT}
    assert {each.version for each in said.values()} == {12}
    assert {each.provider_version for each in said.values()} == {"5.16.4"}
    assert said["client"].silence_ms == 3_000
    assert said["broker"].silence_ms == 30_000


def test_the_kinds_of_messages() -> None:
    said = {each.type: each for each in of(Message) if isinstance(each, Message)}
    kinds = [BYTES_MESSAGE, MAP_MESSAGE, OBJECT_MESSAGE, PLAIN_MESSAGE, STREAM_MESSAGE]
    assert sorted(said) == sorted([*kinds, TEXT_MESSAGE])
    assert read_map(said[MAP_MESSAGE].content)
    stream = said[STREAM_MESSAGE].content
    assert stream is not None
    assert read_stream(stream)[0] == (BOOLEAN, True)


def test_a_kept_message_is_dispatched_as_the_broker_dispatched_it() -> None:
    for dispatch in of(MessageDispatch):
        assert isinstance(dispatch, MessageDispatch)
        message = dispatch.message
        if message is None or message.kept is None:
            continue
        assert message.message_id is not None
        # What the sender has asked for is nothing to the receiver: ours leaves it out.
        message.command_id, message.response_required = 0, False
        sequence = message.message_id.broker_sequence
        counter = dispatch.redelivery_counter
        frame = dispatch_frame(dispatch.head(12), message.kept, sequence, counter)
        again = read(frame[4:])
        assert isinstance(again, MessageDispatch)
        assert again.body(12) == dispatch.body(12)
        read_again = read_kept_message(message.type, message.kept.raw, 12)
        assert read_again.body(12) == message.body(12)


def test_what_else_was_said() -> None:
    first = of(ConnectionInfo)[0]
    assert isinstance(first, ConnectionInfo)
    assert first.client_id is not None
    assert first.response_required
    consumers = [each for each in of(ConsumerInfo) if isinstance(each, ConsumerInfo)]
    advisories = consumers[0].destination
    assert advisories is not None
    assert (advisories.type, advisories.name.count(",")) == (TOPIC, 1)
    (made, *_) = of(DestinationInfo)
    assert isinstance(made, DestinationInfo)
    assert made.destination is not None
    assert made.destination.type == TEMP_QUEUE
    classes = {
        each.exception.class_name
        for each in of(ExceptionResponse)
        if isinstance(each, ExceptionResponse) and each.exception is not None
    }
    assert "javax.jms.InvalidClientIDException" in classes
    assert any(isinstance(each, ProducerAck) and each.size > 1_024 for each in of(ProducerAck))
    acks = [each for each in of(MessageAck) if isinstance(each, MessageAck)]
    assert all(each.consumer is not None and each.last is not None for each in acks)
    transactions = [each for each in of(TransactionInfo) if isinstance(each, TransactionInfo)]
    assert any(isinstance(each.transaction, XaTransactionId) for each in transactions)


def test_two_sides_of_ours_speak_as_they_did() -> None:
    client, server = ClientConnection(), ServerConnection()
    assert server.receive(client.data_to_send(), 0.0) == []
    assert client.receive(server.data_to_send(), 0.0) == []
    for who, frame in COMMANDS:
        sender, receiver = (client, server) if who == "client" else (server, client)
        sender.send(read(frame))
        (event,) = receiver.receive(sender.data_to_send(), 0.0)
        assert isinstance(event, Command)
        assert event.body(12) == read(frame).body(12)
