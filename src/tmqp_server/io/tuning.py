"""The options of accepted connections in the kernel."""

from __future__ import annotations

import socket
from typing import Final

__all__ = ["KEEPALIVE_IDLE_S", "KEEPALIVE_PROBES", "KEEPALIVE_PROBE_S", "tune"]

#: After this silence, the kernel probes the peer's machine repeatedly, and ends the connection
#: after this number of unanswered probes.
KEEPALIVE_IDLE_S: Final = 60
KEEPALIVE_PROBE_S: Final = 15
KEEPALIVE_PROBES: Final = 4
#: The options, by the name that the platform may have.
_KEEPALIVE: Final = (
    ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
    ("TCP_KEEPINTVL", KEEPALIVE_PROBE_S),
    ("TCP_KEEPCNT", KEEPALIVE_PROBES),
)


def tune(sock: socket.socket) -> None:
    """Make a connection send immediately, and end when its peer's machine has disappeared.

    Some protocols have no heartbeat: the messages in flight to such a client are redelivered only
    when its connection ends.

    :raises OSError: if the peer has already disconnected.
    """
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
