"""The bugs that are planted where consumers choose by filters; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.parking import ParkingList
from tmqp_server.engine.model.selection import Selection

__all__ = ["CHOOSING_BUGS"]


def _for_all(original: Any) -> Any:
    def takers(self: Selection, mask: int) -> int:
        found: int = original(self, mask)
        for slot in self.slots.values():
            found |= slot.places
        return found

    return takers


def _never_looked_for(original: Any) -> Any:
    def take_parked(self: ParkingList, selection: Selection, ready: int) -> Message | None:
        return None

    return take_parked


def _never_again(original: Any) -> Any:
    def follow(self: ParkingList, selection: Selection) -> None:
        if not self.lanes:
            original(self, selection)

    return follow


#: What makes each of them: name, text, owner, attribute, and the change.
CHOOSING_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "filters-ignored", "messages go to consumers that do not want them",
        Selection, "takers", _for_all,
    ),
    (
        "parked-for-good", "a message that waits for its consumer is not looked for",
        ParkingList, "take_parked", _never_looked_for,
    ),
    (
        "filter-comes-late", "a filter does not find what was looked at before it came",
        ParkingList, "follow", _never_again,
    ),
)  # fmt: skip
