"""What clients of STOMP and OpenWire say and read: the wires' client roles behind the same few
words, so that the same programs speak both protocols.

A *place* is a queue, or a topic if it is ``TOPIC``.  What is asked with a *key* is answered under
that key.  A *handle* is how a message is answered for.
"""

from __future__ import annotations

from itertools import count
from typing import Final, TypeAlias

from tmqp_sim.jms_books import TOPIC
from tmqp_sim.world import Violation
from tmqp_wires.openwire import ClientConnection as OpenwireConnection
from tmqp_wires.openwire import Command, MessageAck, MessageDispatch, WireFormat
from tmqp_wires.openwire.commands import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    ConnectionError_,
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    RemoveInfo,
    Response,
    TransactionInfo,
)
from tmqp_wires.openwire.data import decode_text, encode_text
from tmqp_wires.openwire.ids import QUEUE as QUEUE_TYPE
from tmqp_wires.openwire.ids import TOPIC as TOPIC_TYPE
from tmqp_wires.openwire.ids import (
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
)
from tmqp_wires.openwire.messages import (
    ACK_INDIVIDUAL,
    ACK_POISON,
    ACK_STANDARD,
    TEXT_MESSAGE,
    Message,
)
from tmqp_wires.stomp import ClientConnection as StompConnection
from tmqp_wires.stomp import StompFrame
from tmqp_wires.stomp.frames import V1_1, V1_2

__all__ = [
    "AUTO",
    "CLIENT",
    "INDIVIDUAL",
    "STOMP_VERSIONS",
    "Answered",
    "Came",
    "Handle",
    "JmsWire",
    "OpenwireWire",
    "Ready",
    "StompWire",
]

#: How a consumer answers for messages: not at all, all up to one, or each.
AUTO: Final = "auto"
CLIENT: Final = "client"
INDIVIDUAL: Final = "client-individual"
#: A text is after its length.
_LENGTH: Final = 4
_FRAME: Final = 1 << 20
#: The one consumer of a connection.
_CONSUMER: Final = 1
_CONNECT: Final = "connect"


class Ready:
    """The client is let in."""


class Answered:
    """What was asked under ``key`` is done, or could not be done."""

    def __init__(self, key: str, ok: bool, text: str = "") -> None:
        self.key = key
        self.ok = ok
        self.text = text


Handle: TypeAlias = "MessageDispatch | StompFrame"


class Came:
    """A message."""

    def __init__(self, handle: Handle, place: str, body: str) -> None:
        self.handle = handle
        self.place = place
        self.body = body


Event: TypeAlias = "Ready | Answered | Came"


class JmsWire:
    """One connection."""

    def data(self) -> bytes:
        """What is to be sent."""
        raise NotImplementedError

    def hears(self, data: bytes, now: float) -> list[Event]:
        """Read bytes."""
        raise NotImplementedError

    def send(self, place: str, body: str, key: str, transaction: int, priority: int = -1) -> None:
        """Send a message; without a key nothing is answered, transaction 0 is none, and below 0 the
        priority is that of the protocol."""
        raise NotImplementedError

    def begin(self, transaction: int) -> None:
        """Begin a transaction."""
        raise NotImplementedError

    def end(self, transaction: int, *, commits: bool, key: str) -> None:
        """Commit a transaction, or abort it."""
        raise NotImplementedError

    def subscribe(
        self, place: str, mode: str, window: int, name: str, key: str, *, exclusive: bool = False
    ) -> None:
        """Consume; with a name that is a durable subscription."""
        raise NotImplementedError

    def unsubscribe(self) -> None:
        """Consume no more; a durable subscription stays."""
        raise NotImplementedError

    def ack(self, handle: Handle, first: Handle, mode: str, transaction: int) -> None:
        """Answer for a message, or for all from the first one up to it."""
        raise NotImplementedError

    def refuse(self, handle: Handle) -> None:
        """Give up a message, or give it back."""
        raise NotImplementedError


class StompWire(JmsWire):
    """STOMP 1.2, or 1.1."""

    def __init__(self, now: float, client_id: str, version: str) -> None:
        self._stomp = StompConnection(now)
        self._stomp.send_connect([("client-id", client_id)], (version,))
        self._commits: dict[int, str] = {}

    def data(self) -> bytes:
        return self._stomp.data_to_send()

    def hears(self, data: bytes, now: float) -> list[Event]:
        found: list[Event] = []
        for event in self._stomp.receive(data, now):
            if not isinstance(event, StompFrame):
                raise Violation("stomp", f"a client reads what is no frame: {event}")
            key = event.get("receipt-id")
            if event.command == "CONNECTED":
                found.append(Ready())
            elif event.command == "RECEIPT":
                found.append(Answered(key, True))
            elif event.command == "ERROR":
                found.append(Answered(key, False, event.get("message")))
            else:
                place = event.get("destination").split("/")[2]
                found.append(Came(event, place, event.body.decode()))
        return found

    def _say(self, command: str, headers: list[tuple[str, str]], key: str, body: str = "") -> None:
        if key:
            headers.append(("receipt", key))
        self._stomp.send(command, headers, body.encode())

    def send(self, place: str, body: str, key: str, transaction: int, priority: int = -1) -> None:
        headers = [("destination", _path(place))]
        if priority >= 0:
            headers.append(("priority", str(priority)))
        if transaction:
            headers.append(("transaction", str(transaction)))
        self._say("SEND", headers, key, body)

    def begin(self, transaction: int) -> None:
        self._say("BEGIN", [("transaction", str(transaction))], "")

    def end(self, transaction: int, *, commits: bool, key: str) -> None:
        command = "COMMIT" if commits else "ABORT"
        self._say(command, [("transaction", str(transaction))], key)

    def subscribe(
        self, place: str, mode: str, window: int, name: str, key: str, *, exclusive: bool = False
    ) -> None:
        headers = [("id", "s"), ("destination", _path(place)), ("ack", mode)]
        if exclusive:
            headers.append(("activemq.exclusive", "true"))
        headers.append(("activemq.prefetchSize", str(window)))
        if name:
            headers.append(("activemq.subscriptionName", name))
        self._say("SUBSCRIBE", headers, key)

    def unsubscribe(self) -> None:
        self._say("UNSUBSCRIBE", [("id", "s")], "")

    def _named(self, handle: Handle) -> list[tuple[str, str]]:
        assert isinstance(handle, StompFrame), "it came by STOMP"
        if self._stomp.version == V1_2:
            return [("id", handle.get("ack"))]
        return [("message-id", handle.get("message-id")), ("subscription", "s")]

    def ack(self, handle: Handle, first: Handle, mode: str, transaction: int) -> None:
        headers = self._named(handle)
        if transaction:
            headers.append(("transaction", str(transaction)))
        self._say("ACK", headers, "")

    def refuse(self, handle: Handle) -> None:
        self._say("NACK", self._named(handle), "")


class OpenwireWire(JmsWire):
    """OpenWire 12, or an older version."""

    def __init__(self, now: float, client_id: str, version: int) -> None:
        self._wire = OpenwireConnection(
            now, WireFormat(version, silence_ms=0, max_frame_bytes=_FRAME)
        )
        self._client_id = client_id
        self._name = f"ID:{client_id}-{now:.6f}"  # no two connections have the same
        self._greeted = False
        self._numbers = count(1)
        self._keys: dict[int, str] = {}
        self._destination: Destination | None = None

    def data(self) -> bytes:
        return self._wire.data_to_send()

    def hears(self, data: bytes, now: float) -> list[Event]:
        found: list[Event] = []
        for event in self._wire.receive(data, now):
            if not isinstance(event, Command):
                raise Violation("openwire", f"a client reads what is no command: {event}")
            if isinstance(event, ConnectionError_):
                found.append(Answered("", False, event.exception.message or ""))
            elif isinstance(event, Response):
                self._answered(event, found)
            elif isinstance(event, MessageDispatch) and event.message is not None:
                destination = event.message.destination
                assert destination is not None, "each message has one"
                content = (event.message.content or b"")[_LENGTH:]
                found.append(Came(event, destination.name, decode_text(content)))
        if not self._greeted and self._wire.peer.version:
            self._greeted = True
            info = ConnectionInfo(self._name, self._client_id)
            self._ask(info, _CONNECT)
        return found

    def _answered(self, response: Response, found: list[Event]) -> None:
        key = self._keys.pop(response.correlation_id, "")
        text = ""
        if isinstance(response, ExceptionResponse) and response.exception is not None:
            text = response.exception.message or "an exception"
        if key == _CONNECT:
            found.append(Answered("", False, text) if text else Ready())
        elif key:
            found.append(Answered(key, not text, text))

    def _ask(self, command: Command, key: str) -> None:
        command.response_required = bool(key)
        self._wire.send(command)
        if key:
            self._keys[command.command_id] = key

    def send(self, place: str, body: str, key: str, transaction: int, priority: int = -1) -> None:
        producer = ProducerId(self._name, 1, 1)
        message = Message(
            TEXT_MESSAGE, MessageId(producer, next(self._numbers)), _destination(place)
        )
        text = encode_text(body)
        message.content = len(text).to_bytes(_LENGTH) + text
        message.persistent = True
        if priority >= 0:
            message.priority = priority
        if transaction:
            message.transaction = LocalTransactionId(self._name, transaction)
        self._ask(message, key)

    def begin(self, transaction: int) -> None:
        self._transact(transaction, BEGIN, "")

    def end(self, transaction: int, *, commits: bool, key: str) -> None:
        self._transact(transaction, COMMIT if commits else ROLLBACK, key)

    def _transact(self, transaction: int, operation: int, key: str) -> None:
        of = LocalTransactionId(self._name, transaction)
        self._ask(TransactionInfo(self._name, of, operation), key)

    def subscribe(
        self, place: str, mode: str, window: int, name: str, key: str, *, exclusive: bool = False
    ) -> None:
        info = ConsumerInfo(ConsumerId(self._name, 1, _CONSUMER), _destination(place), window)
        self._destination = info.destination
        info.exclusive = exclusive
        if name:
            info.subscription = name
            info.client_id = self._client_id
        self._ask(info, key)

    def unsubscribe(self) -> None:
        self._ask(RemoveInfo(ConsumerId(self._name, 1, _CONSUMER), -1), "")

    def _ack(self, kind: int, last: Handle, first: Handle, transaction: int) -> None:
        assert isinstance(last, MessageDispatch), "it came by OpenWire"
        assert isinstance(first, MessageDispatch), "so did this"
        assert last.message is not None, "it is a message"
        assert first.message is not None, "so is this"
        of = LocalTransactionId(self._name, transaction) if transaction else None
        many = 1 if first is last else 2
        ids = (first.message.message_id, last.message.message_id)
        self._ask(MessageAck(kind, last.consumer, last.destination, *ids, many, of), "")

    def ack(self, handle: Handle, first: Handle, mode: str, transaction: int) -> None:
        if mode == INDIVIDUAL:
            self._ack(ACK_INDIVIDUAL, handle, handle, transaction)
        else:
            self._ack(ACK_STANDARD, handle, first, transaction)

    def refuse(self, handle: Handle) -> None:
        self._ack(ACK_POISON, handle, handle, 0)


def _path(place: str) -> str:
    return f"/topic/{place}" if place == TOPIC else f"/queue/{place}"


def _destination(place: str) -> Destination:
    return Destination(TOPIC_TYPE if place == TOPIC else QUEUE_TYPE, place)


#: The versions of STOMP that clients speak.
STOMP_VERSIONS: Final = (V1_1, V1_2)
