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
    """What a subscriber wants of its deliveries; None says nothing.

    At most ``window`` deliveries are unanswered at a time (-1: no bound; 0 sends none), in all
    queues of the channel; what a queue needs no answer for does not count, and neither does what
    was sent before there were terms.  ``ack_timeout_ms`` is the subscriber's own acknowledgement
    timeout, 0 for the queue's, -1 for none as long as it has joined.  ``returns`` says what
    happens to what it has when it leaves or its connection ends: ``PUT_BACK_NO`` lets it time out
    (F99), ``PUT_BACK_START`` and ``PUT_BACK_END`` have it go back at once, as by ``Release``;
    where ``counts`` is false, that does not count as a put-back.
    Where a message goes to one consumer, those of a higher ``priority`` come first.  While some are
    ``exclusive``, the first of these, of the highest priority among them, gets every such message,
    and the others none, until it leaves or is exclusive no more.
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
        """0 when a subscription can have these terms, else the result code to answer."""
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
    """The terms that hold for a subscription, and what it has in flight because of them."""

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
        #: What it has unanswered, and of which queue, in the order of sending; None if it has no
        #: terms.  Of what was sent before it had terms nothing is known.
        self.holds: dict[Message, QueueFacts] | None = None
        #: How much that may be; -1 is no bound.
        self.window = -1
        #: Its own acknowledgement timeout: 0 is none, so that the queue's holds; NEVER waits as
        #: long as it is there.
        self.ack_timeout_s = 0.0
        #: Where that goes when it leaves (PUT_BACK_NO: it times out, F99); whether that counts.
        self.returns, self.counts = PUT_BACK_NO, True
        #: Those of a higher priority come first where a message goes to one consumer.
        self.priority = 0
        #: It wants to be that one, for all messages.
        self.exclusive = False

    def is_full(self) -> bool:
        """Whether it has as much unanswered as it wants."""
        holds = self.holds
        return holds is not None and 0 <= self.window <= len(holds)

    def left_in_window(self) -> int:
        """How many deliveries more it wants; it must have a window."""
        return self.window if self.holds is None else max(self.window - len(self.holds), 0)

    def take_over(self, terms: Terms) -> bool:
        """Take over terms; what they do not say stays as it is.

        Returns whether somebody else may come first now.
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
    """Of those who are exclusive, or of all if there is to be a *single* one, the first of the
    highest priority."""
    found: _Taker | None = None
    for each in consumers:
        if (single or each.exclusive) and (found is None or each.priority > found.priority):
            found = each
    return found
