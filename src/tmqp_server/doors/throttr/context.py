"""What all connections of a door of Throttr share: its options, and who is connected."""

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

#: The channel on which every client of the dialect 7.3 is.
EVERYBODY: Final = b"*"
#: Which original a dialect is that of.
_VERSIONS: Final = {DIALECT_73: "5.0.11"}
_VERSION: Final = "5.0.2"
#: A channel that nobody has used for so long is removed, in milliseconds.
_IDLE_MS: Final = 60_000
_SECOND_NS: Final = 1_000_000_000


def to_ns(seconds: float) -> int:
    """A time in nanoseconds."""
    return int(seconds * _SECOND_NS)


@final
class ThrottrPlace:
    """A client's place on a channel: since when, in nanoseconds of 1970, and payload bytes that it
    has got and published there; ``spelt`` is the channel as the engine names it, once it has."""

    __slots__ = ("read_bytes", "since_ns", "spelt", "write_bytes")

    def __init__(self, since_ns: int) -> None:
        self.spelt = ""
        self.since_ns = since_ns
        self.read_bytes = 0
        self.write_bytes = 0


@final
class ThrottrClient:
    """What is reported about a client.

    ``identity`` has 16 bytes; ``client_id`` is that of the engine.  Bytes are those of the
    connection, and of payloads that it has published and got.
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
        """The channel by which the dialect 7.3 reaches this client alone."""
        return self.identity.hex().encode()


@final
class ThrottrContext:
    """The context of a session; the parameters are those of ``ThrottrDoor``.

    ``clients`` are connected, by identity in the order of connecting; ``channels`` has the clients
    of each channel that has any.
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
        #: The time when something happened last at one of these doors, in nanoseconds.
        self.now_ns = 0
        self._subscriptions = 0
        self._offset_s = wall_clock_offset_s
        self._started_s = started_s

    def unix_ns(self, seconds: float) -> int:
        """A time of the engine in nanoseconds since 1970."""
        return to_ns(seconds + self._offset_s)

    @property
    def offset_ns(self) -> int:
        """What to add to the engine's nanoseconds for those since 1970."""
        return to_ns(self._offset_s)

    def opening(self, session: int, channel: str) -> Command:
        """The command that makes the channel of a name, if it is not there."""
        changes = QueueChanges(status=STATUS_BROADCAST, request_acknowledge=False)
        idle = ChannelChanges(idle_timeout_ms=_IDLE_MS)
        return CreateQueue(session, None, channel, QUEUE, changes, idle)

    # -- who is here ------------------------------------------------------------------------------

    def come(self, client: ThrottrClient) -> None:
        """A client has connected."""
        self.clients[client.identity] = client

    def go(self, client: ThrottrClient) -> None:
        """A client has gone, from all channels."""
        self.clients.pop(client.identity, None)
        for channel in list(client.subscriptions):
            self.unsubscribe(client, channel)

    def subscribe(self, client: ThrottrClient, channel: bytes, now: float) -> None:
        """A client is on a channel from now on."""
        if channel in client.subscriptions:
            return
        client.subscriptions[channel] = ThrottrPlace(self.unix_ns(now))
        self.channels.setdefault(channel, {})[client.identity] = client
        self._subscriptions += 1

    def unsubscribe(self, client: ThrottrClient, channel: bytes) -> None:
        """A client is no longer on a channel."""
        if client.subscriptions.pop(channel, None) is not None:
            self._subscriptions -= 1
        there = self.channels.get(channel)
        if there is not None:
            there.pop(client.identity, None)
            if not there:
                del self.channels[channel]

    # -- figures ----------------------------------------------------------------------------------

    def count_request(self, client: ThrottrClient, code: int, now_ns: int) -> None:
        """A request is about to be carried out; it counts for the replies that tell of it."""
        self.requests.add(1, now_ns)
        self.by_code[code].add(1, now_ns)
        if code in client.requests:
            client.requests[code] += 1

    def info(self, portion: CellPortion, now: float) -> list[int]:
        """The numbers of an INFO; *portion* counts the keys."""
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
