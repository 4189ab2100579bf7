"""Channels and queues: creating, removing, joining."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tmqp.constants import RESULT_DUPLICATE, QueueStatus
from tmqp_client._core import requests
from tmqp_client._core.arguments import Headers
from tmqp_client._core.requests import Request, terms_headers
from tmqp_client._port import Operations
from tmqp_client.errors import OperationFailed

if TYPE_CHECKING:
    from tmqp.models import ChannelOptions, QueueOptions

__all__ = ["Channels"]


class Channels(Operations):
    """The methods of :class:`tmqp_client.Client` about channels and queues."""

    async def create_channel(
        self,
        name: str,
        options: ChannelOptions | None = None,
        *,
        exist_ok: bool = True,
        timeout_s: float | None = None,
    ) -> bool:
        """Create a channel; return False if it already existed.

        The original server does not answer if the channel exists (F50): with it, this call times
        out.

        :raises OperationFailed: if the server refuses; with 481 for an existing channel unless
            ``exist_ok`` is set.
        """
        return await self._create(
            requests.create_channel(name, options), exist_ok=exist_ok, timeout_s=timeout_s
        )

    async def remove_channel(self, name: str, *, timeout_s: float | None = None) -> None:
        """Remove a channel with its queues.

        :raises OperationFailed: when the server refuses: 404, 401 ...
        """
        await self._session.ask(requests.remove_channel(name), timeout_s)

    async def create_queue(
        self,
        channel: str,
        queue_id: int,
        options: QueueOptions | None = None,
        *,
        status: QueueStatus | str | None = None,
        tag: str | None = None,
        delivery_handler: str | None = None,
        wait_for_acknowledge: bool | None = None,
        headers: Headers = (),
        exist_ok: bool = True,
        timeout_s: float | None = None,
    ) -> bool:
        """Create a queue, and its channel if that is missing; return False if the queue already
        existed.

        :param options: sent as the JSON body, which the original server applies only if it also
            creates the channel (F54); options with their own argument here always apply.
        :param status: a :class:`tmqp.QueueStatus` or its word, such as ``round-robin``.
        :param delivery_handler: the name of a delivery handler of the server.
        :param headers: further headers, for the server's delivery handlers.
        :raises OperationFailed: if the server refuses; with 481 for an existing queue unless
            ``exist_ok`` is set.
        """
        request = requests.create_queue(
            channel, queue_id, options, status, tag, delivery_handler, wait_for_acknowledge, headers
        )
        return await self._create(request, exist_ok=exist_ok, timeout_s=timeout_s)

    async def remove_queue(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> None:
        """Remove a queue with its messages.

        :raises OperationFailed: when the server refuses: 404, 401 ...
        """
        await self._session.ask(requests.remove_queue(channel, queue_id), timeout_s)

    async def join(
        self,
        channel: str,
        *,
        filter: str | None = None,
        filter_language: str | None = None,
        window: int | None = None,
        credit: int | None = None,
        ack_timeout_s: float | None = None,
        returns: Literal["timeout", "front", "end"] | None = None,
        priority: int | None = None,
        exclusive: bool | None = None,
        tells_lapsed: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Join a channel: its queues deliver to this client from now on (F48).

        :meth:`consume` joins automatically; if you join before, messages that arrive meanwhile are
        kept for later consumers, within limits.  Joining twice is not an error: the last filter and
        credit apply, other terms change only if given.  After a reconnection the client joins the
        channel with the same filter and terms, and the credit granted last.  Other servers ignore
        filters and terms.

        :param filter: the messages for this client, such as ``kind=order; region=eu*``; the others
            go to other clients, or wait for one.
        :param filter_language: ``headers`` (as above, the default), ``prefix`` (the payload begins
            so), ``sql92`` or ``sql92-converting``, such as ``price > 3 AND kind = 'order'``.
        :param window: how many messages may be unanswered at a time; -1 for no limit.
        :param credit: how many messages may be sent until the next :meth:`grant`; -1 for no limit.
        :param ack_timeout_s: how many seconds this client may take to answer; 0 for the queue's
            timeout, infinity for no timeout.
        :param returns: what happens to unanswered messages when this client leaves or disconnects:
            they stay in flight until their ``timeout``, or go back at once to the ``front`` or the
            ``end`` of their queue.
        :param priority: 0..127; if messages go to one consumer each, the highest are served first.
        :param exclusive: if messages go to one consumer each, this one gets all of them as long as
            it has joined.  Of several exclusive consumers, the first one with the highest priority
            gets them; when it leaves, the next one.
        :param tells_lapsed: let the server notify this client from now on, for all channels, when
            an unanswered message is no longer in flight to it: see :attr:`Message.lapsed`.
        :raises OperationFailed: if the server refuses: 400 for an invalid filter, 404, 401, 482.
        """
        terms = terms_headers(
            window, credit, ack_timeout_s, returns, priority, exclusive, tells_lapsed
        )
        request = requests.join(channel, filter, filter_language, terms)
        await self._session.ask(request, timeout_s)
        self._port.joined.add(channel.lower())

    async def set_terms(
        self,
        channel: str,
        *,
        window: int | None = None,
        ack_timeout_s: float | None = None,
        returns: Literal["timeout", "front", "end"] | None = None,
        priority: int | None = None,
        exclusive: bool | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Change terms of a joined channel, see :meth:`join`; None leaves a term unchanged.

        A changed acknowledgement timeout applies to later deliveries.

        :raises OperationFailed: with 404 when it was not joined.
        """
        terms = terms_headers(window, None, ack_timeout_s, returns, priority, exclusive)
        await self._session.ask(requests.set_terms(channel, terms), timeout_s)

    async def grant(self, channel: str, credit: int, *, timeout_s: float | None = None) -> None:
        """Set the credit of a joined channel, the number of further deliveries; -1 for no limit.

        It replaces the remaining credit.

        :raises OperationFailed: with 404 when it was not joined.
        """
        await self._session.ask(requests.grant(channel, credit), timeout_s)

    async def leave(self, channel: str, *, timeout_s: float | None = None) -> None:
        """Leave a channel.

        :raises OperationFailed: with 404 when it was not joined (F49).
        """
        await self._session.ask(requests.leave(channel), timeout_s)
        self._port.joined.discard(channel.lower())

    async def _create(self, request: Request, *, exist_ok: bool, timeout_s: float | None) -> bool:
        try:
            await self._session.ask(request, timeout_s)
        except OperationFailed as error:
            if error.code == RESULT_DUPLICATE and exist_ok:
                return False
            raise
        return True
