"""The bugs that are planted in what is owed to the storage; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.delivery.debts import Debts
from tmqp_server.engine.model.message import MARK_COPY, MARK_FAILED, Message

__all__ = ["DEBT_BUGS"]


def _owes_no_copies(original: Any) -> Any:
    """A copy that could not be saved is dropped, though its source has none any more."""

    def add(self: Debts, queue: Any, message: Message) -> None:
        if message.marks & MARK_COPY:
            message.marks |= MARK_FAILED
        else:
            original(self, queue, message)

    return add


def _owes_no_letters(original: Any) -> Any:
    """A dead letter that could not be saved is dropped, though it came from memory."""

    def add(self: Debts, queue: Any, message: Message) -> None:
        if message.marks & MARK_COPY:
            original(self, queue, message)
        else:
            message.marks |= MARK_FAILED

    return add


#: What a mutant is made of.
DEBT_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "feed-owes-nothing", "a copy that could not be saved is dropped, and its source has none",
        Debts, "add", _owes_no_copies,
    ),
    (
        "letter-owes-nothing", "a dead letter from memory is dropped when it could not be saved",
        Debts, "add", _owes_no_letters,
    ),
)  # fmt: skip
