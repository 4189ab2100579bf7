"""The stored form of channels, queues and routers: JSON with a version.

A reader ignores unknown names and uses the default for missing names, so that an older server can
read a newer server's store as far as possible, and vice versa.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tmqp_server.engine.model.feeds import KeptFeed
from tmqp_server.engine.options import BindingOptions, ChannelOptions, QueueOptions
from tmqp_server.engine.options.table import (
    ADDRESS,
    CHANNEL_OPTIONS,
    IDS,
    QUEUE_OPTIONS,
    Option,
)
from tmqp_server.engine.records import Record, field_names
from tmqp_server.storage.port import Retention, StoreError

__all__ = [
    "KeptQueue",
    "channel_from_bytes",
    "channel_to_bytes",
    "queue_from_bytes",
    "queue_to_bytes",
    "retention_of",
    "router_from_bytes",
    "router_to_bytes",
]

#: Increases when older readers cannot understand the form.
_VERSION: Final = 1


class KeptQueue:
    """A queue's options, the sequence up to which its messages may have been sent, its feeds."""

    __slots__ = ("options", "suspect", "feeds")

    def __init__(self, options: QueueOptions, suspect: int, feeds: list[KeptFeed]) -> None:
        self.options = options
        self.suspect = suspect
        self.feeds = feeds


def channel_to_bytes(options: ChannelOptions) -> bytes:
    """Encode a channel's options."""
    values = _kept(options, CHANNEL_OPTIONS)
    values["queue"] = _kept(options.queue, QUEUE_OPTIONS)
    return _dump(values)


def channel_from_bytes(kept: bytes) -> ChannelOptions:
    """Decode a channel's options.

    :raises StoreError: when the data is not valid.
    """
    values = _load(kept, "a channel")
    queue = values.pop("queue", {})
    known: ChannelOptions = _options(ChannelOptions, CHANNEL_OPTIONS, values, "a channel")
    known.queue = _options(QueueOptions, QUEUE_OPTIONS, queue, "a queue")
    return known


def queue_to_bytes(
    options: QueueOptions, suspect: int, feeds: list[KeptFeed] | None = None
) -> bytes:
    """Encode a queue's options and feeds; ``suspect`` is as in ``RestoreQueue``."""
    values = _kept(options, QUEUE_OPTIONS)
    values["suspect"] = suspect
    if feeds:
        values["feeds"] = [_values(each) for each in feeds]
    return _dump(values)


def queue_from_bytes(kept: bytes) -> KeptQueue:
    """Decode a queue.

    :raises StoreError: when the data is not valid.
    """
    values = _load(kept, "a queue")
    suspect = values.pop("suspect", 0)
    feeds = [_made(KeptFeed, each, "a feed") for each in values.pop("feeds", [])]
    options = _options(QueueOptions, QUEUE_OPTIONS, values, "a queue")
    return KeptQueue(options, int(suspect), feeds)


def retention_of(options: QueueOptions) -> Retention:
    """The retention of a queue with these options."""
    return Retention(options.retain_bytes, options.retain_time_ms, options.retain_for_readers)


def router_to_bytes(method: int, bindings: list[BindingOptions], enabled: bool) -> bytes:
    """Encode a router's method, its bindings, and whether it is enabled."""
    values = [_values(each) for each in bindings]
    return _dump({"method": method, "bindings": values, "enabled": enabled})


def router_from_bytes(kept: bytes) -> tuple[int, list[BindingOptions], bool]:
    """Decode a router.

    :raises StoreError: when the data is not valid.
    """
    values = _load(kept, "a router")
    bindings: list[BindingOptions] = []
    for each in values.get("bindings", []):
        bindings.append(_made(BindingOptions, each, "a binding"))
    return int(values.get("method", 0)), bindings, bool(values.get("enabled", True))


def _kept(options: Record, declared: tuple[Option, ...]) -> dict[str, Any]:
    """The values of options by their stored names."""
    return {each.kept: getattr(options, each.name) for each in declared}


def _options(
    kind: type[Any], declared: tuple[Option, ...], values: dict[str, Any], what: str
) -> Any:
    """Read options from their stored values; lists become tuples, and an address its channel and
    queue.
    """
    given: dict[str, Any] = {}
    for each in declared:
        if each.kept not in values:
            continue
        value = values[each.kept]
        if value is not None and each.kind == IDS:
            value = tuple(value)
        elif value is not None and each.kind == ADDRESS:
            value = (str(value[0]), int(value[1]))
        given[each.name] = value
    return _made(kind, given, what)


def _values(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in field_names(type(record))}


def _made(kind: type[Any], values: dict[str, Any], what: str) -> Any:
    names = field_names(kind)
    try:
        return kind(**{name: value for name, value in values.items() if name in names})
    except (TypeError, ValueError) as error:
        raise StoreError(f"the options of {what} cannot be read: {error}") from error


def _dump(values: dict[str, Any]) -> bytes:
    return json.dumps({"version": _VERSION, **values}, separators=(",", ":")).encode()


def _load(kept: bytes, what: str) -> dict[str, Any]:
    try:
        values = json.loads(kept)
    except ValueError as error:
        raise StoreError(f"the options of {what} cannot be read: {error}") from error
    if not isinstance(values, dict) or values.pop("version", 0) != _VERSION:
        raise StoreError(f"the options of {what} are from a newer server, or invalid")
    return values
