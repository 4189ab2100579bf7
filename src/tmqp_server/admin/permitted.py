"""Requests that need a right of the broker, and that the door then answers itself."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp.constants import RESULT_OK
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import of_result
from tmqp_server.engine.commands import Command, Permission
from tmqp_server.engine.effects import Effect, Reply

__all__ = ["Permitted"]


class Permitted(Handler):
    """Asks for a right, and continues when the client has it.

    :param permission: the command that asks for it.
    """

    def __init__(self, exchange: Exchange, permission: Permission) -> None:
        super().__init__(exchange)
        self._permission = permission

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the right."""
        self._permission.request = self
        return [self._permission]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Refuse, or continue."""
        assert isinstance(effect, Reply), "nothing else was asked"
        if effect.code != RESULT_OK:
            text = "the client does not have the right to see this"
            self.exchange.respond(of_result(effect.code, text))
        else:
            self.permitted(now)
        return ()

    def permitted(self, now: float) -> None:
        """Answer, or set ``due`` to continue later: the client has the right."""
        raise NotImplementedError

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do nothing: this request has no deadline."""
        return ()
