"""Channels and queues: creating, removing, joining."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tmqp.constants import RESULT_DUPLICATE, QueueStatus
from tmqp_client._core import requests
from tmqp_client._core.requests import Headers, Request, terms_headers
from tmqp_client._port import Operations
from tmqp_client.errors import OperationFailed

if TYPE_CHECKING:
    from tmqp.models import ChannelOptions, QueueOptions

__all__ = ["Channels"]


class Channels(Operations):
    """What :class:`tmqp_client.Client` can do with channels and queues."""

    async def create_channel(
        self,
        name: str,
        options: ChannelOptions | None = None,
        *,
        exist_ok: bool = True,
        timeout_s: float | None = None,
    ) -> bool:
        """Create a channel; return False if it was there already.

        The original server does not answer at all when the channel exists (F50): there this times
        out.

        :raises OperationFailed: when the server refuses; with 481 for one that exists if not
            ``exist_ok``.
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
        """Create a queue, and its channel if that is missing; return False if it was there already.

        :param options: sent as the JSON body, which the original server applies only where it
            creates the channel too (F54); what has its own argument here applies everywhere.
        :param status: a :class:`tmqp.QueueStatus` or its word, ``round-robin`` for one.
        :param delivery_handler: the name of one that the server knows.
        :param headers: more headers, for the server's delivery handlers.
        :raises OperationFailed: when the server refuses; with 481 for one that exists if not
            ``exist_ok``.
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

        :meth:`consume` joins by itself; who joins before keeps what comes meanwhile, within
        bounds, for the consumers to come.  Joining twice is no error: the last filter and credit
        count, other terms that are not given stay as they were.  On a new connection the channel is
        joined with the same filter and terms, and the credit that was granted last.  Servers of
        other makes ignore filters and terms.

        :param filter: which messages this client wants, such as ``kind=order; region=eu*``; the
            others go to other clients, or wait for one.
        :param filter_language: ``headers`` (as above, the default), ``prefix`` (the payload begins
            so), ``sql92`` or ``sql92-converting``, such as ``price > 3 AND kind = 'order'``.
        :param window: how many messages may be unanswered at a time; -1 for no bound.
        :param credit: how many messages may be sent until :meth:`grant` says otherwise; -1 for no
            bound.
        :param ack_timeout_s: how long this client may take to answer; 0 for the queue's time,
            infinite for as long as it stays.
        :param returns: what becomes of messages without an answer when this client leaves or is
            gone: they wait for their time (``timeout``), or go back at once to the ``front`` or the
            ``end`` of their queue.
        :param priority: 0..127; where a message goes to one consumer, the highest are first.
        :param exclusive: where a message goes to one consumer, this one gets all as long as it has
            joined; of several, the first of the highest priority, and the next when that leaves.
        :param tells_lapsed: let the server tell from now on, for all channels, when a message is
            this client's no more, though it was not answered: see :attr:`Message.lapsed`.
        :raises OperationFailed: when the server refuses: 400 for a filter that it cannot read, 404,
            401, 482.
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
        """Change terms of a channel that was joined, see :meth:`join`; what is None stays.

        A time to answer holds for what is sent from now on.

        :raises OperationFailed: with 404 when it was not joined.
        """
        terms = terms_headers(window, None, ack_timeout_s, returns, priority, exclusive)
        await self._session.ask(requests.set_terms(channel, terms), timeout_s)

    async def grant(self, channel: str, credit: int, *, timeout_s: float | None = None) -> None:
        """Let so many messages more be sent from a channel that was joined; -1 for no bound.

        Replaces what was left.

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
