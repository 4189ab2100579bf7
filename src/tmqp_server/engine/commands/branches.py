"""Branches: the consumers of a connection that has several, each with its own number.

The number of a branch determines its connection.  Connections are numbered upwards from 1; a
branch's number is negative and is computed from that of its connection and a count, so no table is
needed to find one from the other.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.commands.base import SessionCommand

__all__ = ["CloseBranch", "OpenBranch", "branch_number", "connection_of", "index_of"]

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
    """The index of a branch at its connection; 0 for the connection itself."""
    return 0 if number >= 0 else -number & _MOST


class OpenBranch(SessionCommand):
    """Open a branch: a consumer that is separate from the connection's other consumers.

    A *branch* joins and answers by a number of its own (``branch_number``), so two of them may join
    one channel and each gets its own deliveries.  Everything else it shares with its connection:
    the client's name and rights, the limits, whether it reads, and its end.

    Answered by BranchOpened, or by a Reply: 482 if the connection has too many branches, 503 if
    there is no memory for it.  The door must not use a number that is in use or belongs to another
    connection.
    """

    __slots__ = ("branch", "request")

    def __init__(self, session: int, request: object, branch: int) -> None:
        super().__init__(session)
        self.request = request
        self.branch = branch


class CloseBranch(SessionCommand):
    """End a branch as Disconnect ends a connection: it leaves its channels, and its deliveries in
    flight are returned according to its terms.

    Answered by BranchClosed; by a Reply with 404 when there is no such branch.
    """

    __slots__ = ("branch", "request")

    def __init__(self, session: int, request: object, branch: int) -> None:
        super().__init__(session)
        self.request = request
        self.branch = branch
