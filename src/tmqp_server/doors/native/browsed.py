"""Encodes browsed messages as a block."""

from __future__ import annotations

from typing import Final

from tmqp.block_writing import encode_block
from tmqp.blocks import (
    DOOR_NATIVE,
    FLAG_DOOR_SHIFT,
    FLAG_HIGH,
    FLAG_IN_FLIGHT,
    FLAG_TRANSIENT,
    FLAG_WANTS,
    StoredMessage,
)
from tmqp.frames import Frame
from tmqp_server.doors.letters import Letters
from tmqp_server.engine.commands import Blocks
from tmqp_server.engine.model.snapshots import (
    BROWSED_IN_FLIGHT,
    BrowsedMessage,
    BrowseSnapshot,
)

__all__ = ["browsed_blocks"]

_SECOND_US: Final = 1_000_000
_MAX_COUNT: Final = 65_535


def browsed_blocks(snapshot: BrowseSnapshot, letters: Letters, offset_s: float) -> Blocks:
    """The answer: one block, or nothing if no message was found.

    :param letters: reads messages that arrived through doors of other protocols.
    :param offset_s: what to add to the engine's times for seconds since 1970.
    """
    stored: list[StoredMessage] = []
    for item in snapshot.items:
        try:
            frame = letters.frame_of(item.message)
        except LookupError:
            continue  # a door that this server does not have any more
        if snapshot.hide_source:
            frame = frame.replace(source="")
        stored.append(_stored(item, frame, offset_s))
    return Blocks([encode_block(0, stored)] if stored else [])


def _stored(item: BrowsedMessage, frame: Frame, offset_s: float) -> StoredMessage:
    flags = DOOR_NATIVE << FLAG_DOOR_SHIFT
    if item.high_priority:
        flags |= FLAG_HIGH
    if item.wants_confirm:
        flags |= FLAG_WANTS
    if not item.kept:
        flags |= FLAG_TRANSIENT
    if item.state == BROWSED_IN_FLIGHT:
        flags |= FLAG_IN_FLIGHT
    expires_us = due_us = 0
    if item.expires_s is not None:
        expires_us = max(1, int((item.expires_s + offset_s) * _SECOND_US))
    if item.due_s is not None:
        due_us = max(1, int((item.due_s + offset_s) * _SECOND_US))
    raw = frame.raw
    size = frame.payload_size
    return StoredMessage(
        item.sequence,
        0,
        expires_us,
        due_us,
        flags,
        min(item.attempts, _MAX_COUNT),
        min(item.put_backs, _MAX_COUNT),
        0,
        len(raw) - size,
        size,
        raw,
    )
