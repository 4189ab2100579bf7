"""The bugs that are planted where each message goes to one consumer in turn; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.engine.delivery import dealing
from tmqp_server.engine.delivery.dealing import Deal
from tmqp_server.engine.model.sessions import Audience, Subscription

__all__ = ["DEALING_BUGS"]


def _room_for_all(original: Any) -> Any:
    def room(member: Subscription, count: int, wants: bool, flights: Any) -> int:
        return count

    return room


def _skips_one(original: Any) -> Any:
    def in_turn(found: Deal, *rest: Any) -> bool:
        dealt: bool = original(found, *rest)
        if dealt and found.shares and found.shares[-1].count > 1:
            found.shares[-1].stop -= found.shares[-1].step
        return dealt

    return in_turn


def _never_ready_again(original: Any) -> Any:
    def recount(self: Audience, subscription: Subscription) -> None:
        ready = self.ready
        original(self, subscription)
        if not self.scattered:
            self.ready &= ready

    return recount


def _stays_deaf(original: Any) -> Any:
    def note_hearing(self: Audience, subscription: Subscription, deaf: bool) -> None:
        if deaf:
            original(self, subscription, deaf)

    return note_hearing


#: What makes each of them: name, text, owner, attribute, and the change.
DEALING_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "dealt-beyond-room", "messages are dealt whatever a consumer can take",
        dealing, "_room", _room_for_all,
    ),
    (
        "dealt-but-one", "the last message that is dealt to a consumer is not sent",
        dealing, "_in_turn", _skips_one,
    ),
    (
        "never-in-turn-again", "who was full is passed over for good",
        Audience, "recount", _never_ready_again,
    ),
    (
        "deaf-for-good", "broadcasts go on passing over who reads again",
        Audience, "_note_hearing", _stays_deaf,
    ),
)  # fmt: skip
