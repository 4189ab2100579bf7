"""Planted bugs in the accounts of the memory and of the disk, as ``mutants.py`` has them."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.commands import RestoreQueue
from tmqp_server.engine.core import Core
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.flights.runs import RunFlights
from tmqp_server.engine.keeping import Keeper
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
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


def _nothing_forgotten(_original: Any) -> Any:
    def unstore(_self: Flights, _queue: Queue, _size: int) -> None:
        """It is there for good."""

    return unstore


def _generous(original: Any) -> Any:
    def configure(self: Queue, *arguments: Any) -> None:
        original(self, *arguments)
        self.disk_cap += 100

    return configure


def _starts_at_nothing(original: Any) -> Any:
    def restore(self: Keeper, command: RestoreQueue) -> None:
        command.high_bytes = command.regular_bytes = 0
        original(self, command)

    return restore


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
    (
        "quota-leaks", "a message that is settled still counts for the disk",
        RunFlights, "unstore", _nothing_forgotten,
    ),
    (
        "quota-too-high", "a queue takes more than its quota of the disk",
        Queue, "configure", _generous,
    ),
    (
        "quota-starts-at-nothing", "a restart forgets how much a queue has on the disk",
        Keeper, "_restore_queue", _starts_at_nothing,
    ),
)  # fmt: skip
