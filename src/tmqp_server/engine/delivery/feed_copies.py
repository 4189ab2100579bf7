"""The copy of a message that a feed makes."""

from __future__ import annotations

from tmqp_server.engine.delivery.feed_commits import target_of
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.message import (
    MARK_CONFIRMED,
    MARK_COPY,
    MARK_HIGH,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.times import NEVER

__all__ = ["copy_of"]


def copy_of(feed: Feed, message: Message, now: float) -> Message:
    """A copy of a message for a feed; the caller gives it a sequence."""
    target = target_of(feed)
    if not message.message_id:
        target.expect_nameless()
    copy = Message(
        message.message_id,
        message.producer,
        target.channel_name,
        target.queue_id,
        message.size,
        message.wire,
        (message.marks & (MARK_HIGH | MARK_WANTS)) | MARK_CONFIRMED | MARK_COPY,
        0,
    )
    expires_at = message.expires_at
    if target.message_timeout_s > 0.0:
        expires_at = min(expires_at, now + target.message_timeout_s)
    if expires_at != NEVER and target.discipline.stores:
        copy.rarely().expires_at = expires_at
    rare = message.rare
    if rare is not None:
        if rare.due_at > now:
            copy.rarely().due_at = rare.due_at
        if rare.hops:
            copy.rarely().hops = rare.hops
    return copy
