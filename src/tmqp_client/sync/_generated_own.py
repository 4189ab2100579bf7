"""The client's own operations, blocking.

Made by ``python -m tools.make_sync``: edit the async side, and run that.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from tmqp.address import Address
from tmqp.constants import PullClear, QueueStatus
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client._core.arguments import Headers, Payload
from tmqp_client._report import Pushed
from tmqp_client.client import Client
from tmqp_client.connection_events import ConnectionState
from tmqp_client.consumer import AcknowledgeMode
from tmqp_client.statistics import ClientStatistics
from tmqp_client.sync._blocking import Blocking
from tmqp_client.sync._generated_received import Batch, Consumer, Pull, TemporaryQueue
from tmqp_client.sync._generated_streams import Cells, ConnectionEvents, Unclaimed

__all__ = ["Own"]


class Own(Blocking[Client]):
    """The blocking form of :class:`tmqp_client.Client`."""

    @property
    def client_id(self) -> str:
        """As :attr:`tmqp_client.Client.client_id`."""
        return self._wrapped.client_id

    @property
    def connected(self) -> bool:
        """As :attr:`tmqp_client.Client.connected`."""
        return self._wrapped.connected

    @property
    def state(self) -> ConnectionState:
        """As :attr:`tmqp_client.Client.state`."""
        return self._wrapped.state

    @property
    def address(self) -> Address | None:
        """As :attr:`tmqp_client.Client.address`."""
        return self._wrapped.address

    @property
    def cells(self) -> Cells:
        """As :attr:`tmqp_client.Client.cells`, blocking."""
        result: Cells = self._wrap(self._wrapped.cells)
        return result

    def connection_events(self) -> ConnectionEvents:
        """As :meth:`tmqp_client.Client.connection_events`, blocking."""
        result: ConnectionEvents = self._call(self._wrapped.connection_events)
        return result

    def statistics(self) -> ClientStatistics:
        """As :meth:`tmqp_client.Client.statistics`."""
        return self._wrapped.statistics()

    def create_channel(
        self,
        name: str,
        options: ChannelOptions | None = None,
        *,
        exist_ok: bool = True,
        timeout_s: float | None = None,
    ) -> bool:
        """As :meth:`tmqp_client.Client.create_channel`, blocking."""
        result: bool = self._call(
            self._wrapped.create_channel, name, options, exist_ok=exist_ok, timeout_s=timeout_s
        )
        return result

    def remove_channel(self, name: str, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.remove_channel`, blocking."""
        self._call(self._wrapped.remove_channel, name, timeout_s=timeout_s)

    def create_queue(
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
        """As :meth:`tmqp_client.Client.create_queue`, blocking."""
        result: bool = self._call(
            self._wrapped.create_queue,
            channel,
            queue_id,
            options,
            status=status,
            tag=tag,
            delivery_handler=delivery_handler,
            wait_for_acknowledge=wait_for_acknowledge,
            headers=headers,
            exist_ok=exist_ok,
            timeout_s=timeout_s,
        )
        return result

    def remove_queue(self, channel: str, queue_id: int, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.remove_queue`, blocking."""
        self._call(self._wrapped.remove_queue, channel, queue_id, timeout_s=timeout_s)

    def join(
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
        """As :meth:`tmqp_client.Client.join`, blocking."""
        self._call(
            self._wrapped.join,
            channel,
            filter=filter,
            filter_language=filter_language,
            window=window,
            credit=credit,
            ack_timeout_s=ack_timeout_s,
            returns=returns,
            priority=priority,
            exclusive=exclusive,
            tells_lapsed=tells_lapsed,
            timeout_s=timeout_s,
        )

    def set_terms(
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
        """As :meth:`tmqp_client.Client.set_terms`, blocking."""
        self._call(
            self._wrapped.set_terms,
            channel,
            window=window,
            ack_timeout_s=ack_timeout_s,
            returns=returns,
            priority=priority,
            exclusive=exclusive,
            timeout_s=timeout_s,
        )

    def grant(self, channel: str, credit: int, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.grant`, blocking."""
        self._call(self._wrapped.grant, channel, credit, timeout_s=timeout_s)

    def leave(self, channel: str, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.leave`, blocking."""
        self._call(self._wrapped.leave, channel, timeout_s=timeout_s)

    def push(
        self,
        channel: str,
        queue_id: int,
        payload: Payload,
        *,
        headers: Headers = (),
        high_priority: bool = False,
        wait: bool = True,
        message_id: str | None = None,
        timeout_s: float | None = None,
        nowait: bool = False,
        delay_s: float | None = None,
        deliver_at: datetime | None = None,
        expires_s: float | None = None,
        key: str | None = None,
        room_s: float | None = None,
        priority: int | None = None,
    ) -> str:
        """As :meth:`tmqp_client.Client.push`, blocking."""
        result: str = self._call(
            self._wrapped.push,
            channel,
            queue_id,
            payload,
            headers=headers,
            high_priority=high_priority,
            wait=wait,
            message_id=message_id,
            timeout_s=timeout_s,
            nowait=nowait,
            delay_s=delay_s,
            deliver_at=deliver_at,
            expires_s=expires_s,
            key=key,
            room_s=room_s,
            priority=priority,
        )
        return result

    def push_counted(
        self,
        channel: str,
        queue_id: int,
        payload: Payload,
        *,
        headers: Headers = (),
        high_priority: bool = False,
        message_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Pushed:
        """As :meth:`tmqp_client.Client.push_counted`, blocking."""
        result: Pushed = self._call(
            self._wrapped.push_counted,
            channel,
            queue_id,
            payload,
            headers=headers,
            high_priority=high_priority,
            message_id=message_id,
            timeout_s=timeout_s,
        )
        return result

    def batch(self, *, timeout_s: float | None = None) -> Batch:
        """As :meth:`tmqp_client.Client.batch`, blocking."""
        result: Batch = self._call(self._wrapped.batch, timeout_s=timeout_s)
        return result

    def cancel_message(
        self, channel: str, queue_id: int, message_id: str, *, timeout_s: float | None = None
    ) -> bool:
        """As :meth:`tmqp_client.Client.cancel_message`, blocking."""
        result: bool = self._call(
            self._wrapped.cancel_message, channel, queue_id, message_id, timeout_s=timeout_s
        )
        return result

    def remove_message(
        self, channel: str, queue_id: int, message_id: str, *, timeout_s: float | None = None
    ) -> bool:
        """As :meth:`tmqp_client.Client.remove_message`, blocking."""
        result: bool = self._call(
            self._wrapped.remove_message, channel, queue_id, message_id, timeout_s=timeout_s
        )
        return result

    def ping(self, *, timeout_s: float | None = None) -> float:
        """As :meth:`tmqp_client.Client.ping`, blocking."""
        result: float = self._call(self._wrapped.ping, timeout_s=timeout_s)
        return result

    def consume(
        self,
        channel: str,
        queue_id: int | None = None,
        *,
        acknowledge: AcknowledgeMode = "auto",
        join: bool = True,
        filter: str | None = None,
        filter_language: str | None = None,
        window: int | None = None,
        ack_timeout_s: float | None = None,
        returns: Literal["timeout", "front", "end"] | None = None,
        priority: int | None = None,
        exclusive: bool | None = None,
        credit: int | None = None,
        tells_lapsed: bool = False,
    ) -> Consumer:
        """As :meth:`tmqp_client.Client.consume`, blocking."""
        result: Consumer = self._call(
            self._wrapped.consume,
            channel,
            queue_id,
            acknowledge=acknowledge,
            join=join,
            filter=filter,
            filter_language=filter_language,
            window=window,
            ack_timeout_s=ack_timeout_s,
            returns=returns,
            priority=priority,
            exclusive=exclusive,
            credit=credit,
            tells_lapsed=tells_lapsed,
        )
        return result

    def temporary_queue(
        self, prefix: str = "temporary", *, acknowledge: AcknowledgeMode = "auto"
    ) -> TemporaryQueue:
        """As :meth:`tmqp_client.Client.temporary_queue`, blocking."""
        result: TemporaryQueue = self._call(
            self._wrapped.temporary_queue, prefix, acknowledge=acknowledge
        )
        return result

    def pull(
        self,
        channel: str,
        queue_id: int,
        count: int,
        *,
        order: str = "fifo",
        clear: PullClear | str = PullClear.NONE,
        info: bool = False,
        timeout_s: float | None = None,
    ) -> Pull:
        """As :meth:`tmqp_client.Client.pull`, blocking."""
        result: Pull = self._call(
            self._wrapped.pull,
            channel,
            queue_id,
            count,
            order=order,
            clear=clear,
            info=info,
            timeout_s=timeout_s,
        )
        return result

    def read_cache(
        self, channel: str, queue_id: int, *, timeout_s: float | None = None
    ) -> bytes | None:
        """As :meth:`tmqp_client.Client.read_cache`, blocking."""
        result: bytes | None = self._call(
            self._wrapped.read_cache, channel, queue_id, timeout_s=timeout_s
        )
        return result

    def unclaimed(self) -> Unclaimed:
        """As :meth:`tmqp_client.Client.unclaimed`, blocking."""
        result: Unclaimed = self._call(self._wrapped.unclaimed)
        return result
