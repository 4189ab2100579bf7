"""Owns the reading of what clients say to each other, and of their wishes to be told of events."""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    EVENT_SUBSCRIBE,
    RESULT_NOT_FOUND,
    TARGET_NAME_PREFIX,
    TARGET_TYPE_PREFIX,
    HeaderName,
)
from tmqp.frames import Frame
from tmqp_server.doors.native.operations import BadRequestError, queue_id_header
from tmqp_server.engine.client_commands import (
    BY_ID,
    BY_NAME,
    BY_TYPE,
    SendDirect,
    SubscribeEvent,
)
from tmqp_server.engine.commands import Command
from tmqp_server.engine.events import ALL_EVENTS, event_name

__all__ = ["direct_command", "names_one_client", "subscription_command"]


def _events_by_name() -> dict[str, int]:
    events: dict[str, int] = {}
    event = 1
    while event <= ALL_EVENTS:
        events[event_name(event)] = event
        event *= 2
    return events


#: The events of this server, by their names; there are none about nodes while there are no nodes.
_EVENTS: Final[dict[str, int]] = _events_by_name()


def names_one_client(frame: Frame) -> bool:
    """Whether a direct message is for the client of an id, not for a name or type (F113)."""
    return not frame.target.startswith((TARGET_NAME_PREFIX, TARGET_TYPE_PREFIX))


def direct_command(session: int, frame: Frame) -> Command:
    """Bring a direct message to those its target names (F113, F114)."""
    by = BY_ID
    who = frame.target
    if who.startswith(TARGET_NAME_PREFIX):
        by = BY_NAME
        who = who[len(TARGET_NAME_PREFIX) :]
    elif who.startswith(TARGET_TYPE_PREFIX):
        by = BY_TYPE
        who = who[len(TARGET_TYPE_PREFIX) :]
    return SendDirect(session, by, who, frame.first_acquirer, len(frame.raw), frame)


def subscription_command(session: int, frame: Frame) -> Command:
    """Subscribe to an event, or unsubscribe (F127); the frame is the request's token.

    :raises BadRequestError: 404 for a name that is no event here, 400 for a bad queue id.
    """
    event = _EVENTS.get(frame.target)
    if event is None:
        raise BadRequestError(f"{frame.target[:32]!r} is no event", RESULT_NOT_FOUND)
    return SubscribeEvent(
        session,
        frame,
        event,
        frame.header(HeaderName.CHANNEL_NAME) or "",
        queue_id_header(frame),
        frame.content_type == EVENT_SUBSCRIBE,
    )
