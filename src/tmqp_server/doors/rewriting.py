"""Writes TMQP messages again: with other headers, or for another server of a cluster.

The name of a case-sensitive channel (``names.py``) is sent to another server without its mark,
which a TMQP name cannot contain, but with the header ``Exact-Name``.  The header counts only in
messages of other servers: if a client writes it, it is removed before the message is forwarded.
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
    """The frame's headers, without those that contain a lone CR or LF and so cannot be written
    again."""
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
    """The frame with these headers instead of its own; a field that is None stays as it is.

    The flag for the first acquirer is cleared, and so is that for a pending acknowledgement unless
    it is asked for: the delivery sets them.

    :raises LocalProtocolError: when a field is too long for a frame.
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
    """A client's push as a TMQP message for another server, with headers for its delay and its
    expiry.

    :param letter: the message's contents; it is changed.
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
    """The header that marks an exact name for another server; empty for other names."""
    return [(_EXACT_NAME, _YES)] if channel.startswith(EXACT_MARK) else []


def without_exact_name(frame: Frame) -> Frame:
    """The frame without the header ``Exact-Name``, which only servers may write."""
    if not frame.has_header or frame.header_block.lower().find(_EXACT_BYTES) < 0:
        return frame
    said = writable_headers(frame)
    kept = [pair for pair in said if pair[0].lower() != _EXACT_KEY]
    if len(kept) == len(said):
        return frame
    return rewritten(frame, kept, pending_acknowledge=frame.pending_acknowledge)


def exact_target(frame: Frame) -> str:
    """The channel of a message that another server has forwarded, marked if it is an exact name."""
    if frame.has_header and frame.header(_EXACT_NAME) == _YES:
        return EXACT_MARK + frame.target
    return frame.target
