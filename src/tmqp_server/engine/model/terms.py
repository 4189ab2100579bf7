"""``Terms``: the requested terms of a subscription, and ``AcceptedTerms``, the actual ones."""

from __future__ import annotations

from typing import TypeVar

from tmqp.constants import (
    PUT_BACK_END,
    PUT_BACK_NO,
    RESULT_BAD_REQUEST,
    RESULT_LIMIT_EXCEEDED,
    RESULT_OK,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import QueueFacts
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.records import Record

__all__ = ["AcceptedTerms", "Terms", "sole_of"]

_Taker = TypeVar("_Taker", bound="AcceptedTerms")


class Terms(Record):
    """The terms that a subscriber requests for its deliveries; None leaves a term unchanged.

    At most ``window`` deliveries are unanswered at a time (-1: no limit; 0: none are sent), in all
    queues of the channel; deliveries that need no answer do not count, nor do those from before
    there were terms.  ``ack_timeout_ms`` is the subscriber's own acknowledgement timeout, 0 for the
    queue's, -1 for none as long as it has joined.  ``returns`` says what happens to its unanswered
    deliveries when it leaves or its connection ends: with ``PUT_BACK_NO`` they time out (F99), with
    ``PUT_BACK_START`` and ``PUT_BACK_END`` they are put back immediately, as by ``Release``; if
    ``counts`` is false, that does not count as a put-back.  If each message goes to one consumer,
    those of a higher ``priority`` come first.  While some are ``exclusive``, the first of these, of
    the highest priority among them, gets every such message, and the others none, until it leaves
    or is no longer exclusive.
    """

    __slots__ = ("window", "ack_timeout_ms", "returns", "priority", "counts", "exclusive")

    def __init__(
        self,
        window: int | None = None,
        ack_timeout_ms: int | None = None,
        returns: int | None = None,
        priority: int | None = None,
        counts: bool = True,
        exclusive: bool | None = None,
    ) -> None:
        self.window = window
        self.ack_timeout_ms = ack_timeout_ms
        self.returns = returns
        self.priority = priority
        self.counts = counts
        self.exclusive = exclusive

    def problem(self, limits: EngineLimits) -> int:
        """0 if a subscription can have these terms, otherwise the result code to answer."""
        if self.window is not None and self.window < -1:
            return RESULT_BAD_REQUEST
        if self.returns is not None and not PUT_BACK_NO <= self.returns <= PUT_BACK_END:
            return RESULT_BAD_REQUEST
        if self.ack_timeout_ms is not None:
            if self.ack_timeout_ms < -1:
                return RESULT_BAD_REQUEST
            if self.ack_timeout_ms > limits.max_acknowledge_timeout_ms:
                return RESULT_LIMIT_EXCEEDED
        return RESULT_OK


class AcceptedTerms:
    """The actual terms of a subscription, and its deliveries in flight."""

    __slots__ = (
        "holds",
        "window",
        "ack_timeout_s",
        "returns",
        "counts",
        "priority",
        "exclusive",
    )

    def __init__(self) -> None:
        #: Its unanswered deliveries and their queues, in the order of sending; None if it has no
        #: terms.  Deliveries from before it had terms are missing.
        self.holds: dict[Message, QueueFacts] | None = None
        #: The limit of their number; -1 for none.
        self.window = -1
        #: Its own acknowledgement timeout: 0 for the queue's, NEVER for none as long as it has
        #: joined.
        self.ack_timeout_s = 0.0
        #: Where they are put back when it leaves (PUT_BACK_NO: they time out, F99); whether that
        #: counts.
        self.returns, self.counts = PUT_BACK_NO, True
        #: If a message goes to one consumer, those of a higher priority come first.
        self.priority = 0
        #: It requests to get all messages that go to one consumer.
        self.exclusive = False

    def is_full(self) -> bool:
        """Whether its window is used up."""
        holds = self.holds
        return holds is not None and 0 <= self.window <= len(holds)

    def left_in_window(self) -> int:
        """How many more deliveries its window allows; it must have a window."""
        return self.window if self.holds is None else max(self.window - len(self.holds), 0)

    def take_over(self, terms: Terms) -> bool:
        """Apply terms; those that are not given stay as they are.

        Return whether another consumer may come first now.
        """
        if self.holds is None:
            self.holds = {}
        if terms.window is not None:
            self.window = terms.window
        if terms.ack_timeout_ms is not None:
            timeout_ms = terms.ack_timeout_ms
            self.ack_timeout_s = NEVER if timeout_ms < 0 else timeout_ms / 1000
        if terms.returns is not None:
            self.returns, self.counts = terms.returns, terms.counts
        before = (self.priority, self.exclusive)
        if terms.priority is not None:
            self.priority = terms.priority
        if terms.exclusive is not None:
            self.exclusive = terms.exclusive
        return before != (self.priority, self.exclusive)


def sole_of(consumers: list[_Taker], single: bool) -> _Taker | None:
    """The first consumer of the highest priority among those that are exclusive, or, if *single*,
    among all; None if there is none."""
    found: _Taker | None = None
    for each in consumers:
        if (single or each.exclusive) and (found is None or each.priority > found.priority):
            found = each
    return found
