"""A turn with stand-in wires: the test is the kernel, the clock and whoever carries effects out."""

from __future__ import annotations

from collections.abc import Sequence

from tests.tmqp_server.line_door import LineDoor, LineSession
from tmqp_server.engine.broker import Broker
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.outbound import Marks, Outbound
from tmqp_server.shell.steps import EFFECTS
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import (
    Close,
    GoOn,
    Log,
    Resume,
    StartWriting,
    Wake,
    Wire,
    WorldEffect,
)

__all__ = ["Stage", "StubWire", "marks"]


def marks(
    *,
    most: int = 4_194_304,
    high: int = 262_144,
    low: int = 65_536,
    stall_s: float = 10.0,
    flush_s: float = 2.0,
) -> Marks:
    """What a slow peer may cost, as the configuration has it, or otherwise."""
    return Marks(most, high, low, stall_s, flush_s)


class StubWire(Wire):
    """A kernel with ``room`` for so many bytes; ``failure`` is what sending raises."""

    def __init__(self, room: int = 1_000_000_000) -> None:
        self.room = room
        self.sent = bytearray()
        self.calls = 0
        self.failure: Exception | None = None

    def send(self, data: bytes) -> int:
        if self.failure is not None:
            raise self.failure
        self.calls += 1
        count = min(len(data), self.room)
        self.room -= count
        self.sent += data[:count]
        return count


class _Session(LineSession):
    """Sends what it is given to deliver as it is; everything else as points."""

    def __init__(self, number: int, due: float | None) -> None:
        super().__init__(number, due)
        self._raw = b""

    def deliver(self, data: bytes) -> None:
        super().deliver(data)
        self._raw += data

    def data_to_send(self) -> bytes:
        points = super().data_to_send()
        raw, self._raw = self._raw, b""
        return raw + points[len(raw) :]


class _Door(LineDoor):
    def open(self, session: int, now: float) -> LineSession:
        self.sessions[session] = _Session(session, self.due)
        return self.sessions[session]


class Stage:
    """A turn, its clock, and what it wanted of the world.

    ``steps`` are the last step of each reader, ``closed`` the reasons of sessions that are over,
    ``resumed`` the sessions that are to be read again, ``logs`` the texts of log lines.
    """

    def __init__(self, limits: Marks | None = None, portion_bytes: int = 0) -> None:
        self.door = _Door()
        self.hub = Hub(Broker(), portion_bytes)
        self.turn = Turn(self.hub, limits or marks())
        self.now = 0.0
        self.wires: dict[int, StubWire] = {}
        self.steps: dict[int, int] = {}
        self.closed: dict[int, str] = {}
        self.resumed: list[int] = []
        self.logs: list[Log] = []
        self.others: list[WorldEffect] = []
        self.writing: list[int] = []
        self.goes_on = False
        self.wakes = 0

    def open(self, number: int = 1, *lines: str, room: int = 1_000_000_000) -> LineSession:
        """A client that has connected and said these lines."""
        self.wires[number] = StubWire()
        step = self.turn.opened(number, self.door, self.wires[number], "host", self.now)
        self._follow(number, step)
        for line in (f"connect n{number}", *lines):
            self.hear(number, line)
        session = self.door.sessions[number]
        session.said.clear()
        self.wires[number].sent.clear()
        self.wires[number].calls = 0
        self.wires[number].room = room
        return session

    def _follow(self, number: int, step: int) -> None:
        self.steps[number] = step & ~EFFECTS
        self.attend()

    def hear(self, number: int, line: str) -> int:
        """A client says something; returns what its reader does next."""
        self._follow(number, self.turn.received(number, line.encode(), self.now))
        return self.steps[number]

    def end(self, number: int = 1) -> None:
        """The peer sends no more."""
        self._follow(number, self.turn.received(number, b"", self.now))

    def say(self, data: bytes, number: int = 1) -> None:
        """The broker has something for a session."""
        self.hub.send(number, data)
        self.turn.perform((), self.now)
        self.attend()

    def read(self, count: int, number: int = 1) -> None:
        """The peer reads so much; the writer sends on."""
        wire = self.wires[number]
        wire.room += count
        while piece := self.turn.piece(number):
            try:
                sent = wire.send(piece[self.turn.offset(number) :])
            except OSError as error:
                self.turn.lost(number, str(error), self.now)
                break
            if not sent:
                break
            self.turn.taken(number, sent, self.now)
        self.attend()

    def go_on(self) -> None:
        """Work off all portions that wait in line."""
        while self.goes_on:
            self.goes_on = False
            self.turn.go_on(self.now)
            self.attend()

    def pass_time(self, seconds: float) -> None:
        """So much later, with everything that is due on the way."""
        until = self.now + seconds
        while (due := self.turn.next_deadline()) <= until:
            self.now = max(self.now, due)
            self.turn.on_deadline(self.now)
            self.attend()
        self.now = until

    def attend(self) -> Sequence[WorldEffect]:
        """Note what the turn wants."""
        effects = self.turn.take_effects()
        for effect in effects:
            if isinstance(effect, Close):
                self.closed[effect.session] = effect.reason
            elif isinstance(effect, Resume):
                self.resumed.append(effect.session)
            elif isinstance(effect, StartWriting):
                self.writing.append(effect.session)
            elif isinstance(effect, Log):
                self.logs.append(effect)
            elif isinstance(effect, GoOn):
                assert not self.goes_on, "one at a time"
                self.goes_on = True
            elif isinstance(effect, Wake):
                self.wakes += 1
            else:
                self.others.append(effect)
        return effects

    def out(self, number: int = 1) -> Outbound:
        """What waits for a session that is not over."""
        out = self.turn.outbound(number)
        assert out is not None
        return out
