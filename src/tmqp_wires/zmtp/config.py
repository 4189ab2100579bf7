"""The configuration of one side of a ZMTP connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tmqp_wires.zmtp.curve import CurveClient, CurveKeys, CurveServer
from tmqp_wires.zmtp.mechanisms import Mechanism, NullMechanism, PlainClient, PlainServer

__all__ = [
    "CURVE",
    "MOST_TEXT",
    "NULL",
    "PLAIN",
    "SOCKET_TYPES",
    "ZmtpConfig",
    "is_pair",
    "mirror_of",
]

NULL: Final = "NULL"
PLAIN: Final = "PLAIN"
CURVE: Final = "CURVE"
#: Bytes of a name, a password, an identity.
MOST_TEXT: Final = 255
#: By the number that ZMTP 2.0 gives it.
SOCKET_TYPES: Final = (
    "PAIR",
    "PUB",
    "SUB",
    "REQ",
    "REP",
    "DEALER",
    "ROUTER",
    "PULL",
    "PUSH",
    "XPUB",
    "XSUB",
)
#: The types with which each type may communicate (RFC 28 to 31).
_PEERS: Final[dict[str, tuple[str, ...]]] = {
    "PAIR": ("PAIR",),
    "PUB": ("SUB", "XSUB"),
    "XPUB": ("SUB", "XSUB"),
    "SUB": ("PUB", "XPUB"),
    "XSUB": ("PUB", "XPUB"),
    "REQ": ("REP", "ROUTER"),
    "REP": ("REQ", "DEALER"),
    "DEALER": ("REP", "DEALER", "ROUTER"),
    "ROUTER": ("REQ", "DEALER", "ROUTER"),
    "PUSH": ("PULL",),
    "PULL": ("PUSH",),
}
#: The type that matches each type of a peer.
_MIRRORS: Final[dict[str, str]] = {
    "PAIR": "PAIR",
    "PUB": "XSUB",
    "XPUB": "XSUB",
    "SUB": "XPUB",
    "XSUB": "XPUB",
    "REQ": "ROUTER",
    "REP": "DEALER",
    "DEALER": "ROUTER",
    "ROUTER": "DEALER",
    "PUSH": "PULL",
    "PULL": "PUSH",
}


def is_pair(one: str, other: str) -> bool:
    """Whether sockets of these types talk to each other."""
    return other in _PEERS.get(one, ())


def mirror_of(socket_type: str) -> str:
    """The type of socket that matches a peer of this type; empty for an unknown type."""
    return _MIRRORS.get(socket_type, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZmtpConfig:
    """One side of a connection.

    ``socket_type`` may be empty if the peer identifies itself first (``as_server``, or ZMTP 2.0):
    then :meth:`ZmtpConnection.ready` sends the type afterwards.  ``as_server`` is the role in PLAIN
    and CURVE, and decides which side waits; it is independent of who connects.  ``user`` and
    ``password`` are those of a PLAIN client, ``keys`` those of CURVE.

    :raises ValueError: for values that do not fit together.
    """

    socket_type: str = ""
    as_server: bool = False
    identity: bytes = b""
    properties: tuple[tuple[str, bytes], ...] = ()
    mechanism: str = NULL
    user: bytes = b""
    password: bytes = field(default=b"", repr=False)
    keys: CurveKeys | None = None
    max_part_bytes: int = 16_777_216
    """Bytes of one part."""
    max_parts: int = 1_000
    """Parts of one message."""
    max_message_bytes: int = 16_777_216
    """Bytes of all parts of one message."""
    max_command_bytes: int = 65_536
    """Bytes of a command: metadata, a subscription."""
    handshake_s: float = 30.0
    """How long a peer has to say what it is."""
    heartbeat_s: float = 0.0
    """Seconds between PINGs; 0 for none."""
    heartbeat_timeout_s: float = 30.0
    """Seconds without an answer to a PING after which the peer counts as disconnected."""

    def __post_init__(self) -> None:
        if self.mechanism not in (NULL, PLAIN, CURVE):
            raise ValueError(f"there is no mechanism {self.mechanism!r}")
        if max(len(self.user), len(self.password), len(self.identity)) > MOST_TEXT:
            raise ValueError("a name, a password and an identity have at most 255 bytes")
        if not self.socket_type and not self.as_server:
            raise ValueError("a client must say what it is: name a socket type")
        if self.mechanism != CURVE:
            return
        if self.keys is None:
            raise ValueError("CURVE needs keys")
        if bool(self.keys.server_key) == self.as_server:
            raise ValueError("a client of CURVE needs the key of its server, and a server has none")

    def handshake(self) -> Mechanism:
        """Create this side of the mechanism, for one connection."""
        if self.mechanism == PLAIN:
            return PlainServer() if self.as_server else PlainClient(self.user, self.password)
        keys = self.keys
        if self.mechanism == CURVE and keys is not None:
            return CurveServer(keys) if self.as_server else CurveClient(keys)
        return NullMechanism()
