"""What the kernel is told about accepted connections."""

from __future__ import annotations

import socket
from typing import Final

__all__ = ["KEEPALIVE_IDLE_S", "KEEPALIVE_PROBES", "KEEPALIVE_PROBE_S", "tune"]

#: After so much silence the kernel asks whether the peer's machine is there, again and again, and
#: ends the connection when as many questions were not answered.
KEEPALIVE_IDLE_S: Final = 60
KEEPALIVE_PROBE_S: Final = 15
KEEPALIVE_PROBES: Final = 4
#: What is set, by the name under which the platform may have it.
_KEEPALIVE: Final = (
    ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
    ("TCP_KEEPINTVL", KEEPALIVE_PROBE_S),
    ("TCP_KEEPCNT", KEEPALIVE_PROBES),
)


def tune(sock: socket.socket) -> None:
    """Have a connection write at once, and end when its peer's machine is gone.

    Some protocols have no sign of life: the messages that such a client has in hand go to others
    only when its connection ends.

    :raises OSError: when the peer has gone already.
    """
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
