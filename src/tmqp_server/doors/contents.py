"""Answers the engine's questions about frames that it has only as bytes."""

from __future__ import annotations

from tmqp.frames import Frame

__all__ = ["contents_of"]


def contents_of(frames: list[Frame]) -> tuple[list[str], list[int], list[object]]:
    """The id, the size in bytes and the frame of each message."""
    ids: list[str] = []
    sizes: list[int] = []
    wires: list[object] = []
    for frame in frames:
        ids.append(frame.message_id)
        sizes.append(len(frame.raw))
        wires.append(frame)
    return ids, sizes, wires
