"""The bugs that are planted in commits of transactions; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.effects import CommitStored
from tmqp_server.engine.transactions.holdings import Holdings
from tmqp_server.engine.transactions.transactions import Transactions
from tmqp_server.storage.journal import Journal

__all__ = ["COMMIT_BUGS"]


def _mark_outlives_its_messages(original: Any) -> Any:
    """The mark of a commit is owed to the store like any change, though its messages are void."""

    def commit(self: Journal, effect: CommitStored) -> None:
        original(self, effect)
        self._changes.append(self._marks.pop())  # owed to the store, as other changes are

    return commit


def _mark_comes_later(original: Any) -> Any:
    """The mark is written in the batch behind its messages."""

    def take(self: Any) -> Any:
        self._marks, self.late = getattr(self, "late", []), self._marks
        return original(self)

    return take


def _commits_every_time(original: Any) -> Any:
    """Nobody remembers in memory what was committed."""

    def committed(self: Transactions, pending: Any) -> None:
        original(self, pending)
        self._marks[pending.application].epoch = -1  # whoever asks again is not known

    return committed


def _takes_it_for_put_aside(original: Any) -> Any:
    """What the disk could not put aside is taken for put aside: its commit can never be."""

    def put_aside(self: Transactions, pending: Any, ok: bool) -> None:
        original(self, pending, True)

    return put_aside


def _leaves_out_what_is_aside(original: Any) -> Any:
    """A commit brings only what is in memory."""

    def commit(self: Journal, effect: CommitStored) -> None:
        original(self, effect)
        self._portions = [each for each in self._portions if not each.staging]

    return commit


def _keeps_what_is_aside(original: Any) -> Any:
    """What was put aside stays when its transaction ends."""

    def empty(self: Holdings, transaction: Any) -> None:
        transaction.stagings = []
        original(self, transaction)

    return empty


#: What a mutant is made of.
COMMIT_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "mark-without-messages", "a commit's mark is kept although its messages could not be",
        Journal, "_commit", _mark_outlives_its_messages,
    ),
    (
        "mark-comes-later", "a commit's mark is written in the batch behind its messages",
        Journal, "take", _mark_comes_later,
    ),
    (
        "commits-every-time", "an epoch that is committed can be committed again",
        Transactions, "_committed", _commits_every_time,
    ),
    (
        "takes-it-for-put-aside", "what could not be put aside for a commit is taken for there",
        Transactions, "put_aside", _takes_it_for_put_aside,
    ),
    (
        "leaves-out-what-is-aside", "a commit brings only what is in memory",
        Journal, "_commit", _leaves_out_what_is_aside,
    ),
    (
        "keeps-what-is-aside", "what was put aside stays when its transaction ends",
        Holdings, "empty", _keeps_what_is_aside,
    ),
)  # fmt: skip
