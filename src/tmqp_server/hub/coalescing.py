"""Coalesce consecutive deliveries to the same sessions into one piece.

Theory of operation.  A busy queue sends message after message to the same audience, whose list of
session numbers is the same object until a client joins or leaves.  So when a list occurs again, its
deliveries are no longer passed to the sessions one by one but *coalesced*: collected, joined, and
passed to each of the sessions together.  A thousand consumers share one bytes object with all
messages of a turn.

The output of a session must stay in order.  Open shares have no session in common, and any other
output for one of their sessions sends them first (:meth:`Coalescer.meets`).

It does no I/O, and knows only the delivery of the engine.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.effects import Deliver, Forward

__all__ = ["Coalesced", "CoalescedShare", "Coalescer"]

#: The most open audiences: the clients that get messages first, and all others.
_MOST_OPEN: Final = 2


@final
class CoalescedShare:
    """The sessions of an audience that use one protocol, and their coalesced output."""

    __slots__ = ("door", "pieces", "sessions")

    def __init__(self, door: Door) -> None:
        self.door = door
        self.sessions: list[tuple[int, DoorSession]] = []
        self.pieces: list[bytes] = []


@final
class Coalesced:
    """Deliveries to the same sessions; ``numbers`` is the engine's own list of them."""

    __slots__ = ("members", "numbers", "shares", "size")

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self.members = set(numbers)
        self.shares: list[CoalescedShare] = []
        self.size = 0

    def admit(self, number: int, session: DoorSession, door: Door) -> None:
        """Add a session."""
        for share in self.shares:
            if share.door is door:
                share.sessions.append((number, session))
                return
        share = CoalescedShare(door)
        share.sessions.append((number, session))
        self.shares.append(share)


@final
class Coalescer:
    """The open shares, for at most two audiences, and the last lists."""

    __slots__ = ("_older", "_recent", "open")

    def __init__(self) -> None:
        self.open: list[Coalesced] = []
        self._recent: list[int] = []
        self._older: list[int] = []

    def find(self, numbers: list[int]) -> Coalesced | None:
        """Return the open share for this list object."""
        for each in self.open:
            if each.numbers is numbers:
                return each
        return None

    def comes_again(self, numbers: list[int]) -> bool:
        """Whether this same list object was one of the last two; remember it."""
        if numbers is self._recent or numbers is self._older:
            return True
        self._older = self._recent
        self._recent = numbers
        return False

    def has_room_for(self, new: Coalesced) -> bool:
        """Return whether it can be open beside the open shares."""
        if len(self.open) >= _MOST_OPEN:
            return False
        for other in self.open:  # noqa: SIM110 - any() would make a generator
            if not new.members.isdisjoint(other.members):
                return False
        return True

    def meets(self, number: int) -> bool:
        """Whether a session has an open share."""
        for each in self.open:  # noqa: SIM110 - any() would make a generator
            if number in each.members:
                return True
        return False

    def meets_any(self, numbers: list[int]) -> bool:
        """Whether one of these sessions has an open share."""
        for each in self.open:  # noqa: SIM110 - as above
            if not each.members.isdisjoint(numbers):
                return True
        return False

    def end_turn(self) -> None:
        """Begin another turn.  Coalescing a single message for a single session costs more than
        passing it on, so coalescing begins with the second message of a turn."""
        if len(self._recent) == 1:
            self._recent = []
        if len(self._older) == 1:
            self._older = []

    def take(self) -> list[Coalesced]:
        """Close and return all open shares."""
        taken = self.open
        self.open = []
        return taken

    def add(self, coalesced: Coalesced, effect: Deliver | Forward) -> Exception | None:
        """Add a delivery or a forwarded message; return the error if it could not be encoded."""
        fault: Exception | None = None
        for share in coalesced.shares:
            try:
                if isinstance(effect, Deliver):
                    data = share.door.encode_delivery(effect)
                else:
                    data = share.door.encode_forward(effect)
            except Exception as error:  # noqa: BLE001 - hurts this message, not its producer
                fault = error
                continue
            share.pieces.append(data)
            coalesced.size += len(data)
        return fault
