"""Reads a batch: a body of messages and acknowledgements that take effect together or not at all.

The body has the form of the blocks of a transaction: consecutive whole TMQP messages.
"""

from __future__ import annotations

from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.constants import (
    RESULT_LIMIT_EXCEEDED,
    RESULT_NOT_IMPLEMENTED,
    TYPE_ACKNOWLEDGE,
    TYPE_QUEUE_MESSAGE,
    HeaderName,
)
from tmqp.extensions import HEADER_PUT_BACK
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp.names import EXACT_MARK
from tmqp_server.doors.native.copies import copy_addresses
from tmqp_server.doors.native.operations import push_extras
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.doors.native.terms import release_of
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Push, PushExtras

__all__ = ["MAX_BATCH_FRAMES", "batch_command"]

#: The most messages that are read from a body; the engine's own limit is far lower.
MAX_BATCH_FRAMES: Final = 65_536
#: A body is read in portions of so many bytes, so that one of tiny messages is refused early.
_PORTION: Final = 65_536


def batch_command(
    session: int, frame: Frame, client_id: str, new_id: IdSource, limits: Limits, unix_s: float
) -> Command:
    """The batch that an operation asks for.

    :param unix_s: the time, in seconds since 1970.
    :raises BadRequestError: 400 when the body is invalid, 482 for too many messages, 501 for
        copies.
    """
    commands: list[Command] = []
    for each in _frames_of(frame.payload, FrameDecoder(limits)):
        source = each.source
        if source and source != client_id:
            raise BadRequestError("the source of a message must be the sender's own id")
        own = each if source else each.replace(source=client_id)
        if own.target.startswith(EXACT_MARK):
            raise BadRequestError("a channel name must not begin with a control character")
        if each.type == TYPE_QUEUE_MESSAGE:
            commands.append(_push(session, own, new_id, unix_s))
        elif each.type == TYPE_ACKNOWLEDGE and not each.high_priority:
            commands.append(_answer(session, own))
        else:
            raise BadRequestError(
                "a batch has only messages for queues, and acknowledgements of them"
            )
    return Batch(session, frame, commands)


def _push(session: int, frame: Frame, new_id: IdSource, unix_s: float) -> Push:
    """The push for a message of a batch, like that of a single message, but without copies."""
    nameless: Frame | None = None
    own = frame
    if not own.message_id:
        nameless = own
        own = own.replace(message_id=new_id())
    extras: PushExtras | None = None
    if own.has_header:
        extras = push_extras(own, unix_s)
        if copy_addresses(own):
            raise BadRequestError(
                "a batch makes no copies: push them separately", RESULT_NOT_IMPLEMENTED
            )
    if nameless is not None:
        if extras is None:
            extras = PushExtras()
        extras.nameless = nameless
    return Push(
        session,
        own.message_id,
        own.target,
        own.content_type,
        own.high_priority,
        own.pending_acknowledge,
        len(own.raw),
        own,
        extras,
    )


def _answer(session: int, frame: Frame) -> Command:
    reason = frame.header(HeaderName.NACK_REASON.value) if frame.has_header else None
    if reason is not None and frame.header(HEADER_PUT_BACK) is not None:
        return release_of(session, frame.replace(pending_response=False))
    return Acknowledge(
        session,
        frame.message_id,
        frame.target,
        frame.content_type,
        reason is None,
        reason or "",
        frame,
        len(frame.raw),
    )


def _frames_of(body: bytes, decoder: FrameDecoder) -> list[Frame]:
    frames: list[Frame] = []
    for start in range(0, len(body), _PORTION):
        frames.extend(decoder.feed(body[start : start + _PORTION]))
        if decoder.error is not None:
            raise BadRequestError(f"a message is invalid: {decoder.error}")
        if len(frames) > MAX_BATCH_FRAMES:
            raise BadRequestError(
                f"a batch holds at most {MAX_BATCH_FRAMES} messages", RESULT_LIMIT_EXCEEDED
            )
    if decoder.buffered:
        raise BadRequestError(f"the last message is cut off after {decoder.buffered} bytes")
    return frames
