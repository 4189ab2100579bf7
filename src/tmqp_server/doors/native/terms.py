"""Reads consumers' requests about deliveries: terms, credit, more time, release."""

from __future__ import annotations

from typing import Final

from tmqp.constants import PUT_BACK_END, PUT_BACK_NO, PUT_BACK_START
from tmqp.extensions import (
    HEADER_ACKNOWLEDGE_TIMEOUT,
    HEADER_CONSUMER_PRIORITY,
    HEADER_COUNTED,
    HEADER_CREDIT,
    HEADER_DELAY,
    HEADER_EXCLUSIVE,
    HEADER_MESSAGE_ID,
    HEADER_PUT_BACK,
    HEADER_RETURN,
    HEADER_TELL_LAPSED,
    HEADER_TIMEOUT,
    HEADER_WINDOW,
    PUT_BACK_WORD_END,
    PUT_BACK_WORD_FRONT,
    RETURN_WORD_TIMEOUT,
)
from tmqp.frames import Frame
from tmqp_server.doors.native.parameters import BadRequestError, number_header, queue_id_of
from tmqp_server.engine.commands import Extend, Grant, Join, Release, SetTerms, Terms
from tmqp_server.engine.model.message import SubscriptionFilter

__all__ = ["extend_of", "grant_of", "join_of", "release_of", "set_terms_of"]

_PLACES: Final[dict[str, int]] = {
    PUT_BACK_WORD_FRONT: PUT_BACK_START,
    PUT_BACK_WORD_END: PUT_BACK_END,
}
_RETURNS: Final[dict[str, int]] = {RETURN_WORD_TIMEOUT: PUT_BACK_NO, **_PLACES}
_HIGHEST_PRIORITY: Final = 127


def join_of(session: int, frame: Frame, filter: SubscriptionFilter | None) -> Join:
    """The command to join a channel, with a filter and, if given, terms.

    :raises BadRequestError: when a header is invalid.
    """
    if not frame.has_header:
        return Join(session, frame, frame.target)
    credit = _number_or_none(frame, HEADER_CREDIT)
    left = -1 if credit is None else credit
    told = number_header(frame, HEADER_TELL_LAPSED)
    return Join(
        session, frame, frame.target, left, filter, _terms_of(frame), hears_lapses=bool(told)
    )


def set_terms_of(session: int, frame: Frame) -> SetTerms:
    """The command to change the terms of a subscription.

    :raises BadRequestError: when a header is invalid, or none is given.
    """
    terms = _terms_of(frame)
    if terms is None:
        raise BadRequestError("the terms are missing: send one of their headers")
    return SetTerms(session, frame, frame.target, terms)


def grant_of(session: int, frame: Frame) -> Grant:
    """The command to grant credit to a subscription.

    :raises BadRequestError: when the header is missing or not a number.
    """
    credit = _number_or_none(frame, HEADER_CREDIT)
    if credit is None:
        raise BadRequestError(f"the header {HEADER_CREDIT} is missing")
    return Grant(session, frame.target, credit, frame)


def extend_of(session: int, frame: Frame) -> Extend:
    """The command to extend the timeout of a delivery.

    :raises BadRequestError: when a header is missing or invalid.
    """
    message_id = frame.header(HEADER_MESSAGE_ID)
    if not message_id:
        raise BadRequestError(f"the header {HEADER_MESSAGE_ID} is missing")
    timeout_ms = number_header(frame, HEADER_TIMEOUT)
    if timeout_ms is None:
        raise BadRequestError(f"the header {HEADER_TIMEOUT} is missing")
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    return Extend(session, frame, message_id, frame.target, queue_id, timeout_ms)


def _terms_of(frame: Frame) -> Terms | None:
    """The terms in the headers; None if there are none."""
    returns: int | None = None
    if frame.header(HEADER_RETURN) is not None:
        returns = _place_of(frame, HEADER_RETURN, _RETURNS)
    window = _number_or_none(frame, HEADER_WINDOW)
    timeout_ms = _number_or_none(frame, HEADER_ACKNOWLEDGE_TIMEOUT)
    priority = number_header(frame, HEADER_CONSUMER_PRIORITY)
    exclusive = number_header(frame, HEADER_EXCLUSIVE)
    said = (window, timeout_ms, returns, priority, exclusive)
    if all(each is None for each in said):
        return None
    if priority is not None and priority > _HIGHEST_PRIORITY:
        raise BadRequestError(f"{HEADER_CONSUMER_PRIORITY} is at most {_HIGHEST_PRIORITY}")
    if exclusive is None:
        return Terms(window, timeout_ms, returns, priority)
    if exclusive > 1:
        raise BadRequestError(f"{HEADER_EXCLUSIVE} is 0 or 1, not {exclusive}")
    return Terms(window, timeout_ms, returns, priority, exclusive=exclusive == 1)


def _number_or_none(frame: Frame, name: str) -> int | None:
    """The number in a header, where -1 means unlimited; None when there is no such header."""
    text = frame.header(name)
    if text is not None and text.strip() == "-1":
        return -1
    return number_header(frame, name)


def release_of(session: int, frame: Frame) -> Release:
    """The command for an acknowledgement with the header Put-Back.

    :raises BadRequestError: when a header is invalid.
    """
    return Release(
        session,
        frame if frame.pending_response else None,
        frame.message_id,
        frame.target,
        frame.content_type,
        _place_of(frame, HEADER_PUT_BACK, _PLACES),
        number_header(frame, HEADER_DELAY) or 0,
        number_header(frame, HEADER_COUNTED) != 0,
    )


def _place_of(frame: Frame, name: str, words: dict[str, int]) -> int:
    word = (frame.header(name) or "").strip().lower()
    place = words.get(word)
    if place is None:
        raise BadRequestError(f"{name} must be {', '.join(words)}, not {word[:32]!r}")
    return place
