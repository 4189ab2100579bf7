"""Owns the effects of transactions, and what is told of them.

``CommitStored`` is one effect, with one ticket: whoever carries it out cannot take half of it.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.records import Record
from tmqp_server.engine.storage_effects import StoredChange
from tmqp_server.engine.transaction_commands import Bundle

__all__ = [
    "BROKEN",
    "COMMITTED",
    "COMMITTING",
    "OPEN",
    "CommitPart",
    "CommitStored",
    "ForgetMark",
    "TransactionSnapshot",
]

#: What a transaction, or an epoch, is.
OPEN: Final = "open"
COMMITTING: Final = "committing"
COMMITTED: Final = "committed"
#: A push into it was refused: it can only be aborted.
BROKEN: Final = "broken"


class CommitPart(Record):
    """What goes into one queue: ``count`` messages, from the sequence ``first`` on without a gap.

    ``expires_at`` is in monotonic seconds, or NEVER.
    """

    __slots__ = ("key", "first", "count", "bundles", "expires_at")

    def __init__(
        self, key: int, first: int, count: int, bundles: list[Bundle], expires_at: float
    ) -> None:
        self.key = key
        self.first = first
        self.count = count
        self.bundles = bundles
        self.expires_at = expires_at


class CommitStored(StoredChange):
    """Keep all these messages and the mark that they are committed, or none of it.

    Answered by ``Synced``.  The mark is void with the messages.
    """

    __slots__ = ("application", "epoch", "at", "parts")

    def __init__(self, application: str, epoch: int, at: float, parts: list[CommitPart]) -> None:
        super().__init__()
        self.application = application
        self.epoch = epoch
        self.at = at
        self.parts = parts


class ForgetMark(StoredChange):
    """Nobody is to know any more which epoch an application committed last."""

    __slots__ = ("application",)

    def __init__(self, application: str) -> None:
        super().__init__()
        self.application = application


class TransactionSnapshot(Record):
    """A transaction, or (with the number 0) the last epoch that an application committed.

    ``count`` and ``size`` are about the messages staged or committed; ``at`` is when the one
    times out if nothing more is pushed, or when the other was committed; monotonic seconds, None
    for unknown.
    """

    __slots__ = (
        "number",
        "application",
        "epoch",
        "part",
        "attempt",
        "state",
        "count",
        "size",
        "at",
    )

    def __init__(
        self,
        number: int,
        application: str,
        epoch: int,
        part: int | None,
        attempt: int,
        state: str,
        count: int,
        size: int,
        at: float | None,
    ) -> None:
        self.number = number
        self.application = application
        self.epoch = epoch
        self.part = part
        self.attempt = attempt
        self.state = state
        self.count = count
        self.size = size
        self.at = at
