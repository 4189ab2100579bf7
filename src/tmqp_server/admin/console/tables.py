"""The broker's words for the console, taken from the server's own tables: a script that is made
when the door opens, so that no page can name an option that does not exist.
"""

from __future__ import annotations

import json
from typing import Final

from tmqp.constants import (
    BindingHttpMethod,
    BindingInteraction,
    BindingType,
    RouteMethod,
)
from tmqp_server.doors.facts import events_by_name
from tmqp_server.engine.events import LIFECYCLE_EVENTS, SERVER_EVENTS
from tmqp_server.engine.options.table import ADDRESS, CHANNEL_OPTIONS, QUEUE_OPTIONS, STATUS, Option

__all__ = ["console_tables"]

#: The statuses that an operator chooses from, in this order.
_STATUSES: Final = ("push", "round-robin", "pull", "broadcast", "cache", "paused", "stopped")


def console_tables() -> bytes:
    """A script that exports the tables."""
    found = {
        "STATUSES": _STATUSES,
        "QUEUE_OPTIONS": [_option(each) for each in QUEUE_OPTIONS],
        "CHANNEL_OPTIONS": [_option(each) for each in CHANNEL_OPTIONS],
        "ROUTE_METHODS": [each.name.lower().replace("_", "-") for each in RouteMethod],
        "BINDING_KINDS": [each.name.lower() for each in BindingType],
        "INTERACTIONS": [each.name.lower() for each in BindingInteraction],
        "HTTP_METHODS": [each.name.lower() for each in BindingHttpMethod],
        "SERVER_EVENTS": _events(SERVER_EVENTS),
        "CHANNEL_EVENTS": _events(LIFECYCLE_EVENTS & ~SERVER_EVENTS),
    }
    lines = [f"export const {name} = {json.dumps(value)};\n" for name, value in found.items()]
    return "".join(["// Made by the server from its own tables.\n", *lines]).encode()


def _events(kinds: int) -> list[str]:
    return [name for name, event in events_by_name().items() if event & kinds]


def _option(option: Option) -> dict[str, object]:
    words = list(_STATUSES) if option.kind == STATUS else list(option.words)
    initial = "push" if option.kind == STATUS else option.initial
    if option.kind == ADDRESS:
        initial = None
    return {
        "name": option.name,
        "kind": option.kind,
        "initial": initial,
        "least": option.least,
        "words": words,
        "meaning": option.meaning.replace("`", ""),
    }
