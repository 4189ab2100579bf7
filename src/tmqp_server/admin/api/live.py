"""``/events``: what happens, as it happens."""

from __future__ import annotations

from typing import Final

from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.admin.api.table import Operation, integer, text
from tmqp_server.doors.http.events import follow
from tmqp_server.engine.commands import SubscribeEvent

__all__ = ["LIVE_OPERATIONS"]

LIVE_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="followEvents",
        method="GET",
        path="/events",
        summary="Events of the broker, as a stream of server-sent events.",
        begin=lambda _, exchange: follow(exchange),
        rights=("subscribe",),
        commands=(SubscribeEvent,),
        query=(
            text("kind", "The events, with commas."),
            text("channel", "The channel that they are about."),
            integer("queue", "The queue that they are about.", 0, MAX_QUEUE_ID, 0),
        ),
        answer="Events",
        kind="text/event-stream",
        failures=(406, 409),
        cli=("events",),
    ),
)
