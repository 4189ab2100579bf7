"""The output of sessions, and the traces of single clients."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp_server.engine.broker import Broker
from tmqp_server.hub.audited import Audited
from tmqp_server.hub.outlets import Outlets
from tmqp_server.hub.questions import Outside
from tmqp_server.hub.tracing import Tracer

__all__ = ["Traced"]


class Traced(Audited):
    """The sessions of a hub and their output; ``Hub`` completes it.

    Attributes: ``outside``, for :meth:`take_outside`; ``tracer`` of single clients.
    """

    def __init__(self, broker: Broker, outlets: Outlets, outside: list[Outside]) -> None:
        super().__init__(broker, outlets)
        self.outside = outside
        self.tracer = Tracer()

    def take_outbound(self) -> Sequence[tuple[int, bytes]]:
        """Return the output of touched sessions, in order; an empty piece ends a session that is
        closed.
        """
        pieces: list[tuple[int, bytes]] = []
        for number in self._outlets.take_touched():
            session = self._sessions.get(number)
            if session is None:
                continue
            self._outlets.take_pieces(number, session, pieces)
            if session.close_reason and not self.has_more(number):
                pieces.append((number, b""))
        return pieces

    def take_outside(self) -> Sequence[Outside]:
        """Return the items for code outside since the last call, in order."""
        found = self.outside[:]
        self.outside.clear()
        return found

    def send(self, number: int, data: bytes) -> None:
        """Queue whole messages for a session, as they are to be sent."""
        self._outlets.send((number,), data)
