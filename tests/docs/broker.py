"""A broker in memory with clients that speak bytes to it: the real hub, door and engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.tmqp_server.outputs import sent, touched
from tmqp import (
    Connection,
    ConnectionInformation,
    Event,
    Frame,
    Limits,
    MessageReceived,
    MessageType,
    Operation,
    QueueMessageReceived,
    Role,
)
from tmqp_server import EngineLimits
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub

__all__ = ["Client", "World"]


class World:
    """A server and its clients; time stands still unless :meth:`pass_time` moves it."""

    def __init__(
        self, limits: EngineLimits | None = None, options: BrokerOptions | None = None
    ) -> None:
        self.now = 0.0
        self.hub = Hub(Broker(limits, options))
        self._ids = 0
        self._door = NativeDoor(self._new_id, Limits())
        self._numbers = 0
        self._clients: dict[int, Client] = {}

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:032x}"

    def open(self) -> Client:
        """A new connection on which nothing was said yet."""
        self._numbers += 1
        client = Client(self, self._numbers)
        self._clients[self._numbers] = client
        self.hub.open(self._numbers, self._door, self.now)
        return client

    def connect(self, client_id: str = "c", *, join: str = "") -> Client:
        """A connected client, which has joined a channel if one is named."""
        client = self.open()
        client.say(hello(client_id))
        if join:
            client.ask(Operation.JOIN, join)
            client.take()
        return client

    def feed(self, number: int, data: bytes) -> None:
        """Let bytes of one client arrive, and whatever follows from them."""
        self.hub.receive(number, data, self.now)
        self.flush()

    def flush(self) -> None:
        """Bring what the server has to say to the clients."""
        for number in touched(self.hub):
            self._clients[number].hear(sent(self.hub, number))

    def vanish(self, client: Client) -> None:
        """A client's transport is gone."""
        self.hub.forget(client.number, self.now)
        self.flush()

    def pass_time(self, seconds: float) -> None:
        """Move the clock; only the broker looks at it."""
        self.now += seconds
        due = self.hub.broker_deadline()
        while due is not None and due <= self.now:
            self.hub.on_broker_deadline(self.now)
            self.flush()
            due = self.hub.broker_deadline()


def hello(client_id: str, payload: bytes | None = None) -> bytes:
    """What a client begins with."""
    if payload is None:
        payload = ConnectionInformation(client_id).encode()
    return b"TMQP/2.0" + Frame.build(MessageType.SERVER, "", 101, payload).raw


class Client:
    """One client: what it says is bytes, what it hears are events."""

    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self.events: list[Event] = []
        self._world = world
        self._connection = Connection(Role.CLIENT)
        self._connection.initiate(ConnectionInformation())
        self._ids = 0

    def say(self, data: bytes) -> None:
        """Send raw bytes."""
        self._world.feed(self.number, data)

    def send(self, frame: Frame) -> None:
        """Send a message."""
        self.say(frame.raw)

    def hear(self, data: bytes) -> None:
        """Take what the server sent."""
        self.events += self._connection.receive(data, 0.0)

    def alive(self) -> bool:
        """Whether the server has not closed the connection."""
        return self._world.hub.close_reason(self.number) == ""

    def take(self) -> list[Frame]:
        """The messages received since the last call."""
        frames = [event.frame for event in self.events if isinstance(event, MessageReceived)]
        self.events = []
        return frames

    def deliveries(self) -> list[Frame]:
        """The queue messages received since the last call."""
        return [frame for frame in self.take() if frame.type == MessageType.QUEUE_MESSAGE]

    def ask(
        self,
        operation: int,
        target: str = "",
        payload: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        **flags: Any,
    ) -> list[int]:
        """Ask for an operation with R set; the codes of the responses to it, none if silent."""
        self._ids += 1
        name = f"ask-{self._ids}"
        flags.setdefault("pending_response", True)
        self.send(
            Frame.build(
                MessageType.SERVER,
                target,
                operation,
                payload,
                message_id=name,
                headers=headers,
                **flags,
            )
        )
        return [
            frame.content_type
            for frame in self.frames()
            if frame.type == MessageType.RESPONSE and frame.message_id == name
        ]

    def frames(self) -> list[Frame]:
        """All messages received and not taken yet."""
        return [event.frame for event in self.events if isinstance(event, MessageReceived)]

    def answer(self, operation: int, target: str = "", payload: bytes = b"", **more: Any) -> bytes:
        """The payload of an operation's answer, which must be a success."""
        assert self.ask(operation, target, payload, **more) == [0]
        return self.frames()[-1].payload

    def create_queue(self, channel: str, queue_id: int, body: bytes = b"", **headers: str) -> None:
        """Create a queue; headers by name, an underscore for each hyphen."""
        pairs = [("Queue-Id", str(queue_id))]
        pairs += [(key.replace("_", "-"), value) for key, value in headers.items()]
        assert self.ask(Operation.CREATE_QUEUE, channel, body, pairs) == [0]

    def push(self, channel: str, queue_id: int, message_id: str, **flags: Any) -> None:
        """Push a message whose payload is its id."""
        self.send(
            Frame.build(
                MessageType.QUEUE_MESSAGE,
                channel,
                queue_id,
                message_id.encode(),
                message_id=message_id,
                **flags,
            )
        )

    def acknowledge(self, frame: Frame, reason: str | None = None) -> None:
        """Acknowledge a delivery, negatively if a reason is given."""
        headers = [] if reason is None else [("Nack-Reason", reason)]
        self.send(
            Frame.build(
                MessageType.ACKNOWLEDGE,
                frame.target,
                frame.content_type,
                message_id=frame.message_id,
                headers=headers,
            )
        )

    def kinds(self) -> list[str]:
        """The names of the events received and not taken yet."""
        return [type(event).__name__ for event in self.events]

    def received(self) -> list[str]:
        """The ids of the queue messages received and not taken yet."""
        return [
            event.frame.message_id
            for event in self.events
            if isinstance(event, QueueMessageReceived)
        ]
