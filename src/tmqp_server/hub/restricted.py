"""A hub that refuses some commands, because it drains or stands by."""

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
    """The sessions of a hub, with the commands that it accepts; ``Hub`` completes it.

    Attributes: ``draining``, whether it accepts nothing more; ``stands_by``, whether another server
    serves clients, at ``leader_address`` if known; ``restricted``, whether it drains or stands by;
    ``is_restoring``, the broker does not have the whole contents of the store yet, and its
    deadlines wait.
    """

    def __init__(self, broker: Broker, outlets: Outlets, outside: list[Outside]) -> None:
        super().__init__(broker, outlets, outside)
        self.draining = False
        self.stands_by = False
        self.leader_address = ""
        self.restricted = False
        self.is_restoring = False

    def broker_deadline(self) -> float | None:
        """Return when to call ``on_broker_deadline``; None for never."""
        return None if self.is_restoring else super().broker_deadline()

    def block(self, number: int, now: float) -> None:
        """Hold deliveries back from a session whose peer does not read."""
        raise NotImplementedError

    def drain(self, now: float) -> None:
        """Accept no more clients and messages, and deliver none, until the end; operators are
        served as usual.  Delivered messages may be acknowledged."""
        if self.draining:
            return
        self.draining = self.restricted = True
        for number in list(self._sessions):
            accepted = number > 0 and number not in self._outlets.strangers
            if accepted and not self.is_operators(number):
                self.block(number, now)

    def stand_by(self, address: str) -> None:
        """Refuse clients until :meth:`take_clients`; call it before the first one connects.
        Operators can see the state of the server.

        :param address: the leader's address for clients; empty without a leader.
        """
        self.stands_by = self.restricted = True
        self.leader_address = address

    def take_clients(self) -> None:
        """Stop standing by."""
        self.stands_by = False
        self.restricted = self.draining

    def _refused_now(self, number: int, command: Command) -> Sequence[Effect] | None:
        """Return the answer to a command that is refused now; None if it is carried out."""
        operator = self.is_operators(number)
        if self.stands_by:
            refused = refused_by_standby(command, operator, self.leader_address)
            if refused is not None:
                return refused
        return refused_by_drain(command) if self.draining and not operator else None
