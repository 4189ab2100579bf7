"""Owns the port between doors and the server: what a door must offer, whatever it speaks.

A :class:`Door` is one protocol; it opens a :class:`DoorSession` for each connection.  A session
turns bytes into the engine's commands and the engine's effects into bytes.  Both are pure: they
get the time as an argument and ids from an injected source, and never see a socket or a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Deliver, Effect, Forward, Inform

__all__ = ["Door", "DoorSession", "IdSource"]

#: Returns a new unique id, 32 lower-case hexadecimal characters (F45).
IdSource = Callable[[], str]


class DoorSession(Protocol):
    """One connection of one protocol."""

    @property
    def closed(self) -> bool:
        """Nothing more will be read; send what is left, then close the transport."""

    @property
    def close_reason(self) -> str:
        """Why it is closed, in a few words for a log; empty while it is not."""

    @property
    def outbound_bytes(self) -> int:
        """About how much has been queued since the last :meth:`data_to_send`: all that answers
        and deliveries are, at least."""

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more."""

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session; may lead to further commands (messages
        that waited for the decision about the connection)."""

    def deliver(self, data: bytes) -> None:
        """Queue what one of the door's ``encode_`` methods has made."""

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, the protocol's polite way."""

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` wants to be called; None for never."""

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do what is due (keep-alive, time-outs)."""


class Door(Protocol):
    """One protocol."""

    name: str

    def open(self, session: int, now: float) -> DoorSession:
        """A new connection with the engine's number ``session``."""

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The bytes of a delivery: made once, shared by all sessions that get it."""

    def encode_forward(self, effect: Forward) -> bytes:
        """The bytes of what another client said: made once, shared like a delivery's."""

    def encode_event(self, effect: Inform) -> bytes:
        """The bytes of an event: made once, shared like a delivery's."""
