"""Ids, transactions and destinations of OpenWire."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final, TypeAlias, final

from tmqp_wires.openwire.data import Reader, WireError, encode_bytes, encode_string

__all__ = [
    "QUEUE",
    "TEMP_QUEUE",
    "TEMP_TOPIC",
    "TOPIC",
    "BrokerId",
    "ConnectionId",
    "ConsumerId",
    "Destination",
    "LocalTransactionId",
    "MessageId",
    "ProducerId",
    "SessionId",
    "TransactionId",
    "XaTransactionId",
    "encode_object",
    "read_connection",
    "read_connection_if_any",
    "read_consumer",
    "read_destination",
    "read_message_id",
    "read_owner",
    "read_producer",
    "read_transaction",
]

_Q: Final = Struct(">q")
_QQ: Final = Struct(">qq")
_I: Final = Struct(">i")

#: What destinations are.
QUEUE: Final = 100
TOPIC: Final = 101
TEMP_QUEUE: Final = 102
TEMP_TOPIC: Final = 103


@final
class BrokerId:
    """The id of a broker."""

    __slots__ = ("value",)
    type: ClassVar[int] = 124

    def __init__(self, value: str) -> None:
        self.value = value

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_string(self.value)


@final
class ConnectionId:
    """The id of a connection, unique across brokers."""

    __slots__ = ("value",)
    type: ClassVar[int] = 120

    def __init__(self, value: str) -> None:
        self.value = value

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_string(self.value)


@final
class SessionId:
    """The id of a session of a connection."""

    __slots__ = ("connection", "value")
    type: ClassVar[int] = 121

    def __init__(self, connection: str, value: int) -> None:
        self.connection = connection
        self.value = value

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_string(self.connection) + _Q.pack(self.value)


@final
class ConsumerId:
    """The id of a consumer of a session."""

    __slots__ = ("connection", "session", "value")
    type: ClassVar[int] = 122

    def __init__(self, connection: str, session: int, value: int) -> None:
        self.connection = connection
        self.session = session
        self.value = value

    @property
    def key(self) -> tuple[int, int]:
        """Its key, which is unique in its connection."""
        return self.session, self.value

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_string(self.connection) + _QQ.pack(self.session, self.value)


@final
class ProducerId:
    """The id of a producer of a session."""

    __slots__ = ("connection", "session", "value")
    type: ClassVar[int] = 123

    def __init__(self, connection: str, session: int, value: int) -> None:
        self.connection = connection
        self.session = session
        self.value = value

    @property
    def key(self) -> tuple[int, int]:
        """Its key, which is unique in its connection."""
        return self.session, self.value

    def __str__(self) -> str:
        return f"{self.connection}:{self.session}:{self.value}"

    def body(self, version: int) -> bytes:
        """The encoded fields; here the producer comes before its session."""
        return encode_string(self.connection) + _QQ.pack(self.value, self.session)


@final
class LocalTransactionId:
    """The id of a transaction of a connection."""

    __slots__ = ("connection", "value")
    type: ClassVar[int] = 111

    def __init__(self, connection: str, value: int) -> None:
        self.connection = connection
        self.value = value

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return _Q.pack(self.value) + encode_object(ConnectionId(self.connection), version)


@final
class XaTransactionId:
    """The id of a transaction of several resources (XA)."""

    __slots__ = ("branch", "format", "transaction")
    type: ClassVar[int] = 112

    def __init__(self, format: int, transaction: bytes, branch: bytes) -> None:
        self.format = format
        self.transaction = transaction
        self.branch = branch

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return _I.pack(self.format) + encode_bytes(self.transaction) + encode_bytes(self.branch)


TransactionId: TypeAlias = LocalTransactionId | XaTransactionId


@final
class MessageId:
    """The id of a message: its producer and the producer's number for it.  ``text`` is the id of a
    message that did not arrive through OpenWire, ``broker_sequence`` the broker's number for it."""

    __slots__ = ("broker_sequence", "producer", "sequence", "text")
    type: ClassVar[int] = 110

    def __init__(
        self, producer: ProducerId, sequence: int, broker_sequence: int = 0, text: str | None = None
    ) -> None:
        self.producer = producer
        self.sequence = sequence
        self.broker_sequence = broker_sequence
        self.text = text

    def __str__(self) -> str:
        """The id as JMS programs see it."""
        text = self.text
        if text is None:
            return f"{self.producer}:{self.sequence}"
        return text if text.startswith("ID:") else f"ID:{text}"

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        text = encode_string(self.text) if version >= 10 else b""
        numbers = _QQ.pack(self.sequence, self.broker_sequence)
        return text + encode_object(self.producer, version) + numbers


@final
class Destination:
    """A destination of messages, and its type: ``QUEUE``, ``TOPIC``, ``TEMP_QUEUE`` or
    ``TEMP_TOPIC``."""

    __slots__ = ("name", "type")

    def __init__(self, type: int, name: str) -> None:
        self.type = type
        self.name = name

    @property
    def is_temporary(self) -> bool:
        """Whether it is removed with its connection."""
        return self.type >= TEMP_QUEUE

    @property
    def is_topic(self) -> bool:
        """Whether it is a topic."""
        return self.type in (TOPIC, TEMP_TOPIC)

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_string(self.name)


_Id: TypeAlias = (
    BrokerId
    | ConnectionId
    | SessionId
    | ConsumerId
    | ProducerId
    | LocalTransactionId
    | XaTransactionId
    | MessageId
    | Destination
)


def encode_object(found: _Id | None, version: int) -> bytes:
    """Encode an id or a destination, which may be missing."""
    return b"\0" if found is None else b"\1" + bytes((found.type,)) + found.body(version)


# --- Reading --------------------------------------------------------------------------------------


def _type(reader: Reader) -> int:
    """Read the type of an object that may be missing; 0 for none."""
    return reader.byte() if reader.flag() else 0


def _surprise(found: int, what: str) -> WireError:
    return WireError(f"{what} is missing" if not found else f"type {found} is not a {what}")


def _connection_text(reader: Reader) -> str:
    return reader.string() or ""


def read_connection(reader: Reader) -> str:
    """Read the id of a connection."""
    found = _type(reader)
    if found != ConnectionId.type:
        raise _surprise(found, "connection")
    return _connection_text(reader)


def read_connection_if_any(reader: Reader) -> str:
    """Read the id of a connection; empty if it is missing."""
    if reader.data[reader.at : reader.at + 1] == b"\0":
        reader.flag()
        return ""
    return read_connection(reader)


def read_producer(reader: Reader) -> ProducerId | None:
    """Read the id of a producer; None if it is missing."""
    found = _type(reader)
    if not found:
        return None
    if found != ProducerId.type:
        raise _surprise(found, "producer")
    connection = _connection_text(reader)
    value = reader.long()
    return ProducerId(connection, reader.long(), value)


def _consumer_fields(reader: Reader) -> ConsumerId:
    connection = _connection_text(reader)
    session = reader.long()
    return ConsumerId(connection, session, reader.long())


def read_consumer(reader: Reader) -> ConsumerId | None:
    """Read the id of a consumer; None if it is missing."""
    found = _type(reader)
    if not found:
        return None
    if found != ConsumerId.type:
        raise _surprise(found, "consumer")
    return _consumer_fields(reader)


def read_owner(reader: Reader) -> ConnectionId | SessionId | ConsumerId | ProducerId:
    """Read the id in a RemoveInfo: of a connection, session, consumer or producer."""
    found = _type(reader)
    if found == ConsumerId.type:
        return _consumer_fields(reader)
    connection = _connection_text(reader) if 120 <= found <= 123 else ""
    if found == ConnectionId.type:
        return ConnectionId(connection)
    if found == SessionId.type:
        return SessionId(connection, reader.long())
    if found == ProducerId.type:
        value = reader.long()
        return ProducerId(connection, reader.long(), value)
    raise _surprise(found, "connection, session, consumer or producer")


def read_transaction(reader: Reader) -> TransactionId | None:
    """Read the id of a transaction; None if it is missing."""
    found = _type(reader)
    if not found:
        return None
    if found == LocalTransactionId.type:
        value = reader.long()
        return LocalTransactionId(read_connection(reader), value)
    if found == XaTransactionId.type:
        number = reader.integer()
        return XaTransactionId(number, reader.bytes_() or b"", reader.bytes_() or b"")
    raise _surprise(found, "transaction")


def read_message_id(reader: Reader) -> MessageId | None:
    """Read the id of a message; None if it is missing."""
    found = _type(reader)
    if not found:
        return None
    if found != MessageId.type:
        raise _surprise(found, "message id")
    text = reader.string() if reader.version >= 10 else None
    producer = read_producer(reader)
    if producer is None:
        raise _surprise(0, "producer")
    sequence = reader.long()
    return MessageId(producer, sequence, reader.long(), text)


def read_destination(reader: Reader) -> Destination | None:
    """Read a destination; None if it is missing."""
    found = _type(reader)
    if not found:
        return None
    if not QUEUE <= found <= TEMP_TOPIC:
        raise _surprise(found, "destination")
    return Destination(found, reader.string() or "")
