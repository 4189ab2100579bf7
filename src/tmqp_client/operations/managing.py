"""The client's methods that show channels, queues and clients, and change options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmqp import models
from tmqp.constants import (
    HEADER_VALUE_YES,
    OP_CHANNEL_CONSUMERS,
    OP_CHANNEL_INFORMATION,
    OP_CHANNEL_LIST,
    OP_CLEAR_MESSAGES,
    OP_CLIENT_LIST,
    OP_QUEUE_INFORMATION,
    OP_QUEUE_LIST,
    OP_UPDATE_QUEUE,
    HeaderName,
)
from tmqp.errors import LocalProtocolError
from tmqp.extensions import OP_UPDATE_CHANNEL
from tmqp_client._core.arguments import check_channel, check_queue_id
from tmqp_client._core.requests import Request
from tmqp_client._port import Operations

if TYPE_CHECKING:
    from tmqp.models import (
        ChannelInformation,
        ChannelOptions,
        ClientInformation,
        QueueInformation,
        QueueOptions,
    )

__all__ = ["Managing"]


class Managing(Operations):
    """The methods of :class:`tmqp_client.Client` for administration; a server may restrict them to
    administrators.

    Every method raises ``OperationFailed`` if the server refuses (401) or the channel, queue or
    client does not exist (404), and ``ModelError`` if the server's answer is invalid.
    """

    async def channels(
        self, filter: str = "", *, timeout_s: float | None = None
    ) -> list[ChannelInformation]:
        """Return the channels that this client may see (F52).

        :param filter: ``x*`` for names that begin with x, ``*x`` for names that end with it,
            ``*x*`` for names that contain it, otherwise a name; all if empty (F53).
        """
        headers = ((HeaderName.CHANNEL_NAME.value, filter),) if filter else ()
        request = Request(OP_CHANNEL_LIST, "list channels", "", headers)
        return await self._list(models.ChannelInformation, request, timeout_s)

    async def channel_information(
        self, channel: str, *, timeout_s: float | None = None
    ) -> ChannelInformation:
        """Return a channel: its queues, its options, and how many clients have joined (F52)."""
        request = Request(OP_CHANNEL_INFORMATION, "look at channel", check_channel(channel))
        return models.ChannelInformation.from_json(await self._answer(request, timeout_s))

    async def channel_consumers(
        self, channel: str, *, timeout_s: float | None = None
    ) -> list[ClientInformation]:
        """Return the clients that have joined a channel, and since when (F52)."""
        request = Request(OP_CHANNEL_CONSUMERS, "list consumers of", check_channel(channel))
        return await self._list(models.ClientInformation, request, timeout_s)

    async def queues(
        self, channel: str, *, timeout_s: float | None = None
    ) -> list[QueueInformation]:
        """Return the queues of a channel, each as :meth:`queue_information` does."""
        request = Request(OP_QUEUE_LIST, "list queues of", check_channel(channel))
        return await self._list(models.QueueInformation, request, timeout_s)

    async def queue_information(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> QueueInformation:
        """Return a queue: its options, its waiting messages, and its counters (F57)."""
        body = check_queue_id(queue_id).to_bytes(2, "little")
        request = Request(
            OP_QUEUE_INFORMATION, "look at queue", check_channel(channel), (), body, queue_id
        )
        return models.QueueInformation.from_json(await self._answer(request, timeout_s))

    async def update_channel(
        self, channel: str, options: ChannelOptions, *, timeout_s: float | None = None
    ) -> None:
        """Change a channel's options; those that are None stay as they are (F20).

        Options of queues apply to queues that are created later.  An empty ``authenticator`` or
        ``event_handler`` removes that of the channel, and an empty ``allowed_queues`` allows all.
        """
        request = Request(
            OP_UPDATE_CHANNEL, "update channel", check_channel(channel), (), options.to_json()
        )
        await self._session.ask(request, timeout_s)

    async def update_queue(
        self, channel: str, queue_id: int, options: QueueOptions, *, timeout_s: float | None = None
    ) -> None:
        """Change a queue's options; those that are None stay as they are (F56)."""
        headers = ((HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),)
        request = Request(
            *(OP_UPDATE_QUEUE, "update queue", check_channel(channel), headers),
            options.to_json(),
            queue_id,
        )
        await self._session.ask(request, timeout_s)

    async def clear_queue(
        self,
        channel: str,
        queue_id: int,
        *,
        high_priority: bool = True,
        messages: bool = True,
        timeout_s: float | None = None,
    ) -> None:
        """Remove the waiting messages of a queue: those of high priority, the others, or both
        (F58).

        :raises LocalProtocolError: if neither is chosen.
        """
        headers = [(HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id)))]
        if not high_priority and not messages:
            raise LocalProtocolError("clear messages of high priority, the others, or both")
        if high_priority:
            headers.append((HeaderName.PRIORITY_MESSAGES.value, HEADER_VALUE_YES))
        if messages:
            headers.append((HeaderName.MESSAGES.value, HEADER_VALUE_YES))
        request = Request(
            OP_CLEAR_MESSAGES, "clear queue", check_channel(channel), tuple(headers), b"", queue_id
        )
        await self._session.ask(request, timeout_s)

    async def clients(
        self, type: str = "", *, timeout_s: float | None = None
    ) -> list[ClientInformation]:
        """Return the clients of the server, all or those of one type (F59)."""
        request = Request(OP_CLIENT_LIST, "list clients", type)
        return await self._list(models.ClientInformation, request, timeout_s)
