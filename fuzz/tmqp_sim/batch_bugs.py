"""The bugs that are planted in batches of clients; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.engine.delivery.batch_checks import BatchChecks
from tmqp_server.engine.delivery.batches import Batches
from tmqp_server.engine.effects import CommitBatch, Erase
from tmqp_server.storage.journal import Journal

__all__ = ["BATCH_BUGS"]


def _settles_anyway(original: Any) -> Any:
    """What a batch settles is owed to the store like any settled message."""

    def commit(self: Journal, effect: CommitBatch) -> None:
        for erased in effect.erased:
            self.erase(erased)
        original(self, CommitBatch(effect.appended, [], effect.at))

    return commit


def _settles_later(original: Any) -> Any:
    """What a batch settles is written behind what it pushes."""

    def take(self: Any) -> Any:
        late, self.late = getattr(self, "late", []), self._replaced
        self._replaced = late
        return original(self)

    return take


def _never_fails(original: Any) -> Any:
    """A batch that could not be saved is taken for saved."""

    def synced(self: Batches, batch: Any, ok: bool) -> None:
        original(self, batch, True)

    return synced


def _answers_for_anything(original: Any) -> Any:
    """A batch is done although a message it answers for is not in its client's hands."""

    def check(self: BatchChecks, batch: Any, answer: Any) -> int:
        code: int = original(self, batch, answer)
        return RESULT_OK if code == RESULT_NOT_FOUND else code

    return check


def _forgets_in_part(original: Any) -> Any:
    """Of what a batch settles the last is not forgotten on disk."""

    def commit(self: Journal, effect: CommitBatch) -> None:
        erased: list[Erase] = effect.erased[:-1]
        original(self, CommitBatch(effect.appended, erased, effect.at))

    return commit


#: What a mutant is made of.
BATCH_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "batch-settles-anyway", "a batch that fails settles what it acknowledges all the same",
        Journal, "_commit_batch", _settles_anyway,
    ),
    (
        "batch-settles-later", "what a batch settles is written behind what it pushes",
        Journal, "take", _settles_later,
    ),
    (
        "batch-never-fails", "a batch that could not be saved is taken for saved",
        Batches, "synced", _never_fails,
    ),
    (
        "batch-of-anybody", "a batch answers for messages that are not its client's",
        BatchChecks, "_check_answer", _answers_for_anything,
    ),
    (
        "batch-forgets-in-part", "of what a batch settles one message stays on disk",
        Journal, "_commit_batch", _forgets_in_part,
    ),
)  # fmt: skip
