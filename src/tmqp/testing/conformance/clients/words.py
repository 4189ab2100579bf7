"""The common part of scripts for clients: the channel of the tasks, and its messages."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import (
    TYPE_ACKNOWLEDGE,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
    Operation,
)
from tmqp.testing.conformance.patterns import Bind, Matcher, Names, NoHeader, Pattern
from tmqp.testing.conformance.steps import Answer, Fence, Message, Step
from tmqp.testing.conformance.talk import NOTHING, greet, hear, say

__all__ = [
    "CHANNEL",
    "GRANTED",
    "JOIN",
    "QUEUE",
    "HasId",
    "acknowledged",
    "confirm",
    "delivered",
    "joined",
    "pulled",
]

#: The channel and the queue of the tasks.
CHANNEL: Final = "conformance"
QUEUE: Final = 1


class HasId(Matcher):
    """A message id that is not empty."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        """See :meth:`Matcher.matches`."""
        return value != ""

    def describe(self) -> str:
        """See :meth:`Matcher.describe`."""
        return "a message id"


def _operation(number: int, **fields: Any) -> Pattern:
    fields.setdefault("message_id", Bind("request", HasId()))
    return Pattern(
        TYPE_SERVER, target=CHANNEL, content_type=number, pending_response=True, **fields
    )


JOIN: Final = _operation(Operation.JOIN)
GRANTED: Final = Message(TYPE_RESPONSE, "$a", 0, message_id="$request")


def joined() -> list[Step]:
    """Greet a client and grant its join."""
    return [
        *greet(),
        hear("a", Answer(JOIN), fence=Fence.FIRST),
        say("a", GRANTED),
        hear("a", NOTHING),
    ]


def delivered(message_id: str = "m1", flags: str = "A", **fields: Any) -> Message:
    """A message of the queue, as a server sends it to a consumer."""
    fields.setdefault("ttl", 15)
    return Message(
        TYPE_QUEUE_MESSAGE,
        fields.pop("target", CHANNEL),
        fields.pop("content_type", QUEUE),
        b"work",
        message_id=message_id,
        source="producer",
        flags=flags,
        **fields,
    )


def acknowledged(message_id: str = "m1", **fields: Any) -> Pattern:
    """The client's positive acknowledgement of that message."""
    fields.setdefault("target", CHANNEL)
    fields.setdefault("content_type", QUEUE)
    fields.setdefault("header", {"Nack-Reason": NoHeader()})
    return Pattern(TYPE_ACKNOWLEDGE, message_id=message_id, **fields)


def confirm(message_id: str = "$push", **fields: Any) -> Message:
    """The server's acknowledgement of the client's push."""
    return Message(TYPE_ACKNOWLEDGE, CHANNEL, QUEUE, message_id=message_id, **fields)


def pulled(index: int, payload: bytes = b"x", **fields: Any) -> Message:
    """A result of the client's pull, the *index*-th of two."""
    headers = [
        *fields.pop("headers", []),
        ("Request-Id", fields.pop("request", "$pull")),
        ("Count", "2"),
        ("Index", str(index)),
    ]
    return Message(
        TYPE_QUEUE_MESSAGE,
        CHANNEL,
        QUEUE,
        payload,
        message_id=f"result-{index}",
        source="producer",
        headers=headers,
        **fields,
    )
