"""A client without bytes: its commands go to the broker, and it hears the answers.

It comes in by a door of its own, as the operator does (``operators.py``), but it waits: the server
reads its commands when it comes to them, and ends the connection when it wants to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tmqp_server.engine.commands import Command, Connect
from tmqp_server.engine.effects import Accept, Effect, Refuse
from tmqp_server.shell.world import Wire
from tmqp_sim.operators import OperatorDoor, OperatorSession
from tmqp_sim.stage import Stage

__all__ = ["Asker"]


class _Wire(Wire):
    """The client's end of its connection: it reads everything."""

    def __init__(self, peer: str) -> None:
        self.peer = peer

    def send(self, data: bytes) -> int:
        """All is taken."""
        return len(data)


class _Session(OperatorSession):
    """The connection of one life."""

    def __init__(self, number: int, asker: Asker) -> None:
        super().__init__(number)
        self._asker = asker

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Tell the client what is answered, unless it has another connection."""
        asker = self._asker
        if asker.session is self:
            if isinstance(effect, Accept):
                asker.accepted = True
            elif isinstance(effect, Refuse):
                self.closed = True
            else:
                asker.hear(effect)
        return ()


class _Door(OperatorDoor):
    """Opens such sessions."""

    def __init__(self, name: str, number: int, asker: Asker) -> None:
        super().__init__()
        self.name = name
        self.number = number
        self._asker = asker

    def open(self, session: int, now: float) -> _Session:
        """A connection."""
        return _Session(session, self._asker)


class Asker(ABC):
    """A client that asks by commands.

    :param name: the client's name, and that of its door.
    :param door: the door's number, which no other door of the simulation has.
    """

    def __init__(self, simulation: Stage, name: str, door: int) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._name = name
        self._door = _Door(name, door, self)
        self.session: _Session | None = None
        self.accepted = False
        #: When it has asked for something last.
        self._asked_at = 0.0

    @abstractmethod
    def hear(self, effect: Effect) -> None:
        """An answer has come."""

    def _open(self, number: int, producer: str) -> None:
        """Connect.

        :param producer: the door whose messages it pushes.
        """
        server = self._simulation.server
        self.accepted = False
        server.turn.opened(number, self._door, _Wire(f"{self._name}:1"), self._name, server.now)
        session = server.hub._sessions[number]
        assert isinstance(session, _Session)
        self.session = session
        self._say([Connect(number, None, self._name, door=producer)])

    def _say(self, commands: Sequence[Command]) -> None:
        """Ask for this when the server comes to it."""
        session = self.session
        assert session is not None, "it is connected"
        session.queued.extend(commands)
        self._asked_at = self._world.now
        self._simulation.server.hear(self._speak)

    def _speak(self) -> None:
        """The server reads that there is something."""
        server = self._simulation.server
        if self.session is not None:
            server.turn.received(self.session.number, b"!", server.now)
