"""The effects of transactions, and the answers about them.

``CommitStored`` is one effect, with one ticket: it is carried out as a whole.
"""

from __future__ import annotations

from tmqp_server.engine.commands import Segment
from tmqp_server.engine.effects.storage import StoredChange
from tmqp_server.engine.records import Record

__all__ = [
    "CommitPart",
    "CommitStored",
    "DropStaged",
    "ForgetMark",
    "StageSegment",
]


class CommitPart(Record):
    """The part of a commit for one queue: ``count`` messages, from the sequence ``first`` on
    without a gap.

    ``expires_at`` is in monotonic seconds, or NEVER.
    """

    __slots__ = ("key", "first", "count", "segments", "expires_at")

    def __init__(
        self, key: int, first: int, count: int, segments: list[Segment], expires_at: float
    ) -> None:
        self.key = key
        self.first = first
        self.count = count
        self.segments = segments
        self.expires_at = expires_at


class CommitStored(StoredChange):
    """Save all these messages and the mark of the epoch, or nothing.

    Answered by ``Synced``.  If it fails, the mark is void, too.
    """

    __slots__ = ("application", "epoch", "at", "parts")

    def __init__(self, application: str, epoch: int, at: float, parts: list[CommitPart]) -> None:
        super().__init__()
        self.application = application
        self.epoch = epoch
        self.at = at
        self.parts = parts


class StageSegment(StoredChange):
    """Stage a segment under a number, until a commit or ``DropStaged`` names it.

    Answered by ``Synced``.  It need not survive the process, like the transaction.  The segment
    does not change before the answer.
    """

    __slots__ = ("number", "segment")

    def __init__(self, number: int, segment: Segment) -> None:
        super().__init__()
        self.number = number
        self.segment = segment


class DropStaged(StoredChange):
    """Drop what was staged under these numbers; never answered."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: list[int]) -> None:
        super().__init__()
        self.numbers = numbers


class ForgetMark(StoredChange):
    """Erase the mark of an application: its last committed epoch is forgotten."""

    __slots__ = ("application",)

    def __init__(self, application: str) -> None:
        super().__init__()
        self.application = application
