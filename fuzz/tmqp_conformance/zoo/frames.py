"""Changes to messages that leave a broken peer, byte by byte where that is needed."""

from __future__ import annotations

from tmqp import Frame
from tmqp.testing import write_frame

__all__ = ["changed", "long_form", "swapped"]


def changed(frame: Frame, **fields: object) -> bytes:
    """The bytes of a message with some of its fields changed, whatever the protocol says."""
    raw = frame.raw
    values: dict[str, object] = {
        "message_type": frame.type,
        "first_acquirer": frame.first_acquirer,
        "high_priority": frame.high_priority,
        "pending_response": frame.pending_response,
        "pending_acknowledge": frame.pending_acknowledge,
        "ttl": frame.ttl,
        "message_id": frame.message_id.encode(),
        "source": frame.source.encode(),
        "target": frame.target.encode(),
        "content_type": frame.content_type,
        "header_block": frame.header_block if frame.has_header else None,
        "payload": frame.payload,
    }
    if not fields:
        return raw
    return write_frame(**{**values, **fields})  # type: ignore[arg-type]  # fields of a frame


def long_form(frame: Frame) -> bytes:
    """The message with its payload length in eight bytes."""
    return changed(frame, tier=255)


def swapped(frame: Frame) -> bytes:
    """The message with its content type in the other order of bytes."""
    low, high = frame.content_type & 0xFF, frame.content_type >> 8
    return changed(frame, content_type=low << 8 | high)
