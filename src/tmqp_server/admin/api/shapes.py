"""The broker's snapshots as JSON: names as in the configuration, a unit as the last word, times in
Unix milliseconds.
"""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import STATUS_HEADER_WORDS
from tmqp_server.engine.model.histograms import Histogram
from tmqp_server.engine.model.snapshots import ChannelSnapshot, ClientSnapshot, QueueSnapshot
from tmqp_server.engine.model.surveyed import (
    ClientDetails,
    SubscriptionSnapshot,
    SurveyedClient,
)
from tmqp_server.engine.options.table import (
    ADDRESS,
    CHANNEL_OPTIONS,
    IDS,
    QUEUE_OPTIONS,
    STATUS,
    Option,
)
from tmqp_server.engine.records import Record, field_names

__all__ = [
    "COUNTS",
    "STATUS_WORDS",
    "channel_item",
    "client_details",
    "client_item",
    "consumer_item",
    "histogram_item",
    "queue_item",
    "record_item",
    "unix_ms",
    "values_of_options",
]

#: The word for each status; if there are several, the last one that configurations accept.
STATUS_WORDS: Final[dict[int, str]] = {
    int(status): word for word, status in STATUS_HEADER_WORDS.items()
}

#: The counters of a queue.
COUNTS: Final = (
    "accepted",
    "restored",
    "done",
    "expired",
    "dead",
    "cleared",
    "dropped",
    "received_messages",
    "sent_messages",
    "deliveries",
    "acks",
    "negative_acks",
    "unknown_acks",
    "ack_timeouts",
    "saved_messages",
    "removed_messages",
    "errors",
    "refused",
    "requeued",
    "released",
    "skipped",
    "overflowed",
    "displaced",
    "damaged",
    "starved",
)


def unix_ms(seconds: float | None, offset_s: float) -> int | None:
    """A time of the engine, in Unix milliseconds."""
    return None if seconds is None else int((seconds + offset_s) * 1_000)


def _value(option: Option, value: Any) -> object:
    if option.kind == STATUS:
        return STATUS_WORDS[int(value)]
    if option.kind == ADDRESS:
        return None if value is None else {"channel": value[0], "queue": value[1]}
    if option.kind == IDS:
        return None if value is None else list(value)
    return value


def values_of_options(options: object, declared: tuple[Option, ...]) -> dict[str, object]:
    """Options by their names."""
    return {each.name: _value(each, getattr(options, each.name)) for each in declared}


def queue_item(item: QueueSnapshot, now: float, offset_s: float) -> dict[str, object]:
    """A queue."""
    since = item.oldest_since_s
    return {
        "channel": item.channel,
        "queue": item.queue_id,
        "status": STATUS_WORDS[int(item.options.status)],
        "waiting": item.messages + item.priority_messages,
        "high_priority": item.priority_messages,
        "spilled": item.spilled,
        "deferred": item.deferred,
        "in_flight": item.in_flight,
        "consumers": item.consumers,
        "oldest_age_s": 0.0 if since is None else round(max(now - since, 0.0), 3),
        "bytes": item.bytes,
        "disk_bytes": item.disk_bytes,
        "counts": {name: getattr(item, name) for name in COUNTS},
        "last_sequence": item.last_sequence,
        "last_received_ms": unix_ms(item.last_message_received_s, offset_s),
        "last_sent_ms": unix_ms(item.last_message_sent_s, offset_s),
        "options": values_of_options(item.options, QUEUE_OPTIONS),
    }


def channel_item(item: ChannelSnapshot) -> dict[str, object]:
    """A channel."""
    return {
        "name": item.name,
        "queues": list(item.queues),
        "consumers": item.active_clients,
        "owner": item.owner,
        "options": values_of_options(item.options, CHANNEL_OPTIONS),
        "queue_options": values_of_options(item.options.queue, QUEUE_OPTIONS),
    }


def consumer_item(item: ClientSnapshot) -> dict[str, object]:
    """A client, as lists show it."""
    return {
        "id": item.client_id,
        "name": item.name or "",
        "type": item.client_type or "",
        "door": item.door,
        "online_ms": item.online_ms,
        "authenticated": item.is_authenticated,
        "subscriptions": item.subscriptions,
        "in_flight": item.in_flight,
        "pushed": item.pushed,
        "delivered": item.delivered,
        "acknowledged": item.acknowledged,
        "negative_acks": item.negative_acks,
        "ack_timeouts": item.ack_timeouts,
        "unknown_acks": item.unknown_acks,
        "blocked": item.blocked,
    }


def client_item(item: SurveyedClient) -> dict[str, object]:
    """A client with all its properties."""
    return {**consumer_item(item.client), "properties": item.properties}


def _subscription(item: SubscriptionSnapshot) -> dict[str, object]:
    return {
        "channel": item.channel,
        "queues": list(item.queues),
        "credit": item.credit,
        "window": item.window,
        "held": item.held,
        "ack_timeout_s": item.ack_timeout_s if item.ack_timeout_s < 1e15 else -1,
        "priority": item.priority,
        "filtered": item.filtered,
        "joined_ms": item.joined_ms,
    }


def client_details(item: ClientDetails, visible: frozenset[str]) -> dict[str, object]:
    """A client, and its subscriptions to the channels that the asking client may see."""
    shown = [_subscription(each) for each in item.subscriptions if each.channel in visible]
    hidden = len(item.subscriptions) - len(shown)
    return {**client_item(item.client), "joined": shown, "joined_hidden": hidden}


def record_item(record: object, offset_s: float) -> dict[str, object]:
    """Another record of the engine, with its field names; the queue becomes ``queue``, and times
    become Unix times in milliseconds.
    """
    assert isinstance(record, Record), "the engine answers with records"
    found: dict[str, object] = {}
    for name in field_names(type(record)):
        value = getattr(record, name)
        if name == "at" and isinstance(value, float):
            found["at_ms"] = unix_ms(value, offset_s)
        else:
            found["queue" if name == "queue_id" else name] = value
    return found


def histogram_item(histogram: Histogram) -> dict[str, object]:
    """A histogram: the number of observations up to each bound."""
    return {
        "bounds": list(histogram.bounds),
        "counts": list(histogram.counts),
        "sum": histogram.total,
    }
