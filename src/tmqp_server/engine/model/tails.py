"""``Tail``: the waiting messages of a queue that are on disk only.

Theory of operation.  A queue that may spill keeps the first messages of each priority in memory;
further ones are appended to the storage and removed from memory as soon as the storage has them.
These messages wait after all messages of their priority that are in memory, in the order of their
sequences: all messages after ``after`` up to ``last`` that are not settled.  While there is such a
tail, new messages go to its end.  Its beginning is read back in portions, when there is room.

The tail is counted, not listed.  Only messages in memory whose copy is within the range of the tail
(a deferred message, one that was saved late) are remembered, in ``skip``, so that they are not read
twice.
"""

from __future__ import annotations

__all__ = ["Tail"]


class Tail:
    """The messages of one priority of one queue that are on disk only."""

    __slots__ = ("after", "bytes", "count", "fetching", "last", "skip", "unsynced")

    def __init__(self, after: int, last: int) -> None:
        #: Everything up to this sequence has been read back.
        self.after = after
        #: The last sequence that the storage has confirmed.
        self.last = last
        #: Messages in it, including those that the storage has not confirmed.
        self.count = 0
        #: The bytes of these messages.
        self.bytes = 0
        #: Messages in it that the storage has not confirmed.
        self.unsynced = 0
        #: A portion has been requested.
        self.fetching = False
        #: Sequences within the range that are not part of it.
        self.skip: dict[int, None] = {}
