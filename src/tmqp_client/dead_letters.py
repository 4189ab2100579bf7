"""The reason in the headers of a dead letter."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tmqp.extensions import (
    HEADER_DEAD_LETTER_ATTEMPTS,
    HEADER_DEAD_LETTER_QUEUE,
    HEADER_DEAD_LETTER_REASON,
)

__all__ = ["DeadLetter"]


class _HasHeaders(Protocol):
    """A message, of the async client or the blocking one, or a frame."""

    def header(self, name: str) -> str | None: ...


class DeadLetter(NamedTuple):
    """Why a message was first moved to a dead letter queue.

    :ivar reason: ``put-backs`` (it was put back too often), ``expired`` or ``full`` (it made way in
        a full queue).
    :ivar channel: the channel of the queue that it was moved from.
    :ivar queue_id: the id of that queue.
    :ivar attempts: how often that queue had delivered the message.
    """

    reason: str
    channel: str
    queue_id: int
    attempts: int

    @classmethod
    def of(cls, message: _HasHeaders) -> DeadLetter | None:
        """Read the headers of a message; return None if it is not a dead letter."""
        reason = message.header(HEADER_DEAD_LETTER_REASON)
        channel, _, queue_id = (message.header(HEADER_DEAD_LETTER_QUEUE) or "").rpartition(";")
        attempts = message.header(HEADER_DEAD_LETTER_ATTEMPTS) or ""
        if reason is None or not _is_number(queue_id) or not _is_number(attempts):
            return None
        return cls(reason, channel, int(queue_id), int(attempts))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
