"""The fuzz target of OpenWire."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

from targets.talking import cut, speak
from tmqp.testing import Seeded
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.openwire.door import OpenwireDoor
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_server.doors.openwire.options import OpenwireLimits
from tmqp_server.doors.port import IdSource
from tmqp_wires.openwire import ClientConnection, Command, Fault, ServerConnection, WireFormat
from tmqp_wires.openwire.commands import (
    BEGIN,
    COMMIT,
    ROLLBACK,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    MessagePull,
    ProducerInfo,
    RemoveInfo,
    TransactionInfo,
)
from tmqp_wires.openwire.connection import frame_of
from tmqp_wires.openwire.ids import (
    QUEUE,
    TEMP_QUEUE,
    TOPIC,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
)
from tmqp_wires.openwire.messages import Message, MessageAck

__all__ = ["good_commands", "openwire"]

#: The longest frame.
_MOST: Final = 600
_NAME: Final = "c"


def openwire(data: bytes) -> None:
    """OpenWire in both roles, and hub, door and broker together: any bytes, cut in any way; no more
    is held than is allowed."""
    chunks, whole = cut(data)
    for make in (_server, _client):
        cut_up, at_once = make(), make()
        told: list[bytes] = []
        for chunk in chunks:
            told += _said(cut_up, chunk)
            assert cut_up.held_bytes <= max(_MOST, 1 << 16) + 4, (
                "something is kept beyond its limit"
            )
        assert told == _said(at_once, whole), "how it is cut changes what it says"
    letters = Letters([OpenwireBodies()])
    speak(OpenwireDoor(_ids(), OpenwireLimits(max_frame_bytes=_MOST), None, letters), chunks)


def _mine() -> WireFormat:
    return WireFormat(max_frame_bytes=_MOST)


def _server() -> ServerConnection:
    return ServerConnection(0.0, _mine())


def _client() -> ClientConnection:
    return ClientConnection(0.0, _mine())


def _said(side: ServerConnection | ClientConnection, data: bytes) -> list[bytes]:
    """What some bytes say: each command as it would be written, and why it ends."""
    found: list[bytes] = []
    for event in side.receive(data, 0.0):
        if isinstance(event, Fault):
            found.append(event.text.encode())
        else:
            found.append(event.whole(side.version))
    return found


def _ids() -> IdSource:
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):032x}"


def good_commands(draw: Seeded) -> bytes:
    """What a client says: who it is, then commands about a few destinations and a transaction."""
    version = 9 + draw.below(4)
    hello = WireFormat(version).encoded()
    first = ConnectionInfo(_NAME, _NAME)
    first.response_required = True
    said = [len(hello).to_bytes(4) + hello, frame_of(first, version)]
    for number in range(draw.below(8)):
        command = _CHOICES[draw.below(len(_CHOICES))](draw)
        command.command_id = number
        command.response_required = draw.one_in(2)
        said.append(frame_of(command, version))
    return b"".join(said)


def _destination(draw: Seeded) -> Destination:
    kinds = (
        (QUEUE, "a"),
        (TOPIC, "a"),
        (TEMP_QUEUE, "c:1"),
        (QUEUE, "a,topic://b"),
        (QUEUE, "a.>"),
    )
    return Destination(*kinds[draw.below(len(kinds))])


def _consumer(draw: Seeded) -> ConsumerId:
    return ConsumerId(_NAME, 1, draw.below(2))


def _transaction(draw: Seeded) -> LocalTransactionId | None:
    return LocalTransactionId(_NAME, 1) if draw.one_in(3) else None


def _message_id(draw: Seeded) -> MessageId:
    return MessageId(ProducerId(_NAME, 1, 1), draw.below(3))


def _message(draw: Seeded) -> Command:
    message = Message(23 + draw.below(6), _message_id(draw), _destination(draw))
    message.content = draw.some_bytes(draw.below(90))
    message.transaction = _transaction(draw)
    message.persistent = draw.one_in(2)
    return message


def _consume(draw: Seeded) -> Command:
    info = ConsumerInfo(_consumer(draw), _destination(draw), draw.below(3))
    info.browser = draw.one_in(5)
    info.subscription = "s" if draw.one_in(5) else None
    info.selector = "a = 1" if draw.one_in(5) else None
    return info


def _ack(draw: Seeded) -> Command:
    name = _message_id(draw)
    return MessageAck(draw.below(8), _consumer(draw), None, name, name, 1, _transaction(draw))


def _transact(draw: Seeded) -> Command:
    operation = (BEGIN, COMMIT, ROLLBACK)[draw.below(3)]
    return TransactionInfo(_NAME, LocalTransactionId(_NAME, 1), operation)


def _remove(draw: Seeded) -> Command:
    return RemoveInfo(_consumer(draw), -draw.below(3))


def _produce(draw: Seeded) -> Command:
    return ProducerInfo(ProducerId(_NAME, 1, 1), _destination(draw), draw.below(3))


def _make(draw: Seeded) -> Command:
    return DestinationInfo(_NAME, _destination(draw), draw.below(2))


def _pull(draw: Seeded) -> Command:
    return MessagePull(_consumer(draw), None, draw.below(3) - 1)


_CHOICES: Final[tuple[Callable[[Seeded], Command], ...]] = (
    _message,
    _message,
    _consume,
    _consume,
    _ack,
    _transact,
    _remove,
    _produce,
    _make,
    _pull,
)
