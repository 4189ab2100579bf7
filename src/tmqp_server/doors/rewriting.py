"""TMQP messages that are written again: with other headers, or for another server of a cluster.

The name of a case-sensitive channel (``names.py``) goes to another server without its mark, which
is no part of a TMQP name, and with the header ``Exact-Name``.  Only a message of another server is
read so: what a client writes under this header is taken away before it is passed on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tmqp.extensions import HEADER_DELAY, HEADER_MESSAGE_TIMEOUT
from tmqp.frames import Frame
from tmqp.names import EXACT_MARK
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letter_frames import frame_of_letter
from tmqp_server.engine.commands import Push

__all__ = [
    "exact_headers",
    "exact_target",
    "frame_for_node",
    "rewritten",
    "without_exact_name",
    "writable_headers",
]

_EXACT_NAME: Final = "Exact-Name"
_EXACT_KEY: Final = _EXACT_NAME.lower()
_EXACT_BYTES: Final = _EXACT_KEY.encode()
_YES: Final = "1"


def writable_headers(frame: Frame) -> list[tuple[str, str]]:
    """The frame's headers, but for those that hold half a line end and cannot be written again."""
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
    *,
    pending_acknowledge: bool = False,
) -> Frame:
    """The frame with these headers for its own; None keeps a field.

    First acquirer, and pending acknowledge if it is not asked for, are left off: the one who
    delivers it sets them.

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
        pending_acknowledge=pending_acknowledge,
        ttl=frame.ttl if ttl is None else ttl,
    )


def frame_for_node(letter: Letter, push: Push) -> Frame:
    """A client's push as a TMQP message for another server, with the headers that say when it may
    be delivered.

    :param letter: what the message says; it is changed.
    """
    letter.message_id = push.message_id
    letter.channel = push.channel.removeprefix(EXACT_MARK)
    letter.queue_id = push.queue_id
    letter.headers = [pair for pair in letter.headers if pair[0].lower() != _EXACT_KEY]
    ours = exact_headers(push.channel)
    extras = push.extras
    if extras is not None and extras.delay_ms:
        ours.append((HEADER_DELAY, str(extras.delay_ms)))
    if extras is not None and extras.expires_in_ms:
        ours.append((HEADER_MESSAGE_TIMEOUT, str(extras.expires_in_ms)))
    return frame_of_letter(
        letter,
        high_priority=push.high_priority,
        pending_acknowledge=push.wants_confirm,
        first=ours,
    )


def exact_headers(channel: str) -> list[tuple[str, str]]:
    """The header that tells another server that a channel's name is exact, if it is."""
    return [(_EXACT_NAME, _YES)] if channel.startswith(EXACT_MARK) else []


def without_exact_name(frame: Frame) -> Frame:
    """The frame without the header of exact names, which only servers may write."""
    if not frame.has_header or frame.header_block.lower().find(_EXACT_BYTES) < 0:
        return frame
    said = writable_headers(frame)
    kept = [pair for pair in said if pair[0].lower() != _EXACT_KEY]
    if len(kept) == len(said):
        return frame
    return rewritten(frame, kept, pending_acknowledge=frame.pending_acknowledge)


def exact_target(frame: Frame) -> str:
    """The channel of a message that another server has passed on, marked if it is an exact name."""
    if frame.has_header and frame.header(_EXACT_NAME) == _YES:
        return EXACT_MARK + frame.target
    return frame.target
