"""A connection of the admin door: one of HTTP whose work is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from tmqp_server.admin.places import Places
from tmqp_server.doors.http.context import HttpContext
from tmqp_server.doors.http.session import HttpSession
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Effect

__all__ = ["AdminSession"]


@final
class AdminSession(HttpSession):
    """One connection of the admin door.

    What another protocol does in its WebSocket is not work of operators, and not measured.
    """

    def __init__(self, context: HttpContext, places: Places, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._number = number
        self._places = places

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self._socket is not None:
            return super().receive(data, now)
        share = self._places.share
        share.begin(now)
        commands = super().receive(data, now)
        share.end(now, asks=bool(commands))
        return commands

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if self._socket is not None:
            return super().apply(effect, now)
        share = self._places.share
        share.begin(now)
        commands = super().apply(effect, now)
        share.end(now, asks=bool(commands))
        return commands

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do what is due."""
        if self._socket is not None:
            return super().on_deadline(now)
        share = self._places.share
        share.begin(now)
        commands = super().on_deadline(now)
        share.end(now, asks=bool(commands))
        return commands

    def gone(self) -> None:
        """The connection is over: nothing of it has a place."""
        super().gone()
        self._places.forget(self._number)
