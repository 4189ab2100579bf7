"""What becomes of a message that is moved to a queue of dead letters."""

from __future__ import annotations

from tmqp_server.engine.model.message import MARK_CONFIRMED, MARK_HIGH, MARK_WANTS, Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["dead_letter"]


def dead_letter(message: Message, target: Queue) -> Message:
    """A copy of *message* for another queue, with nobody left to tell."""
    target.sequence += 1
    if not message.message_id:
        target.expect_nameless()
    return Message(
        message.message_id,
        message.producer,
        target.channel_name,
        target.queue_id,
        message.size,
        message.wire,
        (message.marks & (MARK_HIGH | MARK_WANTS)) | MARK_CONFIRMED,
        target.sequence,
    )
