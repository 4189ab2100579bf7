"""The form in which browsed messages are returned."""

from __future__ import annotations

from tmqp_server.engine.commands import KeptMessage
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_HIGH, MARK_SAVED, MARK_SAVING, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.snapshots import (
    BROWSED_DEFERRED,
    BROWSED_IN_FLIGHT,
    BROWSED_WAITING,
    BrowsedMessage,
)
from tmqp_server.engine.model.times import AT_ONCE, NEVER

__all__ = ["of_kept", "of_message"]


def of_message(message: Message) -> BrowsedMessage:
    """The present state of a message in memory."""
    rare = message.rare
    state = BROWSED_WAITING
    due_s: float | None = None
    if message.holder is not None or message.holders:
        state = BROWSED_IN_FLIGHT
    elif rare is not None and rare.due_at != AT_ONCE:
        state = BROWSED_DEFERRED
        due_s = rare.due_at
    kept = message.marks & (MARK_SAVED | MARK_SAVING) != 0
    return BrowsedMessage(
        message.sequence,
        message.message_id,
        message.source,
        message,
        message.size,
        message.high_priority,
        message.wants_confirm,
        kept,
        state,
        message.attempts,
        message.put_backs,
        _moment(message.expires_at),
        due_s,
    )


def of_kept(queue: Queue, kept: KeptMessage, high_priority: bool, now: float) -> BrowsedMessage:
    """A message that waits on disk only, or was not read back since the start."""
    deferred = kept.due_at > now
    producer = Origin(0, kept.source, None, None, kept.door)
    message = Message(
        kept.message_id,
        producer,
        queue.channel_name if kept.channel is None else kept.channel,
        queue.queue_id,
        kept.size,
        kept.wire,
        MARK_HIGH if high_priority else 0,
        kept.sequence,
    )
    return BrowsedMessage(
        kept.sequence,
        kept.message_id,
        kept.source,
        message,
        kept.size,
        high_priority,
        kept.wants_confirm,
        True,
        BROWSED_DEFERRED if deferred else BROWSED_WAITING,
        kept.attempts,
        kept.put_backs,
        _moment(kept.expires_at),
        kept.due_at if deferred else None,
    )


def _moment(expires_at: float) -> float | None:
    return None if expires_at == NEVER else expires_at
