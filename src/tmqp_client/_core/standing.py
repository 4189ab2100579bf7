"""Owns what a client stands in on its server: channels joined and events subscribed to.

A server forgets both when a connection ends; they are asked for again on the next one, in the order
they were asked for first, before anything else is sent.
"""

from __future__ import annotations

from tmqp.constants import OP_JOIN, OP_LEAVE, RESULT_NOT_FOUND, RESULT_OK
from tmqp_client._core import requests
from tmqp_client._core.letters import SubscriptionRequest
from tmqp_client._core.requests import Request

__all__ = ["Standing"]


class Standing:
    """Joins and subscriptions as the server has granted them."""

    __slots__ = ("_joins", "_subscriptions")

    def __init__(self) -> None:
        self._joins: dict[str, str] = {}
        self._subscriptions: dict[tuple[str, tuple[tuple[str, str], ...]], SubscriptionRequest] = {}

    @property
    def joins(self) -> tuple[str, ...]:
        """The channels joined, in the order of joining, as they were spelt."""
        return tuple(self._joins.values())

    def note(self, request: Request, code: int) -> bool:
        """Take note of an answer; say whether a channel is left by it."""
        if isinstance(request, SubscriptionRequest):
            if request.wanted and code == RESULT_OK:
                self._subscriptions.setdefault((request.target, request.headers), request)
            elif not request.wanted:
                self._subscriptions.pop((request.target, request.headers), None)
        elif request.operation == OP_JOIN and code == RESULT_OK:
            self._joins.setdefault(request.target.lower(), request.target)
        elif request.operation == OP_LEAVE and (code == RESULT_OK or code == RESULT_NOT_FOUND):
            self._joins.pop(request.target.lower(), None)
            return True
        return False

    def refuse(self, request: Request) -> None:
        """What was asked for again is not granted any more."""
        if isinstance(request, SubscriptionRequest):
            self._subscriptions.pop((request.target, request.headers), None)
        else:
            self._joins.pop(request.target.lower(), None)

    def requests(self) -> list[Request]:
        """What to ask of a new connection."""
        joins: list[Request] = [requests.join(channel) for channel in self._joins.values()]
        return [*joins, *self._subscriptions.values()]
