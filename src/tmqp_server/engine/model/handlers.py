"""The built-in delivery handlers; clients choose one by its name.

===============  ==================================================================================
name             what it does
===============  ==================================================================================
allow-all        sends everything, tells producers nothing
ack-if-asked     tells a producer that asked as soon as the message is accepted; what was promised
                 that way is sent again, from the end of the queue, when a consumer lets it time out
retry-timeouts   as ack-if-asked, and sends again whatever a consumer lets time out
ack-received     tells every producer as soon as the message is accepted
ack-sent         tells every producer when the message has been sent to a consumer
ack-consumer     passes the consumer's own answer on; its silence becomes a negative one
ack-ifsaved      saves, and tells the producer when the storage has the message
reject           takes nothing and says nothing
reject-nack      takes nothing and says so
putback-start    a negative answer, or none in time, puts the message back at the front
putback-end      the same, at the end
===============  ==================================================================================
"""

from __future__ import annotations

from typing import Final

from tmqp._compat import mypyc_attr
from tmqp.constants import (
    DECIDE_ACK_IF_SAVED,
    DECIDE_ACK_NEGATIVE,
    PUT_BACK_END,
    PUT_BACK_NO,
    PUT_BACK_START,
)
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    ACKNOWLEDGE,
    ALLOW,
    HOOK_RECEIVED,
    NEGATIVE,
    PUT_BACK_AT_END,
    PUT_BACK_AT_START,
    REFUSE,
    Decision,
    DeliveryHandler,
    HandlerRegistry,
    QueueFacts,
    hooks_of,
)
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import DEFAULT_HANDLER

__all__ = [
    "AckConsumer",
    "AckIfAsked",
    "AckIfSaved",
    "AckReceived",
    "AckSent",
    "AllowAll",
    "PutBack",
    "Reject",
    "RejectNack",
    "RetryTimeouts",
    "built_in_handlers",
    "receipt_of",
    "saving",
]

_SAVE_AND_ACKNOWLEDGE: Final = Decision(True, True, PUT_BACK_NO, DECIDE_ACK_IF_SAVED)
_REFUSE_NEGATIVELY: Final = Decision(False, False, PUT_BACK_NO, DECIDE_ACK_NEGATIVE)


@mypyc_attr(allow_interpreted_subclasses=True)
class AllowAll(DeliveryHandler):
    """Overrides nothing: every message is sent, and no producer is notified."""


@mypyc_attr(allow_interpreted_subclasses=True)
class AckIfAsked(DeliveryHandler):
    """The default: acknowledges on receipt if the producer asked, and redelivers what it
    acknowledged.

    A message whose producer did not ask is sent once, as by the original's simplest handler.
    """

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Acknowledge if the producer asked."""
        return ACKNOWLEDGE if message.wants_confirm else ALLOW

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Send an acknowledged message again, from the end, so that one bad message does not block
        others."""
        return PUT_BACK_AT_END if message.wants_confirm else ALLOW


@mypyc_attr(allow_interpreted_subclasses=True)
class RetryTimeouts(DeliveryHandler):
    """Acknowledges on receipt if the producer asked, and redelivers every message until a consumer
    answers."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Acknowledge if the producer asked."""
        return ACKNOWLEDGE if message.wants_confirm else ALLOW

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Send it again, from the end of the queue."""
        return PUT_BACK_AT_END


@mypyc_attr(allow_interpreted_subclasses=True)
class AckReceived(DeliveryHandler):
    """Acknowledges every message on receipt, even if the producer did not ask (F77)."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Acknowledge."""
        return ACKNOWLEDGE


@mypyc_attr(allow_interpreted_subclasses=True)
class AckSent(DeliveryHandler):
    """Acknowledges every message when it has been sent."""

    def end_send(self, queue: QueueFacts, message: Message) -> Decision:
        """Acknowledge if any consumer got it."""
        return ACKNOWLEDGE if message.attempts else ALLOW


@mypyc_attr(allow_interpreted_subclasses=True)
class AckConsumer(DeliveryHandler):
    """Passes the consumer's answer on to the producer, positive or negative (F79)."""

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Client, positive: bool, reason: str
    ) -> Decision:
        """Pass the answer on."""
        return ACKNOWLEDGE

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Tell the producer that the consumer did not answer (F80)."""
        return NEGATIVE


@mypyc_attr(allow_interpreted_subclasses=True)
class AckIfSaved(DeliveryHandler):
    """Durable: saves every message, and acknowledges it when the storage has it."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Save, and acknowledge when saved."""
        return _SAVE_AND_ACKNOWLEDGE

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Send it again: a saved message is owed until a consumer answers."""
        return PUT_BACK_AT_END


@mypyc_attr(allow_interpreted_subclasses=True)
class Reject(DeliveryHandler):
    """Refuses every message silently."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Refuse."""
        return REFUSE


@mypyc_attr(allow_interpreted_subclasses=True)
class RejectNack(DeliveryHandler):
    """Refuses every message with a negative acknowledgement."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Refuse with a negative acknowledgement."""
        return _REFUSE_NEGATIVELY


@mypyc_attr(allow_interpreted_subclasses=True)
class PutBack(DeliveryHandler):
    """Sends a message again until a consumer accepts it or the put-back limit is reached (F98)."""

    def __init__(self, where: int) -> None:
        self._decision = PUT_BACK_AT_END if where == PUT_BACK_END else PUT_BACK_AT_START

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Client, positive: bool, reason: str
    ) -> Decision:
        """Put the message back if the consumer refused it."""
        return ALLOW if positive else self._decision

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Put it back."""
        return self._decision


#: The decisions of the built-in handlers about a push, if the producer did not ask and if it did.
#: These need no call, because every message goes through this step.
_RECEIPTS: Final[dict[type, tuple[Decision, Decision]]] = {
    AckIfAsked: (ALLOW, ACKNOWLEDGE),
    RetryTimeouts: (ALLOW, ACKNOWLEDGE),
    AckReceived: (ACKNOWLEDGE, ACKNOWLEDGE),
    AckIfSaved: (_SAVE_AND_ACKNOWLEDGE, _SAVE_AND_ACKNOWLEDGE),
    Reject: (REFUSE, REFUSE),
    RejectNack: (_REFUSE_NEGATIVELY, _REFUSE_NEGATIVELY),
}


def receipt_of(handler: DeliveryHandler) -> tuple[Decision, Decision] | None:
    """The decisions of *handler* about pushes, not asked and asked; None if it must be called."""
    if not hooks_of(handler) & HOOK_RECEIVED:
        return (ALLOW, ALLOW)
    return _RECEIPTS.get(type(handler))


def saving(decision: Decision | None) -> Decision | None:
    """The same decision for a queue that saves every message."""
    if decision is None or decision.save:
        return decision
    if not decision.allow and decision.put_back == PUT_BACK_NO:
        return decision
    return Decision(decision.allow, True, decision.put_back, decision.acknowledge, decision.reason)


def built_in_handlers() -> HandlerRegistry:
    """A new registry with every built-in handler."""
    registry = HandlerRegistry()
    registry.register(DEFAULT_HANDLER, AckIfAsked())
    registry.register("retry-timeouts", RetryTimeouts())
    registry.register("allow-all", AllowAll())
    registry.register("ack-received", AckReceived())
    registry.register("ack-sent", AckSent())
    registry.register("ack-consumer", AckConsumer())
    registry.register("ack-ifsaved", AckIfSaved())
    registry.register("reject", Reject())
    registry.register("reject-nack", RejectNack())
    registry.register("putback-start", PutBack(PUT_BACK_START))
    registry.register("putback-end", PutBack(PUT_BACK_END))
    return registry
