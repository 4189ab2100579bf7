"""The values of a queue's options as records, made by ``python -m tools.make_options``.

Edit ``src/tmqp/models/options.py`` and ``table.py``, which declare the options.
"""

from __future__ import annotations

from tmqp_server.engine.records import Record

__all__ = ["GivenQueueValues", "QueueValues"]


class QueueValues(Record):
    """All options of one queue."""

    __slots__ = (
        "send_only_first_acquirer",
        "request_acknowledge",
        "acknowledge_timeout_ms",
        "message_timeout_ms",
        "use_message_id",
        "wait_for_acknowledge",
        "hide_client_names",
        "status",
        "delivery_handler",
        "message_limit",
        "message_size_limit",
        "bytes_limit",
        "disk_limit_bytes",
        "when_full",
        "group_keys",
        "priorities",
        "skip_slow_consumers",
        "expired_to_dead_letter",
        "dead_letter",
        "put_back_limit",
        "durable",
        "overflow",
        "ephemeral",
        "memory_limit",
        "retain_bytes",
        "retain_time_ms",
        "retain_for_readers",
        "tag",
    )

    def __init__(
        self,
        *,
        send_only_first_acquirer: bool = False,
        request_acknowledge: bool = True,
        acknowledge_timeout_ms: int = 15000,
        message_timeout_ms: int = 0,
        use_message_id: bool = True,
        wait_for_acknowledge: bool = False,
        hide_client_names: bool = False,
        status: int = 1,
        delivery_handler: str = "ack-if-asked",
        message_limit: int = 0,
        message_size_limit: int = 0,
        bytes_limit: int = 0,
        disk_limit_bytes: int = 0,
        when_full: str = "refuse",
        group_keys: str = "none",
        priorities: str = "two",
        skip_slow_consumers: bool = False,
        expired_to_dead_letter: bool = False,
        dead_letter: tuple[str, int] | None = None,
        put_back_limit: int = 20,
        durable: bool = False,
        overflow: bool = False,
        ephemeral: bool = False,
        memory_limit: int = 0,
        retain_bytes: int = 0,
        retain_time_ms: int = 0,
        retain_for_readers: bool = False,
        tag: str | None = None,
    ) -> None:
        self.send_only_first_acquirer = send_only_first_acquirer
        self.request_acknowledge = request_acknowledge
        self.acknowledge_timeout_ms = acknowledge_timeout_ms
        self.message_timeout_ms = message_timeout_ms
        self.use_message_id = use_message_id
        self.wait_for_acknowledge = wait_for_acknowledge
        self.hide_client_names = hide_client_names
        self.status = status
        self.delivery_handler = delivery_handler
        self.message_limit = message_limit
        self.message_size_limit = message_size_limit
        self.bytes_limit = bytes_limit
        self.disk_limit_bytes = disk_limit_bytes
        self.when_full = when_full
        self.group_keys = group_keys
        self.priorities = priorities
        self.skip_slow_consumers = skip_slow_consumers
        self.expired_to_dead_letter = expired_to_dead_letter
        self.dead_letter = dead_letter
        self.put_back_limit = put_back_limit
        self.durable = durable
        self.overflow = overflow
        self.ephemeral = ephemeral
        self.memory_limit = memory_limit
        self.retain_bytes = retain_bytes
        self.retain_time_ms = retain_time_ms
        self.retain_for_readers = retain_for_readers
        self.tag = tag


class GivenQueueValues(Record):
    """Options of a queue to set, or None."""

    __slots__ = (
        "send_only_first_acquirer",
        "request_acknowledge",
        "acknowledge_timeout_ms",
        "message_timeout_ms",
        "use_message_id",
        "wait_for_acknowledge",
        "hide_client_names",
        "status",
        "delivery_handler",
        "message_limit",
        "message_size_limit",
        "bytes_limit",
        "disk_limit_bytes",
        "when_full",
        "group_keys",
        "priorities",
        "skip_slow_consumers",
        "expired_to_dead_letter",
        "dead_letter",
        "put_back_limit",
        "durable",
        "overflow",
        "ephemeral",
        "memory_limit",
        "retain_bytes",
        "retain_time_ms",
        "retain_for_readers",
        "tag",
    )

    def __init__(
        self,
        *,
        send_only_first_acquirer: bool | None = None,
        request_acknowledge: bool | None = None,
        acknowledge_timeout_ms: int | None = None,
        message_timeout_ms: int | None = None,
        use_message_id: bool | None = None,
        wait_for_acknowledge: bool | None = None,
        hide_client_names: bool | None = None,
        status: int | None = None,
        delivery_handler: str | None = None,
        message_limit: int | None = None,
        message_size_limit: int | None = None,
        bytes_limit: int | None = None,
        disk_limit_bytes: int | None = None,
        when_full: str | None = None,
        group_keys: str | None = None,
        priorities: str | None = None,
        skip_slow_consumers: bool | None = None,
        expired_to_dead_letter: bool | None = None,
        dead_letter: tuple[str, int] | None = None,
        put_back_limit: int | None = None,
        durable: bool | None = None,
        overflow: bool | None = None,
        ephemeral: bool | None = None,
        memory_limit: int | None = None,
        retain_bytes: int | None = None,
        retain_time_ms: int | None = None,
        retain_for_readers: bool | None = None,
        tag: str | None = None,
    ) -> None:
        self.send_only_first_acquirer = send_only_first_acquirer
        self.request_acknowledge = request_acknowledge
        self.acknowledge_timeout_ms = acknowledge_timeout_ms
        self.message_timeout_ms = message_timeout_ms
        self.use_message_id = use_message_id
        self.wait_for_acknowledge = wait_for_acknowledge
        self.hide_client_names = hide_client_names
        self.status = status
        self.delivery_handler = delivery_handler
        self.message_limit = message_limit
        self.message_size_limit = message_size_limit
        self.bytes_limit = bytes_limit
        self.disk_limit_bytes = disk_limit_bytes
        self.when_full = when_full
        self.group_keys = group_keys
        self.priorities = priorities
        self.skip_slow_consumers = skip_slow_consumers
        self.expired_to_dead_letter = expired_to_dead_letter
        self.dead_letter = dead_letter
        self.put_back_limit = put_back_limit
        self.durable = durable
        self.overflow = overflow
        self.ephemeral = ephemeral
        self.memory_limit = memory_limit
        self.retain_bytes = retain_bytes
        self.retain_time_ms = retain_time_ms
        self.retain_for_readers = retain_for_readers
        self.tag = tag
