"""Sessions of the broker without a connection, for what lasts longer than a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp_server.doors.port import DoorSession
from tmqp_server.engine.commands import Command

__all__ = ["FIRST_UNCONNECTED", "Unconnected"]

#: They are numbered from here on: no server has had so many connections.
FIRST_UNCONNECTED: Final = 1 << 40


class Unconnected(DoorSession):
    """A session that nobody sends anything to, and whose deadlines nobody asks for."""

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Nobody says anything here."""
        raise AssertionError("it has no connection")

    def receive_eof(self, now: float) -> Sequence[Command]:
        """Nobody ends it so."""
        return ()

    def deliver(self, data: bytes) -> None:
        """What is shared with others is for them."""

    def data_to_send(self) -> bytes:
        """Nothing."""
        return b""

    def next_deadline(self) -> float | None:
        """Nothing is waited for."""
        return None

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Nothing is waited for."""
        return ()
