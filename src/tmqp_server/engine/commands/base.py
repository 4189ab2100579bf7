"""The base class of commands.

A door builds commands from the messages of its peers; the io layer adds Connect, Disconnect, Block
and Unblock, the storage Synced.  ``session`` is the number of the requesting connection.
``request`` is opaque to the engine: the Reply returns it, so that the door knows which request is
answered; a command whose request is None gets no Reply.

Every operation is answered exactly once, also after an error; the connection stays open (F43).
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
    """An input of the engine."""

    __slots__ = ()


@mypyc_attr(acyclic=True)
class SessionCommand(Command):
    """A command of a session; if the session is not connected, it is ignored and counted."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session
