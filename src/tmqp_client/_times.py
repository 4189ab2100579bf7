"""What a caller says of a message to push, as headers: its key, its priority, and when."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_DELAY,
    HEADER_DELIVER_AT,
    HEADER_GROUP_KEY,
    HEADER_MESSAGE_TIMEOUT,
    HEADER_PRIORITY,
    HEADER_WAIT,
)
from tmqp_client._core.arguments import Headers, to_pairs

__all__ = ["USUAL_PRIORITY", "with_key", "with_priority", "with_times", "with_wait"]

#: What is above it has high priority.
USUAL_PRIORITY: Final = 4
_HIGHEST_PRIORITY: Final = 9


def with_key(headers: Headers, key: str | None) -> Headers:
    """The headers of a push, and the key of its message.

    :raises LocalProtocolError: for an empty key, which is none.
    """
    if key is None:
        return headers
    if not key:
        raise LocalProtocolError("the key is empty")
    return [*to_pairs(headers), (HEADER_GROUP_KEY, key)]


def with_priority(headers: Headers, priority: int | None) -> Headers:
    """The headers of a push, and the priority of its message.

    :raises LocalProtocolError: for one that is none.
    """
    if priority is None:
        return headers
    if not 0 <= priority <= _HIGHEST_PRIORITY:
        raise LocalProtocolError(f"priority must be 0 to {_HIGHEST_PRIORITY}, got {priority!r}")
    return [*to_pairs(headers), (HEADER_PRIORITY, str(priority))]


def with_times(
    headers: Headers,
    delay_s: float | None,
    deliver_at: datetime | None,
    expires_s: float | None,
) -> Headers:
    """The headers of a push, and those that say when it may be delivered.

    :raises LocalProtocolError: for a time that makes no sense.
    """
    if delay_s is None and deliver_at is None and expires_s is None:
        return headers
    pairs = list(to_pairs(headers))
    if delay_s is not None:
        if deliver_at is not None:
            raise LocalProtocolError("give delay_s or deliver_at, not both")
        pairs.append((HEADER_DELAY, str(_milliseconds("delay_s", delay_s, 0))))
    if deliver_at is not None:
        if deliver_at.tzinfo is None:
            raise LocalProtocolError(
                f"deliver_at needs a time zone, got {deliver_at!r}: use datetime.now(UTC)"
            )
        unix_ms = round(deliver_at.timestamp() * 1_000)
        pairs.append((HEADER_DELIVER_AT, str(max(0, unix_ms))))
    if expires_s is not None:
        pairs.append((HEADER_MESSAGE_TIMEOUT, str(_milliseconds("expires_s", expires_s, 1))))
    return pairs


def with_wait(headers: Headers, room_s: float | None) -> Headers:
    """The headers of a push, and how long it waits for room.

    :raises LocalProtocolError: for a time that makes no sense.
    """
    if room_s is None:
        return headers
    return [*to_pairs(headers), (HEADER_WAIT, str(_milliseconds("room_s", room_s, 0)))]


def _milliseconds(name: str, seconds: float, least: int) -> int:
    if not 0 <= seconds < 1e15 or round(seconds * 1_000) < least:
        raise LocalProtocolError(f"{name} must be {least} ms or more, got {seconds!r} s")
    return round(seconds * 1_000)
