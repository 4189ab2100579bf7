"""The configuration of the door of ZeroMQ: the limits of one peer, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tmqp.address import Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp_server.doors.tables import check_positive
from tmqp_wires.zmtp.config import CURVE, NULL, PLAIN, SOCKET_TYPES
from tmqp_wires.zmtp.keys import key_from

__all__ = ["ENDPOINT", "FIRST_FRAME", "ZmtpLimits", "ZmtpOptions"]

ENDPOINT: Final = "endpoint"
FIRST_FRAME: Final = "first-frame"
_MECHANISMS: Final = tuple(name.lower() for name in (NULL, PLAIN, CURVE))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZmtpLimits:
    """The limits of one peer.

    :raises ValueError: when a value is not positive.
    """

    max_part_bytes: int = 16_777_216
    """Bytes of one part of a message; a longer one ends the connection before it is read."""

    max_parts: int = 1_000
    """Parts of one message; more end the connection."""

    max_message_bytes: int = 16_777_216
    """Bytes of all parts of one message; more end the connection."""

    max_command_bytes: int = 65_536
    """Bytes of a command: the metadata of a peer, or one subscription.  A longer one ends the
    connection."""

    max_subscriptions: int = 10_000
    """Prefixes to which one SUB socket is subscribed; one more ends the connection."""

    max_subscription_bytes: int = 1_048_576
    """Bytes of all these prefixes; more end the connection."""

    high_water_mark: int = 1_000
    """Messages for one peer that have not left the server. Beyond it, a PULL socket gets no more
    until some have left, and for a SUB socket further ones are dropped and counted. A ROUTER socket
    that processes requests has at most as many at a time."""

    max_open_requests: int = 1_000
    """Requests of one peer whose envelopes the server keeps.  Beyond that the oldest is dropped:
    its reply has an empty envelope."""

    max_names: int = 1_000
    """Names that one socket may use in first parts, with the option ``route``: messages with a
    further one are dropped and counted, and requests are refused."""

    handshake_s: float = 30.0
    """Seconds that a peer has to complete the handshake; then the connection ends."""

    heartbeat_timeout_s: float = 30.0
    """Seconds until a PING must be answered; then the connection ends. It applies if the option
    ``heartbeat_ms`` is set."""

    def __post_init__(self) -> None:
        check_positive(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZmtpOptions:
    """What a server does for ZeroMQ sockets.

    :raises ValueError: for a value that cannot be used.
    """

    socket_type: str = ""
    """The type that the endpoint has: ``PULL`` takes only PUSH sockets.  Empty to have, towards
    each socket, the type that suits it."""

    queue_channel: str = "zeromq.queue"
    """The channel of PUSH and PULL sockets."""

    topic_channel: str = "zeromq.topic"
    """The channel of PUB and SUB sockets."""

    service_channel: str = "zeromq.service"
    """The channel of requests: REQ and DEALER sockets ask, REP and ROUTER sockets answer."""

    pair_channel: str = "zeromq.pair"
    """The channel to which a PAIR socket sends.  It receives from the channel with this name and
    the suffix ``.out``."""

    route: str = ENDPOINT
    """``endpoint`` for the channels of the options above; ``first-frame`` where the first part of a
    message names the channel that it goes to."""

    mechanism: str = NULL.lower()
    """``null``; ``plain`` for sockets that show a name and a password; ``curve`` for sockets that
    prove who they are by their keys, and are encrypted."""

    curve_secret_key_file: str = ""
    """The file of the endpoint's secret key."""

    curve_anonymous: bool = False
    """Whether a socket is let in whose public key no entry of the access rules has: it counts as
    one that shows nothing."""

    curve_server_key: str = ""
    """The public key of the sockets of ``connect``, which are servers of CURVE then.  Empty if they
    are its clients."""

    connect: tuple[str, ...] = ()
    """Addresses of sockets that listen, ``tcp://HOST:PORT``: the server connects to them, again and
    again.  Not with the mechanism ``plain``."""

    durable: bool = False
    """Whether messages of queues and services are kept on disk; the server needs a data directory
    then."""

    heartbeat_ms: int = 0
    """Milliseconds between two PINGs of the server to a peer; 0 for none.  Those of peers are
    always answered."""

    def __post_init__(self) -> None:
        if self.socket_type and self.socket_type not in SOCKET_TYPES:
            known = ", ".join(SOCKET_TYPES)
            raise ValueError(f"socket_type must be one of {known}, not {self.socket_type!r}")
        if self.mechanism not in _MECHANISMS:
            raise ValueError(f"mechanism must be null, plain or curve, not {self.mechanism!r}")
        if self.route not in (ENDPOINT, FIRST_FRAME):
            raise ValueError(f"route must be {ENDPOINT} or {FIRST_FRAME}, not {self.route!r}")
        self._check_curve()
        if self.heartbeat_ms < 0:
            raise ValueError(f"heartbeat_ms must not be negative, got {self.heartbeat_ms}")
        if self.connect and self.mechanism == PLAIN.lower():
            raise ValueError(
                "connect needs the mechanism null or curve: the server has no password for plain"
            )
        self.peers()
        channels = (self.queue_channel, self.topic_channel, self.service_channel, self.pair_channel)
        if not all(channels):
            raise ValueError("the name of a channel is empty")

    def _check_curve(self) -> None:
        """Check the options of CURVE."""
        if self.mechanism != CURVE.lower():
            if self.curve_secret_key_file or self.curve_server_key or self.curve_anonymous:
                raise ValueError("options that begin with curve_ need mechanism = 'curve'")
            return
        if not self.curve_secret_key_file:
            raise ValueError("the mechanism curve needs curve_secret_key_file")
        if not self.curve_server_key:
            return
        if not self.connect:
            raise ValueError("curve_server_key needs connect: it is the key of those sockets")
        if not self.socket_type:
            raise ValueError("curve_server_key needs socket_type: a client declares its type first")
        try:
            key_from(self.curve_server_key)
        except ValueError as error:
            raise ValueError(f"curve_server_key: {error}") from None

    def peers(self) -> tuple[Address, ...]:
        """The addresses of ``connect``.

        :raises ValueError: for an invalid address.
        """
        found: list[Address] = []
        for text in self.connect:
            try:
                found.append(parse_address(text.removeprefix("tcp://")))
            except LocalProtocolError as error:
                raise ValueError(f"connect: {error}") from error
        return tuple(found)
