"""What the doors of NSQ in one server share: nsqd by TCP and by HTTP, and who tells lookupds.

The door registry makes one world for each server and gives it to each kind.  A TCP session keeps a
:class:`NsqClient` in it as long as it is connected, which the statistics of the HTTP door show.
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

#: The version of the original whose interface this is; clients judge by it what they may use.
DEFAULT_VERSION: Final = "1.3.0"

#: States of a client, as the statistics number them (N126).
NEW: Final = 0
SUBSCRIBED: Final = 3
CLOSING: Final = 4

_MOST_PORT: Final = 65_535

#: Between the topic and its channel in the name of the channel's channel.
_SEPARATOR: Final = b":"


#: The words for how much is logged, by the numbers that ``/config`` shows (N131).
LOG_LEVELS: Final = {"debug": 1, "info": 2, "warn": 3, "error": 4, "fatal": 5}


@final
class NsqNames:
    """Which channel of the broker a topic is, and which a channel of a topic, and back.

    The topic ``T`` is the channel ``T``, its channel ``C`` the channel ``T:C``: no topic has a
    colon in its name.  Case counts, but for aliases.

    :param names: those of the doors; an alias is for ``TOPIC`` or ``TOPIC:CHANNEL``, each by
        itself: a topic's alias leaves its channels where they are.
    :raises ValueError: for an alias of what is no name in NSQ.
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
        """The names that are mapped by hand, and their channels."""
        return self._names.aliases

    def topic(self, topic: bytes) -> str:
        """The channel that a topic is."""
        return self._names.exact_channel(topic)

    def channel(self, topic: bytes, channel: bytes) -> str:
        """The channel that a channel of a topic is."""
        return self._names.exact_channel(topic + _SEPARATOR + channel)

    def of(self, channel: str) -> tuple[bytes, bytes] | None:
        """The topic, and the channel or nothing, that a channel of the broker is; None for one
        that is neither: its name cannot be said in NSQ."""
        topic, colon, name = self._names.foreign_name(channel).partition(_SEPARATOR)
        if is_name(topic) and (is_name(name) if colon else True):
            return topic, name
        return None


class TopicShapes(Protocol):
    """How topics and channels are made, and named; ``mem_queue_size`` messages of each wait in
    memory."""

    mem_queue_size: int
    names: NsqNames

    def create_topic(self, session: int, topic: bytes, request: object = None) -> CreateQueue:
        """Makes a topic if there is none."""

    def extras(self, topic: bytes, delay_ms: int = 0) -> PushExtras:
        """What a push says that makes the topic, because its client may push and not create; and
        that its message is not to be sent for so long."""

    def create_channel(
        self, session: int, topic: bytes, channel: bytes, request: object = None
    ) -> list[Command]:
        """Make a channel of a topic if there is none, and feed it; the answers about the queue and
        the feed go to the *request*.  Without the topic no channel is made."""


@final
class NsqClient:
    """One TCP connection, as the statistics show it (N126).

    Attributes: ``topic`` and ``channel``, what it consumes, empty before SUB; ``published``, how
    many messages it has published, by topic; ``failed_finishes``, FINs of messages that it did not
    have, which the broker counts as answers; ``connected_s``, when it came, in the engine's time;
    ``identity`` and ``identity_url``, what the auth server says, None without one; ``tls_version``,
    empty without TLS.
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
    """What the doors of one server share.

    Attributes: ``clients``, the TCP connections by number; ``message_bytes``, bytes of the bodies
    that were published through these doors, by topic; ``about``, what lookupds and clients are
    notified of this nsqd; ``names``, which channels topics and channels are; ``latencies``, how
    long messages took; ``broadcast_ports``, the TCP and the HTTP port that lookupds are told, 0 for
    those listened on; ``lookup_addresses``, where lookupds are; ``log_level``, one of
    ``LOG_LEVELS``; ``started_s``, when the server began, in the engine's time; ``terms``, what
    clients may do, and ``shapes``, how topics are made, None until a door has said so: the TCP door
    does, if there is one, before any other.
    """

    def __init__(self) -> None:
        #: What is told to clients that were authenticated: name, URL, number of permissions.
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
        """Know more of what lookupds and clients get about this nsqd; what is empty stays."""
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
        """What lookupds are told: ``about``, with the ports that are reached from elsewhere."""
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
        """Log more or less from now on."""
        self.log_level = level
        for each in self._level_watchers:
            each(level)

    def watch_log_level(self, changed: Callable[[str], None]) -> None:
        """Have *changed* called whenever the level changes."""
        self._level_watchers.append(changed)

    def set_lookups(self, addresses: Sequence[str]) -> None:
        """Announce what is here to these lookupds from now on, and to no others."""
        self.lookup_addresses = tuple(dict.fromkeys(addresses))
        for each in self._watchers:
            each(self.lookup_addresses)

    def watch_lookups(self, changed: Callable[[tuple[str, ...]], None]) -> None:
        """Have *changed* called whenever the addresses change, and now."""
        self._watchers.append(changed)
        changed(self.lookup_addresses)

    def published(self, client: NsqClient | None, topic: bytes, count: int, size: int) -> None:
        """So many messages, with so many bytes of bodies, were published."""
        if count:
            self.message_bytes[topic] = self.message_bytes.get(topic, 0) + size
        if client is not None:
            client.published[topic] = client.published.get(topic, 0) + count

    def forget_topic(self, topic: bytes) -> None:
        """A topic was removed."""
        self.message_bytes.pop(topic, None)
        self.latencies.forget(topic)


def tell_world(world: NsqWorld, own: Mapping[str, Option], hostname: str) -> None:
    """Let the world know what a table says of the whole nsqd.

    :raises ValueError: for a port that cannot be one.
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
