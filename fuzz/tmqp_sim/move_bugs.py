"""The bugs that are planted in moves of messages; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.engine.commands import MoveMessage
from tmqp_server.engine.delivery.batch_checks import Item, PendingBatch
from tmqp_server.engine.delivery.batches import Batches
from tmqp_server.engine.delivery.moving import Moves

__all__ = ["MOVE_BUGS"]


def _keeps_what_is_moved(original: Any) -> Any:
    def commit(self: Batches, batch: PendingBatch) -> None:
        moved = [each.message for each in batch.items if isinstance(each.answer, MoveMessage)]
        stored = [message.rarely().stored for message in moved]
        for message in moved:
            message.rarely().stored = 0
        original(self, batch)
        for message, sequence in zip(moved, stored, strict=True):
            message.rarely().stored = sequence

    return commit


def _loses_what_was_not_saved(_original: Any) -> Callable[..., None]:
    def give_back(self: Moves, item: Item) -> None:
        self._flights.withhold(item.queue, -1)
        self._flights.count_cleared(item.queue, 1)
        self._outcomes.settle(item.queue, item.message)

    return give_back


MOVE_BUGS: Final = (
    (
        "move-copies", "the storage keeps a message that was moved, beside its copy",
        Batches, "_commit", _keeps_what_is_moved,
    ),
    (
        "move-loses", "a message whose move could not be saved is gone",
        Moves, "_give_back", _loses_what_was_not_saved,
    ),
)  # fmt: skip
