"""The part of the client that looks at channels, queues and clients, and changes options."""

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
    """What :class:`tmqp_client.Client` can see and change; a server may keep it to administrators.

    Every method raises ``OperationFailed`` when the server refuses (401), or does not have what is
    asked for (404), and ``ModelError`` when its answer cannot be read.
    """

    async def channels(
        self, filter: str = "", *, timeout_s: float | None = None
    ) -> list[ChannelInformation]:
        """The channels this client may see (F52).

        :param filter: ``x*`` for those whose name begins so, ``*x`` for those that end so, ``*x*``
            for those that contain it, else a name; all if empty (F53).
        """
        headers = ((HeaderName.CHANNEL_NAME.value, filter),) if filter else ()
        request = Request(OP_CHANNEL_LIST, "list channels", "", headers)
        return await self._list(models.ChannelInformation, request, timeout_s)

    async def channel_information(
        self, channel: str, *, timeout_s: float | None = None
    ) -> ChannelInformation:
        """A channel: its queues, its options, how many clients have joined (F52)."""
        request = Request(OP_CHANNEL_INFORMATION, "look at channel", check_channel(channel))
        return models.ChannelInformation.from_json(await self._answer(request, timeout_s))

    async def channel_consumers(
        self, channel: str, *, timeout_s: float | None = None
    ) -> list[ClientInformation]:
        """The clients that have joined a channel, and since when (F52)."""
        request = Request(OP_CHANNEL_CONSUMERS, "list consumers of", check_channel(channel))
        return await self._list(models.ClientInformation, request, timeout_s)

    async def queues(
        self, channel: str, *, timeout_s: float | None = None
    ) -> list[QueueInformation]:
        """The queues of a channel, each as :meth:`queue_information`."""
        request = Request(OP_QUEUE_LIST, "list queues of", check_channel(channel))
        return await self._list(models.QueueInformation, request, timeout_s)

    async def queue_information(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> QueueInformation:
        """A queue: its options, what waits in it, what went through it (F57)."""
        body = check_queue_id(queue_id).to_bytes(2, "little")
        request = Request(
            OP_QUEUE_INFORMATION, "look at queue", check_channel(channel), (), body, queue_id
        )
        return models.QueueInformation.from_json(await self._answer(request, timeout_s))

    async def update_channel(
        self, channel: str, options: ChannelOptions, *, timeout_s: float | None = None
    ) -> None:
        """Change a channel's options; those that are None stay as they are (F20).

        Options of queues are for queues created from now on.  An empty ``authenticator`` or
        ``event_handler`` takes the channel's away, and an empty ``allowed_queues`` allows all.
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
        """Remove what waits in a queue: messages of high priority, the others, or both (F58).

        :raises LocalProtocolError: for neither.
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
        """The clients of the server, all or those of a type (F59)."""
        request = Request(OP_CLIENT_LIST, "list clients", type)
        return await self._list(models.ClientInformation, request, timeout_s)
