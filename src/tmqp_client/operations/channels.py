"""Channels and queues: creating, removing, joining."""

from __future__ import annotations

from tmqp.constants import RESULT_DUPLICATE, QueueStatus
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client._core import requests
from tmqp_client._core.requests import Headers, Request
from tmqp_client._port import Operations
from tmqp_client.errors import OperationFailed

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

    async def join(self, channel: str, *, timeout_s: float | None = None) -> None:
        """Join a channel: its queues deliver to this client from now on (F48).

        :meth:`consume` joins by itself; who joins before keeps what comes meanwhile, within
        bounds, for the consumers to come.  Joining twice is no error.

        :raises OperationFailed: when the server refuses: 404, 401, 482.
        """
        await self._session.ask(requests.join(channel), timeout_s)
        self._port.joined.add(channel.lower())

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
