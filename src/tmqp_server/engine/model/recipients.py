"""The recipients of one message."""

from __future__ import annotations

from tmqp_server.engine.model.client import Client

__all__ = ["Recipients"]


class Recipients:
    """Who gets a message of which some want nothing: as effects want it, shared by all of them.

    ``missed`` are those who want it and are deaf.
    """

    __slots__ = ("numbers", "first", "rest", "clients", "missed")

    def __init__(self, clients: dict[int, Client], missed: int) -> None:
        self.numbers = list(clients)
        self.first = self.numbers[:1]
        self.rest = self.numbers[1:]
        self.clients = clients
        self.missed = missed

    def only(self) -> Client | None:
        """Who gets it, where that is one."""
        return self.clients[self.numbers[0]] if len(self.numbers) == 1 else None
