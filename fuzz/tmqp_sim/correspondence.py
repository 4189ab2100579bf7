"""Who may answer whom: direct messages that wait for an answer, as the broker should see them."""

from __future__ import annotations

from tmqp_server.engine.commands import Acknowledge, Command, PassAnswer, SendDirect
from tmqp_server.engine.effects import Effect, Forward
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_RESPONSE
from tmqp_sim.world import Violation, World

__all__ = ["Correspondence"]


class Correspondence:
    """Judges every message that the broker passes from client to client."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: Who asked (session), under which id, whom (session), for which answers.
        self._open: dict[tuple[int, str, int], int] = {}

    def after(self, command: Command | None, effects: list[Effect]) -> None:
        """Judge one step.

        :raises Violation: when an answer reaches somebody who does not wait for it from there.
        """
        for effect in effects:
            if not isinstance(effect, Forward):
                continue
            if isinstance(command, SendDirect):
                for receiver in effect.sessions:
                    key = (command.session, command.message_id, receiver)
                    self._open[key] = command.asks
            elif isinstance(command, (PassAnswer, Acknowledge)):
                self._answered(command, effect)

    def _answered(self, command: PassAnswer | Acknowledge, effect: Forward) -> None:
        kind = command.kind if isinstance(command, PassAnswer) else ASKS_ACKNOWLEDGE
        for receiver in effect.sessions:
            key = (receiver, command.message_id, command.session)
            asked = self._open.get(key, 0)
            # Whoever is to respond may acknowledge before.
            if not asked & kind and not (kind == ASKS_ACKNOWLEDGE and asked & ASKS_RESPONSE):
                raise Violation(
                    "forgery",
                    f"session {command.session} answers {command.message_id!r} of session"
                    f" {receiver}, which asked it for {asked}",
                )
            if kind == ASKS_RESPONSE or not asked & ASKS_RESPONSE:
                del self._open[key]
            self._world.mark("direct message answered")
