"""The load on brokers that speak OpenWire, as programs of JMS put it: ActiveMQ for one.

The encoding is loose, and nothing is cached, at either broker.
"""

from __future__ import annotations

import socket
from struct import Struct
from typing import Final

from tmqp_wires.openwire import ClientConnection, Command, WireFormat
from tmqp_wires.openwire.commands import (
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    ProducerInfo,
    Response,
    SessionInfo,
)
from tmqp_wires.openwire.connection import frame_of
from tmqp_wires.openwire.ids import (
    QUEUE,
    TOPIC,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    SessionId,
    encode_object,
)
from tmqp_wires.openwire.messages import ACK_STANDARD, BYTES_MESSAGE, Message, MessageAck
from tmqp_wires.openwire.type_numbers import MESSAGE_DISPATCH, RESPONSE

__all__ = ["Consumer", "Producer"]

_NAME: Final = "bench"
_VERSION: Final = 12
_I: Final = Struct(">i")
_Q: Final = Struct(">q")
_SIZE: Final = 4
#: Where the number of a command stands in its frame.
_NUMBER_AT: Final = 5
_READ_BYTES: Final = 65_536
#: Stands in a frame where something else will be written.
_MARK: Final = 0x71727374_75767778
_COUNT_MARK: Final = 0x61626364
#: The numbers of a message at its producer and at its broker.
_NUMBERS_BYTES: Final = 16
_PRODUCER: Final = ProducerId("ID:bench-0-1:1", 1, 1)
#: What a message id begins with.
_ID: Final = encode_object(MessageId(_PRODUCER, _MARK), _VERSION)[:-_NUMBERS_BYTES]


def _destination(*, topic: bool) -> Destination:
    return Destination(TOPIC if topic else QUEUE, _NAME)


class _Connection:
    """A connection with a session."""

    def __init__(self, port: int, name: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(20.0)
        self._wire = ClientConnection(mine=WireFormat(silence_ms=0, max_frame_bytes=1 << 28))
        self._heard: list[Command] = []
        self._flush()
        while not self._wire.version:
            self._hear()
        if self._wire.version != _VERSION:
            raise ConnectionError(f"the broker speaks version {self._wire.version}")
        self.ask(ConnectionInfo(name, name))
        self.ask(SessionInfo(SessionId(name, 1)))

    def _flush(self) -> None:
        self.socket.sendall(self._wire.data_to_send())

    def _hear(self) -> None:
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self._heard += [e for e in self._wire.receive(data, 0.0) if isinstance(e, Command)]

    def ask(self, command: Command) -> None:
        """Have something done."""
        command.response_required = True
        self._wire.send(command)
        self._flush()
        while True:
            for each in self._heard:
                if isinstance(each, Response) and each.correlation_id == command.command_id:
                    if isinstance(each, ExceptionResponse) and each.exception is not None:
                        raise ConnectionError(f"the broker said {each.exception.message}")
                    self._heard.clear()
                    return
            self._hear()


class _Frames:
    """Frames of one type in a stream; others are skipped."""

    def __init__(self, type: int) -> None:
        self._type = type
        self._rest = b""

    def of(self, data: bytes) -> tuple[bytes, list[int]]:
        """Bytes, and where in them whole frames of the type begin."""
        data = self._rest + data if self._rest else data
        found: list[int] = []
        at = 0
        size = len(data)
        while at + _SIZE < size:
            end = at + _SIZE + _I.unpack_from(data, at)[0]
            if end > size:
                break
            if data[at + _SIZE] == self._type:
                found.append(at)
            at = end
        self._rest = data[at:]
        return data, found


class Producer:
    """Sends bytes messages; with ``confirms`` each wants a response."""

    def __init__(
        self, port: int, payload_bytes: int, *, topic: bool, persistent: bool, confirms: bool
    ) -> None:
        connection = _Connection(port, _PRODUCER.connection)
        destination = _destination(topic=topic)
        connection.ask(ProducerInfo(_PRODUCER, destination))
        self.socket = connection.socket
        self.confirms = confirms
        self._frames = _Frames(RESPONSE)
        self._next = 1
        message = Message(BYTES_MESSAGE, MessageId(_PRODUCER, _MARK), destination)
        message.content = b"x" * payload_bytes
        message.persistent = persistent
        message.response_required = confirms
        frame = frame_of(message, _VERSION)
        self._head = frame[:_NUMBER_AT]
        before, _, self._behind = frame[_NUMBER_AT + _I.size :].partition(_Q.pack(_MARK))
        self._before = before

    def messages(self, count: int) -> bytes:
        head, before, behind = self._head, self._before, self._behind
        first = self._next
        self._next = first + count
        pieces: list[bytes] = []
        for number in range(first, first + count):
            pieces += (head, _I.pack(number & 0x7FFFFFFF), before, _Q.pack(number), behind)
        return b"".join(pieces)

    def confirmed(self, data: bytes) -> int:
        _, found = self._frames.of(data)
        if found and not self.confirms:
            raise ConnectionError("the broker answers what wants no answer")
        return len(found)


class Consumer:
    """Takes messages, and acknowledges each by itself, or with ``together`` all that was read by
    one, as sessions do with ``DUPS_OK_ACKNOWLEDGE``."""

    def __init__(
        self, port: int, number: int, *, topic: bool, together: bool, prefetch: int
    ) -> None:
        name = f"ID:bench-1-1:{number + 1}"
        connection = _Connection(port, name)
        consumer = ConsumerId(name, 1, 1)
        destination = _destination(topic=topic)
        connection.ask(ConsumerInfo(consumer, destination, prefetch))
        self.socket = connection.socket
        self._together = together
        self._frames = _Frames(MESSAGE_DISPATCH)
        self._id_at = 0
        last = MessageId(_PRODUCER, _MARK, _MARK)
        ack = MessageAck(ACK_STANDARD, consumer, destination, None, last, _COUNT_MARK)
        frame = frame_of(ack, _VERSION)
        self._before, _, rest = frame.partition(_ID + _Q.pack(_MARK) * 2)
        _, _, self._behind = rest.partition(_I.pack(_COUNT_MARK))

    def received(self, data: bytes) -> tuple[int, bytes]:
        data, found = self._frames.of(data)
        if not found:
            return 0, b""
        if not self._id_at:
            self._id_at = data.index(_ID, found[0]) - found[0]
        count = 1
        answered = found
        if self._together:
            count, answered = len(found), found[-1:]
        before = self._before
        behind = _I.pack(count) + self._behind
        start = self._id_at
        end = start + len(_ID) + _NUMBERS_BYTES
        pieces: list[bytes] = []
        for at in answered:
            pieces += (before, data[at + start : at + end], behind)
        return len(found), b"".join(pieces)
