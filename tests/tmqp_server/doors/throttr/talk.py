"""Clients of Throttr in memory: requests, and what comes back."""

from __future__ import annotations

from tests.tmqp_server.doors.door_world import DoorWorld
from tmqp_server.doors.throttr.door import ThrottrDoor
from tmqp_server.doors.throttr.message import ThrottrBodies
from tmqp_server.doors.throttr.options import ThrottrLimits, ThrottrOptions
from tmqp_server.engine.limits import EngineLimits
from tmqp_wires.throttr import ClientConnection, Push, Reply, Request, words
from tmqp_wires.throttr.client import Happening

__all__ = [
    "Peer",
    "get",
    "insert",
    "publish",
    "purge",
    "put",
    "query",
    "subscribe",
    "unsubscribe",
    "update",
    "world_with",
]


def world_with(
    options: ThrottrOptions | None = None,
    limits: ThrottrLimits | None = None,
    engine_limits: EngineLimits | None = None,
) -> DoorWorld:
    """A server with a door of Throttr, whose clock begins in 1970."""
    return DoorWorld(
        lambda new_id, letters: ThrottrDoor(new_id, limits, options, letters),
        ThrottrBodies(),
        engine_limits,
    )


class Peer:
    """A client that knows the protocol."""

    def __init__(self, world: DoorWorld) -> None:
        context = world.door.context  # type: ignore[attr-defined]
        self.wire = ClientConnection(context.dialect, context.width)
        self.client = world.client()

    def say(self, *requests: Request) -> None:
        """Send requests in one chunk."""
        self.client.say(b"".join([self.wire.send(each) for each in requests]))

    def hear(self) -> list[Happening]:
        """What has come since the last time."""
        return self.wire.receive(self.client.hear())

    def ask(self, *requests: Request) -> list[Reply]:
        """The replies to requests that are sent in one chunk."""
        self.say(*requests)
        found = [each for each in self.hear() if isinstance(each, Reply)]
        assert len(found) == len(requests), "each has one reply"
        return found

    def one(self, request: Request) -> Reply:
        """The reply to a request."""
        (found,) = self.ask(request)
        return found

    def does(self, *requests: Request) -> list[bool]:
        """Whether requests were carried out."""
        return [each.ok for each in self.ask(*requests)]

    def pushes(self) -> list[tuple[bytes, bytes]]:
        """What was pushed since the last time."""
        heard = self.hear()
        assert all(isinstance(each, Push) for each in heard)
        return [(each.channel, each.payload) for each in heard if isinstance(each, Push)]


def insert(key: bytes = b"k", quota: int = 7, ttl: int = 60, ttl_type: int = 4) -> Request:
    """An INSERT."""
    return Request(words.INSERT, key, b"", quota, ttl_type, ttl)


def put(key: bytes = b"v", value: bytes = b"EHLO", ttl: int = 60, ttl_type: int = 4) -> Request:
    """A SET."""
    return Request(words.SET, key, value, 0, ttl_type, ttl)


def query(key: bytes = b"k") -> Request:
    """A QUERY."""
    return Request(words.QUERY, key)


def get(key: bytes = b"v") -> Request:
    """A GET."""
    return Request(words.GET, key)


def purge(key: bytes = b"k") -> Request:
    """A PURGE."""
    return Request(words.PURGE, key)


def update(change: int, amount: int, key: bytes = b"k", attribute: int = 0) -> Request:
    """An UPDATE."""
    return Request(words.UPDATE, key, b"", amount, 0, 0, attribute, change)


def subscribe(channel: bytes = b"ch") -> Request:
    """A SUBSCRIBE."""
    return Request(words.SUBSCRIBE, channel)


def unsubscribe(channel: bytes = b"ch") -> Request:
    """An UNSUBSCRIBE."""
    return Request(words.UNSUBSCRIBE, channel)


def publish(payload: bytes = b"hi", channel: bytes = b"ch") -> Request:
    """A PUBLISH."""
    return Request(words.PUBLISH, channel, payload)
