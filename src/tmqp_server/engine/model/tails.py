"""``Tail``: what a queue knows of those of its waiting messages that are on disk only.

Theory of operation.  A queue that may spill keeps the first messages of each priority in memory;
what comes when they are too many is appended to the storage and let go of as soon as the storage
has it.  These messages wait behind all of their priority that are in memory, in the order of their
sequences: everything after ``after`` up to ``last`` that is owed.  While there is such a tail, what
arrives goes to its end.  It comes back from its beginning, in portions, as room gets free.

The tail is counted, not listed.  Only what is in memory although its copy stands within the tail's
range (a deferred message, one saved late) is remembered, in ``skip``, so that it does not come
twice.
"""

from __future__ import annotations

__all__ = ["Tail"]


class Tail:
    """The part of one priority of one queue that is on disk only."""

    __slots__ = ("after", "bytes", "count", "fetching", "last", "skip", "unsynced")

    def __init__(self, after: int, last: int) -> None:
        #: Everything up to this sequence has come back.
        self.after = after
        #: The last sequence that the storage has confirmed.
        self.last = last
        #: Messages in it, those the storage has not confirmed included.
        self.count = 0
        #: The bytes of these messages.
        self.bytes = 0
        #: Messages in it that the storage has not confirmed.
        self.unsynced = 0
        #: A portion has been asked for.
        self.fetching = False
        #: Sequences within the range that are not part of it.
        self.skip: dict[int, None] = {}
