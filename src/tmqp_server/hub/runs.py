"""Runs: deliveries in a row to the same sessions, handed over in one piece.

Theory of operation.  A busy queue sends message after message to the same audience, whose list of
session numbers stays the very same object until somebody joins or leaves.  So when a list comes
again, its deliveries are not handed to the sessions one by one any more: they are collected as a
*run*, joined, and given to each of its sessions at once.  A thousand consumers share one piece of
bytes for all the messages of a turn.

What a session gets must stay in order.  Runs that are open at one time have no session in common,
and whatever else is for a session of a run makes all runs go out first (:meth:`Runs.meets`).

It is pure, and knows nothing of the engine but the delivery.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.effects import Deliver

__all__ = ["OpenRuns", "Run", "RunPart"]

#: Runs open at one time: one for those who get messages first, one for all others.
_MOST_RUNS: Final = 2


@final
class RunPart:
    """The sessions of a run that speak one protocol, and what they are to get."""

    __slots__ = ("door", "pieces", "sessions")

    def __init__(self, door: Door) -> None:
        self.door = door
        self.sessions: list[tuple[int, DoorSession]] = []
        self.pieces: list[bytes] = []


@final
class Run:
    """Deliveries to the same sessions; ``numbers`` is the engine's own list of them."""

    __slots__ = ("members", "numbers", "parts", "size")

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self.members = set(numbers)
        self.parts: list[RunPart] = []
        self.size = 0

    def admit(self, number: int, session: DoorSession, door: Door) -> None:
        """Add one of its sessions."""
        for part in self.parts:
            if part.door is door:
                part.sessions.append((number, session))
                return
        part = RunPart(door)
        part.sessions.append((number, session))
        self.parts.append(part)


@final
class OpenRuns:
    """The runs that are open, at most two, and the lists seen last."""

    __slots__ = ("_older", "_recent", "open")

    def __init__(self) -> None:
        self.open: list[Run] = []
        self._recent: list[int] = []
        self._older: list[int] = []

    def find(self, numbers: list[int]) -> Run | None:
        """The open run of this very list."""
        for run in self.open:
            if run.numbers is numbers:
                return run
        return None

    def comes_again(self, numbers: list[int]) -> bool:
        """Whether this very list was one of the last two; it is remembered."""
        if numbers is self._recent or numbers is self._older:
            return True
        self._older = self._recent
        self._recent = numbers
        return False

    def has_room_for(self, run: Run) -> bool:
        """Whether a run can be open beside those that are."""
        if len(self.open) >= _MOST_RUNS:
            return False
        return all(run.members.isdisjoint(other.members) for other in self.open)

    def meets(self, number: int) -> bool:
        """Whether a session belongs to an open run."""
        for run in self.open:  # noqa: SIM110 - any() would make a generator
            if number in run.members:
                return True
        return False

    def meets_any(self, numbers: list[int]) -> bool:
        """Whether one of these sessions belongs to an open run."""
        for run in self.open:  # noqa: SIM110 - as above
            if not run.members.isdisjoint(numbers):
                return True
        return False

    def take(self) -> list[Run]:
        """Close all runs."""
        taken = self.open
        self.open = []
        return taken

    def add(self, run: Run, effect: Deliver) -> Exception | None:
        """Add a delivery; returns what kept it from being encoded."""
        fault: Exception | None = None
        for part in run.parts:
            try:
                data = part.door.encode_delivery(effect)
            except Exception as error:  # noqa: BLE001 - hurts this message, not its producer
                fault = error
                continue
            part.pieces.append(data)
            run.size += len(data)
        return fault
