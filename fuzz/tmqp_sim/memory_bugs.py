"""Planted bugs in the account of the memory, as ``mutants.py`` has them."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.sessions import Session
from tmqp_server.hub.outlets import Outlets

__all__ = ["MEMORY_BUGS"]


def _leaky_session(original: Any) -> Any:
    def end_session(self: Core, session: Session) -> None:
        taken = session.memory
        original(self, session)
        self.charge(taken - session.memory)

    return end_session


def _leaky_connection(original: Any) -> Any:
    def forget(self: Outlets, number: int) -> None:
        before = self._broker._core.state_bytes
        original(self, number)
        self._broker.charge(before - self._broker._core.state_bytes)

    return forget


def _leaky_holders(original: Any) -> Any:
    def release(self: Flights, message: Message) -> None:
        taken = message.held
        original(self, message)
        self._core.charge(taken)

    return release


#: What a mutant is made of.
MEMORY_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "leaky-session", "closing a session does not give its memory back",
        Core, "end_session", _leaky_session,
    ),
    (
        "leaky-connection", "closing a connection does not give its memory back",
        Outlets, "forget", _leaky_connection,
    ),
    (
        "leaky-holders", "answering for a message that several had gives no memory back",
        Flights, "_release", _leaky_holders,
    ),
)  # fmt: skip
