"""OpenWire clients of a server in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from tests.tmqp_server.doors.door_world import DoorClient, DoorWorld
from tmqp_server.doors.openwire.door import OpenwireDoor
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_server.doors.openwire.options import OpenwireLimits, OpenwireOptions
from tmqp_server.engine.limits import EngineLimits
from tmqp_wires.openwire import ClientConnection, Command, MessageAck, MessageDispatch, WireFormat
from tmqp_wires.openwire.commands import (
    BEGIN,
    BrokerInfo,
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    RemoveInfo,
    Response,
    TransactionInfo,
)
from tmqp_wires.openwire.data import encode_text
from tmqp_wires.openwire.ids import (
    QUEUE,
    TOPIC,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
)
from tmqp_wires.openwire.messages import ACK_STANDARD, TEXT_MESSAGE, Message

__all__ = [
    "Client",
    "Q",
    "T",
    "brokers",
    "dispatches",
    "error",
    "failed",
    "fine",
    "kept",
    "text_of",
    "texts",
    "world_with",
]

Q = Destination(QUEUE, "q")
T = Destination(TOPIC, "t")
_CONNECTIONS = count(1)


def world_with(
    limits: OpenwireLimits | None = None, engine: EngineLimits | None = None, **options: Any
) -> DoorWorld:
    """A server with a door of OpenWire."""
    chosen = OpenwireOptions(**options)
    return DoorWorld(
        lambda new_id, letters: OpenwireDoor(new_id, limits, chosen, letters),
        OpenwireBodies(),
        engine,
    )


class Client:
    """A client that is let in, unless it is refused."""

    def __init__(
        self,
        world: DoorWorld,
        client_id: str | None = None,
        *,
        version: int = 12,
        provider: str = "5.16.4",
        before: Sequence[Command] = (),
        **hello: Any,
    ) -> None:
        self.world = world
        self.name = f"ID:c-{next(_CONNECTIONS)}:1"
        self.connection: DoorClient = world.client()
        mine = WireFormat(version, max_frame_bytes=1 << 24, provider_version=provider)
        self.wire = ClientConnection(world.now, mine)
        self.connection.say(self.wire.data_to_send())
        assert self.wire.receive(self.connection.hear(), world.now) == []
        self.numbers = count(1)
        assert self.tell(*before) == []
        info = ConnectionInfo(self.name, client_id or self.name, None, None)
        for name, value in hello.items():
            setattr(info, name, value)
        self.answers = self.ask(info)

    @property
    def closed(self) -> str:
        return self.connection.closed

    def hear(self) -> list[Command]:
        """What has come since the last time."""
        events = self.wire.receive(self.connection.hear(), self.world.now)
        found = [each for each in events if isinstance(each, Command)]
        assert len(found) == len(events), events
        return found

    def tell(self, *commands: Command) -> list[Command]:
        """Send commands that want no response, and read."""
        for each in commands:
            self.wire.send(each)
        self.connection.say(self.wire.data_to_send())
        return self.hear()

    def ask(self, command: Command) -> list[Command]:
        """Send a command that wants a response, and read."""
        command.response_required = True
        return self.tell(command)

    def written(self) -> list[Command]:
        """All that was sent has left the server; what has come since."""
        self.world.hub.written(self.connection.number, self.world.now)
        self.world.hub.go_on(self.connection.number, self.world.now)
        self.world.settle()
        return self.hear()

    # -- what clients say -------------------------------------------------------------------------

    def message(
        self, text: str = "x", to: Destination | None = Q, type: int = TEXT_MESSAGE, **fields: Any
    ) -> Message:
        """A message."""
        producer = ProducerId(self.name, 1, 1)
        message = Message(type, MessageId(producer, next(self.numbers)), to)
        data = encode_text(text)
        message.content = len(data).to_bytes(4) + data
        message.persistent = True
        for name, value in fields.items():
            setattr(message, name, value)
        return message

    def send(self, text: str = "x", to: Destination | None = Q, **fields: Any) -> list[Command]:
        """Send a message, and wait for the response."""
        return self.ask(self.message(text, to, **fields))

    def info(self, to: Destination | None = Q, number: int = 1, **fields: Any) -> ConsumerInfo:
        """A consumer that is to begin."""
        info = ConsumerInfo(ConsumerId(self.name, 1, number), to)
        for name, value in fields.items():
            setattr(info, name, value)
        return info

    def consume(self, to: Destination | None = Q, number: int = 1, **fields: Any) -> list[Command]:
        """Begin a consumer."""
        return self.ask(self.info(to, number, **fields))

    def end(self, number: int = 1, last: int = -1) -> list[Command]:
        """End a consumer."""
        return self.tell(RemoveInfo(ConsumerId(self.name, 1, number), last))

    def ack(
        self,
        *dispatches: MessageDispatch,
        kind: int = ACK_STANDARD,
        transaction: int = 0,
        **fields: Any,
    ) -> list[Command]:
        """Answer for dispatches, which follow one another."""
        first, last = dispatches[0], dispatches[-1]
        assert first.message is not None
        assert last.message is not None
        ack = MessageAck(
            kind,
            last.consumer,
            last.destination,
            first.message.message_id,
            last.message.message_id,
            len(dispatches),
            self.transaction(transaction) if transaction else None,
        )
        for name, value in fields.items():
            setattr(ack, name, value)
        return self.tell(ack)

    def transaction(self, number: int = 1) -> LocalTransactionId:
        """The id of a transaction."""
        return LocalTransactionId(self.name, number)

    def begin(self, number: int = 1) -> list[Command]:
        """Begin a transaction."""
        return self.tell(TransactionInfo(self.name, self.transaction(number), BEGIN))

    def transact(self, operation: int, number: int = 1) -> list[Command]:
        """Do something with a transaction."""
        return self.ask(TransactionInfo(self.name, self.transaction(number), operation))


def kept(world: DoorWorld) -> int:
    """How many messages are in the queues, or in somebody's hands."""
    numbers = world.broker.statistics()
    return numbers.messages + numbers.in_flight


def dispatches(commands: Sequence[Command]) -> list[MessageDispatch]:
    """The dispatches among commands."""
    return [each for each in commands if isinstance(each, MessageDispatch)]


def text_of(dispatch: MessageDispatch) -> str:
    message = dispatch.message
    assert message is not None
    return (message.content or b"")[4:].decode()


def texts(commands: Sequence[Command]) -> list[str]:
    """The texts of the messages among commands."""
    return [text_of(each) for each in dispatches(commands)]


def fine(commands: Sequence[Command]) -> bool:
    """Whether there is one response, and it is good."""
    responses = [each for each in commands if isinstance(each, Response)]
    return len(responses) == 1 and not isinstance(responses[0], ExceptionResponse)


def failed(commands: Sequence[Command]) -> tuple[str, str]:
    """The class of the one exception, and its text."""
    (response,) = [each for each in commands if isinstance(each, ExceptionResponse)]
    exception = response.exception
    assert exception is not None
    return exception.class_name, exception.message or ""


def error(commands: Sequence[Command]) -> str:
    """The class of the one exception, without its package."""
    return failed(commands)[0].rpartition(".")[2]


def brokers(commands: Sequence[Command]) -> list[str]:
    """The names of brokers that have introduced themselves."""
    return [each.name for each in commands if isinstance(each, BrokerInfo)]
