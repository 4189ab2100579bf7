"""What one side of a ZMTP connection is told before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["NULL", "PLAIN", "SOCKET_TYPES", "ZmtpConfig", "is_pair", "mirror_of"]

NULL: Final = "NULL"
PLAIN: Final = "PLAIN"
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
#: With whom each may talk (RFC 28 to 31).
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
#: What a side that is anything is towards a peer.
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
    """The type that suits a peer of this one; empty for a type that is unknown."""
    return _MIRRORS.get(socket_type, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZmtpConfig:
    """One side of a connection.

    ``socket_type`` may be empty where the peer speaks first (``as_server``, or ZMTP 2.0): then
    :meth:`ZmtpConnection.ready` says it once the peer has said what it is.  ``as_server`` is about
    PLAIN, and about who waits.  ``user`` and ``password`` are those that a client of PLAIN shows.
    """

    socket_type: str = ""
    as_server: bool = False
    identity: bytes = b""
    properties: tuple[tuple[str, bytes], ...] = ()
    mechanism: str = NULL
    user: bytes = b""
    password: bytes = b""
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
    """A PING is sent once in so many seconds; 0 for never."""
    heartbeat_timeout_s: float = 30.0
    """After so many seconds without an answer to it the peer is gone."""
