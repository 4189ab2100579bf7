"""The bugs that are planted in pushes that wait for room; see ``mutants.py``."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.engine.delivery.holding import HeldPush, Holding
from tmqp_server.hub.outlets import Outlets

__all__ = ["HOLD_BUGS"]


def _is_never_tried(original: Any) -> Any:
    """Nobody looks at those that wait."""

    def due(self: Holding, now: float) -> list[HeldPush]:
        original(self, now)
        return []

    return due


def _does_not_go_on(original: Any) -> Any:
    """What came after a push that has waited is left lying."""

    def resume(self: Outlets, number: int, now: float) -> None:
        return

    return resume


#: Name, what goes wrong, where, and by what it is replaced.
HOLD_BUGS: Final[tuple[tuple[str, str, Any, str, Any], ...]] = (
    (
        "room-is-never-tried",
        "a push that waits for room is not tried again",
        Holding,
        "due",
        _is_never_tried,
    ),
    (
        "room-leaves-behind",
        "what a client says after a push that has waited is not carried out",
        Outlets,
        "resume",
        _does_not_go_on,
    ),
)
