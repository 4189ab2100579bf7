"""Delivery handlers: their methods, their decisions, and their registration.

Theory of operation.  The engine calls a handler at each step of a message, and the handler returns
a ``Decision`` of four parts (specification, "Decisions"; F103): whether to continue (*allow*), to
*save* the message, to *put it back* into its queue, and what to answer its producer
(*acknowledge*).  The methods of ``DeliveryHandler`` are in the order in which they are called.
``workflow.py`` calls them and carries the decisions out.

A handler is pure: it gets facts and returns a decision, without I/O, clock or randomness, and one
handler object serves any number of queues.  Methods that a handler does not override are never
called and cost nothing per message: the engine checks once, at the registration, which ones it has.

If a handler raises, or returns something that is not a decision, only its message is affected:
``exception_thrown`` decides.  Unless overridden, it drops the message and refuses it, with the
reason ``error``, if the producer waits for an acknowledgement.
"""

from __future__ import annotations

from typing import Final

from tmqp._compat import mypyc_attr
from tmqp.constants import (
    DECIDE_ACK_ALWAYS,
    DECIDE_ACK_NEGATIVE,
    DECIDE_ACK_NONE,
    NACK_ERROR,
    NACK_NONE,
    PUT_BACK_END,
    PUT_BACK_NO,
    PUT_BACK_START,
)
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueOptions
from tmqp_server.engine.records import Record

__all__ = [
    "ACKNOWLEDGE",
    "ALLOW",
    "HOOKS",
    "HOOK_ACKNOWLEDGED",
    "HOOK_BEGIN_SEND",
    "HOOK_CAN_RECEIVE",
    "HOOK_CONSUMER_FAILED",
    "HOOK_CONSUMER_RECEIVED",
    "HOOK_DEQUEUED",
    "HOOK_END_SEND",
    "HOOK_MESSAGE_TIMEOUT",
    "HOOK_RECEIVED",
    "HOOK_SAVE",
    "HOOK_TIMED_OUT",
    "NEGATIVE",
    "PER_CONSUMER_HOOKS",
    "PUT_BACK_AT_END",
    "PUT_BACK_AT_START",
    "REFUSE",
    "SAVE",
    "SEND_HOOKS",
    "Decision",
    "DeliveryHandler",
    "HandlerRegistry",
    "QueueFacts",
    "combine",
    "hooks_of",
]


class Decision(Record):
    """The decision of a handler; immutable, so one object can be reused.

    ``put_back`` and ``acknowledge`` are numbers of ``tmqp.constants`` (``PUT_BACK_...`` and
    ``DECIDE_ACK_...``).  ``reason`` is sent with a negative acknowledgement (F81).
    """

    __slots__ = ("allow", "save", "put_back", "acknowledge", "reason")

    def __init__(
        self,
        allow: bool = True,
        save: bool = False,
        put_back: int = PUT_BACK_NO,
        acknowledge: int = DECIDE_ACK_NONE,
        reason: str = NACK_NONE,
    ) -> None:
        if not PUT_BACK_NO <= put_back <= PUT_BACK_END:
            raise ValueError(f"put_back must be 0, 1 or 2, not {put_back!r}")
        if not DECIDE_ACK_NONE <= acknowledge <= DECIDE_ACK_NEGATIVE:
            raise ValueError(f"acknowledge must be 0, 1, 2 or 3, not {acknowledge!r}")
        self.allow = allow
        self.save = save
        self.put_back = put_back
        self.acknowledge = acknowledge
        self.reason = reason


#: Continue.
ALLOW: Final = Decision()
#: Continue, and save.
SAVE: Final = Decision(True, True)
#: Continue, and send the producer a positive confirm.
ACKNOWLEDGE: Final = Decision(True, False, PUT_BACK_NO, DECIDE_ACK_ALWAYS)
#: Continue, and send the producer a negative confirm.
NEGATIVE: Final = Decision(True, False, PUT_BACK_NO, DECIDE_ACK_NEGATIVE)
#: End here; the message is removed.
REFUSE: Final = Decision(False)
#: Put the message back at the front of its priority's list.
PUT_BACK_AT_START: Final = Decision(True, False, PUT_BACK_START)
#: Put the message back at the end of its priority's list.
PUT_BACK_AT_END: Final = Decision(True, False, PUT_BACK_END)


def combine(first: Decision, second: Decision) -> Decision:
    """One decision for one send pass, from the decisions about several consumers.

    The message is removed only if *every* decision leaves it out of the queue; the front goes
    before the end.  It is allowed if one consumer was.  The producer gets the best of the decided
    answers, because one consumer that got the message is enough (specification, "Message
    Lifecycle").
    """
    if second is first:
        return first
    put_back = first.put_back
    if put_back == PUT_BACK_NO or second.put_back == PUT_BACK_START:
        put_back = second.put_back
    # The numbers rise from the best outcome to the worst; 0 is none.
    told = first
    if told.acknowledge == DECIDE_ACK_NONE or 0 < second.acknowledge < told.acknowledge:
        told = second
    return Decision(
        first.allow or second.allow,
        first.save or second.save,
        put_back,
        told.acknowledge,
        told.reason,
    )


class QueueFacts:
    """A queue as a delivery handler sees it; read-only."""

    __slots__ = ("channel_name", "queue_id", "options", "high_count", "regular_count")

    def __init__(self, channel_name: str, queue_id: int, options: QueueOptions) -> None:
        #: The channel's real name.
        self.channel_name = channel_name
        self.queue_id = queue_id
        self.options = options
        #: Messages waiting, of either priority.
        self.high_count = 0
        self.regular_count = 0

    def waiting_count(self) -> int:
        """The number of waiting messages, of both priorities."""
        return self.high_count + self.regular_count

    def __repr__(self) -> str:
        return f"<queue {self.channel_name}/{self.queue_id}>"


@mypyc_attr(allow_interpreted_subclasses=True)
class DeliveryHandler:
    """Decides what happens to a message at each step; subclass it and override methods."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        """Called when a push arrives.  If not allowed, it is not accepted, unless the decision puts
        it back."""
        return ALLOW

    def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
        """Called when the message is about to be sent: once for each send pass, before any
        consumer."""
        return ALLOW

    def can_consumer_receive(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Called for each consumer.  If not allowed, this consumer is skipped."""
        return ALLOW

    def consumer_received(self, queue: QueueFacts, message: Message, consumer: Client) -> Decision:
        """Called when the message was sent to this consumer, and is in flight if it needs an
        acknowledgement."""
        return ALLOW

    def consumer_receive_failed(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Called when the message could not be sent to this consumer: it is blocked or out of
        credit."""
        return ALLOW

    def end_send(self, queue: QueueFacts, message: Message) -> Decision:
        """Called at the end of a send pass; ``message.attempts`` is 0 if no consumer has got it
        yet."""
        return ALLOW

    def message_dequeued(self, queue: QueueFacts, message: Message) -> None:
        """Called when the message has left the queue's lists and is not put back; acknowledgements
        may follow."""

    def acknowledge_received(
        self, queue: QueueFacts, message: Message, consumer: Client, positive: bool, reason: str
    ) -> Decision:
        """Called when a consumer answers.  If the decision acknowledges, the producer gets the
        consumer's own answer (F79)."""
        return ALLOW

    def acknowledge_timed_out(
        self, queue: QueueFacts, message: Message, consumer: Client
    ) -> Decision:
        """Called when a consumer did not answer in time; ``consumer.alive`` is false if it has
        disconnected."""
        return ALLOW

    def message_timed_out(self, queue: QueueFacts, message: Message) -> Decision:
        """Called when the message has waited too long.  If it is put back, it waits without a
        timeout."""
        return ALLOW

    def exception_thrown(self, queue: QueueFacts, message: Message, error: Exception) -> Decision:
        """Called when another method raised *error*; this decision replaces the missing one."""
        acknowledge = DECIDE_ACK_NEGATIVE if message.wants_confirm else DECIDE_ACK_NONE
        return Decision(False, False, PUT_BACK_NO, acknowledge, NACK_ERROR)

    def save_message(self, queue: QueueFacts, message: Message) -> bool:
        """Called when a decision requires the message to be saved; return False to leave it
        unsaved."""
        return True


HOOK_RECEIVED: Final = 1
HOOK_BEGIN_SEND: Final = 2
HOOK_CAN_RECEIVE: Final = 4
HOOK_CONSUMER_RECEIVED: Final = 8
HOOK_CONSUMER_FAILED: Final = 16
HOOK_END_SEND: Final = 32
HOOK_DEQUEUED: Final = 64
HOOK_ACKNOWLEDGED: Final = 128
HOOK_TIMED_OUT: Final = 256
HOOK_MESSAGE_TIMEOUT: Final = 512
HOOK_SAVE: Final = 1024
#: With one of these, a send pass must examine each consumer separately.
PER_CONSUMER_HOOKS: Final = HOOK_CAN_RECEIVE | HOOK_CONSUMER_RECEIVED | HOOK_CONSUMER_FAILED
#: With one of these, a handler may decide something in a send pass.
SEND_HOOKS: Final = PER_CONSUMER_HOOKS | HOOK_BEGIN_SEND | HOOK_END_SEND | HOOK_DEQUEUED

#: The bit of each optional method.
HOOKS: Final[dict[str, int]] = {
    "received_from_producer": HOOK_RECEIVED,
    "begin_send": HOOK_BEGIN_SEND,
    "can_consumer_receive": HOOK_CAN_RECEIVE,
    "consumer_received": HOOK_CONSUMER_RECEIVED,
    "consumer_receive_failed": HOOK_CONSUMER_FAILED,
    "end_send": HOOK_END_SEND,
    "message_dequeued": HOOK_DEQUEUED,
    "acknowledge_received": HOOK_ACKNOWLEDGED,
    "acknowledge_timed_out": HOOK_TIMED_OUT,
    "message_timed_out": HOOK_MESSAGE_TIMEOUT,
    "save_message": HOOK_SAVE,
}


def hooks_of(handler: DeliveryHandler) -> int:
    """The methods that *handler* overrides, as a mask of ``HOOK_...`` bits.

    A method set on the object instead of its class counts, too.
    """
    kind = type(handler)
    own: dict[str, object] = getattr(handler, "__dict__", {})
    mask = 0
    for name, bit in HOOKS.items():
        if name in own or getattr(kind, name) is not getattr(DeliveryHandler, name):
            mask |= bit
    return mask


class HandlerRegistry:
    """Delivery handlers by name.  Names are compared exactly."""

    __slots__ = ("_handlers",)

    def __init__(self) -> None:
        self._handlers: dict[str, DeliveryHandler] = {}

    def register(self, name: str, handler: DeliveryHandler) -> None:
        """Add *handler* under *name*.

        :raises ValueError: if the name is empty or taken.
        """
        if not name:
            raise ValueError("a delivery handler needs a name")
        if name in self._handlers:
            raise ValueError(f"a delivery handler named {name!r} is registered already")
        self._handlers[name] = handler

    def find(self, name: str) -> DeliveryHandler | None:
        """The handler of that name, or None."""
        return self._handlers.get(name)

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._handlers)
