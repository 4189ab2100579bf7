"""Moves messages to dead letter queues."""

from __future__ import annotations

from tmqp.names import EXACT_MARK
from tmqp_server.engine.model.message import (
    MARK_CONFIRMED,
    MARK_HIGH,
    MARK_WANTS,
    Message,
    Wires,
)
from tmqp_server.engine.model.queues import Queue

__all__ = ["moved_letter"]


def moved_letter(
    message: Message, reason: str, queue: Queue, target: Queue, wires: Wires
) -> Message:
    """A copy of *message*, which leaves *queue*, for *target*; no producer waits for its confirm.

    :param reason: ``put-backs``, ``expired`` or ``full``; the copy says so.
    """
    place = f"{queue.channel_name.removeprefix(EXACT_MARK)};{queue.queue_id}"
    wire, more_bytes = wires.with_reason(message, reason, place)
    target.sequence += 1
    if not message.message_id:
        target.expect_nameless()
    return Message(
        message.message_id,
        message.producer,
        target.channel_name,
        target.queue_id,
        message.size + more_bytes,
        wire,
        (message.marks & (MARK_HIGH | MARK_WANTS)) | MARK_CONFIRMED,
        target.sequence,
    )
