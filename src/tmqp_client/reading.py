"""Messages that were read or browsed, without being delivered, and index entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, final

from tmqp import Frame, FrameDecoder, Limits
from tmqp.blocks import (
    DOOR_NATIVE,
    FLAG_DOOR_SHIFT,
    FLAG_HIGH,
    FLAG_IN_FLIGHT,
    FLAG_TRANSIENT,
    BlockError,
    StoredMessage,
    split_blocks,
    split_indexes,
)
from tmqp.extensions import STATE_DEFERRED, STATE_IN_FLIGHT, STATE_WAITING

__all__ = [
    "KeptEntry",
    "KeptMessage",
    "PeekedMessage",
    "kept_entries",
    "kept_messages",
    "peeked_messages",
]

#: Kept messages were accepted once, so only the limits of the wire apply.
_KEPT = Limits(max_payload_bytes=2**62)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: The end of the last year that datetime supports.
_LAST_US: Final = 253_402_300_800_000_000


@final
class KeptMessage:
    """A kept message: read, not delivered, so it needs no answer.

    ``sequence`` is its position in the queue, ``timestamp_us`` the time of its arrival, in
    microseconds of Unix time.  ``payload`` is the producer's payload.  ``frame`` is the whole
    message as it arrived; None, with the other properties empty, if it arrived through another
    protocol.
    """

    __slots__ = ("sequence", "timestamp_us", "payload", "frame", "stored")

    def __init__(self, stored: StoredMessage, frame: Frame | None) -> None:
        self.sequence = stored.sequence
        self.timestamp_us = stored.timestamp_us
        self.payload = stored.payload
        self.frame = frame
        #: The whole stored message.
        self.stored = stored

    @property
    def text(self) -> str:
        """The payload as UTF-8 text.

        :raises UnicodeDecodeError: if it is not valid.
        """
        return self.payload.decode("utf-8")

    @property
    def message_id(self) -> str:
        """The message's id, from its producer."""
        return "" if self.frame is None else self.frame.message_id

    @property
    def source(self) -> str:
        """The producer's client id."""
        return "" if self.frame is None else self.frame.source

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers, in order."""
        return [] if self.frame is None else list(self.frame.headers)

    @property
    def high_priority(self) -> bool:
        """Whether it was pushed with high priority."""
        return self.frame is not None and self.frame.high_priority

    def __repr__(self) -> str:
        return f"<KeptMessage {self.sequence} id={self.message_id!r}>"


@final
class KeptEntry:
    """The index entry of a kept message, without the message itself.

    ``sequence`` and ``timestamp_us`` are as in :class:`KeptMessage`; ``bytes`` is the size of the
    whole stored message, ``payload_bytes`` that of its payload.
    """

    __slots__ = ("bytes", "payload_bytes", "sequence", "stored", "timestamp_us")

    def __init__(self, stored: StoredMessage, bytes: int) -> None:
        self.sequence = stored.sequence
        self.timestamp_us = stored.timestamp_us
        self.bytes = bytes
        self.payload_bytes = stored.payload_size
        #: The stored message with an empty body.
        self.stored = stored

    @property
    def high_priority(self) -> bool:
        """Whether it was pushed with high priority."""
        return bool(self.stored.flags & FLAG_HIGH)

    def __repr__(self) -> str:
        return f"<KeptEntry {self.sequence} of {self.bytes} bytes>"


@final
class PeekedMessage:
    """A browsed message of a queue; it is not a delivery, so it needs no answer.

    ``sequence`` is its position in the queue, ``state`` is ``waiting``, ``deferred`` or
    ``in-flight``, ``attempts`` the number of deliveries.  ``due_at`` is when a deferred one will be
    delivered, ``expires_at`` when it is dropped; None for never.  ``kept`` is true if it is on
    disk, or about to be.  ``frame`` is the whole message as it arrived.
    """

    __slots__ = (
        "attempts",
        "due_at",
        "expires_at",
        "frame",
        "kept",
        "payload",
        "sequence",
        "state",
    )

    def __init__(self, stored: StoredMessage, frame: Frame) -> None:
        self.sequence = stored.sequence
        self.attempts = stored.attempts
        self.due_at = _moment(stored.due_us)
        self.expires_at = _moment(stored.expires_us)
        self.kept = not stored.flags & FLAG_TRANSIENT
        self.payload = stored.payload
        self.frame = frame
        if stored.flags & FLAG_IN_FLIGHT:
            self.state = STATE_IN_FLIGHT
        else:
            self.state = STATE_DEFERRED if stored.due_us else STATE_WAITING

    @property
    def text(self) -> str:
        """The payload as UTF-8 text.

        :raises UnicodeDecodeError: if it is not valid.
        """
        return self.payload.decode("utf-8")

    @property
    def message_id(self) -> str:
        """The message's id, from its producer."""
        return self.frame.message_id

    @property
    def source(self) -> str:
        """The producer's client id; empty if the queue hides it."""
        return self.frame.source

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers, in order."""
        return list(self.frame.headers)

    @property
    def high_priority(self) -> bool:
        """Whether it was pushed with high priority."""
        return self.frame.high_priority

    def __repr__(self) -> str:
        return f"<PeekedMessage {self.sequence} id={self.message_id!r} {self.state}>"


def _moment(unix_us: int) -> datetime | None:
    """Convert a time of a block; None if there is none, or it is beyond the year 9999."""
    if not 0 < unix_us < _LAST_US:
        return None
    return _EPOCH + timedelta(microseconds=unix_us)


def peeked_messages(data: bytes) -> list[PeekedMessage]:
    """Read the messages in the answer to a browse request.

    :raises BlockError: if the blocks are invalid or damaged.
    """
    return [
        PeekedMessage(each.stored, each.frame)
        for each in kept_messages(data)
        if each.frame is not None
    ]


def kept_entries(data: bytes) -> list[KeptEntry]:
    """Read the index entries in heads and indexes of blocks.

    :raises BlockError: if they are invalid or damaged.
    """
    return [
        KeptEntry(block.message(place), block.size(place))
        for block in split_indexes(data)
        for place in range(block.count)
    ]


def kept_messages(data: bytes) -> list[KeptMessage]:
    """Read the messages of blocks.

    :raises BlockError: if the blocks are invalid or damaged.
    """
    found: list[KeptMessage] = []
    decoder = FrameDecoder(_KEPT)
    for block in split_blocks(data):
        for stored in block.messages():
            if stored.flags >> FLAG_DOOR_SHIFT != DOOR_NATIVE:
                found.append(KeptMessage(stored, None))
                continue
            frames = decoder.feed(stored.body)
            if len(frames) != 1 or decoder.buffered or decoder.error is not None:
                raise BlockError(f"message {stored.sequence} is not one message")
            found.append(KeptMessage(stored, frames[0]))
    return found
