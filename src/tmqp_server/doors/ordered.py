"""Answers in the order of their requests, for protocols whose answers carry no request id.

A door opens a :class:`Slot` for each request.  A slot is filled at once, by a later effect, or
piece by piece.  The contents of the finished slots at the front, and of the first unfinished one,
are ready to be sent.
"""

from __future__ import annotations

from collections import deque
from typing import final

__all__ = ["OrderedAnswers", "Slot"]


@final
class Slot:
    """The place of one answer.

    Attributes: ``finished``, nothing is added any more; ``waiting_bytes``, bytes that wait until
    the earlier answers are finished.
    """

    __slots__ = ("finished", "pieces", "waiting_bytes")

    def __init__(self) -> None:
        self.finished = False
        self.pieces: list[bytes] = []
        self.waiting_bytes = 0


@final
class OrderedAnswers:
    """The answers of one session.

    Attributes: ``waiting_bytes``, bytes that wait for unfinished answers before them;
    ``ready_bytes``, the size of what :meth:`take` would return.
    """

    __slots__ = ("_ready", "_slots", "ready_bytes", "waiting_bytes")

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()
        self._ready: list[bytes] = []
        self.ready_bytes = 0
        self.waiting_bytes = 0

    def __len__(self) -> int:
        """How many answers are unfinished or wait for earlier ones."""
        return len(self._slots)

    def open(self) -> Slot:
        """Reserve the place of the next request's answer."""
        slot = Slot()
        self._slots.append(slot)
        return slot

    def add(self, slot: Slot, data: bytes) -> None:
        """Add a piece to an unfinished answer."""
        assert not slot.finished, "a finished answer is complete"
        if not data:
            return
        if self._slots[0] is slot:
            self._ready.append(data)
            self.ready_bytes += len(data)
        else:
            slot.pieces.append(data)
            slot.waiting_bytes += len(data)
            self.waiting_bytes += len(data)

    def finish(self, slot: Slot, data: bytes = b"") -> None:
        """Complete an answer, with its last piece."""
        self.add(slot, data)
        slot.finished = True
        slots = self._slots
        if slots[0] is not slot:
            return
        while slots and slots[0].finished:
            slots.popleft()
            if slots:
                self._release(slots[0])

    def end(self, slot: Slot, data: bytes) -> None:
        """Complete an answer as the last one; the answers after it are dropped and count as
        finished."""
        slots = self._slots
        while slots[-1] is not slot:
            dropped = slots.pop()
            dropped.finished = True
            self.waiting_bytes -= dropped.waiting_bytes
        self.finish(slot, data)

    def _release(self, slot: Slot) -> None:
        """An answer has become the first, so its pieces are ready."""
        self._ready += slot.pieces
        self.ready_bytes += slot.waiting_bytes
        self.waiting_bytes -= slot.waiting_bytes
        slot.pieces = []
        slot.waiting_bytes = 0

    def take(self) -> bytes:
        """The bytes that have become ready since the last call."""
        data = b"".join(self._ready)
        self._ready = []
        self.ready_bytes = 0
        return data

    def clear(self) -> None:
        """Drop all answers that are not ready."""
        self._slots.clear()
        self.waiting_bytes = 0
