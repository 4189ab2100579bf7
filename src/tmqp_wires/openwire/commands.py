"""Commands of OpenWire about connections, sessions, consumers, producers and transactions.

A command begins with its number, which its response repeats, and with whether it wants a response.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from tmqp_wires.openwire import type_numbers as numbers
from tmqp_wires.openwire.data import encode_bytes, encode_string
from tmqp_wires.openwire.ids import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    SessionId,
    TransactionId,
    encode_object,
)

__all__ = [
    "ADD",
    "BEGIN",
    "COMMIT",
    "COMMIT_TWO_PHASE",
    "END",
    "FORGET",
    "LAST_UNKNOWN",
    "LAST_UNSET",
    "PREPARE",
    "RECOVER",
    "REMOVE",
    "ROLLBACK",
    "BrokerInfo",
    "Command",
    "ConnectionControl",
    "ConnectionError_",
    "ConnectionInfo",
    "ConsumerControl",
    "ConsumerInfo",
    "DestinationInfo",
    "ExceptionResponse",
    "KeepAliveInfo",
    "MessagePull",
    "ProducerAck",
    "ProducerInfo",
    "RemoveInfo",
    "RemoveSubscriptionInfo",
    "Response",
    "SessionInfo",
    "ShutdownInfo",
    "Throwable",
    "TransactionInfo",
]

#: What happens to a destination.
ADD: Final = 0
REMOVE: Final = 1
#: What happens to a transaction.
BEGIN: Final = 0
PREPARE: Final = 1
COMMIT: Final = 2
COMMIT_TWO_PHASE: Final = 3
ROLLBACK: Final = 4
RECOVER: Final = 5
FORGET: Final = 6
END: Final = 7
#: ``RemoveInfo.last_delivered`` if it is not given, and if it is unknown.
LAST_UNSET: Final = -1
LAST_UNKNOWN: Final = -2

_I: Final = Struct(">i")
_Q: Final = Struct(">q")
_HEAD: Final = Struct(">BiB")


def _flag(value: bool) -> bytes:
    return b"\1" if value else b"\0"


class Command:
    """A command: ``command_id`` is its number, ``response_required`` whether it wants a response.
    ``type`` is the number of its kind."""

    __slots__ = ("command_id", "response_required", "type")

    def __init__(self, type: int) -> None:
        self.type = type
        self.command_id = 0
        self.response_required = False

    def body(self, version: int) -> bytes:
        """The encoded fields after the command's number.

        :raises WireError: when they cannot be written.
        """
        return b""

    def whole(self, version: int) -> bytes:
        """The command, without its size.

        :raises WireError: when it cannot be written.
        """
        head = _HEAD.pack(self.type, self.command_id, self.response_required)
        return head + self.body(version)


@final
class Throwable:
    """An exception of Java, by its class and its message."""

    __slots__ = ("class_name", "message")

    def __init__(self, class_name: str, message: str | None) -> None:
        self.class_name = class_name
        self.message = message

    def encoded(self) -> bytes:
        """The encoded exception, without a stack trace, which the negotiation must have
        excluded."""
        return b"\1" + encode_string(self.class_name) + encode_string(self.message)


@final
class BrokerInfo(Command):
    """The broker introduces itself."""

    __slots__ = ("broker_id", "name", "url")

    def __init__(self, broker_id: str, name: str, url: str | None = None) -> None:
        super().__init__(numbers.BROKER_INFO)
        self.broker_id = broker_id
        self.name = name
        self.url = url

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                encode_object(BrokerId(self.broker_id), version),
                encode_string(self.url),
                b"\0",  # brokers beside it
                encode_string(self.name),
                bytes(5),
                _Q.pack(0),
                bytes(2),
            )
        )


@final
class ConnectionInfo(Command):
    """A client introduces itself.  ``failover_reconnect`` says that it was connected before."""

    __slots__ = (
        "client_id",
        "client_ip",
        "connection",
        "failover_reconnect",
        "fault_tolerant",
        "manageable",
        "password",
        "user",
    )

    def __init__(
        self,
        connection: str,
        client_id: str | None,
        user: str | None = None,
        password: str | None = None,
    ) -> None:
        super().__init__(numbers.CONNECTION_INFO)
        self.connection = connection
        self.client_id = client_id
        self.user = user
        self.password = password
        self.manageable = False
        self.fault_tolerant = False
        self.failover_reconnect = False
        self.client_ip: str | None = None

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                encode_object(ConnectionId(self.connection), version),
                encode_string(self.client_id),
                encode_string(self.password),
                encode_string(self.user),
                b"\0\0",
                _flag(self.manageable),
                b"\1",
                _flag(self.fault_tolerant),
                _flag(self.failover_reconnect),
                encode_string(self.client_ip),
            )
        )


@final
class SessionInfo(Command):
    """A session begins."""

    __slots__ = ("session",)

    def __init__(self, session: SessionId) -> None:
        super().__init__(numbers.SESSION_INFO)
        self.session = session

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_object(self.session, version)


@final
class ConsumerInfo(Command):
    """A consumer begins.  ``prefetch`` is how many messages it may have that the program has not
    received, 0 if it pulls messages; ``subscription`` names a durable subscription."""

    __slots__ = (
        "browser",
        "client_id",
        "consumer",
        "destination",
        "dispatch_async",
        "exclusive",
        "no_local",
        "prefetch",
        "priority",
        "retroactive",
        "selector",
        "subscription",
    )

    def __init__(
        self, consumer: ConsumerId, destination: Destination | None, prefetch: int = 1000
    ) -> None:
        super().__init__(numbers.CONSUMER_INFO)
        self.consumer = consumer
        self.destination = destination
        self.prefetch = prefetch
        self.browser = False
        self.dispatch_async = True
        self.selector: str | None = None
        self.client_id: str | None = None
        self.subscription: str | None = None
        self.no_local = False
        self.exclusive = False
        self.retroactive = False
        self.priority = 0

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                encode_object(self.consumer, version),
                _flag(self.browser),
                encode_object(self.destination, version),
                _I.pack(self.prefetch),
                _I.pack(0),
                _flag(self.dispatch_async),
                encode_string(self.selector),
                encode_string(self.client_id) if version >= 10 else b"",
                encode_string(self.subscription),
                _flag(self.no_local),
                _flag(self.exclusive),
                _flag(self.retroactive),
                bytes((self.priority & 0xFF,)),
                bytes(6),
            )
        )


@final
class ProducerInfo(Command):
    """A producer begins; with a ``window`` it waits for a ProducerAck for what it has sent."""

    __slots__ = ("destination", "dispatch_async", "producer", "window")

    def __init__(
        self, producer: ProducerId, destination: Destination | None, window: int = 0
    ) -> None:
        super().__init__(numbers.PRODUCER_INFO)
        self.producer = producer
        self.destination = destination
        self.window = window
        self.dispatch_async = False

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                encode_object(self.producer, version),
                encode_object(self.destination, version),
                b"\0",
                _flag(self.dispatch_async),
                _I.pack(self.window),
            )
        )


@final
class TransactionInfo(Command):
    """A transaction changes: ``operation`` is ``BEGIN``, ``COMMIT``, ``ROLLBACK`` or another of
    these constants."""

    __slots__ = ("connection", "operation", "transaction")

    def __init__(self, connection: str, transaction: TransactionId | None, operation: int) -> None:
        super().__init__(numbers.TRANSACTION_INFO)
        self.connection = connection
        self.transaction = transaction
        self.operation = operation

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        connection = encode_object(ConnectionId(self.connection), version)
        transaction = encode_object(self.transaction, version)
        return connection + transaction + bytes((self.operation,))


@final
class DestinationInfo(Command):
    """A destination is created or removed."""

    __slots__ = ("connection", "destination", "operation", "timeout")

    def __init__(
        self, connection: str, destination: Destination | None, operation: int, timeout: int = 0
    ) -> None:
        super().__init__(numbers.DESTINATION_INFO)
        self.connection = connection
        self.destination = destination
        self.operation = operation
        self.timeout = timeout

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        connection = encode_object(ConnectionId(self.connection), version)
        destination = encode_object(self.destination, version)
        end = bytes((self.operation,)) + _Q.pack(self.timeout) + b"\0"
        return connection + destination + end


@final
class RemoveSubscriptionInfo(Command):
    """A durable subscription is removed."""

    __slots__ = ("client_id", "connection", "name")

    def __init__(self, connection: str, name: str | None, client_id: str | None) -> None:
        super().__init__(numbers.REMOVE_SUBSCRIPTION_INFO)
        self.connection = connection
        self.name = name
        self.client_id = client_id

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        connection = encode_object(ConnectionId(self.connection), version)
        return connection + encode_string(self.name) + encode_string(self.client_id)


@final
class KeepAliveInfo(Command):
    """This side is alive."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(numbers.KEEP_ALIVE_INFO)


@final
class ShutdownInfo(Command):
    """The connection ends."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(numbers.SHUTDOWN_INFO)


@final
class RemoveInfo(Command):
    """A connection, session, consumer or producer ends; ``last_delivered`` is the number of the
    last dispatch that the program received."""

    __slots__ = ("last_delivered", "owner")

    def __init__(
        self,
        owner: ConnectionId | SessionId | ConsumerId | ProducerId,
        last_delivered: int = LAST_UNKNOWN,
    ) -> None:
        super().__init__(numbers.REMOVE_INFO)
        self.owner = owner
        self.last_delivered = last_delivered

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_object(self.owner, version) + _Q.pack(self.last_delivered)


@final
class ConnectionError_(Command):  # noqa: N801 - ConnectionError is Python's
    """The server reports an error of a connection."""

    __slots__ = ("connection", "exception")

    def __init__(self, exception: Throwable, connection: str) -> None:
        super().__init__(numbers.CONNECTION_ERROR)
        self.exception = exception
        self.connection = connection

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        connection = encode_object(ConnectionId(self.connection), version)
        return self.exception.encoded() + connection


@final
class ConsumerControl(Command):
    """The settings of a consumer change."""

    __slots__ = ("close", "consumer", "destination", "flush", "prefetch", "start", "stop")

    def __init__(
        self, consumer: ConsumerId | None, destination: Destination | None, prefetch: int
    ) -> None:
        super().__init__(numbers.CONSUMER_CONTROL)
        self.consumer = consumer
        self.destination = destination
        self.prefetch = prefetch
        self.close = False
        self.flush = False
        self.start = False
        self.stop = False

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                encode_object(self.destination, version),
                _flag(self.close),
                encode_object(self.consumer, version),
                _I.pack(self.prefetch),
                _flag(self.flush),
                _flag(self.start),
                _flag(self.stop),
            )
        )


@final
class ConnectionControl(Command):
    """The settings of a connection change, with other addresses for it."""

    __slots__ = (
        "close",
        "connected_brokers",
        "exit",
        "fault_tolerant",
        "rebalance",
        "reconnect_to",
        "resume",
        "suspend",
        "token",
    )

    def __init__(self) -> None:
        super().__init__(numbers.CONNECTION_CONTROL)
        self.close = False
        self.exit = False
        self.fault_tolerant = False
        self.resume = False
        self.suspend = False
        self.connected_brokers: str | None = None
        self.reconnect_to: str | None = None
        self.rebalance = False
        self.token: bytes | None = None

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                _flag(self.close),
                _flag(self.exit),
                _flag(self.fault_tolerant),
                _flag(self.resume),
                _flag(self.suspend),
                encode_string(self.connected_brokers),
                encode_string(self.reconnect_to),
                _flag(self.rebalance),
                encode_bytes(self.token),
            )
        )


@final
class ProducerAck(Command):
    """The server has accepted so many bytes of a producer."""

    __slots__ = ("producer", "size")

    def __init__(self, producer: ProducerId | None, size: int) -> None:
        super().__init__(numbers.PRODUCER_ACK)
        self.producer = producer
        self.size = size

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return encode_object(self.producer, version) + _I.pack(self.size)


@final
class MessagePull(Command):
    """A consumer wants one message within ``timeout`` milliseconds; 0 for no limit, -1 for not
    waiting."""

    __slots__ = ("consumer", "correlation_id", "destination", "message_id", "timeout")

    def __init__(
        self, consumer: ConsumerId | None, destination: Destination | None, timeout: int
    ) -> None:
        super().__init__(numbers.MESSAGE_PULL)
        self.consumer = consumer
        self.destination = destination
        self.timeout = timeout
        self.correlation_id: str | None = None
        self.message_id: MessageId | None = None

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                encode_object(self.consumer, version),
                encode_object(self.destination, version),
                _Q.pack(self.timeout),
                encode_string(self.correlation_id),
                encode_object(self.message_id, version),
            )
        )


class Response(Command):
    """A command was carried out; ``correlation_id`` is its number."""

    __slots__ = ("correlation_id",)

    def __init__(self, correlation_id: int) -> None:
        super().__init__(numbers.RESPONSE)
        self.correlation_id = correlation_id

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return _I.pack(self.correlation_id)


@final
class ExceptionResponse(Response):
    """A command was not carried out."""

    __slots__ = ("exception",)

    def __init__(self, correlation_id: int, exception: Throwable | None) -> None:
        super().__init__(correlation_id)
        self.type = numbers.EXCEPTION_RESPONSE
        self.exception = exception

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        exception = self.exception
        return super().body(version) + (b"\0" if exception is None else exception.encoded())
