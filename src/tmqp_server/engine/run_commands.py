"""Owns the command for pushes in a row into one queue, and what a door gives with it."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands import Push, SessionCommand

__all__ = ["PushRun", "RunNotes", "RunWire"]


class RunNotes:
    """What the engine says to a door about its runs; ``divided`` is set when one was.

    The door that reads it may well bring the next ones singly.
    """

    __slots__ = ("divided",)

    def __init__(self) -> None:
        self.divided = False


@mypyc_attr(allow_interpreted_subclasses=True)
class RunWire:
    """What a door makes of a run; it gets it back when the run is delivered."""

    def pushes(self, run: PushRun) -> list[Push]:
        """The same as single pushes."""
        raise NotImplementedError


@mypyc_attr(acyclic=True)
class PushRun(SessionCommand):
    """Put messages, all of regular or all of high priority, into one queue, in their order.

    None of them brings extras, nor asks to be told.  ``count`` is how many there are, ``size`` what
    they cost together, in bytes, and ``largest`` what the largest does.

    ``left`` are the pushes still to be carried out of a run that is divided, the next one last.
    """

    __slots__ = ("channel", "queue_id", "count", "size", "largest", "wire", "notes", "left")

    def __init__(
        self,
        session: int,
        channel: str,
        queue_id: int,
        count: int,
        size: int,
        largest: int,
        wire: RunWire,
        notes: RunNotes,
    ) -> None:
        self.session = session
        self.channel = channel
        self.queue_id = queue_id
        self.count = count
        self.size = size
        self.largest = largest
        self.wire = wire
        self.notes = notes
        self.left: list[Push] = []

    def pushes(self) -> list[Push]:
        """The same as single pushes: the run will be divided."""
        self.notes.divided = True
        return self.wire.pushes(self)

    def singles(self) -> list[Push]:
        """Those still to be carried out, as single pushes."""
        return self.left[::-1] if self.left else self.pushes()

    def divide(self) -> None:
        """Have the pushes carried out one by one."""
        self.left = self.pushes()
        self.left.reverse()
