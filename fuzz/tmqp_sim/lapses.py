"""Who is notified that a delivery is its own no more, told from commands and effects.

A part of the ledger: whoever wants to be notified of it hears it when its time is up and not
before, and before anybody else has the message.
"""

from __future__ import annotations

from typing import Final

from tmqp.extensions import LAPSE_TIMED_OUT
from tmqp_server.engine.commands import Join, connection_of
from tmqp_server.engine.effects import Lapsed
from tmqp_sim.promises import Hand
from tmqp_sim.world import Violation, World

__all__ = ["Lapses", "SentByLink"]

#: Rounding of times.
_EPSILON_S: Final = 1e-9


class SentByLink(dict[int, list[str]]):
    """What the broker has sent over each link, in its order.

    ``lapsed`` is what it has told to be the client's no more: what that has not returned by then,
    it does not hand out at all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lapsed: dict[int, set[str]] = {}


class Lapses:
    """Who is notified of lapses, and what of."""

    def __init__(self, world: World, sent: SentByLink) -> None:
        self._world = world
        self._sent = sent
        self._hears: dict[int, None] = {}

    def joined(self, command: Join) -> None:
        """A session joins, and may want to hear."""
        if command.hears_lapses:
            self._hears[command.session] = None

    def forget(self, session: int) -> None:
        """A session is over with its branches, or could not join: it hears nothing."""
        for each in [each for each in self._hears if session in (each, connection_of(each))]:
            del self._hears[each]

    def told(self, effect: Lapsed, hands: list[Hand]) -> None:
        """A session is told.

        :param hands: those with the message in which the session has it.
        :raises Violation: when its time is not up, or it has no such message, or knows it already.
        """
        link = connection_of(effect.session)
        self._sent.lapsed.setdefault(link, set()).add(effect.message_id)
        if effect.reason != LAPSE_TIMED_OUT:
            return
        session = effect.session
        late = self._world.now + _EPSILON_S
        for hand in hands:
            if session not in hand.told and hand.due_of(session) <= late:
                hand.told.append(session)
                self._world.mark("told that a delivery has timed out")
                return
        text = f"session {session} is told that {effect.message_id} has timed out: {hands}"
        raise Violation("lapse", text)

    def check_sending(self, hand: Hand) -> None:
        """The message of a hand is sent again.

        :raises Violation: when somebody wants to know that it is his no more, and does not.
        """
        for session in hand.holders:
            if session in self._hears and session not in hand.told:
                text = f"{hand.uid} is sent again, and session {session} believes that it has it"
                raise Violation("lapse", text)
