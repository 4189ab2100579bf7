"""Reads parameters of operations from headers: queue ids and numbers.

A mistake in them is a :class:`BadRequestError`, answered with its result code; the connection stays
(F43, recommended reading).
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import MAX_QUEUE_ID, RESULT_BAD_REQUEST, HeaderName, ResultCode
from tmqp.frames import Frame

__all__ = ["MOST", "BadRequestError", "number_header", "queue_id_header", "queue_id_of"]

_QUEUE_ID_BYTES: Final = 2
#: The largest number in a header.
MOST: Final = 2**63 - 1


class BadRequestError(Exception):
    """An operation is invalid; ``code`` is the result code of the answer, the text says why.

    ``told`` is the text if the answer may contain it, else empty.
    """

    def __init__(self, message: str, code: int = RESULT_BAD_REQUEST, *, tell: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.told = message if tell else ""


def queue_id_header(frame: Frame) -> int | None:
    """The queue named in the header Queue-Id; None when there is no such header.

    :raises BadRequestError: when it is not a queue id.
    """
    text = frame.header(HeaderName.QUEUE_ID)
    if text is None:
        return None
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 5 or int(text) > MAX_QUEUE_ID:
        raise BadRequestError(f"Queue-Id must be a number 0..65535, got {text[:32]!r}")
    return int(text)


def queue_id_of(frame: Frame, *, body_may_hold_it: bool) -> int:
    """The queue an operation is about.

    The specification puts it into the header Queue-Id.  For removal and information, the original's
    clients send it as a body of two bytes (F57), which is read if there is no header and
    *body_may_hold_it* is true.

    :raises BadRequestError: 406 when it is missing, 400 when the header is not a queue id.
    """
    queue_id = queue_id_header(frame)
    if queue_id is not None:
        return queue_id
    if body_may_hold_it and frame.payload_size == _QUEUE_ID_BYTES:
        return int.from_bytes(frame.payload, "little")
    # The original answers 406 too, and then continues and creates queue 0 (F54).
    raise BadRequestError(
        "the operation names no queue: send the header Queue-Id", int(ResultCode.UNACCEPTABLE)
    )


def number_header(frame: Frame, name: str) -> int | None:
    """The number in a header; None when there is no such header.

    :raises BadRequestError: when it is not a number that 63 bits can hold.
    """
    text = frame.header(name)
    if text is None:
        return None
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > MOST:
        raise BadRequestError(f"{name} must be a number 0..{MOST}, got {text[:32]!r}")
    return int(text)
