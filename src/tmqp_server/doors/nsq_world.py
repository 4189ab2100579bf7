"""The state that the doors of NSQ in one server share: nsqd's TCP and HTTP doors, and the
announcer.

The door registry makes one world for each server and gives it to each kind.  While a TCP session is
connected, its :class:`NsqClient` is in the world, for the statistics of the HTTP door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, final

from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.nsq_latency import Latencies
from tmqp_server.doors.tables import Option
from tmqp_server.engine.commands import Command, CreateQueue, PushExtras
from tmqp_wires.nsq.identify import ServerTerms
from tmqp_wires.nsq.lookup import Announce
from tmqp_wires.nsq.names import is_name

__all__ = [
    "CLOSING",
    "DEFAULT_VERSION",
    "LOG_LEVELS",
    "NEW",
    "SUBSCRIBED",
    "NsqClient",
    "NsqNames",
    "NsqWorld",
    "TopicShapes",
    "tell_world",
]

#: The version of the original whose interface this is; clients infer from it what they may use.
DEFAULT_VERSION: Final = "1.3.0"

#: States of a client, as the statistics number them (N126).
NEW: Final = 0
SUBSCRIBED: Final = 3
CLOSING: Final = 4

_MOST_PORT: Final = 65_535

#: Separates the topic and its channel in the name of the broker's channel.
_SEPARATOR: Final = b":"


#: The log levels, with the numbers that ``/config`` shows (N131).
LOG_LEVELS: Final = {"debug": 1, "info": 2, "warn": 3, "error": 4, "fatal": 5}


@final
class NsqNames:
    """Converts the names of topics and their channels to channels of the broker, and back.

    The topic ``T`` is the channel ``T``, its channel ``C`` the channel ``T:C``: no topic has a
    colon in its name.  Names are case-sensitive, except the broker's channels of aliases.

    :param names: those of the doors.  An alias is for ``TOPIC`` or ``TOPIC:CHANNEL``; the alias of
        a topic does not affect its channels.
    :raises ValueError: for an alias whose name is invalid in NSQ.
    """

    def __init__(self, names: DoorNames | None = None) -> None:
        self._names = DoorNames() if names is None else names
        for each in self._names.aliases:
            topic, colon, channel = each.partition(_SEPARATOR)
            if not is_name(topic) or (colon and not is_name(channel)):
                raise ValueError(
                    f"aliases: {each.decode()!r} is neither the name of a topic nor TOPIC:CHANNEL"
                )

    @property
    def aliases(self) -> dict[bytes, str]:
        """The names that the configuration maps, with their channels."""
        return self._names.aliases

    def topic(self, topic: bytes) -> str:
        """The broker's channel for a topic."""
        return self._names.exact_channel(topic)

    def channel(self, topic: bytes, channel: bytes) -> str:
        """The broker's channel for a channel of a topic."""
        return self._names.exact_channel(topic + _SEPARATOR + channel)

    def of(self, channel: str) -> tuple[bytes, bytes] | None:
        """The topic and the channel (empty for a topic) that a channel of the broker is; None if
        its name is invalid in NSQ."""
        topic, colon, name = self._names.foreign_name(channel).partition(_SEPARATOR)
        if is_name(topic) and (is_name(name) if colon else True):
            return topic, name
        return None


class TopicShapes(Protocol):
    """Creates and names topics and channels; at most ``mem_queue_size`` messages of each wait in
    memory."""

    mem_queue_size: int
    names: NsqNames

    def create_topic(self, session: int, topic: bytes, request: object = None) -> CreateQueue:
        """The command to create a topic if it does not exist."""

    def extras(self, topic: bytes, delay_ms: int = 0) -> PushExtras:
        """The extras of a push: they create the topic, because its client may be allowed to push
        but not to create, and defer the message by *delay_ms*."""

    def create_channel(
        self, session: int, topic: bytes, channel: bytes, request: object = None
    ) -> list[Command]:
        """The commands to create a channel of a topic if it does not exist, and to feed it; the
        answers for the queue and the feed carry *request*.  Without the topic, no channel is
        created."""


@final
class NsqClient:
    """One TCP connection, as the statistics show it (N126).

    Attributes: ``topic`` and ``channel``, what it consumes, empty before SUB; ``published``, the
    number of its published messages, by topic; ``failed_finishes``, FINs of messages that it did
    not have, which the broker counts as acknowledgements; ``connected_s``, when it connected, in
    the engine's time; ``identity`` and ``identity_url``, from the auth server, None and empty
    without one; ``tls_version``, empty without TLS.
    """

    __slots__ = (
        "channel",
        "client_id",
        "connected_s",
        "deflate",
        "failed_finishes",
        "finish_count",
        "hostname",
        "identity",
        "identity_url",
        "in_flight_count",
        "message_count",
        "number",
        "published",
        "ready_count",
        "remote_address",
        "requeue_count",
        "sample_rate",
        "snappy",
        "state",
        "tls_cipher_suite",
        "tls_version",
        "topic",
        "user_agent",
    )

    def __init__(self, number: int, remote_address: str, connected_s: float) -> None:
        self.number = number
        self.remote_address = remote_address
        self.connected_s = connected_s
        host = remote_address.rpartition(":")[0]
        self.client_id = host
        self.hostname = host
        self.user_agent = ""
        self.state = NEW
        self.topic = b""
        self.channel = b""
        self.ready_count = 0
        self.in_flight_count = 0
        self.message_count = 0
        self.finish_count = 0
        self.failed_finishes = 0
        self.requeue_count = 0
        self.sample_rate = 0
        self.deflate = False
        self.snappy = False
        self.identity: str | None = None
        self.identity_url = ""
        self.tls_version = ""
        self.tls_cipher_suite = ""
        self.published: dict[bytes, int] = {}


@final
class NsqWorld:
    """The state that the doors of one server share.

    Attributes: ``clients``, the TCP connections by number; ``message_bytes``, bytes of the bodies
    that were published through these doors, by topic; ``about``, what lookupds and clients are told
    about this nsqd; ``names``, the broker's channels of topics and channels; ``latencies``, the
    measured latencies; ``broadcast_ports``, the TCP and the HTTP port that lookupds get, 0 for the
    port that is listened on; ``lookup_addresses``, those of the lookupds; ``log_level``, one of
    ``LOG_LEVELS``; ``started_s``, when the server started, in the engine's time; ``terms``, what
    the server allows, and ``shapes``, which creates topics, None until a door sets them: the TCP
    door, if there is one, sets them first.
    """

    def __init__(self) -> None:
        #: The facts that authenticated clients get: name, URL, number of permissions.
        self.identities: dict[int, tuple[str, str, int]] = {}
        self.terms: ServerTerms | None = None
        self.shapes: TopicShapes | None = None
        self.names = NsqNames()
        self.latencies = Latencies((), 0, 0)
        self.clients: dict[int, NsqClient] = {}
        self.message_bytes: dict[bytes, int] = {}
        self.about = Announce("", "", 0, 0, DEFAULT_VERSION)
        self.broadcast_ports = (0, 0)
        self.started_s = 0.0
        self.log_level = "info"
        self.lookup_addresses: tuple[str, ...] = ()
        self._watchers: list[Callable[[tuple[str, ...]], None]] = []
        self._level_watchers: list[Callable[[str], None]] = []

    def tell(
        self,
        *,
        hostname: str = "",
        broadcast_address: str = "",
        tcp_port: int = 0,
        http_port: int = 0,
    ) -> None:
        """Update the facts about this nsqd; empty arguments change nothing."""
        about = self.about
        self.about = Announce(
            broadcast_address or about.broadcast_address,
            hostname or about.hostname,
            tcp_port or about.tcp_port,
            http_port or about.http_port,
            about.version if self.terms is None else self.terms.version,
        )

    @property
    def announced(self) -> Announce:
        """The facts that lookupds get: ``about``, with the ports that are reachable from other
        machines."""
        about = self.about
        tcp_port, http_port = self.broadcast_ports
        return Announce(
            about.broadcast_address,
            about.hostname,
            tcp_port or about.tcp_port,
            http_port or about.http_port,
            about.version,
        )

    def set_log_level(self, level: str) -> None:
        """Set the log level."""
        self.log_level = level
        for each in self._level_watchers:
            each(level)

    def watch_log_level(self, changed: Callable[[str], None]) -> None:
        """Call *changed* whenever the level changes."""
        self._level_watchers.append(changed)

    def set_lookups(self, addresses: Sequence[str]) -> None:
        """Announce this nsqd to exactly these lookupds from now on."""
        self.lookup_addresses = tuple(dict.fromkeys(addresses))
        for each in self._watchers:
            each(self.lookup_addresses)

    def watch_lookups(self, changed: Callable[[tuple[str, ...]], None]) -> None:
        """Call *changed* now and whenever the addresses change."""
        self._watchers.append(changed)
        changed(self.lookup_addresses)

    def published(self, client: NsqClient | None, topic: bytes, count: int, size: int) -> None:
        """Count *count* published messages whose bodies have *size* bytes."""
        if count:
            self.message_bytes[topic] = self.message_bytes.get(topic, 0) + size
        if client is not None:
            client.published[topic] = client.published.get(topic, 0) + count

    def forget_topic(self, topic: bytes) -> None:
        """Forget the counts of a removed topic."""
        self.message_bytes.pop(topic, None)
        self.latencies.forget(topic)


def tell_world(world: NsqWorld, own: Mapping[str, Option], hostname: str) -> None:
    """Copy those options of a door's table that are about the whole nsqd to its world.

    :raises ValueError: for an invalid port.
    """
    ports: list[int] = []
    for place, name in enumerate(("broadcast_tcp_port", "broadcast_http_port")):
        port = int(str(own[name]))
        if not 0 <= port <= _MOST_PORT:
            raise ValueError(f"{name} must be 0 to {_MOST_PORT}, got {port}")
        ports.append(port or world.broadcast_ports[place])
    world.broadcast_ports = (ports[0], ports[1])
    address = str(own["broadcast_address"])
    if address or not world.about.broadcast_address:
        world.tell(hostname=hostname, broadcast_address=address or hostname)
    lookups = own["nsqlookupd_tcp_addresses"]
    if isinstance(lookups, tuple) and lookups:
        world.set_lookups([str(each) for each in lookups])
