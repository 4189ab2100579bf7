"""The bugs that are planted in the way out of a server; part of ``shell_bugs.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tmqp_server.engine.commands import Command, Push
from tmqp_server.engine.effects import Confirm, Effect
from tmqp_server.engine.flights import leave
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.restricted import Restricted
from tmqp_server.shell.draining import SERVING, Draining

__all__ = ["DRAIN_BUGS"]


def _never_over(original: Any) -> Any:
    def look(self: Draining, _in_flight: int, now: float) -> bool:
        original(self, 1, min(now, self._until - 0.1))
        return False

    return look


def _waits_for_nothing(original: Any) -> Any:
    def begin(self: Draining, *rest: Any) -> bool:
        begun: bool = original(self, *rest)
        self._until = self._began
        return begun

    return begin


def _drops_what_is_in_flight(original: Any) -> Any:
    def drain(self: Restricted, now: float) -> None:
        original(self, now)
        broker = self.broker
        for queue in broker.queues():
            for message in list(queue.all_flights().values()):
                if message.holder is not None:
                    message.holder.in_flight -= 1
                    message.holder = None
                leave(queue, message)
                broker._outcomes.drop(queue, message)

    return drain


def _confirms_what_it_refuses(original: Any) -> Any:
    def perform(self: Hub, number: int, command: Command, now: float) -> Sequence[Effect]:
        if self.draining and isinstance(command, Push) and command.wants_confirm:
            place = (command.message_id, command.channel, command.queue_id)
            return [Confirm(command.session, *place, True, "", False, "", None)]
        found: Sequence[Effect] = original(self, number, command, now)
        return found

    return perform


def _hears_the_first_wish_only(original: Any) -> Any:
    def begin(self: Draining, in_flight: int, stops: bool, now: float) -> bool:
        if self.state != SERVING:
            return False
        begun: bool = original(self, in_flight, stops, now)
        return begun

    return begin


DRAIN_BUGS: Final = (
    (
        "drain-for-ever", "a server that drains does not come to its end",
        Draining, "look", _never_over,
    ),
    (
        "drain-at-once", "a server that drains does not wait for what is in hand",
        Draining, "begin", _waits_for_nothing,
    ),
    (
        "drain-drops", "a server that drains drops what is in flight",
        Restricted, "drain", _drops_what_is_in_flight,
    ),
    (
        "drain-confirms", "what a server that drains refuses is confirmed",
        Hub, "_perform", _confirms_what_it_refuses,
    ),
    (
        "drain-goes-on", "a server that drains is not heard to have to stop as well",
        Draining, "begin", _hears_the_first_wish_only,
    ),
)  # fmt: skip
