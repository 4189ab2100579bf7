"""A server in memory with one door of another protocol, for conversations without sockets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from tests.tmqp_server.outputs import sent
from tests.tmqp_server.world import BEGAN
from tmqp.limits import Limits
from tmqp_server.doors.letters import LetterOwner, Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import Door, IdSource
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.storage.journal import Journal

__all__ = ["DoorClient", "DoorWorld"]


class DoorWorld:
    """A hub with a door, and a clock that the test holds.

    :param make: makes the door, of what makes ids and what reads other doors' messages.
    :param bodies: what reads the door's own messages.
    :param stores: whether there is a storage, which has nothing on disk until :meth:`save`.
    """

    def __init__(
        self,
        make: Callable[[IdSource, Letters], Door],
        bodies: LetterOwner,
        engine_limits: EngineLimits | None = None,
        *,
        stores: bool = False,
    ) -> None:
        numbers = count(1)
        self.now = BEGAN
        self.broker = Broker(engine_limits, BrokerOptions(storage=stores))

        def new_id() -> str:
            return f"{next(numbers):012x}".ljust(32, "0")

        letters = Letters()
        self.native = NativeDoor(new_id, Limits(), 0.0, letters)
        letters.add(self.native)
        letters.add(bodies)
        self.broker.know_wires(LetterWires(letters))
        self.door = make(new_id, letters)
        self.journal = Journal([self.native, self.door]) if stores else None
        self.hub = Hub(self.broker, 0, self.journal)
        self._sessions = 0

    def client(self) -> DoorClient:
        """A new connection."""
        self._sessions += 1
        self.hub.open(self._sessions, self.door, self.now, "127.0.0.1:5000")
        return DoorClient(self, self._sessions)

    def run(self, number: int, command: Command) -> None:
        """Carry out a command of a session."""
        self.hub._run(number, [command], self.now)
        self.settle()

    def save(self, *, fails: bool = False) -> None:
        """Let the disk have what it was asked to keep until now, or refuse it."""
        assert self.journal is not None, "there is a storage"
        for answer in self.journal.answers(self.journal.take(), not fails, 1_000):
            self.hub.perform(answer, self.now)
        for number in range(1, self._sessions + 1):
            self.hub.go_on(number, self.now)
        self.settle()

    def settle(self, until: float | None = None) -> None:
        """Let happen what is due, until so many seconds after the beginning."""
        end = self.now if until is None else BEGAN + until
        while True:
            dues = [self.hub.session_deadline(each) for each in range(1, self._sessions + 1)]
            dues.append(self.hub.broker_deadline())
            due = min((each for each in dues if each is not None), default=None)
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            self.hub.on_broker_deadline(self.now)
            for number in range(1, self._sessions + 1):
                self.hub.on_session_deadline(number, self.now)
        self.now = end


class DoorClient:
    """One connection."""

    def __init__(self, world: DoorWorld, number: int) -> None:
        self._world = world
        self.number = number

    def say(self, *pieces: bytes) -> None:
        """Send pieces, each as a chunk of its own."""
        for piece in pieces:
            self._world.hub.receive(self.number, piece, self._world.now)
        self._world.settle()

    def hear(self) -> bytes:
        """Everything that was sent to it since the last time."""
        return sent(self._world.hub, self.number)

    def pieces(self) -> list[bytes]:
        """The same, as it is written."""
        session = self._world.hub._sessions[self.number]
        found: list[bytes] = []
        while piece := session.next_to_send():
            found.append(piece)
        return found

    def leave(self) -> None:
        """End the connection."""
        self._world.hub.receive_eof(self.number, self._world.now)
        self._world.hub.forget(self.number, self._world.now)
        self._world.settle()

    @property
    def reads(self) -> bool:
        """Whether the server reads what it sends."""
        return self._world.hub.reads(self.number)

    @property
    def closed(self) -> str:
        """Why the server has closed the connection; empty if it has not."""
        return self._world.hub.close_reason(self.number)
