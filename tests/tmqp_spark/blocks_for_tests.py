"""Blocks as a broker would write them, made of messages that tests describe."""

from __future__ import annotations

from tmqp import Frame, MessageType
from tmqp.block_writing import encode_block
from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, StoredMessage

__all__ = ["KEY", "block", "stored"]

KEY = 5
BASE_US = 1_700_000_000_000_000


def stored(
    sequence: int,
    payload: bytes = b"",
    *,
    door: int = 1,
    attempts: int = 0,
    message_id: str = "",
    source: str = "",
    headers: tuple[tuple[str, str], ...] = (),
    high_priority: bool = False,
    first_acquirer: bool = False,
    pending_acknowledge: bool = False,
    pending_response: bool = False,
    ttl: int = 16,
) -> StoredMessage:
    """A message as it is kept: what a producer sent, by TMQP or (another door) as it is."""
    body = payload
    if door == 1:
        body = Frame.build(
            int(MessageType.QUEUE_MESSAGE),
            "orders",
            7,
            payload,
            message_id=message_id,
            source=source,
            headers=headers,
            high_priority=high_priority,
            first_acquirer=first_acquirer,
            pending_acknowledge=pending_acknowledge,
            pending_response=pending_response,
            ttl=ttl,
        ).raw
    flags = door << FLAG_DOOR_SHIFT | (FLAG_HIGH if high_priority else 0)
    offset = len(body) - len(payload)
    return StoredMessage(
        sequence, BASE_US + sequence, 0, 0, flags, attempts, 0, 0, offset, len(payload), body
    )


def block(*messages: StoredMessage) -> bytes:
    """One block of them."""
    return encode_block(KEY, list(messages))
