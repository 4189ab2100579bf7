"""Owns the shapes of what the server says: responses, acknowledges, refusals (F44, F75-F79)."""

from __future__ import annotations

from tmqp.constants import (
    RESULT_NOT_FOUND,
    TYPE_ACKNOWLEDGE,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    HeaderName,
    NackReason,
    NoContent,
    ResultCode,
)
from tmqp.frames import Frame
from tmqp_server.engine.effects import Confirm

__all__ = [
    "acknowledge_frame",
    "confirm_frame",
    "pull_refusal",
    "response_frame",
    "router_refusal",
]

_NACK_REASON = HeaderName.NACK_REASON.value
#: A reason made by user code is cut to so many bytes; a header block holds 65,535 (F6).
_MAX_REASON_BYTES = 1_024


def response_frame(request: Frame, code: int, target: str, body: bytes = b"") -> Frame:
    """The Response to a request: its id, first-acquirer and priority flags copied (F44)."""
    return Frame.build(
        TYPE_RESPONSE,
        target,
        code,
        body,
        message_id=request.message_id,
        first_acquirer=request.first_acquirer,
        high_priority=request.high_priority,
    )


def acknowledge_frame(request: Frame, code: int) -> Frame:
    """The Acknowledge to a request that asks for one; the reason is the result code's name.

    The original never sends these for operations; the specification promises them.
    """
    headers = [] if code == 0 else [(_NACK_REASON, _reason_of(code))]
    return Frame.build(
        TYPE_ACKNOWLEDGE,
        request.target,
        request.content_type if request.type == TYPE_QUEUE_MESSAGE else 0,
        message_id=request.message_id,
        headers=headers,
        first_acquirer=request.first_acquirer,
    )


def _reason_of(code: int) -> str:
    if code in ResultCode._value2member_map_:
        return ResultCode(code).name.lower().replace("_", "-")
    return NackReason.ERROR.value


def confirm_frame(effect: Confirm) -> bytes:
    """What tells a producer what became of its message.

    A consumer's own acknowledge is passed on as it came, one hop older (F79); one made here has
    the form of F78.
    """
    frame = effect.forwarded
    if isinstance(frame, Frame):
        if frame.source != effect.source:
            frame = frame.replace(source=effect.source)
        return frame.forwarded(frame.first_acquirer, frame.pending_acknowledge, frame.ttl - 1)
    headers = []
    if not effect.positive:
        headers = [(_NACK_REASON, _one_line(effect.reason) or NackReason.NONE.value)]
    return Frame.build(
        TYPE_ACKNOWLEDGE,
        effect.channel,
        effect.queue_id,
        message_id=effect.message_id,
        headers=headers,
        first_acquirer=effect.first_acquirer,
    ).raw


def _one_line(reason: str) -> str:
    """A reason, wherever it came from, as a header's value: valid, bounded, forging no header."""
    line = " ".join(reason.splitlines()).encode("utf-8", "replace")
    return line[:_MAX_REASON_BYTES].decode("utf-8", "ignore")


def router_refusal(frame: Frame, client_id: str) -> Frame | None:
    """The answer to a message for a router that does not exist (F123); None if none is asked."""
    if frame.pending_acknowledge:
        return Frame.build(
            TYPE_ACKNOWLEDGE,
            frame.target,
            frame.content_type,
            message_id=frame.message_id,
            headers=[(_NACK_REASON, NackReason.NO_CONSUMERS.value)],
        )
    if frame.pending_response:
        return response_frame(frame, RESULT_NOT_FOUND, client_id)
    return None


def pull_refusal(frame: Frame) -> Frame:
    """The answer to a pull request for a queue that is not in status pull (F105), or without an id
    (F106).  An id that no header can carry is as good as none."""
    message_id = frame.message_id
    reason = NoContent.UNACCEPTABLE
    if not message_id or "\r" in message_id or "\n" in message_id:
        message_id = ""
        reason = NoContent.ID_REQUIRED
    return Frame.build(
        TYPE_QUEUE_MESSAGE,
        frame.target,
        frame.content_type,
        message_id=message_id,
        headers=[(HeaderName.REQUEST_ID.value, message_id), (HeaderName.NO_CONTENT.value, reason)],
    )
