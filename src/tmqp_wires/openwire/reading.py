"""Decodes frames of OpenWire into commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from tmqp_wires.openwire import type_numbers as numbers
from tmqp_wires.openwire.commands import (
    BrokerInfo,
    Command,
    ConnectionControl,
    ConnectionError_,
    ConnectionInfo,
    ConsumerControl,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    KeepAliveInfo,
    MessagePull,
    ProducerAck,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
    SessionInfo,
    ShutdownInfo,
    Throwable,
    TransactionInfo,
)
from tmqp_wires.openwire.data import Reader, WireError
from tmqp_wires.openwire.ids import (
    BrokerId,
    SessionId,
    read_connection,
    read_connection_if_any,
    read_consumer,
    read_destination,
    read_message_id,
    read_owner,
    read_producer,
    read_transaction,
)
from tmqp_wires.openwire.messages import (
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    PLAIN_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    KeptMessage,
    Message,
    MessageAck,
    MessageDispatch,
)

__all__ = ["read_command", "read_kept_message"]

_MESSAGES: Final = frozenset(
    (
        PLAIN_MESSAGE,
        BYTES_MESSAGE,
        MAP_MESSAGE,
        OBJECT_MESSAGE,
        STREAM_MESSAGE,
        TEXT_MESSAGE,
    )
)
_FIRST_WITH_TEXT: Final = 10


def read_command(data: bytes, version: int) -> Command:
    """Read the command in a frame.

    :param data: the frame without its size.
    :raises WireError: when it is invalid or unknown.
    """
    reader = Reader(data, version)
    command = _command(reader)
    if reader.left():
        raise WireError(f"{reader.left()} extra bytes follow a command of type {command.type}")
    return command


def _command(reader: Reader) -> Command:
    found = reader.byte()
    command_id = reader.integer()
    wants = reader.flag()
    command: Command
    if found in _MESSAGES:
        command = _message(reader, found)
    else:
        read = _READERS.get(found)
        if read is None:
            raise WireError(f"there is no command of type {found}")
        command = read(reader)
    command.command_id = command_id
    command.response_required = wants
    return command


def read_kept_message(kind: int, raw: bytes, version: int) -> Message:
    """Read a message from its encoded fields.

    :raises WireError: when they cannot be read.
    """
    if kind not in _MESSAGES:
        raise WireError(f"type {kind} is not a message")
    reader = Reader(raw, version)
    message = _message(reader, kind)
    if reader.left():
        raise WireError(f"{reader.left()} extra bytes follow a message")
    return message


def _message(reader: Reader, kind: int) -> Message:
    start = reader.at
    producer = read_producer(reader)
    destination = read_destination(reader)
    transaction = read_transaction(reader)
    original = read_destination(reader)
    message = Message(kind, read_message_id(reader), destination)
    sequence_at = reader.at - 8 - start
    message.producer = producer
    message.transaction = transaction
    message.original_destination = original
    message.original_transaction = read_transaction(reader)
    message.group_id = reader.string()
    message.group_sequence = reader.integer()
    message.correlation_id = reader.string()
    message.persistent = reader.flag()
    message.expiration = reader.long()
    message.priority = reader.byte()
    message.reply_to = read_destination(reader)
    message.timestamp = reader.long()
    message.jms_type = reader.string()
    message.content = reader.bytes_()
    content_end = reader.at - start
    message.properties = reader.bytes_()
    if reader.flag():
        reader.enter()
        inner = _command(reader)
        reader.depth -= 1
        message.structure = inner if isinstance(inner, DestinationInfo) else None
    message.target_consumer = read_consumer(reader)
    message.compressed = reader.flag()
    counter_at = reader.at - start
    message.redelivery_counter = reader.integer()
    _skip_brokers(reader)
    message.arrival = reader.long()
    message.user_id = reader.string()
    reader.flag()
    message.droppable = reader.flag()
    _skip_brokers(reader)
    message.broker_in = reader.long()
    message.broker_out = reader.long()
    if reader.version >= _FIRST_WITH_TEXT:
        message.first_for_consumer = reader.flag()
    if message.message_id is None:
        return message
    if reader.version < _FIRST_WITH_TEXT:
        message.kept = message.keep()
        return message
    size = 0 if message.content is None else len(message.content)
    raw = reader.data[start : reader.at]
    message.kept = KeptMessage(kind, raw, sequence_at, counter_at, content_end - size, size)
    return message


def _skip_brokers(reader: Reader) -> None:
    """Skip a list of brokers."""
    if not reader.flag():
        return
    for _ in range(reader.short()):
        _broker(reader)


def _broker(reader: Reader) -> str:
    if not reader.flag():
        return ""
    found = reader.byte()
    if found != BrokerId.type:
        raise WireError(f"type {found} is not a broker")
    return reader.string() or ""


def _throwable(reader: Reader) -> Throwable | None:
    if not reader.flag():
        return None
    return Throwable(reader.string() or "", reader.string())


def _dispatch(reader: Reader) -> Command:
    consumer = read_consumer(reader)
    destination = read_destination(reader)
    message: Message | None = None
    if reader.flag():
        reader.enter()
        inner = _command(reader)
        reader.depth -= 1
        if not isinstance(inner, Message):
            raise WireError(f"type {inner.type} is not a message")
        message = inner
    return MessageDispatch(consumer, destination, message, reader.integer())


def _ack(reader: Reader) -> Command:
    destination = read_destination(reader)
    transaction = read_transaction(reader)
    consumer = read_consumer(reader)
    kind = reader.byte()
    first = read_message_id(reader)
    last = read_message_id(reader)
    count = reader.integer()
    cause = _throwable(reader)
    return MessageAck(kind, consumer, destination, first, last, count, transaction, cause)


def _broker_info(reader: Reader) -> Command:
    broker_id = _broker(reader)
    url = reader.string()
    if reader.flag():
        for _ in range(reader.short()):
            if reader.flag():
                reader.enter()
                _command(reader)
                reader.depth -= 1
    info = BrokerInfo(broker_id, reader.string() or "", url)
    reader.take(5)
    reader.long()
    reader.skip_string()
    reader.skip_string()
    return info


def _connection_info(reader: Reader) -> Command:
    connection = read_connection(reader)
    client_id = reader.string()
    password = reader.string()
    info = ConnectionInfo(connection, client_id, reader.string(), password)
    _skip_brokers(reader)
    reader.flag()
    info.manageable = reader.flag()
    reader.flag()
    info.fault_tolerant = reader.flag()
    info.failover_reconnect = reader.flag()
    info.client_ip = reader.string()
    return info


def _session_info(reader: Reader) -> Command:
    owner = read_owner(reader)
    if not isinstance(owner, SessionId):
        raise WireError(f"type {owner.type} is not a session")
    return SessionInfo(owner)


def _consumer_info(reader: Reader) -> Command:
    consumer = read_consumer(reader)
    if consumer is None:
        raise WireError("consumer is missing")
    browser = reader.flag()
    destination = read_destination(reader)
    info = ConsumerInfo(consumer, destination, reader.integer())
    info.browser = browser
    reader.integer()
    info.dispatch_async = reader.flag()
    info.selector = reader.string()
    if reader.version >= _FIRST_WITH_TEXT:
        info.client_id = reader.string()
    info.subscription = reader.string()
    info.no_local = reader.flag()
    info.exclusive = reader.flag()
    info.retroactive = reader.flag()
    priority = reader.byte()
    info.priority = priority - 256 if priority > 127 else priority
    _skip_brokers(reader)
    if reader.flag():
        raise WireError("filters beside the selector are not known here")
    reader.take(3)
    if reader.flag():
        for _ in range(reader.short()):
            read_consumer(reader)
    return info


def _producer_info(reader: Reader) -> Command:
    producer = read_producer(reader)
    if producer is None:
        raise WireError("producer is missing")
    destination = read_destination(reader)
    _skip_brokers(reader)
    is_async = reader.flag()
    info = ProducerInfo(producer, destination, reader.integer())
    info.dispatch_async = is_async
    return info


def _transaction_info(reader: Reader) -> Command:
    connection = read_connection(reader)
    transaction = read_transaction(reader)
    return TransactionInfo(connection, transaction, reader.byte())


def _destination_info(reader: Reader) -> Command:
    connection = read_connection_if_any(reader)
    destination = read_destination(reader)
    operation = reader.byte()
    info = DestinationInfo(connection, destination, operation, reader.long())
    _skip_brokers(reader)
    return info


def _remove_subscription(reader: Reader) -> Command:
    connection = read_connection(reader)
    name = reader.string()
    return RemoveSubscriptionInfo(connection, name, reader.string())


def _remove_info(reader: Reader) -> Command:
    owner = read_owner(reader)
    return RemoveInfo(owner, reader.long())


def _connection_error(reader: Reader) -> Command:
    exception = _throwable(reader) or Throwable("", None)
    return ConnectionError_(exception, read_connection_if_any(reader))


def _consumer_control(reader: Reader) -> Command:
    destination = read_destination(reader)
    close = reader.flag()
    consumer = read_consumer(reader)
    control = ConsumerControl(consumer, destination, reader.integer())
    control.close = close
    control.flush = reader.flag()
    control.start = reader.flag()
    control.stop = reader.flag()
    return control


def _connection_control(reader: Reader) -> Command:
    control = ConnectionControl()
    control.close = reader.flag()
    control.exit = reader.flag()
    control.fault_tolerant = reader.flag()
    control.resume = reader.flag()
    control.suspend = reader.flag()
    control.connected_brokers = reader.string()
    control.reconnect_to = reader.string()
    control.rebalance = reader.flag()
    control.token = reader.bytes_()
    return control


def _producer_ack(reader: Reader) -> Command:
    producer = read_producer(reader)
    return ProducerAck(producer, reader.integer())


def _message_pull(reader: Reader) -> Command:
    consumer = read_consumer(reader)
    destination = read_destination(reader)
    pull = MessagePull(consumer, destination, reader.long())
    pull.correlation_id = reader.string()
    pull.message_id = read_message_id(reader)
    return pull


def _exception_response(reader: Reader) -> Command:
    correlation_id = reader.integer()
    return ExceptionResponse(correlation_id, _throwable(reader))


def _response(reader: Reader) -> Command:
    return Response(reader.integer())


def _keep_alive(_reader: Reader) -> Command:
    return KeepAliveInfo()


def _shutdown(_reader: Reader) -> Command:
    return ShutdownInfo()


_Read: TypeAlias = Callable[[Reader], Command]
_READERS: Final[dict[int, _Read]] = {
    numbers.BROKER_INFO: _broker_info,
    numbers.CONNECTION_INFO: _connection_info,
    numbers.SESSION_INFO: _session_info,
    numbers.CONSUMER_INFO: _consumer_info,
    numbers.PRODUCER_INFO: _producer_info,
    numbers.TRANSACTION_INFO: _transaction_info,
    numbers.DESTINATION_INFO: _destination_info,
    numbers.REMOVE_SUBSCRIPTION_INFO: _remove_subscription,
    numbers.KEEP_ALIVE_INFO: _keep_alive,
    numbers.SHUTDOWN_INFO: _shutdown,
    numbers.REMOVE_INFO: _remove_info,
    numbers.CONNECTION_ERROR: _connection_error,
    numbers.CONSUMER_CONTROL: _consumer_control,
    numbers.CONNECTION_CONTROL: _connection_control,
    numbers.PRODUCER_ACK: _producer_ack,
    numbers.MESSAGE_PULL: _message_pull,
    numbers.MESSAGE_DISPATCH: _dispatch,
    numbers.MESSAGE_ACK: _ack,
    numbers.RESPONSE: _response,
    numbers.EXCEPTION_RESPONSE: _exception_response,
}
