"""What else a client can do, blocking.

Made by ``python -m tools.make_sync``: edit the async side, and run that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tmqp.constants import RouteMethod
from tmqp.models import (
    BindingInformation,
    ChannelInformation,
    ChannelOptions,
    ClientInformation,
    FeedInformation,
    NodeInformation,
    QueueInformation,
    QueueOptions,
    RouterInformation,
    ServerInformation,
    TransactionInformation,
)
from tmqp_client._core.arguments import Headers, Payload
from tmqp_client._received import HasPayload
from tmqp_client.binding import Converter
from tmqp_client.client import Client
from tmqp_client.direct import Response
from tmqp_client.handling import _T
from tmqp_client.sync._blocking import Blocking
from tmqp_client.sync._generated_received import DirectMessages
from tmqp_client.sync._generated_streams import CustomMessages, Events

__all__ = ["More"]


class More(Blocking[Client]):
    """The blocking form of :class:`tmqp_client.Client`."""

    def add_feed(
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
        """As :meth:`tmqp_client.Client.add_feed`, blocking."""
        self._call(
            self._wrapped.add_feed,
            channel,
            queue_id,
            target,
            target_queue,
            filter=filter,
            filter_language=filter_language,
            timeout_s=timeout_s,
        )

    def remove_feed(
        self,
        channel: str,
        queue_id: int,
        target: str,
        target_queue: int,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """As :meth:`tmqp_client.Client.remove_feed`, blocking."""
        self._call(
            self._wrapped.remove_feed, channel, queue_id, target, target_queue, timeout_s=timeout_s
        )

    def feeds(
        self, channel: str, queue_id: int | None = None, *, timeout_s: float | None = None
    ) -> list[FeedInformation]:
        """As :meth:`tmqp_client.Client.feeds`, blocking."""
        result: list[FeedInformation] = self._call(
            self._wrapped.feeds, channel, queue_id, timeout_s=timeout_s
        )
        return result

    def send_direct(
        self,
        target: str,
        payload: Payload,
        *,
        content_type: int = 0,
        headers: Headers = (),
        first_only: bool = False,
        high_priority: bool = False,
        wait: bool = False,
        timeout_s: float | None = None,
        nowait: bool = False,
    ) -> str:
        """As :meth:`tmqp_client.Client.send_direct`, blocking."""
        result: str = self._call(
            self._wrapped.send_direct,
            target,
            payload,
            content_type=content_type,
            headers=headers,
            first_only=first_only,
            high_priority=high_priority,
            wait=wait,
            timeout_s=timeout_s,
            nowait=nowait,
        )
        return result

    def request(
        self,
        target: str,
        payload: Payload,
        timeout_s: float | None = None,
        *,
        content_type: int = 0,
        headers: Headers = (),
        first_only: bool = False,
        high_priority: bool = False,
        nowait: bool = False,
    ) -> Response:
        """As :meth:`tmqp_client.Client.request`, blocking."""
        result: Response = self._call(
            self._wrapped.request,
            target,
            payload,
            timeout_s,
            content_type=content_type,
            headers=headers,
            first_only=first_only,
            high_priority=high_priority,
            nowait=nowait,
        )
        return result

    def direct_messages(self) -> DirectMessages:
        """As :meth:`tmqp_client.Client.direct_messages`, blocking."""
        result: DirectMessages = self._call(self._wrapped.direct_messages)
        return result

    def send_custom(
        self,
        payload: Payload,
        *,
        target: str = "",
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
        nowait: bool = False,
    ) -> str:
        """As :meth:`tmqp_client.Client.send_custom`, blocking."""
        result: str = self._call(
            self._wrapped.send_custom,
            payload,
            target=target,
            content_type=content_type,
            headers=headers,
            high_priority=high_priority,
            nowait=nowait,
        )
        return result

    def request_custom(
        self,
        payload: Payload,
        timeout_s: float | None = None,
        *,
        target: str = "",
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
    ) -> Response:
        """As :meth:`tmqp_client.Client.request_custom`, blocking."""
        result: Response = self._call(
            self._wrapped.request_custom,
            payload,
            timeout_s,
            target=target,
            content_type=content_type,
            headers=headers,
            high_priority=high_priority,
        )
        return result

    def custom_messages(self) -> CustomMessages:
        """As :meth:`tmqp_client.Client.custom_messages`, blocking."""
        result: CustomMessages = self._call(self._wrapped.custom_messages)
        return result

    def events(self, name: str, channel: str | None = None, queue_id: int | None = None) -> Events:
        """As :meth:`tmqp_client.Client.events`, blocking."""
        result: Events = self._call(self._wrapped.events, name, channel, queue_id)
        return result

    def create_router(
        self,
        name: str,
        method: RouteMethod = RouteMethod.DISTRIBUTE,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """As :meth:`tmqp_client.Client.create_router`, blocking."""
        self._call(self._wrapped.create_router, name, method, timeout_s=timeout_s)

    def remove_router(self, name: str, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.remove_router`, blocking."""
        self._call(self._wrapped.remove_router, name, timeout_s=timeout_s)

    def set_router_enabled(
        self, name: str, enabled: bool, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Client.set_router_enabled`, blocking."""
        self._call(self._wrapped.set_router_enabled, name, enabled, timeout_s=timeout_s)

    def routers(self, *, timeout_s: float | None = None) -> list[RouterInformation]:
        """As :meth:`tmqp_client.Client.routers`, blocking."""
        result: list[RouterInformation] = self._call(self._wrapped.routers, timeout_s=timeout_s)
        return result

    def add_binding(
        self, router: str, binding: BindingInformation, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Client.add_binding`, blocking."""
        self._call(self._wrapped.add_binding, router, binding, timeout_s=timeout_s)

    def remove_binding(self, router: str, binding: str, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.remove_binding`, blocking."""
        self._call(self._wrapped.remove_binding, router, binding, timeout_s=timeout_s)

    def bindings(self, router: str, *, timeout_s: float | None = None) -> list[BindingInformation]:
        """As :meth:`tmqp_client.Client.bindings`, blocking."""
        result: list[BindingInformation] = self._call(
            self._wrapped.bindings, router, timeout_s=timeout_s
        )
        return result

    def publish(
        self,
        router: str,
        payload: Payload,
        *,
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
        wait: bool = True,
        timeout_s: float | None = None,
        nowait: bool = False,
    ) -> str:
        """As :meth:`tmqp_client.Client.publish`, blocking."""
        result: str = self._call(
            self._wrapped.publish,
            router,
            payload,
            content_type=content_type,
            headers=headers,
            high_priority=high_priority,
            wait=wait,
            timeout_s=timeout_s,
            nowait=nowait,
        )
        return result

    def request_router(
        self,
        router: str,
        payload: Payload,
        timeout_s: float | None = None,
        *,
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
    ) -> Response:
        """As :meth:`tmqp_client.Client.request_router`, blocking."""
        result: Response = self._call(
            self._wrapped.request_router,
            router,
            payload,
            timeout_s,
            content_type=content_type,
            headers=headers,
            high_priority=high_priority,
        )
        return result

    def channels(
        self, filter: str = "", *, timeout_s: float | None = None
    ) -> list[ChannelInformation]:
        """As :meth:`tmqp_client.Client.channels`, blocking."""
        result: list[ChannelInformation] = self._call(
            self._wrapped.channels, filter, timeout_s=timeout_s
        )
        return result

    def channel_information(
        self, channel: str, *, timeout_s: float | None = None
    ) -> ChannelInformation:
        """As :meth:`tmqp_client.Client.channel_information`, blocking."""
        result: ChannelInformation = self._call(
            self._wrapped.channel_information, channel, timeout_s=timeout_s
        )
        return result

    def channel_consumers(
        self, channel: str, *, timeout_s: float | None = None
    ) -> list[ClientInformation]:
        """As :meth:`tmqp_client.Client.channel_consumers`, blocking."""
        result: list[ClientInformation] = self._call(
            self._wrapped.channel_consumers, channel, timeout_s=timeout_s
        )
        return result

    def queues(self, channel: str, *, timeout_s: float | None = None) -> list[QueueInformation]:
        """As :meth:`tmqp_client.Client.queues`, blocking."""
        result: list[QueueInformation] = self._call(
            self._wrapped.queues, channel, timeout_s=timeout_s
        )
        return result

    def queue_information(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> QueueInformation:
        """As :meth:`tmqp_client.Client.queue_information`, blocking."""
        result: QueueInformation = self._call(
            self._wrapped.queue_information, channel, queue_id, timeout_s=timeout_s
        )
        return result

    def update_channel(
        self, channel: str, options: ChannelOptions, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Client.update_channel`, blocking."""
        self._call(self._wrapped.update_channel, channel, options, timeout_s=timeout_s)

    def update_queue(
        self, channel: str, queue_id: int, options: QueueOptions, *, timeout_s: float | None = None
    ) -> None:
        """As :meth:`tmqp_client.Client.update_queue`, blocking."""
        self._call(self._wrapped.update_queue, channel, queue_id, options, timeout_s=timeout_s)

    def clear_queue(
        self,
        channel: str,
        queue_id: int,
        *,
        high_priority: bool = True,
        messages: bool = True,
        timeout_s: float | None = None,
    ) -> None:
        """As :meth:`tmqp_client.Client.clear_queue`, blocking."""
        self._call(
            self._wrapped.clear_queue,
            channel,
            queue_id,
            high_priority=high_priority,
            messages=messages,
            timeout_s=timeout_s,
        )

    def clients(self, type: str = "", *, timeout_s: float | None = None) -> list[ClientInformation]:
        """As :meth:`tmqp_client.Client.clients`, blocking."""
        result: list[ClientInformation] = self._call(
            self._wrapped.clients, type, timeout_s=timeout_s
        )
        return result

    def server_information(self, *, timeout_s: float | None = None) -> ServerInformation:
        """As :meth:`tmqp_client.Client.server_information`, blocking."""
        result: ServerInformation = self._call(
            self._wrapped.server_information, timeout_s=timeout_s
        )
        return result

    def drain(self, *, stop: bool = False, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.drain`, blocking."""
        self._call(self._wrapped.drain, stop=stop, timeout_s=timeout_s)

    def nodes(self, *, timeout_s: float | None = None) -> list[NodeInformation]:
        """As :meth:`tmqp_client.Client.nodes`, blocking."""
        result: list[NodeInformation] = self._call(self._wrapped.nodes, timeout_s=timeout_s)
        return result

    def open_transaction(
        self,
        application: str,
        epoch: int,
        *,
        part: int | None = None,
        attempt: int = 0,
        idle_timeout_s: float | None = None,
        timeout_s: float | None = None,
    ) -> TransactionInformation:
        """As :meth:`tmqp_client.Client.open_transaction`, blocking."""
        result: TransactionInformation = self._call(
            self._wrapped.open_transaction,
            application,
            epoch,
            part=part,
            attempt=attempt,
            idle_timeout_s=idle_timeout_s,
            timeout_s=timeout_s,
        )
        return result

    def push_transaction(
        self,
        transaction: TransactionInformation,
        channel: str,
        queue_id: int,
        payloads: Iterable[Payload],
        *,
        headers: Headers = (),
        high_priority: bool = False,
        block_bytes: int = 524288,
        timeout_s: float | None = None,
    ) -> TransactionInformation:
        """As :meth:`tmqp_client.Client.push_transaction`, blocking."""
        result: TransactionInformation = self._call(
            self._wrapped.push_transaction,
            transaction,
            channel,
            queue_id,
            payloads,
            headers=headers,
            high_priority=high_priority,
            block_bytes=block_bytes,
            timeout_s=timeout_s,
        )
        return result

    def commit_transaction(
        self,
        application: str,
        epoch: int,
        transactions: Sequence[TransactionInformation | int] = (),
        *,
        timeout_s: float | None = None,
    ) -> TransactionInformation:
        """As :meth:`tmqp_client.Client.commit_transaction`, blocking."""
        result: TransactionInformation = self._call(
            self._wrapped.commit_transaction, application, epoch, transactions, timeout_s=timeout_s
        )
        return result

    def abort_transaction(
        self,
        application: str,
        epoch: int | None = None,
        *,
        transaction: TransactionInformation | int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """As :meth:`tmqp_client.Client.abort_transaction`, blocking."""
        self._call(
            self._wrapped.abort_transaction,
            application,
            epoch,
            transaction=transaction,
            timeout_s=timeout_s,
        )

    def list_transactions(
        self, application_filter: str = "*", *, timeout_s: float | None = None
    ) -> list[TransactionInformation]:
        """As :meth:`tmqp_client.Client.list_transactions`, blocking."""
        result: list[TransactionInformation] = self._call(
            self._wrapped.list_transactions, application_filter, timeout_s=timeout_s
        )
        return result

    @property
    def converter(self) -> Converter:
        """As :attr:`tmqp_client.Client.converter`."""
        return self._wrapped.converter

    def encode(self, value: object) -> bytes:
        """As :meth:`tmqp_client.Client.encode`."""
        return self._wrapped.encode(value)

    def decode(self, message: HasPayload, kind: type[_T]) -> _T:
        """As :meth:`tmqp_client.Client.decode`."""
        return self._wrapped.decode(message, kind)
