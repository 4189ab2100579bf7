"""Reads pull requests and writes their answers (F104-F112)."""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    HEADER_VALUE_YES,
    MAX_HEADER_BLOCK_BYTES,
    ORDER_LIFO,
    RESULT_OK,
    TYPE_QUEUE_MESSAGE,
    HeaderName,
    NoContent,
    PullClear,
)
from tmqp.frames import Frame, encode_headers
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.answers import response_frame
from tmqp_server.doors.native.rewriting import without_dead_letter_headers
from tmqp_server.doors.rewriting import rewritten, writable_headers
from tmqp_server.engine.commands import Pull
from tmqp_server.engine.effects import AnswerPull, DeliverPulled

__all__ = ["end_of_pull", "problem_of_id", "pull_answer", "pull_of", "pulled_message"]

_REQUEST_ID: Final[str] = HeaderName.REQUEST_ID.value
_COUNT: Final[str] = HeaderName.COUNT.value
_INDEX: Final[str] = HeaderName.INDEX.value
_PRIORITY_MESSAGES: Final[str] = HeaderName.PRIORITY_MESSAGES.value
_MESSAGES: Final[str] = HeaderName.MESSAGES.value
_NO_CONTENT: Final[str] = HeaderName.NO_CONTENT.value
#: Digits of a Count; more is more than any queue holds.
_MAX_COUNT_DIGITS: Final = 10
#: The values of Clear in lower case: whether high priority is cleared, whether the rest is.
_CLEARS: Final[dict[str, tuple[bool, bool]]] = {
    PullClear.NONE.value.lower(): (False, False),
    PullClear.ALL.value.lower(): (True, True),
    PullClear.HIGH_PRIORITY.value.lower(): (True, False),
    PullClear.DEFAULT_PRIORITY.value.lower(): (False, True),
}


def problem_of_id(request: Frame) -> str:
    """The word with which a request must be refused because of its id; empty for a valid id.

    Answers carry the id in a header (F106), so an id that no header can carry counts as missing.
    """
    return "" if _writable_id(request) else NoContent.ID_REQUIRED.value


def _writable_id(request: Frame) -> str:
    """The id of a request; empty if no header can carry it."""
    message_id = request.message_id
    return "" if "\r" in message_id or "\n" in message_id else message_id


def pull_of(session: int, request: Frame) -> Pull:
    """The command for a pull request; keys and values are read in any case (F104).

    The count is 0 if Count is missing or invalid, or Clear has an unknown value: then only a cache
    queue, which ignores both, answers with a message.
    """
    if not request.has_header:
        return Pull(session, request, request.target, request.content_type, 0)
    count = _number(request.header(_COUNT))
    clears = _CLEARS.get(_word(request, HeaderName.CLEAR.value) or PullClear.NONE.value)
    if clears is None:
        count = 0
        clears = (False, False)
    return Pull(
        session,
        request,
        request.target,
        request.content_type,
        count,
        _word(request, HeaderName.ORDER.value) == ORDER_LIFO.lower(),
        clears[0],
        clears[1],
        _word(request, HeaderName.INFO.value) == HEADER_VALUE_YES,
        len(request.raw),
    )


def _word(request: Frame, name: str) -> str:
    value = request.header(name)
    return "" if value is None else value.strip().lower()


def _number(text: str | None) -> int:
    if text is None:
        return 0
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_COUNT_DIGITS:
        return 0
    return int(text)


def pulled_message(effect: DeliverPulled, letters: Letters) -> bytes:
    """A pulled message, with the headers of the pull after its own (F107)."""
    request = effect.request
    message = effect.message
    assert isinstance(request, Frame), "the token of every request is its frame"
    frame = letters.frame_of(message, effect.channel)
    if frame.has_header and not message.is_dead_letter:
        frame = without_dead_letter_headers(frame)
    headers = [
        (_REQUEST_ID, request.message_id),
        (_COUNT, str(effect.count)),
        (_INDEX, str(effect.index)),
    ]
    if effect.high_left >= 0:
        headers.append((_PRIORITY_MESSAGES, str(effect.high_left)))
        headers.append((_MESSAGES, str(effect.regular_left)))
    ttl = frame.ttl - 1  # one hop less than received, however often it is sent (F11, F12)
    block = frame.header_block
    if not block.endswith(b"\r\n") and block:
        frame = rewritten(
            frame, writable_headers(frame)
        )  # ours must not become part of its last line
    if len(block) + len(encode_headers(headers)) > MAX_HEADER_BLOCK_BYTES:
        frame = rewritten(frame, _as_many_as_fit(frame, headers))
    frame = frame.replace(
        source="" if effect.hide_source else None,
        target=message.channel if message.readdressed else None,
        content_type=message.queue_id if message.readdressed else None,
        more_headers=headers,
    )
    return frame.forwarded(effect.first_acquirer, effect.wants_acknowledge, ttl)


def _as_many_as_fit(frame: Frame, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The message's own headers that fit beside those of the pull.  The last ones are left out,
    because without the headers of the pull the client could not recognize the message."""
    room = MAX_HEADER_BLOCK_BYTES - len(encode_headers(headers))
    kept: list[tuple[str, str]] = []
    for pair in writable_headers(frame):
        room -= len(encode_headers([pair]))
        if room < 0:
            break
        kept.append(pair)
    return kept


def end_of_pull(request: Frame, reason: str) -> Frame:
    """The message that ends a pull or refuses it (F105, F108)."""
    message_id = _writable_id(request)
    return Frame.build(
        TYPE_QUEUE_MESSAGE,
        request.target,
        request.content_type,
        message_id=message_id,
        headers=[(_REQUEST_ID, message_id), (_NO_CONTENT, reason)],
    )


def pull_answer(effect: AnswerPull, client_id: str, letters: Letters) -> Frame:
    """The answer of a cache queue: the payload alone, as a Response (F112)."""
    assert isinstance(effect.request, Frame), "the token of every request is its frame"
    frame = letters.frame_of(effect.message)
    return response_frame(effect.request, RESULT_OK, client_id, frame.payload)
