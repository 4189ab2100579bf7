"""The command that makes a server drain."""

from __future__ import annotations

from tmqp_server.engine.commands.base import SessionCommand

__all__ = ["Drain"]


class Drain(SessionCommand):
    """Make the server accept no more messages and clients, wait until nothing is unacknowledged,
    and say goodbye to its clients; with ``stops``, its process ends then.

    Answered 0 immediately; the client that asked learns of the end like all others.
    """

    __slots__ = ("request", "stops")

    def __init__(self, session: int, request: object, stops: bool) -> None:
        super().__init__(session)
        self.request = request
        self.stops = stops
