"""The port between a hub and the code that connects it with other servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command, Connect
from tmqp_server.engine.effects import Effect, TellNodes

__all__ = ["Relay"]


class Relay(Protocol):
    """Connects this server with others; see ``cluster/``."""

    def meet(
        self, number: int, door: Door, command: Command, now: float
    ) -> Sequence[Effect] | None:
        """Handle a session's command: pass it on to other servers if necessary.

        :returns: what to do instead of the command; None to carry it out.
        """

    def tell(self, effect: TellNodes) -> tuple[bytes, Sequence[int]]:
        """Report a decision to other servers.  Return bytes for sessions here, and those sessions'
        numbers.
        """

    def heed(self, command: Command) -> bool:
        """Return whether a message or decision of a master is carried out here."""

    def recognises(self, command: Connect) -> bool:
        """Whether this is the connect of a node."""

    def forget(self, number: int) -> None:
        """Forget a session that has ended."""

    def take_error(self) -> Exception | None:
        """Return the exception that a filter in Python has raised since the last call, if any."""
