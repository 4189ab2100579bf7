"""Messages of OpenWire, the dispatch of one to a consumer, and the answers to dispatches."""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from tmqp_wires.openwire import type_numbers as numbers
from tmqp_wires.openwire.commands import Command, DestinationInfo, Throwable
from tmqp_wires.openwire.data import encode_bytes, encode_string
from tmqp_wires.openwire.ids import (
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    TransactionId,
    encode_object,
)

__all__ = [
    "ACK_DELIVERED",
    "ACK_EXPIRED",
    "ACK_INDIVIDUAL",
    "ACK_POISON",
    "ACK_REDELIVERED",
    "ACK_STANDARD",
    "ACK_UNMATCHED",
    "BYTES_MESSAGE",
    "KEPT_VERSION",
    "MAP_MESSAGE",
    "OBJECT_MESSAGE",
    "PLAIN_MESSAGE",
    "STREAM_MESSAGE",
    "TEXT_MESSAGE",
    "KeptMessage",
    "Message",
    "MessageAck",
    "MessageDispatch",
    "dispatch_frame",
    "older_dispatch_frame",
]

#: Kinds of messages.
PLAIN_MESSAGE: Final = 23
BYTES_MESSAGE: Final = 24
MAP_MESSAGE: Final = 25
OBJECT_MESSAGE: Final = 26
STREAM_MESSAGE: Final = 27
TEXT_MESSAGE: Final = 28

#: Kinds of answers: the program has received it; it becomes a dead letter; it and all before it are
#: done; the program receives it again; it alone is done; it does not match; it has expired.
ACK_DELIVERED: Final = 0
ACK_POISON: Final = 1
ACK_STANDARD: Final = 2
ACK_REDELIVERED: Final = 3
ACK_INDIVIDUAL: Final = 4
ACK_UNMATCHED: Final = 5
ACK_EXPIRED: Final = 6

#: The version in which a message is kept; all versions from 10 on write messages so.
KEPT_VERSION: Final = 12

_I: Final = Struct(">i")
_Q: Final = Struct(">q")
_HEAD: Final = Struct(">iBiB")
_INNER: Final = Struct(">BBiB")
#: Bytes of a dispatch besides its head and its message, without those of its size.
_AROUND: Final = _HEAD.size - 4 + _INNER.size + 4


@final
class KeptMessage:
    """The encoded fields of a message in the stored form, that of ``KEPT_VERSION``.

    ``type`` is its kind.  ``sequence_at`` and ``counter_at`` are the offsets in ``raw`` of the
    broker's sequence and of the redelivery counter, which each dispatch replaces.  The body has
    ``content_size`` bytes from ``content_at`` on.
    """

    __slots__ = ("content_at", "content_size", "counter_at", "raw", "sequence_at", "type")

    def __init__(
        self,
        type: int,
        raw: bytes,
        sequence_at: int,
        counter_at: int,
        content_at: int,
        content_size: int,
    ) -> None:
        self.type = type
        self.raw = raw
        self.sequence_at = sequence_at
        self.counter_at = counter_at
        self.content_at = content_at
        self.content_size = content_size


@final
class Message(Command):
    """A message; ``type`` is its kind.

    ``content`` is the body in the form of its kind, ``properties`` a primitive map; both may be
    None.  Times are in milliseconds.  ``kept`` has the fields as received, for a message that was
    read.
    """

    __slots__ = (
        "arrival",
        "broker_in",
        "broker_out",
        "compressed",
        "content",
        "correlation_id",
        "destination",
        "droppable",
        "expiration",
        "first_for_consumer",
        "group_id",
        "group_sequence",
        "jms_type",
        "kept",
        "message_id",
        "original_destination",
        "original_transaction",
        "persistent",
        "priority",
        "producer",
        "properties",
        "redelivery_counter",
        "reply_to",
        "structure",
        "target_consumer",
        "timestamp",
        "transaction",
        "user_id",
    )

    def __init__(
        self, type: int, message_id: MessageId | None, destination: Destination | None
    ) -> None:
        super().__init__(type)
        self.message_id = message_id
        self.destination = destination
        self.producer: ProducerId | None = None if message_id is None else message_id.producer
        self.transaction: TransactionId | None = None
        self.original_destination: Destination | None = None
        self.original_transaction: TransactionId | None = None
        self.group_id: str | None = None
        self.group_sequence = 0
        self.correlation_id: str | None = None
        self.persistent = False
        self.expiration = 0
        self.priority = 4
        self.reply_to: Destination | None = None
        self.timestamp = 0
        self.jms_type: str | None = None
        self.content: bytes | None = None
        self.properties: bytes | None = None
        self.structure: DestinationInfo | None = None
        self.target_consumer: ConsumerId | None = None
        self.compressed = False
        self.redelivery_counter = 0
        self.arrival = 0
        self.user_id: str | None = None
        self.droppable = False
        self.broker_in = 0
        self.broker_out = 0
        self.first_for_consumer = False
        self.kept: KeptMessage | None = None

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(self._pieces(version))

    def _pieces(self, version: int) -> list[bytes]:
        structure = self.structure
        return [
            encode_object(self.producer, version),
            encode_object(self.destination, version),
            encode_object(self.transaction, version),
            encode_object(self.original_destination, version),
            encode_object(self.message_id, version),
            encode_object(self.original_transaction, version),
            encode_string(self.group_id),
            _I.pack(self.group_sequence),
            encode_string(self.correlation_id),
            b"\1" if self.persistent else b"\0",
            _Q.pack(self.expiration),
            bytes((self.priority & 0xFF,)),
            encode_object(self.reply_to, version),
            _Q.pack(self.timestamp),
            encode_string(self.jms_type),
            encode_bytes(self.content),
            encode_bytes(self.properties),
            b"\0" if structure is None else b"\1" + structure.whole(version),
            encode_object(self.target_consumer, version),
            b"\1" if self.compressed else b"\0",
            _I.pack(self.redelivery_counter),
            b"\0",  # the brokers that it came through
            _Q.pack(self.arrival),
            encode_string(self.user_id),
            b"\0",
            b"\1" if self.droppable else b"\0",
            b"\0",
            _Q.pack(self.broker_in),
            _Q.pack(self.broker_out),
            (b"\1" if self.first_for_consumer else b"\0") if version >= 10 else b"",
        ]

    def keep(self) -> KeptMessage:
        """Encode the current fields in the stored form."""
        pieces = self._pieces(KEPT_VERSION)
        sizes = [len(each) for each in pieces]
        size = 0 if self.content is None else len(self.content)
        return KeptMessage(
            self.type,
            b"".join(pieces),
            sum(sizes[:_TO_ID]) - _Q.size,
            sum(sizes[:_TO_COUNTER]),
            sum(sizes[:_TO_CONTENT]) - size,
            size,
        )


#: How many of the pieces of a message there are up to its id, its content, its counter.
_TO_ID: Final = 5
_TO_CONTENT: Final = 16
_TO_COUNTER: Final = 20


def dispatch_frame(
    head: bytes, message: KeptMessage, broker_sequence: int, redeliveries: int
) -> bytes:
    """Encode a MessageDispatch with a message in its stored form, for versions from 10 on.

    :param head: the result of ``MessageDispatch.head`` for the consumer and the destination.
    :param broker_sequence: the number of the dispatch, which the client uses in its answers.
    """
    raw = message.raw
    sequence_at = message.sequence_at
    counter_at = message.counter_at
    return b"".join(
        (
            # Its size, then both commands' numbers and whether they want a response: never.
            _HEAD.pack(len(head) + len(raw) + _AROUND, numbers.MESSAGE_DISPATCH, 0, 0),
            head,
            _INNER.pack(1, message.type, 0, 0),
            raw[:sequence_at],
            _Q.pack(broker_sequence),
            raw[sequence_at + 8 : counter_at],
            _I.pack(redeliveries),
            raw[counter_at + 4 :],
            _I.pack(redeliveries),
        )
    )


def older_dispatch_frame(head: bytes, message: Message, redeliveries: int, version: int) -> bytes:
    """Encode a MessageDispatch whose message is encoded again, for versions before 10.

    :param head: as for ``dispatch_frame``.
    """
    whole = message.whole(version)
    size = _HEAD.size - 4 + len(head) + 1 + len(whole) + _I.size
    start = _HEAD.pack(size, numbers.MESSAGE_DISPATCH, 0, 0)
    return b"".join((start, head, b"\1", whole, _I.pack(redeliveries)))


@final
class MessageDispatch(Command):
    """A message for a consumer; without message and destination, it says that there is none
    (left)."""

    __slots__ = ("consumer", "destination", "message", "redelivery_counter")

    def __init__(
        self,
        consumer: ConsumerId | None,
        destination: Destination | None,
        message: Message | None,
        redelivery_counter: int = 0,
    ) -> None:
        super().__init__(numbers.MESSAGE_DISPATCH)
        self.consumer = consumer
        self.destination = destination
        self.message = message
        self.redelivery_counter = redelivery_counter

    def head(self, version: int) -> bytes:
        """The encoded consumer and destination."""
        return encode_object(self.consumer, version) + encode_object(self.destination, version)

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        message = b"\0" if self.message is None else b"\1" + self.message.whole(version)
        return self.head(version) + message + _I.pack(self.redelivery_counter)


@final
class MessageAck(Command):
    """The answer to dispatches: ``kind`` is one of ``ACK_...``.  It is about ``count`` dispatches,
    from ``first`` to ``last`` in the order of dispatch."""

    __slots__ = (
        "cause",
        "consumer",
        "count",
        "destination",
        "first",
        "kind",
        "last",
        "transaction",
    )

    def __init__(
        self,
        kind: int,
        consumer: ConsumerId | None,
        destination: Destination | None,
        first: MessageId | None,
        last: MessageId | None,
        count: int,
        transaction: TransactionId | None = None,
        cause: Throwable | None = None,
    ) -> None:
        super().__init__(numbers.MESSAGE_ACK)
        self.kind = kind
        self.consumer = consumer
        self.destination = destination
        self.first = first
        self.last = last
        self.count = count
        self.transaction = transaction
        self.cause = cause

    def body(self, version: int) -> bytes:
        """The encoded fields."""
        return b"".join(
            (
                encode_object(self.destination, version),
                encode_object(self.transaction, version),
                encode_object(self.consumer, version),
                bytes((self.kind,)),
                encode_object(self.first, version),
                encode_object(self.last, version),
                _I.pack(self.count),
                b"\0" if self.cause is None else self.cause.encoded(),
            )
        )
