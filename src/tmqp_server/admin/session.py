"""A connection of the admin door: a connection of the HTTP door whose work is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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

    The work of another protocol in a WebSocket is not measured: it is not done for operators.
    """

    def __init__(self, context: HttpContext, places: Places, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._number = number
        self._places = places

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        return self._measured(partial(super().receive, data, now), now)

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        return self._measured(partial(super().apply, effect, now), now)

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Do what is due."""
        return self._measured(partial(super().on_deadline, now), now)

    def _measured(self, step: Callable[[], Sequence[Command]], now: float) -> Sequence[Command]:
        if self._socket is not None:
            return step()
        share = self._places.share
        share.begin(now)
        commands = step()
        share.end(now, asks=bool(commands))
        return commands

    def gone(self) -> None:
        """Give up the places of its requests: the connection has ended."""
        super().gone()
        self._places.forget(self._number)
