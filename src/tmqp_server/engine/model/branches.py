"""Branches: the consumers of a connection that has several, each told apart by a number.

A branch's number tells the connection that it belongs to.  Connections are numbered upwards from 1;
a branch's number is below zero and is made of its connection's and of a count, so whoever has one
knows the other without a table.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.model.sessions import Session

__all__ = ["branch_number", "connection_of", "index_of", "with_branches"]

_BITS: Final = 32
_MOST: Final = (1 << _BITS) - 1


def branch_number(connection: int, index: int) -> int:
    """The number of a branch of a connection.

    :param index: from 1 on, never used twice by the connection.
    :raises ValueError: when the connection has used up its numbers.
    """
    if not 0 < index <= _MOST:
        raise ValueError(f"a connection has no branch {index}")
    return -((connection << _BITS) | index)


def connection_of(number: int) -> int:
    """The connection of a branch; a connection's own number is returned as it is."""
    return number if number >= 0 else -number >> _BITS


def index_of(number: int) -> int:
    """Which of its connection's branches it is; 0 for the connection itself."""
    return 0 if number >= 0 else -number & _MOST


def with_branches(session: Session) -> list[Session]:
    """A client and all its branches, whichever of them this is."""
    client = session.parent or session
    return [client, *(client.branches or {}).values()]
