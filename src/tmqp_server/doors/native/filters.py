"""Reads the filters that clients send when they join, add a feed or browse a queue."""

from __future__ import annotations

from typing import Final

from tmqp.extensions import HEADER_FILTER, HEADER_FILTER_LANGUAGE
from tmqp.frames import Frame
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.doors.selecting import FilterError, filter_of
from tmqp_server.engine.commands import AddFeed, Browse, Join
from tmqp_server.engine.model.message import SubscriptionFilter

__all__ = ["FILTERED", "filter_in"]

#: The commands that have a filter.
FILTERED: Final = (AddFeed, Browse, Join)


def filter_in(frame: Frame) -> SubscriptionFilter | None:
    """The filter in the headers of an operation; None without these headers.

    :raises BadRequestError: when the filter is invalid.
    """
    text = frame.header(HEADER_FILTER)
    language = frame.header(HEADER_FILTER_LANGUAGE)
    if text is None and language is None:
        return None
    try:
        return filter_of(language, text)
    except FilterError as error:
        raise BadRequestError(str(error), tell=True) from error
