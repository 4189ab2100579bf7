"""The part of a run that speaks one foreign protocol: its clients, and the door of each life."""

from __future__ import annotations

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import Door
from tmqp_server.engine.model.queues import Queue
from tmqp_sim.side_books import SideBooks

__all__ = ["Side"]


class Side:
    """A side without books and queues of its own; ``host`` is how the hosts of its clients begin
    (``host.py``)."""

    host = ""

    def watcher(self) -> SideBooks | None:
        """The books of what is owed to its clients, if there are some."""
        return None

    def door(self, letters: Letters) -> Door:
        """The door of a life that begins."""
        raise NotImplementedError

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""

    def is_of(self, queue: Queue) -> bool:
        """Whether the messages of a queue are its clients', and must be dealt with."""
        return False

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        return {}

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is missing.
        """
