"""The recipients of one message."""

from __future__ import annotations

from tmqp_server.engine.model.client import Client

__all__ = ["Recipients"]


class Recipients:
    """The consumers that get a message which not all want, in the form of effects, which share it.

    ``missed`` is the number of consumers that want it but are deaf.
    """

    __slots__ = ("numbers", "first", "rest", "clients", "missed")

    def __init__(self, clients: dict[int, Client], missed: int) -> None:
        self.numbers = list(clients)
        self.first = self.numbers[:1]
        self.rest = self.numbers[1:]
        self.clients = clients
        self.missed = missed

    def only(self) -> Client | None:
        """The consumer that gets it, if it is only one; otherwise None."""
        return self.clients[self.numbers[0]] if len(self.numbers) == 1 else None
