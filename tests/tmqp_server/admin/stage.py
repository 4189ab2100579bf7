"""A turn with a native door and an admin door, for scripts of bytes and times."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import shake_256
from itertools import count
from typing import Any, Final

from tests.tmqp_server.doors.http.stage import request
from tests.tmqp_server.peers import greeting
from tests.tmqp_server.shell.stage import StubWire, marks
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.admin.kind import AdminKind
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.kinds import DoorContext
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Connect
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.tallies import count_one
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import Ask, Close, GoOn, Log

__all__ = ["Stage", "value_of", "values_of"]

_MOST_STEPS: Final = 10_000


class Stage:
    """A server in memory; ``policy`` decides where it is guarded."""

    def __init__(self, *, guarded: bool = False, **options: Any) -> None:
        numbers = count(1)
        options.setdefault("hosts", ("here",))
        self.native = NativeDoor(lambda: f"{next(numbers):032x}", Limits())
        self.hub = Hub(Broker(), 0, guarded=guarded)
        self.turn = Turn(self.hub, marks())
        self.world = AdminWorld()
        self.world.turn = self.turn
        self.world.listening = True
        self.world.random = lambda size: shake_256(b"%d" % next(numbers)).digest(size)
        letters = Letters([self.native])
        self.hub.broker.know_wires(LetterWires(letters))
        context = DoorContext(
            lambda: f"{next(numbers):032x}",
            0.0,
            letters,
            Limits(),
            {},
            self.native,
            options=options,
        )
        kind = AdminKind(self.world)
        self.admin = kind.open(context)
        self.api = kind.api
        self.policy: Callable[[Question], bool] = lambda _: True
        self.now = 1.0
        self.wires: dict[int, StubWire] = {}
        self.closed: list[int] = []
        self.logs: list[Log] = []
        self._numbers = count(1)

    def new_number(self) -> int:
        """A session's number."""
        return next(self._numbers)

    def connect(self, name: str) -> int:
        """A native client that is logged in; returns its number."""
        number = self.new_number()
        self.wires[number] = StubWire()
        self.turn.opened(number, self.native, self.wires[number], "host", self.now)
        self.say(number, greeting(name))
        return number

    def say(self, number: int, *said: bytes | Frame) -> None:
        """A client says something."""
        data = b"".join([each.raw if isinstance(each, Frame) else each for each in said])
        self.turn.received(number, data, self.now)
        self.attend()

    def end(self, number: int) -> None:
        """A client closes its connection."""
        self.turn.received(number, b"", self.now)
        self.attend()

    def attend(self) -> None:
        """Carry out what the turn wants, and answer what it asks."""
        while effects := self.turn.take_effects():
            for effect in effects:
                if isinstance(effect, Ask):
                    question = effect.question
                    self.turn.decided(effect, self.verdict(question), self.now)
                elif isinstance(effect, GoOn):
                    self.turn.go_on(self.now)
                elif isinstance(effect, Log):
                    self.logs.append(effect)
                elif isinstance(effect, Close):
                    self.closed.append(effect.session)

    def verdict(self, question: Question) -> Verdict:
        """What is said to a question: of a list, all of it may be seen."""
        command = question.command
        connect = command if isinstance(command, Connect) else None
        names = frozenset(question.names)
        return Verdict(self.policy(question), connect=connect, names=names)

    def get(self, target: str, *fields: tuple[str, str], method: str = "GET") -> tuple[int, str]:
        """Ask the admin door, on a new connection; returns the status and the body."""
        number = self.new_number()
        wire = self.wires[number] = StubWire()
        self.turn.opened(number, self.admin, wire, "host", self.now)
        self.say(number, request(method, target, None, *fields))
        for _ in range(_MOST_STEPS):
            head, end, body = bytes(wire.sent).partition(b"\r\n\r\n")
            if end:
                self.end(number)
                return int(head.split()[1]), body.decode()
            self.now = max(self.now, self.turn.next_deadline())
            self.turn.on_deadline(self.now)
            self.attend()
        raise AssertionError(f"{target} was not answered")

    def metrics(self) -> str:
        """A page that nobody has seen before."""
        self.now += 2.0
        status, text = self.get("/metrics")
        assert status == 200
        return text

    def count_refused(self, reason: str) -> None:
        """A connection is not let in."""
        count_one(self.turn.tally.refused, reason)


def values_of(text: str, name: str) -> dict[str, float]:
    """The values of a metric by its labels as they are written."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        sample, _, value = line.rpartition(" ")
        if sample.partition("{")[0] == name:
            found[sample.removeprefix(name).strip("{}")] = float(value)
    return found


def value_of(text: str, name: str, labels: str = "") -> float:
    """One value of a metric."""
    return values_of(text, name)[labels]
