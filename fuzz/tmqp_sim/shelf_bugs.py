"""The bugs that are planted in deferred messages that are on disk only; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.delivery import workflow
from tmqp_server.engine.delivery.deferring import Deferring
from tmqp_server.engine.effects import Erase
from tmqp_server.engine.flights.deferred import DeferralFlights
from tmqp_server.engine.model.deferrals import Deferral, ShelfLine

__all__ = ["SHELF_BUGS"]


def _sends_what_it_reads(original: Any) -> Any:
    def take_down(
        self: DeferralFlights,
        queue: Any,
        line: ShelfLine,
        entry: Deferral,
        message: Any,
        transient: bool,
    ) -> None:
        entry.due_at -= 1.5
        original(self, queue, line, entry, message, transient)

    return take_down


def _in_words_only(_original: Any) -> Any:
    def cancel(_self: Deferring, _queue: Any, shelf: Any, message_id: str, most: int) -> bool:
        """It comes all the same."""
        lines = (shelf.high, shelf.regular)
        return any(line.find(message_id, most) for line in lines)

    return cancel


def _never_reads(_original: Any) -> Any:
    def read_ahead(_core: Any, queue: Any) -> None:
        queue.deferred.shelf.wake_at = float("inf")

    return read_ahead


def _keeps_its_copy(original: Any) -> Any:
    def take_down(self: DeferralFlights, *arguments: Any) -> None:
        original(self, *arguments)
        out = self._core.out
        if out and isinstance(out[-1], Erase):
            del out[-1]

    return take_down


def _waits_for_its_copy(_original: Any) -> Any:
    def forget(_self: DeferralFlights, _queue: Any, _message: Any) -> None:
        """It is there for nothing."""

    return forget


#: What a mutant is made of.
SHELF_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "shelf-too-early", "a deferred message that was read ahead goes before its time",
        DeferralFlights, "take_down", _sends_what_it_reads,
    ),
    (
        "shelf-cancel-in-words", "a message that is cancelled on the disk comes all the same",
        Deferring, "_cancel_on_disk", _in_words_only,
    ),
    (
        "shelf-never-read", "what is deferred on disk only stays there",
        workflow, "read_ahead", _never_reads,
    ),
    (
        "shelf-keeps-its-copy", "what was on disk to save memory stays there when it comes back",
        DeferralFlights, "take_down", _keeps_its_copy,
    ),
    (
        "shelf-copy-for-nothing", "what is due before it is written has a copy for nothing",
        DeferralFlights, "_forget_transient", _waits_for_its_copy,
    ),
)  # fmt: skip
