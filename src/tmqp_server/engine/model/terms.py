"""``Terms``: what a subscriber wants of its deliveries."""

from __future__ import annotations

from tmqp.constants import (
    PUT_BACK_END,
    PUT_BACK_NO,
    RESULT_BAD_REQUEST,
    RESULT_LIMIT_EXCEEDED,
    RESULT_OK,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.records import Record

__all__ = ["Terms"]


class Terms(Record):
    """What a subscriber wants of its deliveries; None says nothing.

    At most ``window`` deliveries are unanswered at a time (-1: no bound; 0 sends none), in all
    queues of the channel; what a queue needs no answer for does not count, and neither does what
    was sent before there were terms.  ``ack_timeout_ms`` is the subscriber's own acknowledge
    timeout, 0 for the queue's, -1 for none as long as it has joined.  ``returns`` says what
    becomes of what it has when it leaves or its connection ends: ``PUT_BACK_NO`` lets it time out
    (F99), ``PUT_BACK_START`` and ``PUT_BACK_END`` have it go back at once, as by ``Release``;
    where ``counts`` is false, that does not count as a put-back.
    Where a message goes to one consumer, those of a higher ``priority`` come first.
    """

    __slots__ = ("window", "ack_timeout_ms", "returns", "priority", "counts")

    def __init__(
        self,
        window: int | None = None,
        ack_timeout_ms: int | None = None,
        returns: int | None = None,
        priority: int | None = None,
        counts: bool = True,
    ) -> None:
        self.window = window
        self.ack_timeout_ms = ack_timeout_ms
        self.returns = returns
        self.priority = priority
        self.counts = counts

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
