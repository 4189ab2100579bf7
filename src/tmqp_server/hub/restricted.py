"""A hub that does not take everything: it drains, or stands by."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Effect
from tmqp_server.hub.draining import refused_by_drain
from tmqp_server.hub.outlets import Outlets
from tmqp_server.hub.questions import Outside
from tmqp_server.hub.standby import refused_by_standby
from tmqp_server.hub.traced import Traced

__all__ = ["Restricted"]


class Restricted(Traced):
    """The sessions of a hub, with what it takes of them; ``Hub`` completes it.

    Attributes: ``draining``, no more is taken; ``stands_by``, another server takes clients, at
    ``leader_address`` if that is known; ``restricted``, either of them; ``is_restoring``,
    the broker has not all of what is kept yet, and nothing is due for it.
    """

    def __init__(self, broker: Broker, outlets: Outlets, outside: list[Outside]) -> None:
        super().__init__(broker, outlets, outside)
        self.draining = False
        self.stands_by = False
        self.leader_address = ""
        self.restricted = False
        self.is_restoring = False

    def broker_deadline(self) -> float | None:
        """When the broker wants ``on_broker_deadline``; None for never."""
        return None if self.is_restoring else super().broker_deadline()

    def block(self, number: int, now: float) -> None:
        """The session's peer does not read: hold its deliveries back."""
        raise NotImplementedError

    def drain(self, now: float) -> None:
        """Take no more clients and messages, and deliver none, until the end; operators are served
        as ever.  What has been delivered may be acknowledged."""
        if self.draining:
            return
        self.draining = self.restricted = True
        for number in list(self._sessions):
            accepted = number > 0 and number not in self._outlets.strangers
            if accepted and not self.is_operators(number):
                self.block(number, now)

    def stand_by(self, address: str) -> None:
        """Take no clients, from before the first of them until :meth:`take_clients`; operators are
        shown how the server is.

        :param address: where the leader of the group takes them; empty when nobody leads.
        """
        self.stands_by = self.restricted = True
        self.leader_address = address

    def take_clients(self) -> None:
        """Stand by no more."""
        self.stands_by = False
        self.restricted = self.draining

    def _refused_now(self, number: int, command: Command) -> Sequence[Effect] | None:
        """What is told to a client whose command is not carried out now; None for any other."""
        operator = self.is_operators(number)
        if self.stands_by:
            refused = refused_by_standby(command, operator, self.leader_address)
            if refused is not None:
                return refused
        return refused_by_drain(command) if self.draining and not operator else None
