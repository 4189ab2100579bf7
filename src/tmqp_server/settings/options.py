"""Owns the settings of channels and queues: the defaults, and what is created at the start.

``[channel]`` and ``[queue]`` are what channels and queues start from; ``[[channels]]`` are created
when the server starts, unless they are there.  The keys are the specification's options in the
spelling of the engine; units stand last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from tmqp.constants import MAX_QUEUE_ID, STATUS_HEADER_WORDS
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.settings.checks import (
    ConfigError,
    flag_of,
    known,
    number_of,
    table_of,
    tables_of,
    text_of,
    word_of,
)

__all__ = [
    "CHANNEL_KEYS",
    "QUEUE_KEYS",
    "DeclaredChannel",
    "DeclaredQueue",
    "channel_changes",
    "declared_channels",
    "queue_changes",
]

_FLAGS: Final = (
    "request_acknowledge",
    "use_message_id",
    "wait_for_acknowledge",
    "hide_client_names",
    "send_only_first_acquirer",
    "durable",
    "overflow",
    "ephemeral",
    "retain_for_readers",
)
_NUMBERS: Final = (
    "acknowledge_timeout_ms",
    "message_timeout_ms",
    "message_limit",
    "message_size_limit",
    "put_back_limit",
    "memory_limit",
    "retain_bytes",
    "retain_ms",
)
_TEXTS: Final = ("delivery_handler", "tag")
#: The keys of ``[queue]``.
QUEUE_KEYS: Final = ("status", *_FLAGS, *_NUMBERS, "dead_letter", *_TEXTS)
#: The keys of ``[channel]``.
CHANNEL_KEYS: Final = (
    "allow_multiple_queues",
    "allowed_queues",
    "client_limit",
    "queue_limit",
    "destroy_when_empty",
    "authenticator",
    "event_handler",
)


@attrs.frozen
class DeclaredQueue:
    """A queue to create at the start."""

    queue_id: int
    changes: QueueChanges


@attrs.frozen
class DeclaredChannel:
    """A channel to create at the start, with its queues."""

    name: str
    changes: ChannelChanges
    queues: tuple[DeclaredQueue, ...]


def queue_changes(table: Mapping[str, Any], prefix: str) -> QueueChanges:
    """Read options of a queue; *prefix* is the table's name and a dot.

    :raises ConfigError: for an unknown key or a bad value.
    """
    values = known(table, QUEUE_KEYS, prefix)
    for key, value in values.items():
        name = prefix + key
        if key == "status":
            values[key] = word_of(value, name, STATUS_HEADER_WORDS)
        elif key in _FLAGS:
            values[key] = flag_of(value, name)
        elif key in _NUMBERS:
            values[key] = number_of(value, name)
        elif key == "dead_letter":
            values[key] = _address(value, name)
        else:
            values[key] = text_of(value, name)
    return QueueChanges(**values)


def _address(value: object, key: str) -> tuple[str, int]:
    if not isinstance(value, dict) or set(value) != {"channel", "queue"}:
        raise ConfigError(f'{key} must be like {{ channel = "dead", queue = 1 }}, got {value!r}')
    channel = text_of(value["channel"], f"{key}.channel")
    return channel, number_of(value["queue"], f"{key}.queue", 0, MAX_QUEUE_ID)


def channel_changes(
    table: Mapping[str, Any], prefix: str, queue: QueueChanges | None = None
) -> ChannelChanges:
    """Read options of a channel, whose queues start from *queue*.

    :raises ConfigError: for an unknown key or a bad value.
    """
    values = known(table, CHANNEL_KEYS, prefix)
    for key, value in values.items():
        name = prefix + key
        if key == "allowed_queues":
            if not isinstance(value, list):
                raise ConfigError(f"{name} must be a list of queue ids, got {value!r}")
            values[key] = tuple(number_of(each, name, 0, MAX_QUEUE_ID) for each in value)
        elif key.endswith("_limit"):
            values[key] = number_of(value, name)
        elif key in ("authenticator", "event_handler"):
            values[key] = text_of(value, name)
        else:
            values[key] = flag_of(value, name)
    return ChannelChanges(**values, queue=queue)


def declared_channels(tables: object) -> tuple[DeclaredChannel, ...]:
    """Read ``[[channels]]``: a name, options, ``queue`` defaults and a list of ``queues``.

    :raises ConfigError: for an unknown key, a bad value or a name that stands there twice.
    """
    channels: list[DeclaredChannel] = []
    for number, table in enumerate(tables_of(tables, "channels"), 1):
        values = known(table, ("name", *CHANNEL_KEYS, "queue", "queues"), f"channels[{number}].")
        name = text_of(values.pop("name", None), f"channels[{number}].name")
        if any(name.lower() == each.name.lower() for each in channels):
            raise ConfigError(f"channels: {name!r} stands there twice")
        prefix = f"channels.{name}."
        queue = queue_changes(
            table_of(values.pop("queue", {}), f"{prefix}queue"), f"{prefix}queue."
        )
        queues = _declared_queues(values.pop("queues", []), f"{prefix}queues")
        channels.append(DeclaredChannel(name, channel_changes(values, prefix, queue), queues))
    return tuple(channels)


def _declared_queues(tables: object, key: str) -> tuple[DeclaredQueue, ...]:
    queues: list[DeclaredQueue] = []
    for table in tables_of(tables, key):
        values = dict(known(table, ("id", *QUEUE_KEYS), f"{key}."))
        queue_id = number_of(values.pop("id", None), f"{key}.id", 0, MAX_QUEUE_ID)
        if any(queue_id == each.queue_id for each in queues):
            raise ConfigError(f"{key}: the queue {queue_id} stands there twice")
        queues.append(DeclaredQueue(queue_id, queue_changes(values, f"{key}.")))
    return tuple(queues)
