"""Owns the bugs that are planted in commits of transactions; see ``mutants.py``."""

from __future__ import annotations

from typing import Any

from tmqp_server.engine.effects import CommitStored
from tmqp_server.engine.transactions.transactions import Transactions
from tmqp_server.storage.journal import Journal

__all__ = ["commits_every_time", "mark_comes_later", "mark_outlives_its_messages"]


def mark_outlives_its_messages(original: Any) -> Any:
    """The mark of a commit is owed to the store like any change, though its messages are void."""

    def commit(self: Journal, effect: CommitStored) -> None:
        original(self, effect)
        self._changes.append(self._marks.pop())  # owed to the store, as other changes are

    return commit


def mark_comes_later(original: Any) -> Any:
    """The mark is written in the batch behind its messages."""

    def take(self: Any) -> Any:
        self._marks, self.late = getattr(self, "late", []), self._marks
        return original(self)

    return take


def commits_every_time(original: Any) -> Any:
    """Nobody remembers in memory what was committed."""

    def committed(self: Transactions, pending: Any) -> None:
        original(self, pending)
        self._marks[pending.application].epoch = -1  # whoever asks again is not known

    return committed
