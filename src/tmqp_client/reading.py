"""Owns a message that was read from what a server keeps of a queue, and what is known of one."""

from __future__ import annotations

from typing import final

from tmqp import Frame, FrameDecoder, Limits
from tmqp.blocks import (
    FLAG_DOOR_SHIFT,
    FLAG_HIGH,
    BlockError,
    StoredMessage,
    split_blocks,
    split_indexes,
)

__all__ = ["KeptEntry", "KeptMessage", "kept_entries", "kept_messages"]

#: The door whose bodies are messages of this protocol.
_NATIVE: int = 1
#: What was kept was accepted once: only the wire's own bounds hold.
_KEPT = Limits(max_payload_bytes=2**62)


@final
class KeptMessage:
    """A message as it is kept: read, not delivered, so there is nothing to answer.

    ``sequence`` is its place in the queue, ``timestamp_us`` when it came, in microseconds of Unix
    time.  ``payload`` is what the producer sent.  ``frame`` is the whole message as it arrived;
    None, and the other properties empty, when it came by another protocol.
    """

    __slots__ = ("sequence", "timestamp_us", "payload", "frame", "stored")

    def __init__(self, stored: StoredMessage, frame: Frame | None) -> None:
        self.sequence = stored.sequence
        self.timestamp_us = stored.timestamp_us
        self.payload = stored.payload
        self.frame = frame
        #: All that is kept about it.
        self.stored = stored

    @property
    def text(self) -> str:
        """The payload as UTF-8 text.

        :raises UnicodeDecodeError: when it is not.
        """
        return self.payload.decode("utf-8")

    @property
    def message_id(self) -> str:
        """The producer's id for it."""
        return "" if self.frame is None else self.frame.message_id

    @property
    def source(self) -> str:
        """The producer's client id."""
        return "" if self.frame is None else self.frame.source

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Its headers, in order."""
        return [] if self.frame is None else list(self.frame.headers)

    @property
    def high_priority(self) -> bool:
        """It was pushed with high priority."""
        return self.frame is not None and self.frame.high_priority

    def __repr__(self) -> str:
        return f"<KeptMessage {self.sequence} id={self.message_id!r}>"


@final
class KeptEntry:
    """What is known of a kept message without the message itself.

    ``sequence`` and ``timestamp_us`` as in :class:`KeptMessage`; ``bytes`` are those of the whole
    message as it is kept, of which the payload has ``payload_bytes``.
    """

    __slots__ = ("bytes", "payload_bytes", "sequence", "stored", "timestamp_us")

    def __init__(self, stored: StoredMessage, bytes: int) -> None:
        self.sequence = stored.sequence
        self.timestamp_us = stored.timestamp_us
        self.bytes = bytes
        self.payload_bytes = stored.payload_size
        #: All that is kept about it, with an empty body.
        self.stored = stored

    @property
    def high_priority(self) -> bool:
        """It was pushed with high priority."""
        return bool(self.stored.flags & FLAG_HIGH)

    def __repr__(self) -> str:
        return f"<KeptEntry {self.sequence} of {self.bytes} bytes>"


def kept_entries(data: bytes) -> list[KeptEntry]:
    """What heads and indexes tell of their messages.

    :raises BlockError: when these are none, or not what was written.
    """
    return [
        KeptEntry(block.message(place), block.size(place))
        for block in split_indexes(data)
        for place in range(block.count)
    ]


def kept_messages(data: bytes) -> list[KeptMessage]:
    """The messages of some blocks.

    :raises BlockError: when these are no blocks, or not what was written.
    """
    found: list[KeptMessage] = []
    decoder = FrameDecoder(_KEPT)
    for block in split_blocks(data):
        for stored in block.messages():
            if stored.flags >> FLAG_DOOR_SHIFT != _NATIVE:
                found.append(KeptMessage(stored, None))
                continue
            frames = decoder.feed(stored.body)
            if len(frames) != 1 or decoder.buffered or decoder.error is not None:
                raise BlockError(f"message {stored.sequence} is not one message")
            found.append(KeptMessage(stored, frames[0]))
    return found
