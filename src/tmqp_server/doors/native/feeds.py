"""Reads the operations about feeds."""

from __future__ import annotations

from tmqp.constants import MAX_QUEUE_ID, HeaderName
from tmqp.extensions import (
    HEADER_FEED_CHANNEL,
    HEADER_FEED_QUEUE,
    HEADER_FILTER,
    HEADER_FILTER_LANGUAGE,
)
from tmqp.frames import Frame
from tmqp_server.doors.native.filters import filter_in
from tmqp_server.doors.native.parameters import (
    BadRequestError,
    number_header,
    queue_id_of,
)
from tmqp_server.doors.selecting import TextFilter
from tmqp_server.engine.commands import AddFeed, ListFeeds, RemoveFeed

__all__ = ["add_feed_of", "list_feeds_of", "remove_feed_of"]


def add_feed_of(session: int, frame: Frame) -> AddFeed:
    """The command to add a feed.

    :raises BadRequestError: when a header is missing or invalid.
    """
    target, target_queue = _target_of(frame)
    text = frame.header(HEADER_FILTER)
    language = frame.header(HEADER_FILTER_LANGUAGE)
    chosen = filter_in(frame)
    # The language that was used, because a server with another default may read the filter after a
    # restart.
    kept = chosen.language if isinstance(chosen, TextFilter) else (language or "")
    return AddFeed(
        session,
        frame,
        frame.target,
        queue_id_of(frame, body_may_hold_it=False),
        target,
        target_queue,
        chosen,
        kept,
        text or "",
    )


def remove_feed_of(session: int, frame: Frame) -> RemoveFeed:
    """The command to remove a feed.

    :raises BadRequestError: when a header is missing or invalid.
    """
    target, target_queue = _target_of(frame)
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    return RemoveFeed(session, frame, frame.target, queue_id, target, target_queue)


def list_feeds_of(session: int, frame: Frame) -> ListFeeds:
    """The command to list the feeds of a queue, or of all queues of a channel.

    :raises BadRequestError: when a header is invalid.
    """
    queue_id = -1
    if frame.header(HeaderName.QUEUE_ID) is not None:
        queue_id = queue_id_of(frame, body_may_hold_it=False)
    return ListFeeds(session, frame, frame.target, queue_id)


def _target_of(frame: Frame) -> tuple[str, int]:
    """The queue that a feed copies into."""
    target = frame.header(HEADER_FEED_CHANNEL)
    if not target:
        raise BadRequestError(f"the header {HEADER_FEED_CHANNEL} is missing")
    queue_id = number_header(frame, HEADER_FEED_QUEUE)
    if queue_id is None:
        raise BadRequestError(f"the header {HEADER_FEED_QUEUE} is missing")
    if queue_id > MAX_QUEUE_ID:
        raise BadRequestError(f"{HEADER_FEED_QUEUE} is at most {MAX_QUEUE_ID}, got {queue_id}")
    return target, queue_id
