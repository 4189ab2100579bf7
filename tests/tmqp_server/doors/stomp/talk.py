"""STOMP clients of a server in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.tmqp_server.doors.door_world import DoorClient, DoorWorld
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies
from tmqp_server.doors.stomp.options import StompLimits, StompOptions
from tmqp_server.engine.broker import Broker
from tmqp_wires.stomp import ClientConnection, StompFrame
from tmqp_wires.stomp.frames import VERSIONS

__all__ = ["A", "Client", "bodies", "error", "in_flight", "receipts", "subscribed", "world_with"]

A = "/queue/a"
#: Headers by their names as Python spells them.
NAMES = {"reply_to": "reply-to", "receipt_id": "receipt-id", "message_id": "message-id"}


def world_with(limits: StompLimits | None = None, **options: Any) -> DoorWorld:
    """A server with a door of STOMP."""
    chosen = StompOptions(**options)
    return DoorWorld(
        lambda new_id, letters: StompDoor(new_id, limits, chosen, letters), StompBodies()
    )


class Client:
    """A client that is let in."""

    def __init__(
        self, world: DoorWorld, versions: Sequence[str] = VERSIONS, **headers: str
    ) -> None:
        self.world = world
        self.connection: DoorClient = world.client()
        self.stomp = ClientConnection(world.now)
        self.stomp.send_connect(list(headers.items()), versions)
        (self.connected,) = self.flush()

    def flush(self) -> list[StompFrame]:
        """Send what is queued, and read."""
        self.connection.say(self.stomp.data_to_send())
        return self.hear()

    def hear(self) -> list[StompFrame]:
        """What has come since the last time."""
        events = self.stomp.receive(self.connection.hear(), self.world.now)
        found = [each for each in events if isinstance(each, StompFrame)]
        assert len(found) == len(events)
        return found

    def say(self, command: str, body: bytes = b"", /, **headers: str) -> list[StompFrame]:
        """Send one frame, and read."""
        named = [(NAMES.get(name, name), value) for name, value in headers.items()]
        self.stomp.send(command, named, body)
        return self.flush()

    def send(self, body: bytes, destination: str = A, **headers: str) -> list[StompFrame]:
        return self.say("SEND", body, destination=destination, **headers)

    def subscribe(self, destination: str = A, **headers: str) -> list[StompFrame]:
        return self.say("SUBSCRIBE", **{"destination": destination, "id": "1", **headers})

    def ack(self, message: StompFrame, **headers: str) -> list[StompFrame]:
        return self.say("ACK", id=message.get("ack"), **headers)

    def nack(self, message: StompFrame, **headers: str) -> list[StompFrame]:
        return self.say("NACK", id=message.get("ack"), **headers)

    def written(self) -> None:
        """All that was sent has left the server."""
        self.world.hub.written(self.connection.number, self.world.now)
        self.world.hub.go_on(self.connection.number, self.world.now)
        self.world.settle()

    @property
    def closed(self) -> str:
        return self.connection.closed


def bodies(frames: list[StompFrame]) -> list[bytes]:
    assert all(each.command == "MESSAGE" for each in frames), frames
    return [each.body for each in frames]


def receipts(frames: list[StompFrame]) -> list[str]:
    assert all(each.command == "RECEIPT" for each in frames), frames
    return [each.get("receipt-id") for each in frames]


def error(frames: list[StompFrame]) -> str:
    (frame,) = frames
    assert frame.command == "ERROR", frame
    assert frame.get("content-length") == str(len(frame.body))
    return frame.get("message")


def in_flight(broker: Broker) -> int:
    return broker.statistics().in_flight


def subscribed(
    world: DoorWorld, mode: str, count: int, versions: Sequence[str] = VERSIONS, **headers: str
) -> tuple[Client, list[StompFrame]]:
    """A client that has so many messages in hand."""
    client = Client(world, versions)
    client.subscribe(ack=mode, **headers)
    found: list[StompFrame] = []
    for number in range(count):
        found += client.send(b"%d" % number)
    return client, found
