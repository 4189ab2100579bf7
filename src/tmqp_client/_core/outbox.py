"""Messages that wait for a connection: whole messages in their order, within limits.

An entry whose answer is no longer awaited (it timed out, or was abandoned) is not sent.  Such
entries are not removed one by one; they are skipped, and removed together when they are the
majority.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

from tmqp.frames import Frame
from tmqp_client._core.pending import Pending

__all__ = ["Entry", "Outbox"]

#: A message, and the entry that awaits its answer; None if none was requested.
Entry: TypeAlias = tuple[Frame, Pending | None]

#: Entries that will not be sent, before it is worth removing them.
_SWEEP_ENTRIES: Final = 64


class Outbox:
    """Messages that wait to be sent.

    Attributes to read: ``size_bytes``, the size of the messages that are still to be sent.
    """

    __slots__ = ("_dead", "_entries", "size_bytes")

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._dead = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries) - self._dead

    def put(self, frame: Frame, pending: Pending | None) -> None:
        """Add a message at the end."""
        self._entries.append((frame, pending))
        self.size_bytes += len(frame.raw)
        if pending is not None:
            pending.queued = True

    def put_first(self, pendings: list[Pending]) -> None:
        """Put messages that were sent before in front of all others, in the given order."""
        for pending in reversed(pendings):
            assert pending.frame is not None, "what is sent again was kept"
            self._entries.appendleft((pending.frame, pending))
            self.size_bytes += len(pending.frame.raw)
            pending.queued = True

    def forget(self, pending: Pending) -> None:
        """Do not send this entry if it still waits, because its answer is no longer awaited."""
        if not pending.queued:
            return
        assert pending.frame is not None, "what is queued was kept"
        pending.queued = False
        self.size_bytes -= len(pending.frame.raw)
        self._dead += 1
        if self._dead > len(self._entries) // 2 + _SWEEP_ENTRIES:
            self._entries = deque(entry for entry in self._entries if not _is_dead(entry))
            self._dead = 0

    def take(self) -> Entry | None:
        """Remove and return the first message to send; None if there is none."""
        entries = self._entries
        while entries:
            entry = entries.popleft()
            if _is_dead(entry):
                self._dead -= 1
                continue
            frame, pending = entry
            self.size_bytes -= len(frame.raw)
            if pending is not None:
                pending.queued = False
            return entry
        return None

    def clear(self) -> int:
        """Remove everything; return how many of the messages awaited no answer."""
        count = 0
        for _, pending in self._entries:
            if pending is None:
                count += 1
            else:
                pending.queued = False
        self._entries.clear()
        self._dead = 0
        self.size_bytes = 0
        return count


def _is_dead(entry: Entry) -> bool:
    pending = entry[1]
    return pending is not None and not pending.queued
