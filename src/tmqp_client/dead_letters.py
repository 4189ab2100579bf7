"""What a dead letter says of itself."""

from __future__ import annotations

import attrs

from tmqp.extensions import (
    HEADER_DEAD_LETTER_ATTEMPTS,
    HEADER_DEAD_LETTER_QUEUE,
    HEADER_DEAD_LETTER_REASON,
)
from tmqp.frames import Frame

__all__ = ["DeadLetter", "dead_letter_of"]


@attrs.frozen
class DeadLetter:
    """Why a message was moved to a queue of dead letters, when that happened first.

    Attributes: ``reason`` is ``put-backs`` (it was put back too often), ``expired`` or ``full`` (it
    made way in a full queue); ``channel`` and ``queue_id`` name the queue that it was moved from;
    ``attempts`` is how often that queue had sent it.
    """

    reason: str
    channel: str
    queue_id: int
    attempts: int


def dead_letter_of(frame: Frame) -> DeadLetter | None:
    """What the headers of a message say; None for one that is no dead letter."""
    reason = frame.header(HEADER_DEAD_LETTER_REASON)
    channel, _, queue_id = (frame.header(HEADER_DEAD_LETTER_QUEUE) or "").rpartition(";")
    attempts = frame.header(HEADER_DEAD_LETTER_ATTEMPTS) or ""
    if reason is None or not _is_number(queue_id) or not _is_number(attempts):
        return None
    return DeadLetter(reason, channel, int(queue_id), int(attempts))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
