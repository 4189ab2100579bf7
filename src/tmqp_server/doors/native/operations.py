"""Owns the reading of what operations and pushes say: headers and JSON bodies into engine options.

A mistake in them is a :class:`BadRequest`, answered with its result code; the connection stays
(F43, recommended reading).
"""

from __future__ import annotations

from tmqp.constants import (
    MAX_QUEUE_ID,
    RESULT_BAD_REQUEST,
    HeaderName,
    queue_status_from_word,
)
from tmqp.frames import Frame
from tmqp.models import ChannelOptions, ModelError, QueueOptions
from tmqp_server.engine.options import ChannelChanges, QueueChanges

__all__ = ["BadRequest", "channel_changes", "queue_changes", "queue_id_of"]

_TRUE_WORDS = ("1", "true")
_QUEUE_ID_BYTES = 2


class BadRequest(Exception):
    """An operation cannot be understood; ``code`` is the answer, the text says why."""

    def __init__(self, message: str, code: int = RESULT_BAD_REQUEST) -> None:
        super().__init__(message)
        self.code = code


def queue_id_of(frame: Frame, *, body_may_hold_it: bool) -> int:
    """The queue an operation is about.

    The specification puts it into the header Queue-Id; the original's clients send it as a body of
    two bytes for removal and information (F57).  Both are read, the header first.

    :raises BadRequest: when it is missing or not a queue id.
    """
    text = frame.header(HeaderName.QUEUE_ID)
    if text is not None:
        text = text.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > 5 or int(text) > MAX_QUEUE_ID:
            raise BadRequest(f"Queue-Id must be a number 0..65535, got {text[:32]!r}")
        return int(text)
    if body_may_hold_it and frame.payload_size == _QUEUE_ID_BYTES:
        return int.from_bytes(frame.payload, "little")
    raise BadRequest("the operation names no queue: send the header Queue-Id")


def queue_changes(frame: Frame, *, has_body: bool) -> QueueChanges | None:
    """Queue options an operation or a pushed message gives, in the body and in headers.

    A header wins over the body, as it does in the original (F54, F74).

    :param has_body: the payload is a JSON object of options (an operation), not a message.
    :returns: None when nothing is given.
    :raises BadRequest: when the body is not such an object.
    """
    body: QueueOptions | None = None
    if has_body and frame.payload_size:
        try:
            body = QueueOptions.from_json(frame.payload)
        except ModelError as error:
            raise BadRequest(str(error)) from error
    if not frame.has_header:
        return None if body is None else _queue_changes(body, None, None, None, None)
    status_word = frame.header(HeaderName.QUEUE_STATUS)
    wait_word = frame.header(HeaderName.WAIT_FOR_ACKNOWLEDGE)
    tag = frame.header(HeaderName.QUEUE_TAG) or None
    handler = frame.header(HeaderName.DELIVERY_HANDLER) or None
    status: int | None = None
    if status_word:
        # A word the original does not know makes a broadcast queue there (F55): its messages
        # would be lost without a sign.
        known = queue_status_from_word(status_word.strip())
        if known is None:
            raise BadRequest(f"Queue-Status: {status_word[:32]!r} is no status of a queue")
        status = int(known)
    wait = wait_word.strip().lower() in _TRUE_WORDS if wait_word else None
    if body is None and status is None and wait is None and tag is None and handler is None:
        return None
    return _queue_changes(body or QueueOptions(), status, wait, tag, handler)


def channel_changes(frame: Frame) -> ChannelChanges | None:
    """Channel options in an operation's body (F70, F71); None when there is none.

    :raises BadRequest: when the body is not such an object.
    """
    if not frame.payload_size:
        return None
    try:
        body = ChannelOptions.from_json(frame.payload)
    except ModelError as error:
        raise BadRequest(str(error)) from error
    return ChannelChanges(
        body.allow_multiple_queues,
        body.allowed_queues,
        body.client_limit,
        body.queue_limit,
        body.destroy_when_empty,
        _queue_changes(body, None, None, None, None),
    )


def _queue_changes(
    body: QueueOptions, status: int | None, wait: bool | None, tag: str | None, handler: str | None
) -> QueueChanges:
    return QueueChanges(
        status=body.status if status is None else status,
        request_acknowledge=body.request_acknowledge,
        acknowledge_timeout_ms=body.acknowledge_timeout_ms,
        message_timeout_ms=body.message_timeout_ms,
        use_message_id=body.use_message_id,
        wait_for_acknowledge=body.wait_for_acknowledge if wait is None else wait,
        hide_client_names=body.hide_client_names,
        send_only_first_acquirer=body.send_only_first_acquirer,
        message_limit=body.message_limit,
        delivery_handler=handler or body.message_delivery_handler,
        tag=tag,
    )
