"""The settings of channels and queues: the defaults, and those to create at the start.

``[channel]`` and ``[queue]`` are the defaults of channels and queues; ``[[channels]]`` are created
when the server starts, unless they exist.  The keys are the names of the options that
``tmqp.models.options`` declares, with a unit as the last word.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import attrs

from tmqp.constants import MAX_QUEUE_ID, STATUS_HEADER_WORDS
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.engine.options.table import (
    ADDRESS,
    CHANNEL_OPTIONS,
    FLAG,
    IDS,
    NUMBER,
    QUEUE_OPTIONS,
    STATUS,
    Option,
)
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
    "DeclaredFeed",
    "DeclaredQueue",
    "channel_changes",
    "declared_channels",
    "queue_changes",
]

logger = logging.getLogger(__name__)

_QUEUE: Final = {each.name: each for each in QUEUE_OPTIONS}
_CHANNEL: Final = {each.name: each for each in CHANNEL_OPTIONS}
#: The keys of ``[queue]``.
QUEUE_KEYS: Final = tuple(_QUEUE)
#: The keys of ``[channel]``.
CHANNEL_KEYS: Final = tuple(_CHANNEL)
#: Former names of keys, and the current ones.
_OLDER: Final = {
    each.kept: each.name for each in (*QUEUE_OPTIONS, *CHANNEL_OPTIONS) if each.kept != each.name
}


@attrs.frozen
class DeclaredQueue:
    """A queue to create at the start."""

    queue_id: int
    changes: QueueChanges


@attrs.frozen
class DeclaredFeed:
    """A feed to add at the start, from a queue of a channel to another queue."""

    queue_id: int
    target: str
    target_queue: int
    filter: str = ""
    filter_language: str = ""


@attrs.frozen
class DeclaredChannel:
    """A channel to create at the start, with its queues and their feeds."""

    name: str
    changes: ChannelChanges
    queues: tuple[DeclaredQueue, ...]
    feeds: tuple[DeclaredFeed, ...] = ()


def queue_changes(table: Mapping[str, Any], prefix: str) -> QueueChanges:
    """Read options of a queue; *prefix* is the table's name and a dot.

    :raises ConfigError: for an unknown key or a bad value.
    """
    values = known(_renamed(table, prefix), QUEUE_KEYS, prefix)
    given: dict[str, Any] = {
        key: _value_of(_QUEUE[key], value, prefix + key) for key, value in values.items()
    }
    return QueueChanges(**given)


def _renamed(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The table with the current names of its keys."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = _OLDER.get(key, key)
        if name != key and name in table:
            raise ConfigError(f"{prefix}{key} is the older name of {prefix}{name}: give only that")
        if name != key:
            logger.warning("%s%s is now called %s%s; use that name", prefix, key, prefix, name)
        values[name] = value
    return values


def _value_of(option: Option, value: object, key: str) -> object:
    """Read the value of an option, according to its kind."""
    if option.kind == STATUS:
        return word_of(value, key, STATUS_HEADER_WORDS)
    if option.kind == FLAG:
        return flag_of(value, key)
    if option.kind == NUMBER:
        return number_of(value, key)
    if option.kind == ADDRESS:
        return _address(value, key)
    if option.kind == IDS:
        if not isinstance(value, list):
            raise ConfigError(f"{key} must be a list of queue ids, got {value!r}")
        return tuple(number_of(each, key, 0, MAX_QUEUE_ID) for each in value)
    if option.words:
        if not isinstance(value, str) or value not in option.words:
            words = ", ".join(repr(each) for each in option.words)
            raise ConfigError(f"{key} must be one of {words}; got {value!r}")
        return value
    return text_of(value, key)


def _address(value: object, key: str) -> tuple[str, int]:
    if not isinstance(value, dict) or set(value) != {"channel", "queue"}:
        raise ConfigError(f'{key} must be like {{ channel = "dead", queue = 1 }}, got {value!r}')
    channel = text_of(value["channel"], f"{key}.channel")
    return channel, number_of(value["queue"], f"{key}.queue", 0, MAX_QUEUE_ID)


def channel_changes(
    table: Mapping[str, Any], prefix: str, queue: QueueChanges | None = None
) -> ChannelChanges:
    """Read options of a channel; *queue* has the defaults of its queues.

    :raises ConfigError: for an unknown key or a bad value.
    """
    values = known(_renamed(table, prefix), CHANNEL_KEYS, prefix)
    given: dict[str, Any] = {
        key: _value_of(_CHANNEL[key], value, prefix + key) for key, value in values.items()
    }
    return ChannelChanges(**given, queue=queue)


def declared_channels(tables: object) -> tuple[DeclaredChannel, ...]:
    """Read ``[[channels]]``: a name, options, ``queue`` defaults, ``queues`` and ``feeds``.

    :raises ConfigError: for an unknown key, a bad value or a name that is declared twice.
    """
    channels: list[DeclaredChannel] = []
    for number, table in enumerate(tables_of(tables, "channels"), 1):
        keys = ("name", *CHANNEL_KEYS, "queue", "queues", "feeds")
        values = known(table, keys, f"channels[{number}].")
        name = text_of(values.pop("name", None), f"channels[{number}].name")
        if any(name.lower() == each.name.lower() for each in channels):
            raise ConfigError(f"channels: {name!r} is declared twice")
        prefix = f"channels.{name}."
        queue = queue_changes(
            table_of(values.pop("queue", {}), f"{prefix}queue"), f"{prefix}queue."
        )
        queues = _declared_queues(values.pop("queues", []), f"{prefix}queues")
        feeds = _declared_feeds(values.pop("feeds", []), f"{prefix}feeds")
        changes = channel_changes(values, prefix, queue)
        channels.append(DeclaredChannel(name, changes, queues, feeds))
    return tuple(channels)


def _declared_feeds(tables: object, key: str) -> tuple[DeclaredFeed, ...]:
    feeds: list[DeclaredFeed] = []
    keys = ("queue", "target", "target_queue", "filter", "filter_language")
    for table in tables_of(tables, key):
        values = known(table, keys, f"{key}.")
        feed = DeclaredFeed(
            number_of(values.get("queue"), f"{key}.queue", 0, MAX_QUEUE_ID),
            text_of(values.get("target"), f"{key}.target"),
            number_of(values.get("target_queue"), f"{key}.target_queue", 0, MAX_QUEUE_ID),
            _text_or_empty(values, "filter", key),
            _text_or_empty(values, "filter_language", key),
        )
        if feed.filter_language and not feed.filter:
            raise ConfigError(f"{key}.filter_language needs a filter")
        place = (feed.queue_id, feed.target.lower(), feed.target_queue)
        if any(place == (each.queue_id, each.target.lower(), each.target_queue) for each in feeds):
            name = f"{feed.target}/{feed.target_queue}"
            raise ConfigError(
                f"{key}: the feed of queue {feed.queue_id} to {name} is declared twice"
            )
        feeds.append(feed)
    return tuple(feeds)


def _declared_queues(tables: object, key: str) -> tuple[DeclaredQueue, ...]:
    queues: list[DeclaredQueue] = []
    for table in tables_of(tables, key):
        values = known(_renamed(table, f"{key}."), ("id", *QUEUE_KEYS), f"{key}.")
        queue_id = number_of(values.pop("id", None), f"{key}.id", 0, MAX_QUEUE_ID)
        if any(queue_id == each.queue_id for each in queues):
            raise ConfigError(f"{key}: the queue {queue_id} is declared twice")
        queues.append(DeclaredQueue(queue_id, queue_changes(values, f"{key}.")))
    return tuple(queues)


def _text_or_empty(values: Mapping[str, Any], name: str, key: str) -> str:
    return text_of(values[name], f"{key}.{name}") if name in values else ""
