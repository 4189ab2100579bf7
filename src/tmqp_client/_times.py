"""Adds the headers of a push that its arguments require: key, priority, times."""

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

#: Greater priorities are high.
USUAL_PRIORITY: Final = 4
_HIGHEST_PRIORITY: Final = 9


def with_key(headers: Headers, key: str | None) -> Headers:
    """Return the headers with the key of the message added.

    :raises LocalProtocolError: if the key is empty.
    """
    if key is None:
        return headers
    if not key:
        raise LocalProtocolError("the key is empty")
    return [*to_pairs(headers), (HEADER_GROUP_KEY, key)]


def with_priority(headers: Headers, priority: int | None) -> Headers:
    """Return the headers with the priority of the message added.

    :raises LocalProtocolError: if it is not 0..9.
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
    """Return the headers with those added that say when the message may be delivered.

    :raises LocalProtocolError: if a time is out of range or has no time zone, or both delay_s and
        deliver_at are given.
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
    """Return the headers with the time added that the push waits for room.

    :raises LocalProtocolError: if the time is negative or too large.
    """
    if room_s is None:
        return headers
    return [*to_pairs(headers), (HEADER_WAIT, str(_milliseconds("room_s", room_s, 0)))]


def _milliseconds(name: str, seconds: float, least: int) -> int:
    if not 0 <= seconds < 1e15 or round(seconds * 1_000) < least:
        raise LocalProtocolError(f"{name} must be {least} ms or more, got {seconds!r} s")
    return round(seconds * 1_000)
