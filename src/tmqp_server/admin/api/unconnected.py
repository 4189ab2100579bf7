"""Sessions of the broker without a connection, for what must outlive a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp_server.doors.port import DoorSession
from tmqp_server.engine.commands import Command

__all__ = ["FIRST_UNCONNECTED", "Unconnected"]

#: Their numbers begin here: no server has so many connections.
FIRST_UNCONNECTED: Final = 1 << 40


class Unconnected(DoorSession):
    """A session without a connection and without deadlines."""

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Fail: a session without a connection receives nothing."""
        raise AssertionError("it has no connection")

    def receive_eof(self, now: float) -> Sequence[Command]:
        """Do nothing: there is no peer."""
        return ()

    def deliver(self, data: bytes) -> None:
        """Ignore bytes for several sessions: they are for connections."""

    def data_to_send(self) -> bytes:
        """Return nothing."""
        return b""

    def next_deadline(self) -> float | None:
        """Never: the session waits for nothing."""
        return None

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do nothing: the session waits for nothing."""
        return ()
