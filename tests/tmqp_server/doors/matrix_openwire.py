"""The adapter of OpenWire for the matrix of doors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from tests.tmqp_server.doors.matrix_parts import (
    CHANNEL,
    EVERYTHING,
    Adapter,
    Case,
    Consumer,
    Wire,
    one_table,
)
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tmqp_server.doors.letter import BOOLEAN, DOUBLE, INT, LONG, Letter, Property
from tmqp_wires.openwire import ClientConnection, Command, Message, MessageAck, MessageDispatch
from tmqp_wires.openwire import data as d
from tmqp_wires.openwire.commands import ConnectionInfo, ConsumerInfo, ExceptionResponse, Response
from tmqp_wires.openwire.ids import QUEUE, ConsumerId, Destination, MessageId, ProducerId
from tmqp_wires.openwire.messages import ACK_INDIVIDUAL, BYTES_MESSAGE, TEXT_MESSAGE

__all__ = ["Openwire"]

_DESTINATION: Final = Destination(QUEUE, CHANNEL)
_TAGS: Final = {BOOLEAN: d.BOOLEAN, INT: d.INTEGER, LONG: d.LONG, DOUBLE: d.DOUBLE}
_KINDS: Final = {tag: kind for kind, tag in _TAGS.items()}
#: Fields of a letter that are properties.
_FIELDS: Final = {
    "content_type": "content-type",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
}
_PERSISTENT: Final = ("persistent", "true")
_OCTETS: Final = "application/octet-stream"
_NAMES: Final = count(1)


class _Peer:
    """A client, let in."""

    def __init__(self, stage: MatrixStage) -> None:
        self._wire = Wire(stage, "openwire")
        self.hang_up = self._wire.hang_up
        self.openwire = ClientConnection()
        self.name = f"ID:m-{next(_NAMES)}:1"
        self.flush()
        assert self.hear() == []
        self.ask(ConnectionInfo(self.name, None))

    def flush(self) -> None:
        """Send what is queued."""
        self._wire.say(self.openwire.data_to_send())

    def hear(self) -> list[Command]:
        """What has come since the last time."""
        events = self.openwire.receive(self._wire.take(), 0.0)
        found = [each for each in events if isinstance(each, Command)]
        assert len(found) == len(events), events
        return found

    def ask(self, *commands: Command) -> None:
        """Send commands, in one chunk, and see that all are carried out."""
        for each in commands:
            each.response_required = True
            self.openwire.send(each)
        self.flush()
        found = [each for each in self.hear() if isinstance(each, Response)]
        assert len(found) == len(commands)
        assert not any(isinstance(each, ExceptionResponse) for each in found)


class _OpenwireConsumer(Consumer):
    """Consumes from the queue."""

    def __init__(self, stage: MatrixStage) -> None:
        self._peer = _Peer(stage)
        self._id = ConsumerId(self._peer.name, 1, 1)
        info = ConsumerInfo(self._id, _DESTINATION)
        self._peer.openwire.send(info)
        self._peer.flush()

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        found: list[Letter] = []
        for each in self._peer.hear():
            assert isinstance(each, MessageDispatch), each
            message = each.message
            assert message is not None
            name = message.message_id
            ack = MessageAck(ACK_INDIVIDUAL, self._id, _DESTINATION, name, name, 1)
            self._peer.openwire.send(ack)
            found.append(_letter_of(message))
        self._peer.flush()
        return found


def _letter_of(message: Message) -> Letter:
    body = message.content or b""
    if message.type == TEXT_MESSAGE:
        body = d.decode_text(body[4:]).encode()
    name = message.message_id
    assert name is not None
    letter = Letter(body, name.text or str(name))
    if name.text is None and message.type == BYTES_MESSAGE:
        letter.content_type = _OCTETS  # it says so by its kind
    letter.correlation_id = message.correlation_id or ""
    letter.reply_to = "" if message.reply_to is None else message.reply_to.name
    letter.kind = message.jms_type or ""
    letter.group_key = message.group_id or ""
    letter.priority = message.priority
    letter.timestamp_ms = message.timestamp
    letter.expires_ms = message.expiration
    fields = {header: field for field, header in _FIELDS.items()}
    for key, tag, value in d.read_map(message.properties):
        if tag in _KINDS:
            assert isinstance(value, (bool, int, float))
            letter.properties.append(Property(key, _KINDS[tag], value))
        elif key in fields:
            setattr(letter, fields[key], value)
        else:
            letter.headers.append((key, str(value)))
    if message.persistent:
        letter.headers.append(_PERSISTENT)
    letter.properties = [each for each in letter.properties if each.name != "AMQ_SCHEDULED_DELAY"]
    return letter


def _unique(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A message has one property of a name."""
    return list({pair[0]: pair for pair in reversed(headers)}.values())


class Openwire(Adapter):
    """OpenWire, version 12."""

    name = "openwire"
    tables = one_table(protocol="openwire")
    gives = EVERYTHING - {"id", "source", "expires_ms"}
    shows = EVERYTHING - {"source", "lifetime", "delay"}

    def said(self, case: Case, letter: Letter, unix_ms: int) -> None:
        """The kind of a message is a content type, and it is persistent."""
        letter.content_type = letter.content_type or _OCTETS
        letter.headers = _unique([*letter.headers, _PERSISTENT])

    def shown(self, letter: Letter, unix_ms: int) -> None:
        """A message is persistent unless it says something else."""
        letter.headers = _unique([*letter.headers, _PERSISTENT])

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; each has a response."""
        peer = _Peer(stage)
        producer = ProducerId(peer.name, 1, 1)
        sequences = count(1)
        for chunk in [cases] if in_a_row else [[case] for case in cases]:
            messages = [
                self._message(case, MessageId(producer, next(sequences)), stage.unix_ms)
                for case in chunk
            ]
            peer.ask(*messages)
        peer.hang_up()

    def _message(self, case: Case, name: MessageId, unix_ms: int) -> Message:
        letter = case.letter
        message = Message(BYTES_MESSAGE, name, _DESTINATION)
        message.content = letter.body or None
        message.persistent = True
        message.correlation_id = letter.correlation_id or None
        message.reply_to = Destination(QUEUE, letter.reply_to) if letter.reply_to else None
        message.jms_type = letter.kind or None
        message.group_id = letter.group_key or None
        message.priority = letter.priority
        message.timestamp = letter.timestamp_ms
        message.expiration = unix_ms + case.lifetime_ms if case.lifetime_ms else 0
        entries: list[d.Entry] = [
            (header, d.STRING, getattr(letter, field))
            for field, header in _FIELDS.items()
            if getattr(letter, field)
        ]
        entries += [(key, d.STRING, text) for key, text in _unique(letter.headers)]
        entries += [(each.name, _TAGS[each.kind], each.value) for each in letter.properties]
        if case.delay_ms:
            entries.append(("AMQ_SCHEDULED_DELAY", d.LONG, case.delay_ms))
        message.properties = d.encode_map(entries) if entries else None
        return message

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _OpenwireConsumer(stage)
