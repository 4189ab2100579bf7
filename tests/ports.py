"""Ports for programs that must be told theirs before they start."""

from __future__ import annotations

import socket
from typing import Final

__all__ = ["free_port"]

#: What keeps others off the ports that were given out.
_HELD: Final[list[socket.socket]] = []


def free_port() -> int:
    """A port of this machine that nobody has, and nobody else gets from the system while this
    process lives: neither another test nor a connection that goes out.

    Nobody listens there until a program does.  Servers bind with ``SO_REUSEADDR``, and so does
    this: then a port that nobody listens on can be bound twice.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _HELD.append(held)
    port: int = held.getsockname()[1]
    return port
