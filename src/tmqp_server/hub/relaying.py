"""The port between a hub and what connects it with other servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command, Connect
from tmqp_server.engine.effects import Effect, TellNodes

__all__ = ["Relay"]


class Relay(Protocol):
    """What connects this server with others; see ``cluster/``."""

    def meet(
        self, number: int, door: Door, command: Command, now: float
    ) -> Sequence[Effect] | None:
        """A session gives a command: pass it on where it must be known too.

        :returns: what to do instead of the command; None to carry it out.
        """

    def tell(self, effect: TellNodes) -> tuple[bytes, Sequence[int]]:
        """Tell other servers of a decision; returns the bytes for sessions here, and for which."""

    def heed(self, command: Command) -> bool:
        """Return whether a message or decision of a master is carried out here."""

    def recognises(self, command: Connect) -> bool:
        """Whether it is a node's."""

    def forget(self, number: int) -> None:
        """A session is over."""

    def take_error(self) -> Exception | None:
        """What a filter in Python raised since the last call, if it did."""
