"""The client's own operations, blocking.

Made by ``python -m tools.make_sync``: edit the async side, and run that.
"""

from __future__ import annotations

from tmqp.address import Address
from tmqp.constants import PullClear, QueueStatus
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client._core.requests import Headers, Payload
from tmqp_client.client import Client
from tmqp_client.connection_events import ConnectionState
from tmqp_client.consumer import AcknowledgeMode
from tmqp_client.statistics import ClientStatistics
from tmqp_client.sync._blocking import Blocking
from tmqp_client.sync._generated_received import ConnectionEvents, Consumer, Pull, Unclaimed

__all__ = ["Own"]


class Own(Blocking[Client]):
    """The blocking twin of :class:`tmqp_client.Client`."""

    @property
    def client_id(self) -> str:
        """As :attr:`tmqp_client.Client.client_id`."""
        return self._twin.client_id

    @property
    def connected(self) -> bool:
        """As :attr:`tmqp_client.Client.connected`."""
        return self._twin.connected

    @property
    def state(self) -> ConnectionState:
        """As :attr:`tmqp_client.Client.state`."""
        return self._twin.state

    @property
    def address(self) -> Address | None:
        """As :attr:`tmqp_client.Client.address`."""
        return self._twin.address

    def connection_events(self) -> ConnectionEvents:
        """As :meth:`tmqp_client.Client.connection_events`, blocking."""
        result: ConnectionEvents = self._call(self._twin.connection_events)
        return result

    def statistics(self) -> ClientStatistics:
        """As :meth:`tmqp_client.Client.statistics`."""
        return self._twin.statistics()

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
            self._twin.create_channel, name, options, exist_ok=exist_ok, timeout_s=timeout_s
        )
        return result

    def remove_channel(self, name: str, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.remove_channel`, blocking."""
        self._call(self._twin.remove_channel, name, timeout_s=timeout_s)

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
            self._twin.create_queue,
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
        self._call(self._twin.remove_queue, channel, queue_id, timeout_s=timeout_s)

    def join(self, channel: str, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.join`, blocking."""
        self._call(self._twin.join, channel, timeout_s=timeout_s)

    def leave(self, channel: str, *, timeout_s: float | None = None) -> None:
        """As :meth:`tmqp_client.Client.leave`, blocking."""
        self._call(self._twin.leave, channel, timeout_s=timeout_s)

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
    ) -> str:
        """As :meth:`tmqp_client.Client.push`, blocking."""
        result: str = self._call(
            self._twin.push,
            channel,
            queue_id,
            payload,
            headers=headers,
            high_priority=high_priority,
            wait=wait,
            message_id=message_id,
            timeout_s=timeout_s,
            nowait=nowait,
        )
        return result

    def ping(self, *, timeout_s: float | None = None) -> float:
        """As :meth:`tmqp_client.Client.ping`, blocking."""
        result: float = self._call(self._twin.ping, timeout_s=timeout_s)
        return result

    def consume(
        self,
        channel: str,
        queue_id: int | None = None,
        *,
        acknowledge: AcknowledgeMode = "auto",
        join: bool = True,
    ) -> Consumer:
        """As :meth:`tmqp_client.Client.consume`, blocking."""
        result: Consumer = self._call(
            self._twin.consume, channel, queue_id, acknowledge=acknowledge, join=join
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
            self._twin.pull,
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
            self._twin.read_cache, channel, queue_id, timeout_s=timeout_s
        )
        return result

    def unclaimed(self) -> Unclaimed:
        """As :meth:`tmqp_client.Client.unclaimed`, blocking."""
        result: Unclaimed = self._call(self._twin.unclaimed)
        return result
