"""The stage in memory: plays cases against any server or client without I/O, in virtual time.

The peer under test is a :class:`Machine`, which takes bytes and the current time and returns bytes.
A server's machine has many connections; :meth:`Machine.open` lets a client's machine connect.
"""

from __future__ import annotations

from typing import Protocol

from tmqp.testing.conformance.cases import Case
from tmqp.testing.conformance.lines import UnreachableError

__all__ = ["Machine", "MemoryStage", "MemoryWire"]


class Machine(Protocol):
    """A server with all its connections, or a client, without I/O."""

    def open(self, case: Case, now: float) -> int | None:
        """Open a connection; return its number, or None if there is none."""

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Receive bytes of the tester, as one chunk."""

    def take(self, number: int) -> bytes:
        """Return the bytes that the machine has sent on this connection since the last call."""

    def is_closed(self, number: int) -> bool:
        """Whether the machine has closed this connection."""

    def end(self, number: int, now: float) -> None:
        """Handle that the tester sends no more on this connection."""

    def lose(self, number: int, now: float) -> None:
        """Handle the loss of the connection."""

    def next_deadline(self) -> float | None:
        """Return when to call :meth:`on_deadline` at the latest; None for never."""

    def on_deadline(self, now: float) -> None:
        """Do what is due at this time."""


class MemoryStage:
    """Plays cases against one machine; ``time_s`` is the clock, in seconds."""

    def __init__(self, machine: Machine, time_s: float = 1_000.0) -> None:
        self.machine = machine
        self.time_s = time_s

    def open(self, line: str, case: Case) -> MemoryWire:
        """See :class:`tmqp.testing.conformance.lines.Stage`."""
        number = self.machine.open(case, self.time_s)
        if number is None:
            raise UnreachableError("the peer does not connect")
        return MemoryWire(self, number)

    def now(self) -> float:
        """Return the time, in seconds."""
        return self.time_s

    def wait(self, seconds: float) -> None:
        """Let time pass; the machine does what is due meanwhile."""
        until = self.time_s + seconds
        while self.step(until):
            pass
        self.time_s = max(self.time_s, until)

    def restart(self) -> None:
        """See :class:`tmqp.testing.conformance.lines.Stage`."""
        raise UnreachableError("a machine in memory cannot be restarted")

    def step(self, until: float) -> bool:
        """Advance to the next deadline; return False if there is none until then."""
        due = self.machine.next_deadline()
        if due is None or due > until:
            return False
        self.time_s = max(self.time_s, due)
        self.machine.on_deadline(self.time_s)
        return True


class MemoryWire:
    """One connection; :class:`tmqp.testing.conformance.lines.Wire`."""

    def __init__(self, stage: MemoryStage, number: int) -> None:
        self._stage = stage
        self._number = number
        self._left = False

    @property
    def closed(self) -> bool:
        """Whether the machine or this side has closed it."""
        return self._left or self._stage.machine.is_closed(self._number)

    def send(self, data: bytes) -> None:
        """Pass bytes to the machine, which also does what is due at this time."""
        if not self.closed:
            self._stage.machine.receive(self._number, data, self._stage.time_s)
        self._stage.wait(0.0)

    def receive(self, wait_s: float) -> bytes:
        """Return the machine's bytes; time passes until there are some, or until the wait is
        over."""
        until = self._stage.time_s + wait_s
        while True:
            data = self._stage.machine.take(self._number)
            if data or self.closed:
                return data
            if not self._stage.step(until):
                self._stage.time_s = max(self._stage.time_s, until)
                return self._stage.machine.take(self._number)

    def close(self, how: str) -> None:
        """End the transport, or this side's half of it."""
        if self._left:
            return
        if how != "abort":
            self._stage.machine.end(self._number, self._stage.time_s)
        if how != "half":
            self._left = True
            self._stage.machine.lose(self._number, self._stage.time_s)
        self._stage.wait(0.0)
