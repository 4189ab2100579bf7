"""The bugs that are planted in how channels end and queues are full; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.operations.administration import Administration
from tmqp_server.engine.options import KEPT, WITH_CONSUMERS

__all__ = ["TENANT_BUGS"]


def _outlives(original: Any) -> Any:
    def remove_owned(self: Administration, session: Session) -> None:
        session.owned = None

    return remove_owned


def _outlives_leaving(original: Any) -> Any:
    """Only a consumer whose connection ends takes the channel along, not one that leaves."""

    def part(self: Administration, session: Session, channel: Channel) -> None:
        options = channel.options
        lasts = options.lifetime == WITH_CONSUMERS and session.alive
        if lasts:
            options.lifetime = KEPT
        try:
            original(self, session, channel)
        finally:
            if lasts:
                options.lifetime = WITH_CONSUMERS

    return part


def _looked_at_once(original: Any) -> Any:
    """A channel that is in use when it is examined first is never looked at again."""

    def look_again(self: Core, timer: Any, channel: Channel) -> None:
        if timer.pushed == 0:
            original(self, timer, channel)

    return look_again


def _newest_makes_way(original: Any) -> Any:
    def take_oldest(self: Queue) -> Message | None:
        return self.take_newest() if self.high_count or self.regular_count else None

    return take_oldest


def _nothing_makes_way(original: Any) -> Any:
    def make_room(self: Outcomes, queue: Queue, size: int, _deferred: bool) -> int:
        return self.problem_of_push(queue, size, False, None)

    return make_room


#: What makes each of them: name, text, owner, attribute, and the change.
TENANT_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "outlives-its-owner", "a channel stays when the client that it is to end with has gone",
        Administration, "remove_owned", _outlives,
    ),
    (
        "outlives-its-consumers", "a channel stays when its last consumer leaves it",
        Administration, "_part", _outlives_leaving,
    ),
    (
        "looked-at-once", "a channel that was used once is never found unused",
        Core, "_look_again", _looked_at_once,
    ),
    (
        "newest-makes-way", "not the oldest message makes way in a full queue, but the newest",
        Queue, "take_oldest", _newest_makes_way,
    ),
    (
        "nothing-makes-way", "a full queue refuses pushes although its oldest should make way",
        Outcomes, "make_room", _nothing_makes_way,
    ),
)  # fmt: skip
