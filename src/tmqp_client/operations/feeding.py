"""The client's methods about feeds, which copy messages into other queues (an extension)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmqp import models
from tmqp.constants import HeaderName
from tmqp.extensions import (
    HEADER_FEED_CHANNEL,
    HEADER_FEED_QUEUE,
    OP_ADD_FEED,
    OP_LIST_FEEDS,
    OP_REMOVE_FEED,
)
from tmqp_client._core.arguments import check_channel, check_queue_id
from tmqp_client._core.requests import Request, filter_headers
from tmqp_client._port import Operations

if TYPE_CHECKING:
    from tmqp.models import FeedInformation

__all__ = ["Feeding"]


class Feeding(Operations):
    """The methods of :class:`tmqp_client.Client` about feeds, which copy the messages of a queue
    into another one.

    Every method raises ``OperationFailed`` if the server refuses: 404 if a queue or feed is
    missing, 401 without the right ``feed`` for both queues, 503 if the change could not be saved.
    """

    async def add_feed(
        self,
        channel: str,
        queue_id: int,
        target: str,
        target_queue: int,
        *,
        filter: str | None = None,
        filter_language: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Copy the messages of a queue into another one from now on.

        ::

            await client.create_queue("orders", 1, status="push")
            await client.create_queue("billing", 1, status="round-robin")
            await client.add_feed("orders", 1, "billing", 1)

        Raises ``OperationFailed``: 481 if the feed already exists, 406 if it would close a loop of
        feeds, 482 if there are too many.

        :param filter: copy only messages that pass it; in the language ``headers`` if none is
            given.
        :raises LocalProtocolError: for a language without a filter.
        """
        place = _place(queue_id, target, target_queue)
        headers = (*place, *filter_headers(filter, filter_language))
        request = Request(OP_ADD_FEED, "add feed", check_channel(channel), headers)
        await self._answer(request, timeout_s)

    async def remove_feed(
        self,
        channel: str,
        queue_id: int,
        target: str,
        target_queue: int,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Remove a feed; copied messages stay."""
        headers = _place(queue_id, target, target_queue)
        request = Request(OP_REMOVE_FEED, "remove feed", check_channel(channel), headers)
        await self._answer(request, timeout_s)

    async def feeds(
        self, channel: str, queue_id: int | None = None, *, timeout_s: float | None = None
    ) -> list[FeedInformation]:
        """Return the feeds of a queue, or of all queues of a channel, in the order in which they
        were added."""
        headers: tuple[tuple[str, str], ...] = ()
        if queue_id is not None:
            headers = ((HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),)
        request = Request(OP_LIST_FEEDS, "list feeds", check_channel(channel), headers)
        return await self._list(models.FeedInformation, request, timeout_s)


def _place(queue_id: int, target: str, target_queue: int) -> tuple[tuple[str, str], ...]:
    """The headers that name a feed."""
    return (
        (HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),
        (HEADER_FEED_CHANNEL, check_channel(target)),
        (HEADER_FEED_QUEUE, str(check_queue_id(target_queue))),
    )
