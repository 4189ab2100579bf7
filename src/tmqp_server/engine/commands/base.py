"""What every command is.

A door builds commands from what its peers send; the io layer adds Connect, Disconnect, Block and
Unblock, the storage Synced.  ``session`` is the number of the connection that asks.  ``request``
is opaque to the engine: it comes back in the Reply, so that the door knows what is answered, and
a request of None gets no Reply at all.

Every operation is answered exactly once, errors included; the connection stays (F43).
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.records import Record

__all__ = [
    "Command",
    "SessionCommand",
]


@mypyc_attr(acyclic=True)
class Command(Record):
    """Something asked of the engine."""

    __slots__ = ()


@mypyc_attr(acyclic=True)
class SessionCommand(Command):
    """Something asked by a session that is connected; from any other it is ignored and counted."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session
