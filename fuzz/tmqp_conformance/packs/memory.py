"""The stage in memory for packs: a server without I/O that has several addresses."""

from __future__ import annotations

from typing import Protocol

from tmqp.testing.conformance import Case, Machine, MemoryStage
from tmqp.testing.conformance.memory import MemoryWire

__all__ = ["PackMachine", "PackMemoryStage"]


class PackMachine(Machine, Protocol):
    """A server without I/O; ``place`` says at which address the next connection is opened."""

    place: str


class PackMemoryStage(MemoryStage):
    """Plays cases of packs against one machine."""

    def __init__(self, machine: PackMachine, time_s: float = 1_000.0) -> None:
        super().__init__(machine, time_s)
        self._placed = machine

    def open(self, line: str, case: Case) -> MemoryWire:
        """See :class:`tmqp.testing.conformance.Stage`."""
        self._placed.place = case.place(line)
        return super().open(line, case)
