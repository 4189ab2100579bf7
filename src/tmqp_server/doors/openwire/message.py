"""Messages of OpenWire inside the server: their wire form, letter and stored form.

A message keeps its fields as received, ready to be dispatched.  For clients of other protocols, its
kind determines its body: a text in UTF-8, bytes unchanged, a map or a stream as JSON, an object as
serialized by Java.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from struct import Struct
from typing import Final, final

from tmqp_server.doors.bodies import bytes_around
from tmqp_server.doors.letter import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    TOP_PRIORITY,
    Letter,
    Property,
)
from tmqp_server.doors.letters import GroupedWire
from tmqp_server.doors.names import exact_channel, foreign_name
from tmqp_server.doors.openwire.places import channel_name, destination_of
from tmqp_server.doors.port import OwnBodies
from tmqp_server.engine.model.message import Message as EngineMessage
from tmqp_wires.common import kept
from tmqp_wires.openwire import data as primitives
from tmqp_wires.openwire.data import Entry, WireError, decode_text, encode_map, encode_text
from tmqp_wires.openwire.ids import Destination, MessageId, ProducerId
from tmqp_wires.openwire.messages import (
    BYTES_MESSAGE,
    KEPT_VERSION,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    KeptMessage,
    Message,
)
from tmqp_wires.openwire.reading import read_kept_message

__all__ = [
    "DELAY",
    "DOOR",
    "NUMBER",
    "QUEUE",
    "OpenwireBodies",
    "OpenwireMessage",
    "fields_of",
    "is_keyless",
    "letter_of",
    "message_of_letter",
]

#: The door's name and number, kept with its messages.
DOOR: Final = "openwire"
NUMBER: Final = 3
#: The property with the delay of a message in milliseconds.
DELAY: Final = "AMQ_SCHEDULED_DELAY"
#: The queue of every channel.
QUEUE: Final = 0

_TEXT: Final = "text/plain"
_BYTES: Final = "application/octet-stream"
_JSON: Final = "application/json"
_OBJECT: Final = "application/x-java-serialized-object"
#: Messages whose bodies only Java programs can read as they are.
_WITH_VIEWS: Final = (MAP_MESSAGE, OBJECT_MESSAGE, STREAM_MESSAGE)
#: The property that is the content type of other protocols, as a text.
_CONTENT_TYPE: Final = "content-type"
_KIND: Final = "amq-msg-type"
_PERSISTENT: Final = "persistent"
_USER: Final = "JMSXUserID"
_GROUP_SEQUENCE: Final = "JMSXGroupSeq"
_I: Final = Struct(">i")
_MOST_INT: Final = (1 << 31) - 1

#: Kinds of properties, by the tags of the wire, and back.
_KINDS: Final[dict[int, str]] = {
    primitives.BOOLEAN: BOOLEAN,
    primitives.BYTE: BYTE,
    primitives.SHORT: SHORT,
    primitives.INTEGER: INT,
    primitives.LONG: LONG,
    primitives.FLOAT: FLOAT,
    primitives.DOUBLE: DOUBLE,
}
_TAGS: Final[dict[str, int]] = {kind: tag for tag, kind in _KINDS.items()}


@final
class OpenwireMessage(GroupedWire):
    """The wire form of a message.

    ``reply_to`` is its JMSReplyTo if that is a temporary destination, else None; ``group`` is its
    JMSXGroupID, ``priority`` its JMSPriority.

    :param around: the result of ``bytes_around`` for the message.
    """

    __slots__ = ("channel", "kept", "message_id", "reply_to", "size")

    def __init__(
        self,
        message_id: str,
        channel: str,
        kept_message: KeptMessage,
        reply_to: Destination | None,
        group: str,
        priority: int,
        around: int,
    ) -> None:
        super().__init__(group, min(priority, TOP_PRIORITY))
        self.message_id = message_id
        self.channel = channel
        self.kept = kept_message
        self.reply_to = reply_to if reply_to is not None and reply_to.is_temporary else None
        #: The size of its stored form in bytes.
        self.size = around + len(message_id.encode()) + 1 + len(kept_message.raw)


def is_keyless(wire: object) -> bool:
    """Whether a message has no group key."""
    return isinstance(wire, OpenwireMessage) and not wire.group


def fields_of(message: KeptMessage) -> Message:
    """Decode the fields of a message."""
    return read_kept_message(message.type, message.raw, KEPT_VERSION)


def letter_of(wire: object, most_bytes: int = 1 << 24) -> Letter:
    """The letter of a message.

    :param most_bytes: a compressed body that would become larger stays compressed.
    """
    assert isinstance(wire, OpenwireMessage), "this door keeps its own messages"
    message = fields_of(wire.kept)
    content_type, body = _body_of(message, most_bytes)
    letter = Letter(body)
    letter.content_type = content_type
    letter.is_view = message.type in _WITH_VIEWS
    letter.correlation_id = message.correlation_id or ""
    letter.reply_to = "" if message.reply_to is None else channel_name(message.reply_to)
    letter.kind = message.jms_type or ""
    letter.priority = min(message.priority, TOP_PRIORITY)
    letter.timestamp_ms = max(0, message.timestamp)
    letter.expires_ms = max(0, message.expiration)
    letter.group_key = message.group_id or ""
    if message.persistent:
        letter.headers.append((_PERSISTENT, "true"))
    if message.user_id:
        letter.headers.append((_USER, message.user_id))
    if message.group_sequence:
        letter.properties.append(Property(_GROUP_SEQUENCE, INT, message.group_sequence))
    for name, tag, value in _properties_of(message):
        kind = _KINDS.get(tag)
        if name == DELAY:
            continue  # it is over when somebody reads the message
        if kind is not None and isinstance(value, (bool, int, float)):
            letter.properties.append(Property(name, kind, value))
        elif not isinstance(value, str):
            continue
        elif name == _CONTENT_TYPE:
            letter.content_type = value
        elif name == "traceparent":
            letter.traceparent = value
        elif name == "tracestate":
            letter.tracestate = value
        else:
            letter.headers.append((name, value))
    return letter


def _properties_of(message: Message) -> list[Entry]:
    try:
        return primitives.read_map(message.properties)
    except WireError:
        return []  # clients read them, or fail to, as they would at any broker


def _body_of(message: Message, most_bytes: int) -> tuple[str, bytes]:
    content = message.content or b""
    if message.compressed and content:
        inflated = _inflated(message.type, content, most_bytes)
        if inflated is None:
            return _BYTES, content
        content = inflated
    try:
        if message.type == TEXT_MESSAGE:
            return _TEXT, decode_text(content[4:]).encode("utf-8", "replace")
        if message.type == MAP_MESSAGE:
            return _JSON, _json(_plain_map(primitives.read_map(content or None)))
        if message.type == STREAM_MESSAGE:
            values = primitives.read_stream(content)
            return _JSON, _json([_plain(tag, value) for tag, value in values])
    except WireError:
        return _BYTES, content
    if message.type == OBJECT_MESSAGE:
        return _OBJECT, content
    return (_BYTES if message.type == BYTES_MESSAGE else ""), content


def _inflated(kind: int, content: bytes, most_bytes: int) -> bytes | None:
    """Decompress a body; None if this fails, or the result would be too large."""
    if kind == BYTES_MESSAGE:
        content = content[4:]
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(content, most_bytes)
    except zlib.error:
        return None
    return data if unpacker.eof else None


def _plain_map(entries: list[Entry]) -> dict[str, object]:
    return {name: _plain(tag, value) for name, tag, value in entries}


def _plain(tag: int, value: object) -> object:
    """A value for JSON: bytes as base64, a character as a text."""
    if tag == primitives.BYTES and isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if tag == primitives.CHARACTER and isinstance(value, int):
        return chr(0xFFFD if 0xD800 <= value < 0xE000 else value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        if tag == primitives.MAP:
            return _plain_map(value)
        return [_plain(*each) for each in value]
    return value


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# --- Other protocols' messages --------------------------------------------------------------------


def message_of_letter(letter: Letter, sequence: int) -> Message:
    """The OpenWire message for a letter.

    :param sequence: the message's sequence in its queue.
    """
    is_text = _is_text(letter)
    producer = ProducerId(f"tmqp:{letter.channel}", 1, 1)
    message_id = MessageId(producer, sequence, 0, letter.message_id or f"{producer}:{sequence}")
    message = Message(
        TEXT_MESSAGE if is_text else BYTES_MESSAGE, message_id, destination_of(letter.channel)
    )
    body = letter.body
    if is_text:
        content = encode_text(body.decode("utf-8", "replace"))
        message.content = _I.pack(len(content)) + content
    elif body:
        message.content = body
    message.correlation_id = letter.correlation_id or None
    message.reply_to = destination_of(letter.reply_to) if letter.reply_to else None
    message.jms_type = letter.kind or None
    message.priority = letter.priority
    message.timestamp = letter.timestamp_ms
    message.expiration = letter.expires_ms
    message.group_id = letter.group_key or None
    message.persistent = True
    entries: dict[str, Entry] = {}
    for name, text in (
        (_CONTENT_TYPE, letter.content_type),
        ("traceparent", letter.traceparent),
        ("tracestate", letter.tracestate),
    ):
        if text:
            entries[name] = (name, primitives.STRING, text)
    for each in letter.properties:
        if each.name == _GROUP_SEQUENCE:
            message.group_sequence = int(each.value) & _MOST_INT
        elif each.name and each.kind in _TAGS:
            entries[each.name] = (each.name, _TAGS[each.kind], each.value)
    for name, text in letter.headers:
        if name == _PERSISTENT:
            message.persistent = text == "true"
        elif name == _USER:
            message.user_id = text
        elif name and name != _KIND and name not in entries:
            entries[name] = (name, primitives.STRING, text)
    message.properties = encode_map(_writable(list(entries.values()))) if entries else None
    return message


def _writable(entries: list[Entry]) -> list[Entry]:
    """The properties that fit on the wire."""
    found: list[Entry] = []
    for entry in entries:
        try:
            encode_map([entry])
        except WireError:
            continue
        found.append(entry)
    return found


def _is_text(letter: Letter) -> bool:
    """Whether a program gets a TextMessage: according to the message's content type, or its
    body."""
    for name, text in letter.headers:
        if name == _KIND:
            return text != "bytes"
    said = letter.content_type.partition(";")[0].strip().lower()
    if said:
        return said.startswith("text/") or said.endswith(("json", "xml", "javascript", "yaml"))
    try:
        letter.body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class OpenwireBodies(OwnBodies):
    """The stored form of the door's messages: the common one, with the kind and the fields as the
    body."""

    name = DOOR
    number = NUMBER

    def letter(self, wire: object) -> Letter:
        """The letter of a message."""
        return letter_of(wire)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """Replace the text properties of a message; typed ones stay."""
        assert isinstance(wire, OpenwireMessage), "this door keeps its own messages"
        message = fields_of(wire.kept)
        entries = [each for each in _properties_of(message) if each[1] in _KINDS]
        taken = {each[0] for each in entries} | {_PERSISTENT, _USER, ""}
        for name, text in headers:
            if name not in taken:
                entries.append((name, primitives.STRING, text))
                taken.add(name)
        message.properties = encode_map(_writable(entries))
        new = OpenwireMessage(
            wire.message_id,
            wire.channel,
            message.keep(),
            message.reply_to,
            wire.group,
            wire.priority,
            0,
        )
        more = len(new.kept.raw) - len(wire.kept.raw)
        new.size = wire.size + more
        return new, more

    def stored(self, message: EngineMessage) -> tuple[bytes, int, int]:
        """The stored form of a message.  Its payload is the body; that of a text begins after the
        length."""
        wire = message.wire
        assert isinstance(wire, OpenwireMessage), "this door keeps its own messages"
        head = kept.stored_head(
            message.message_id.encode(), message.source.encode(), foreign_name(wire.channel)
        )
        own = wire.kept
        at, size = own.content_at, own.content_size
        if own.type == TEXT_MESSAGE and size >= _I.size:
            at, size = at + _I.size, size - _I.size
        return head + bytes((own.type,)) + own.raw, len(head) + 1 + at, size

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A message from its stored form; see ``Door.restored``.

        :raises ValueError: when it cannot be read.
        """
        found = kept.read(body)
        if not found.body:
            raise ValueError("a kept message of OpenWire has no fields")
        message = read_kept_message(found.body[0], found.body[1:], KEPT_VERSION)
        if message.kept is None:
            raise ValueError("a kept message of OpenWire has no id")
        name = found.message_id.decode("utf-8", "replace")
        source = found.source.decode("utf-8", "replace")
        channel = exact_channel(found.place)
        around = bytes_around(source, channel)
        group = message.group_id or ""
        wire = OpenwireMessage(
            name, channel, message.kept, message.reply_to, group, message.priority, around
        )
        return wire, name, source, channel, len(body)
