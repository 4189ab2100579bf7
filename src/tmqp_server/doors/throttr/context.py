"""What all connections of a door of Throttr share: its options, and the connected clients."""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import STATUS_BROADCAST
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.throttr.message import QUEUE
from tmqp_server.doors.throttr.options import ThrottrLimits, ThrottrOptions
from tmqp_server.engine.commands import CellPortion, Command, CreateQueue
from tmqp_server.engine.model.rates import Rate
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_wires.throttr.words import (
    DIALECT_73,
    NAMES,
    ORDER_IN_CONNECTION,
    ORDER_IN_INFO,
    most_of,
)

__all__ = ["EVERYBODY", "ThrottrClient", "ThrottrContext", "ThrottrPlace", "to_ns"]

#: The channel to which every client of the dialect 7.3 is subscribed.
EVERYBODY: Final = b"*"
#: The version of the original for a dialect.
_VERSIONS: Final = {DIALECT_73: "5.0.11"}
_VERSION: Final = "5.0.2"
#: Milliseconds after which an unused channel is removed.
_IDLE_MS: Final = 60_000
_SECOND_NS: Final = 1_000_000_000


def to_ns(seconds: float) -> int:
    """A time in nanoseconds."""
    return int(seconds * _SECOND_NS)


@final
class ThrottrPlace:
    """A client's subscription to a channel: since when, in nanoseconds since 1970, and the payload
    bytes that it has received and published there.  ``spelt`` is the channel's name in the engine,
    empty until it is known."""

    __slots__ = ("read_bytes", "since_ns", "spelt", "write_bytes")

    def __init__(self, since_ns: int) -> None:
        self.spelt = ""
        self.since_ns = since_ns
        self.read_bytes = 0
        self.write_bytes = 0


@final
class ThrottrClient:
    """The reported facts about a client.

    ``identity`` has 16 bytes; ``client_id`` is its id in the engine.  ``read_bytes`` and
    ``write_bytes`` count bytes of the connection, ``published_bytes`` and ``received_bytes`` those
    of payloads.
    """

    __slots__ = (
        "client_id",
        "connected_ns",
        "identity",
        "peer",
        "published_bytes",
        "read_bytes",
        "received_bytes",
        "requests",
        "subscriptions",
        "write_bytes",
    )

    def __init__(self, identity: bytes, client_id: str, peer: str, connected_ns: int) -> None:
        self.identity = identity
        self.client_id = client_id
        self.peer = peer
        self.connected_ns = connected_ns
        self.read_bytes = 0
        self.write_bytes = 0
        self.published_bytes = 0
        self.received_bytes = 0
        self.requests = dict.fromkeys(ORDER_IN_CONNECTION, 0)
        self.subscriptions: dict[bytes, ThrottrPlace] = {}

    @property
    def own_channel(self) -> bytes:
        """The channel that reaches only this client, in the dialect 7.3."""
        return self.identity.hex().encode()


@final
class ThrottrContext:
    """The context of a session; the parameters are those of ``ThrottrDoor``.

    ``clients`` are the connected clients, by identity in the order of connecting; ``channels`` has
    the subscribed clients of each channel that has any.
    """

    def __init__(
        self,
        new_id: IdSource,
        limits: ThrottrLimits,
        options: ThrottrOptions,
        names: DoorNames,
        wall_clock_offset_s: float,
        started_s: float,
    ) -> None:
        self.new_id = new_id
        self.limits = limits
        self.dialect = options.dialect
        self.width = options.value_bytes
        self.most = most_of(options.value_bytes)
        self.serves_publishers = options.dialect == DIALECT_73
        self.space = options.space or f"throttr-{options.value_bytes}"
        self.version = options.version or _VERSIONS.get(options.dialect, _VERSION)
        self.names = names
        self.clients: dict[bytes, ThrottrClient] = {}
        self.channels: dict[bytes, dict[bytes, ThrottrClient]] = {}
        self.requests = Rate()
        self.by_code = {code: Rate() for code in NAMES}
        self.read = Rate()
        self.written = Rate()
        #: The time of the last activity at this door, in nanoseconds.
        self.now_ns = 0
        self._subscriptions = 0
        self._offset_s = wall_clock_offset_s
        self._started_s = started_s

    def unix_ns(self, seconds: float) -> int:
        """A time of the engine in nanoseconds since 1970."""
        return to_ns(seconds + self._offset_s)

    @property
    def offset_ns(self) -> int:
        """What to add to the engine's time in nanoseconds to get nanoseconds since 1970."""
        return to_ns(self._offset_s)

    def opening(self, session: int, channel: str) -> Command:
        """The command to create a channel if it does not exist."""
        changes = QueueChanges(status=STATUS_BROADCAST, request_acknowledge=False)
        idle = ChannelChanges(idle_timeout_ms=_IDLE_MS)
        return CreateQueue(session, None, channel, QUEUE, changes, idle)

    # -- who is here ------------------------------------------------------------------------------

    def come(self, client: ThrottrClient) -> None:
        """Add a client that has connected."""
        self.clients[client.identity] = client

    def go(self, client: ThrottrClient) -> None:
        """Remove a client that has disconnected, from all channels."""
        self.clients.pop(client.identity, None)
        for channel in list(client.subscriptions):
            self.unsubscribe(client, channel)

    def subscribe(self, client: ThrottrClient, channel: bytes, now: float) -> None:
        """Subscribe a client to a channel."""
        if channel in client.subscriptions:
            return
        client.subscriptions[channel] = ThrottrPlace(self.unix_ns(now))
        self.channels.setdefault(channel, {})[client.identity] = client
        self._subscriptions += 1

    def unsubscribe(self, client: ThrottrClient, channel: bytes) -> None:
        """Unsubscribe a client from a channel."""
        if client.subscriptions.pop(channel, None) is not None:
            self._subscriptions -= 1
        there = self.channels.get(channel)
        if there is not None:
            there.pop(client.identity, None)
            if not there:
                del self.channels[channel]

    # -- figures ----------------------------------------------------------------------------------

    def count_request(self, client: ThrottrClient, code: int, now_ns: int) -> None:
        """Count a request that is about to be carried out, so that its own reply includes it."""
        self.requests.add(1, now_ns)
        self.by_code[code].add(1, now_ns)
        if code in client.requests:
            client.requests[code] += 1

    def info(self, portion: CellPortion, now: float) -> list[int]:
        """The numbers of an INFO; *portion* has the numbers of keys."""
        now_ns = to_ns(now)
        found = [self.unix_ns(now) // _SECOND_NS]
        for rate in (self.requests, *[self.by_code[code] for code in ORDER_IN_INFO]):
            found += [rate.total, rate.per_minute(now_ns)]
        for rate in (self.read, self.written):
            found += [rate.total, rate.per_minute(now_ns)]
        found += [portion.counters + portion.values, portion.counters, portion.values]
        found += [portion.counters * self.width, portion.value_bytes]
        found.append(self._subscriptions)
        found += [len(self.channels), self.unix_ns(self._started_s), len(self.clients)]
        return found
