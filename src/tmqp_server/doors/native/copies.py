"""The copies that a producer requests with the header CC: each becomes a separate push (F82).

A copy carries its own channel, queue and id, so that its acknowledgements find it (F83, F84).  It
has no CC itself: a copy is never copied.  Errors in a copy are not answered, because its producer
waits only for the original; the copy is left out.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    DEFAULT_TTL,
    MAX_NAME_BYTES,
    MAX_QUEUE_ID,
    RESULT_LIMIT_EXCEEDED,
    HeaderName,
)
from tmqp.frames import Frame
from tmqp.names import EXACT_MARK
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.rewriting import rewritten, writable_headers
from tmqp_server.engine.commands import Command, Push, PushExtras

__all__ = ["MAX_COPIES", "add_copies", "copy_addresses"]

#: Copies that one message may request; with more it is answered with 482 and not pushed.
MAX_COPIES: Final = 32

_KEY: Final = HeaderName.CC.value.lower()
_MARK: Final = b"cc:"
_MAX_DIGITS: Final = len(str(MAX_QUEUE_ID))


def copy_addresses(frame: Frame) -> list[str]:
    """The values of the frame's CC headers, whose name may be in any case.

    :raises BadRequestError: 482 when there are more than ``MAX_COPIES``.
    """
    if _MARK not in frame.header_block.lower():
        return []
    found = [value for key, value in frame.headers if key.lower() == _KEY]
    if len(found) > MAX_COPIES:
        raise BadRequestError(
            f"{len(found)} copies were requested, the limit is {MAX_COPIES}", RESULT_LIMIT_EXCEEDED
        )
    return found


def add_copies(
    session: int,
    frame: Frame,
    addresses: list[str],
    new_id: IdSource,
    commands: list[Command],
    extras: PushExtras | None,
) -> None:
    """Push the copies of a pushed message, in order, with the same delay and expiry."""
    expires_in_ms = 0 if extras is None else extras.expires_in_ms
    delay_ms = 0 if extras is None else extras.delay_ms
    headers = [pair for pair in writable_headers(frame) if pair[0].lower() != _KEY]
    for address in addresses:
        copy = _copy_of(frame, headers, address)
        if copy is not None:
            nameless = None
            if not copy.message_id:
                nameless = copy
                copy = copy.replace(message_id=new_id())
            commands.append(
                Push(
                    session,
                    copy.message_id,
                    copy.target,
                    copy.content_type,
                    copy.high_priority,
                    frame.pending_acknowledge,
                    len(copy.raw),
                    copy,
                    PushExtras(
                        expires_in_ms=expires_in_ms,
                        delay_ms=delay_ms,
                        silent=True,
                        nameless=nameless,
                    ),
                )
            )


def _copy_of(frame: Frame, headers: list[tuple[str, str]], address: str) -> Frame | None:
    """One copy, without an id if the address gives none.

    None when the address, ``channel[;queue-id[;message-id]]``, is invalid.
    """
    parts = [part.strip() for part in address.split(";", 2)]
    channel = parts[0]
    queue_id: int | None = None
    if len(parts) > 1 and parts[1]:
        text = parts[1]
        if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
            return None
        queue_id = int(text)
        if queue_id > MAX_QUEUE_ID:
            return None
    message_id = parts[2] if len(parts) > 2 else ""
    if not channel or channel[0] == EXACT_MARK or len(channel.encode()) > MAX_NAME_BYTES:
        return None
    if len(message_id.encode()) > MAX_NAME_BYTES:
        return None
    # A copy begins here: it is delivered with the time to live of a new message (F12), which is one
    # less than its own, as for all deliveries.
    return rewritten(frame, headers, channel, queue_id, message_id, ttl=DEFAULT_TTL + 1)
