"""The writing of a received message anew, where forwarding its bytes will not do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tmqp.constants import HEADER_REQUEST_ID
from tmqp.frames import Frame

__all__ = ["rewritten", "with_header", "without_request_id", "writable_headers"]

_REQUEST_ID: Final = HEADER_REQUEST_ID.lower()
_REQUEST_ID_BYTES: Final = _REQUEST_ID.encode()


def without_request_id(frame: Frame) -> Frame:
    """The frame without the header that marks the results of a pull (F107).

    A producer may write it too; a client that pulls would take the message for a result.
    """
    if frame.header_block.lower().find(_REQUEST_ID_BYTES) < 0:
        return frame
    if frame.header(_REQUEST_ID) is None:
        return frame  # a value reads so
    headers = [pair for pair in writable_headers(frame) if pair[0].lower() != _REQUEST_ID]
    return rewritten(frame, headers)


def with_header(frame: Frame, name: str, value: str) -> Frame:
    """The frame with this header, instead of those of its name that it has."""
    others = [pair for pair in writable_headers(frame) if pair[0].lower() != name.lower()]
    return rewritten(frame, [*others, (name, value)])


def writable_headers(frame: Frame) -> list[tuple[str, str]]:
    """The frame's headers, but for those that hold half a line end and cannot be written anew."""
    found: list[tuple[str, str]] = []
    for key, value in frame.headers:
        text = key + value
        if "\r" not in text and "\n" not in text:
            found.append((key, value))
    return found


def rewritten(
    frame: Frame,
    headers: Iterable[tuple[str, str]],
    target: str | None = None,
    content_type: int | None = None,
    message_id: str | None = None,
    ttl: int | None = None,
) -> Frame:
    """The frame with these headers for its own; None keeps a field.

    First acquirer and pending acknowledge are left off: the one who delivers it sets them.

    :raises LocalProtocolError: when a part does not fit the wire.
    """
    return Frame.build(
        frame.type,
        frame.target if target is None else target,
        frame.content_type if content_type is None else content_type,
        frame.payload,
        message_id=frame.message_id if message_id is None else message_id,
        source=frame.source,
        headers=headers,
        high_priority=frame.high_priority,
        pending_response=frame.pending_response,
        ttl=frame.ttl if ttl is None else ttl,
    )
