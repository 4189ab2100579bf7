"""Converts stored messages of other doors to TMQP messages, for readers.

A door stores messages in its protocol's form, which readers do not know.  So these messages are
converted to equivalent TMQP messages; blocks without such messages are sent unchanged.
"""

from __future__ import annotations

from typing import Final

from tmqp.block_writing import encode_block
from tmqp.blocks import (
    DOOR_NATIVE,
    FLAG_DOOR_SHIFT,
    FLAG_HIGH,
    BlockError,
    StoredMessage,
    decode_block,
    others_in,
)
from tmqp_server.doors.letters import Letters
from tmqp_server.engine.commands import Blocks

__all__ = ["translated"]

_OTHER_FLAGS: Final = (1 << FLAG_DOOR_SHIFT) - 1


def translated(blocks: Blocks, letters: Letters) -> Blocks:
    """Blocks with all messages as TMQP messages.  Damaged blocks, and messages that this server
    cannot read, stay unchanged."""
    others = [others_in(piece) for piece in blocks.pieces]
    if not any(others):
        return blocks
    return Blocks(
        [
            _translated(piece, letters) if is_other else piece
            for piece, is_other in zip(blocks.pieces, others, strict=True)
        ]
    )


def _translated(data: bytes, letters: Letters) -> bytes:
    try:
        block = decode_block(data)
        return encode_block(block.key, [_message(each, letters) for each in block.messages()])
    except BlockError:
        return data  # whoever reads it is told


def _message(stored: StoredMessage, letters: Letters) -> StoredMessage:
    door = stored.flags >> FLAG_DOOR_SHIFT
    if door == DOOR_NATIVE:
        return stored
    high = stored.flags & FLAG_HIGH != 0
    try:
        frame = letters.frame_of_kept(door, stored.body, high_priority=high)
    except (LookupError, ValueError):
        return stored
    size = frame.payload_size
    return StoredMessage(
        stored.sequence,
        stored.timestamp_us,
        stored.expires_us,
        stored.due_us,
        (stored.flags & _OTHER_FLAGS) | DOOR_NATIVE << FLAG_DOOR_SHIFT,
        stored.attempts,
        stored.put_backs,
        stored.hops,
        len(frame.raw) - size,
        size,
        frame.raw,
    )
