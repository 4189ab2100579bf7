"""The standing of a client on its server: channels that it owns or has joined, subscribed events.

A server forgets all of them when a connection ends; they are requested again on the next one, each
kind in the order of the first requests, before anything else is sent.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    OP_CREATE_QUEUE,
    OP_JOIN,
    OP_LEAVE,
    OP_REMOVE_CHANNEL,
    OP_REMOVE_QUEUE,
    RESULT_NOT_FOUND,
    RESULT_OK,
)
from tmqp.extensions import (
    HEADER_CREDIT,
    HEADER_FILTER,
    HEADER_FILTER_LANGUAGE,
    OP_GRANT_CREDIT,
    OP_SET_TERMS,
)
from tmqp_client._core import requests
from tmqp_client._core.letters import SubscriptionRequest
from tmqp_client._core.requests import OwnedRequest, Request

__all__ = ["Standing"]

#: The operations that may change the terms of a joined channel.
_OF_TERMS: Final = frozenset({OP_JOIN, OP_SET_TERMS, OP_GRANT_CREDIT})
#: The terms that another join removes if it does not set them.
_SET_ANEW: Final = (HEADER_CREDIT, HEADER_FILTER, HEADER_FILTER_LANGUAGE)


class Standing:
    """Owned channels, joins and subscriptions as the server has granted them."""

    __slots__ = ("_joins", "_owned", "_subscriptions")

    def __init__(self) -> None:
        #: The requests that created the channels of our own, by channel and queue.
        self._owned: dict[str, dict[int, Request]] = {}
        #: The join of each channel, with its current terms.
        self._joins: dict[str, Request] = {}
        self._subscriptions: dict[tuple[str, tuple[tuple[str, str], ...]], SubscriptionRequest] = {}

    @property
    def joins(self) -> tuple[str, ...]:
        """The channels joined, in the order of joining, as they were spelt."""
        return tuple([request.target for request in self._joins.values()])

    def join_of(self, channel: str) -> Request:
        """Return the join that keeps the terms of a joined channel; a plain one if it is not
        joined."""
        return self._joins.get(channel.lower()) or requests.join(channel)

    def note(self, request: Request, code: int) -> bool:
        """Note the answer to a request; return whether the client has left a channel."""
        if isinstance(request, SubscriptionRequest):
            if request.wanted and code == RESULT_OK:
                self._subscriptions.setdefault((request.target, request.headers), request)
            elif not request.wanted:
                self._subscriptions.pop((request.target, request.headers), None)
        elif request.operation in _OF_TERMS and code == RESULT_OK:
            self._note_terms(request)
        elif request.operation == OP_LEAVE and (code == RESULT_OK or code == RESULT_NOT_FOUND):
            self._joins.pop(request.target.lower(), None)
            return True
        elif code == RESULT_OK or code == RESULT_NOT_FOUND:
            self._note_owned(request, code)
        return False

    def _note_terms(self, request: Request) -> None:
        """Note a join, or its changed terms; terms that are not given stay as they are."""
        key = request.target.lower()
        joined = self._joins.get(key)
        if joined is not None:
            said = dict(joined.headers)
            if request.operation == OP_JOIN:
                for name in _SET_ANEW:
                    said.pop(name, None)
            self._joins[key] = requests.with_terms(joined, request.headers, tuple(said.items()))
        elif request.operation == OP_JOIN:
            self._joins[key] = request

    def _note_owned(self, request: Request, code: int) -> None:
        """Note what was created in, or removed from, the channels that end with the connection."""
        key = request.target.lower()
        if request.operation == OP_REMOVE_CHANNEL:
            self._owned.pop(key, None)
        elif request.operation == OP_REMOVE_QUEUE:
            self._owned.get(key, {}).pop(request.queue_id, None)
        elif code == RESULT_OK and isinstance(request, OwnedRequest):
            self._owned.setdefault(key, {}).setdefault(request.queue_id, request)
        elif code == RESULT_OK and request.operation == OP_CREATE_QUEUE and key in self._owned:
            self._owned[key].setdefault(request.queue_id, request)

    def refuse(self, request: Request) -> None:
        """Note that the server refused to restore something."""
        if isinstance(request, SubscriptionRequest):
            self._subscriptions.pop((request.target, request.headers), None)
        elif request.operation != OP_JOIN:
            self._owned.pop(request.target.lower(), None)
        else:
            self._joins.pop(request.target.lower(), None)

    def requests(self) -> list[Request]:
        """Return the requests that restore everything on a new connection."""
        created = [each for queues in self._owned.values() for each in queues.values()]
        return [*created, *self._joins.values(), *self._subscriptions.values()]
