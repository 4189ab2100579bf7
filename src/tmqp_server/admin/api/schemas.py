"""The schemas of what requests and answers of the API contain, as JSON Schema."""

from __future__ import annotations

from typing import Any, Final

from tmqp.constants import (
    BindingHttpMethod,
    BindingInteraction,
    BindingType,
)
from tmqp_server.admin.api.batches import MOST_MESSAGES
from tmqp_server.admin.api.cell_schemas import CELL_SCHEMAS
from tmqp_server.admin.api.consuming import (
    DEFAULT_WINDOW,
    IDLE_S,
    LONGEST_IDLE_S,
    MOST_ANSWERS,
    MOST_WINDOW,
    OUTCOMES,
)
from tmqp_server.admin.api.schema_parts import (
    COUNT,
    MAYBE_COUNT,
    MAYBE_REAL,
    MAYBE_TEXT,
    QUEUE_ID,
    REAL,
    RECORDS,
    TEXT,
    TRUTH,
    WHOLE,
    Schema,
    list_of,
    object_of,
    one_of,
    up_to,
)
from tmqp_server.admin.api.server_schemas import ROLE, SERVER_SCHEMAS
from tmqp_server.admin.api.shapes import COUNTS, STATUS_WORDS
from tmqp_server.doors.http.contents import MOST_DELAY_MS, PUT_BACK_PLACES
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
from tmqp_server.settings.routers import ROUTE_METHODS

__all__ = ["SCHEMAS", "schema_of_option"]

_START: Final = one_of(("earliest", "latest"))


def _named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _items(name: str) -> Schema:
    return object_of({"items": list_of(_named(name))})


def _page(name: str) -> Schema:
    return object_of(
        {
            "items": list_of(_named(name)),
            "next": {**MAYBE_TEXT, "description": "`after` of the next page."},
            "total": {**COUNT, "description": "Items of all pages."},
            "examined": {**COUNT, "description": "Examined items."},
            "taken_at_ms": WHOLE,
        }
    )


def schema_of_option(option: Option) -> Schema:
    """The schema of one option of queues or channels."""
    found: Schema = {"description": option.meaning}
    if option.kind == STATUS:
        found |= one_of(sorted(set(STATUS_WORDS.values())))
    elif option.kind == FLAG:
        found |= {"type": "boolean"}
    elif option.kind == NUMBER:
        found |= {"type": "integer", "minimum": option.least}
    elif option.kind == ADDRESS:
        place = object_of({"channel": TEXT, "queue": QUEUE_ID}, closed=True)
        found |= {"anyOf": [place, {"type": "null"}]}
    elif option.kind == IDS:
        found |= {"type": ["array", "null"], "items": QUEUE_ID}
    elif option.words:
        found |= one_of(option.words)
    else:
        found |= {"type": ["string", "null"]}
    return found


def _options(declared: tuple[Option, ...]) -> Schema:
    return {each.name: schema_of_option(each) for each in declared}


def _words(kind: Any) -> Schema:
    return one_of(each.name.lower().replace("_", "-") for each in kind)


_STATUS: Final[Schema] = one_of(sorted(set(STATUS_WORDS.values())))
_COUNTS: Final[Schema] = object_of(dict.fromkeys(COUNTS, COUNT))
_GONE: Final[Schema] = {"gone": {**TRUTH, "description": "It was removed after the list was made."}}

_QUEUE: Final[Schema] = {
    "channel": TEXT,
    "queue": QUEUE_ID,
    "status": _STATUS,
    "waiting": COUNT,
    "high_priority": COUNT,
    "spilled": COUNT,
    "deferred": COUNT,
    "in_flight": COUNT,
    "consumers": COUNT,
    "oldest_age_s": REAL,
    "bytes": COUNT,
    "disk_bytes": COUNT,
    "counts": _COUNTS,
    "last_sequence": {**COUNT, "description": "The sequence of the latest message."},
    "last_received_ms": MAYBE_COUNT,
    "last_sent_ms": MAYBE_COUNT,
    "options": object_of({}, _options(QUEUE_OPTIONS)),
}
_CHANNEL: Final[Schema] = {
    "name": TEXT,
    "queues": list_of(QUEUE_ID),
    "consumers": COUNT,
    "owner": MAYBE_TEXT,
    "options": object_of({}, _options(CHANNEL_OPTIONS)),
    "queue_options": object_of({}, _options(QUEUE_OPTIONS)),
}
_CONSUMER: Final[Schema] = {
    "id": TEXT,
    "name": TEXT,
    "type": TEXT,
    "door": TEXT,
    "online_ms": COUNT,
    "authenticated": TRUTH,
    "subscriptions": COUNT,
    "in_flight": COUNT,
    "pushed": COUNT,
    "delivered": COUNT,
    "acknowledged": COUNT,
    "negative_acks": COUNT,
    "ack_timeouts": COUNT,
    "unknown_acks": COUNT,
    "blocked": TRUTH,
}
_CLIENT: Final[Schema] = {
    **_CONSUMER,
    "properties": {"type": "object", "additionalProperties": TEXT},
}
_SUBSCRIPTION: Final[Schema] = {
    "channel": TEXT,
    "queues": list_of(QUEUE_ID),
    "credit": {**WHOLE, "description": "-1 for no bound."},
    "window": {**WHOLE, "description": "-1 for no bound."},
    "held": {**MAYBE_COUNT, "description": "Null if it is not counted."},
    "ack_timeout_s": REAL,
    "priority": WHOLE,
    "filtered": TRUTH,
    "joined_ms": COUNT,
}
_ROUTER: Final[Schema] = {
    "name": TEXT,
    "method": TEXT,
    "enabled": TRUTH,
}
_BINDING: Final[Schema] = {
    "kind": _words(BindingType),
    "target": TEXT,
}
_OF_BINDING: Final[Schema] = {
    "name": TEXT,
    "priority": WHOLE,
    "interaction": _words(BindingInteraction),
    "method": one_of(ROUTE_METHODS),
    "queue": QUEUE_ID,
    "content_type": QUEUE_ID,
    "http_method": _words(BindingHttpMethod),
}
_MESSAGE: Final[Schema] = {
    "id": TEXT,
    "source": TEXT,
    "sequence": COUNT,
    "state": one_of(("waiting", "deferred", "in-flight")),
    "attempt": COUNT,
    "attempts": COUNT,
    "priority": {"const": "high"},
    "at_ms": WHOLE,
    "due_at_ms": WHOLE,
    "expires_at_ms": WHOLE,
    "headers": list_of(list_of(TEXT)),
    "text": {**TEXT, "description": "The payload, if it is UTF-8."},
    "base64": {**TEXT, "description": "The payload, if it is not."},
}

#: A message to publish.
_NEW_MESSAGE: Final[Schema] = {
    "id": TEXT,
    "text": {**TEXT, "description": "The payload; or base64."},
    "base64": TEXT,
    "headers": {"type": "object", "additionalProperties": TEXT},
    "priority": one_of(("normal", "high")),
    "delay_ms": {**COUNT, "maximum": MOST_DELAY_MS},
    "expires_ms": {**COUNT, "maximum": MOST_DELAY_MS},
}

#: Every schema by its name.
SCHEMAS: Final[dict[str, Schema]] = {
    **SERVER_SCHEMAS,
    **CELL_SCHEMAS,
    "Problem": object_of(
        {"type": TEXT, "title": TEXT, "status": WHOLE, "detail": TEXT, "instance": TEXT},
        {"code": {**WHOLE, "description": "The broker's result code."}},
    ),
    "LogIn": {
        "oneOf": [
            object_of({"token": {**TEXT, "minLength": 1}}, closed=True),
            object_of(
                {"user": {**TEXT, "minLength": 1}, "password": {**TEXT, "minLength": 1}},
                closed=True,
            ),
        ]
    },
    "LoggedIn": object_of({"csrf": TEXT, "idle_s": COUNT, "client": TEXT}),
    "Session": object_of(
        {
            "client": TEXT,
            "session": TRUTH,
            "csrf": MAYBE_TEXT,
            "ends_in_s": MAYBE_COUNT,
        }
    ),
    "Rights": object_of({"rights": list_of(TEXT)}),
    "Channel": object_of(_CHANNEL),
    "ChannelItem": object_of({"name": TEXT}, {**_CHANNEL, **_GONE}),
    "ChannelList": _page("ChannelItem"),
    "ChannelName": object_of({"name": TEXT}),
    "ChannelOptions": object_of(
        {},
        {
            **_options(CHANNEL_OPTIONS),
            "queue_options": object_of({}, _options(QUEUE_OPTIONS), closed=True),
        },
        closed=True,
    ),
    "Queue": object_of(_QUEUE),
    "QueueItem": object_of({"channel": TEXT, "queue": QUEUE_ID}, {**_QUEUE, **_GONE}),
    "QueueList": _page("QueueItem"),
    "QueueName": object_of({"channel": TEXT, "queue": QUEUE_ID}),
    "QueueOptions": object_of({}, _options(QUEUE_OPTIONS), closed=True),
    "Consumer": object_of(_CONSUMER),
    "ConsumerList": _items("Consumer"),
    "ClientItem": object_of({"id": TEXT}, {**_CLIENT, **_GONE}),
    "ClientList": _page("ClientItem"),
    "Client": object_of(
        {
            **_CLIENT,
            "joined": list_of(object_of(_SUBSCRIPTION)),
            "joined_hidden": COUNT,
            "session": COUNT,
            "address": TEXT,
            "blocked_s": MAYBE_REAL,
        }
    ),
    "Node": object_of(
        {
            "id": TEXT,
            "name": TEXT,
            "host": TEXT,
            "slave": TRUTH,
            "connected": TRUTH,
            "lifetime_ms": COUNT,
        },
        {"role": ROLE, "shard": COUNT, "epoch": COUNT, "applied": COUNT, "behind": COUNT},
    ),
    "NodeList": _items("Node"),
    "Router": object_of(_ROUTER),
    "RouterList": _items("Router"),
    "RouterOptions": object_of(
        {}, {"method": one_of(ROUTE_METHODS), "enabled": TRUTH}, closed=True
    ),
    "RouterChanges": object_of({"enabled": TRUTH}, closed=True),
    "Binding": object_of(_BINDING, _OF_BINDING, closed=True),
    "BindingList": _items("Binding"),
    "Message": object_of({}, _MESSAGE),
    "MessageList": _items("Message"),
    "NewConsumer": object_of(
        {"channel": {**TEXT, "minLength": 1}},
        {
            "window": {
                **up_to(MOST_WINDOW),
                "description": "The most unacknowledged messages at a time.",
                "default": DEFAULT_WINDOW,
            },
            "ack_timeout_ms": {
                **COUNT,
                "description": "Time to acknowledge; 0 for the queue's timeout.",
                "default": 0,
            },
            "idle_s": {
                **up_to(LONGEST_IDLE_S),
                "description": "It ends after this time without a request.",
                "default": IDLE_S,
            },
            "filter": TEXT,
            "filter_language": TEXT,
        },
        closed=True,
    ),
    "HttpConsumer": object_of(
        {
            "id": TEXT,
            "channel": TEXT,
            "waiting": {**COUNT, "description": "Delivered, and not yet fetched."},
            "idle_s": COUNT,
            "ends_in_s": COUNT,
        }
    ),
    "HttpConsumers": _items("HttpConsumer"),
    "Fetched": object_of(
        {
            "items": list_of(
                object_of(
                    {
                        "queue": QUEUE_ID,
                        "ack": {**TRUTH, "description": "It must be acknowledged."},
                        "id": TEXT,
                    },
                    _MESSAGE,
                )
            )
        }
    ),
    "Answers": object_of(
        {
            "items": {
                **list_of(
                    object_of(
                        {"id": {**TEXT, "minLength": 1}},
                        {
                            "queue": {**QUEUE_ID, "default": 0},
                            "outcome": {**one_of(OUTCOMES), "default": "ack"},
                            "reason": {**TEXT, "description": "Why it is refused."},
                            "put_back": one_of(PUT_BACK_PLACES),
                            "delay_ms": COUNT,
                            "timeout_ms": {**COUNT, "description": "More time, from now on."},
                        },
                        closed=True,
                    )
                ),
                "minItems": 1,
                "maxItems": MOST_ANSWERS,
            }
        },
        closed=True,
    ),
    "Answered": object_of(
        {
            "items": list_of(
                object_of(
                    {
                        "id": TEXT,
                        "queue": QUEUE_ID,
                        "code": {
                            **COUNT,
                            "description": "0; 404 if it is not in flight to the client.",
                        },
                    }
                )
            )
        }
    ),
    "Published": object_of({"id": TEXT}, {"receivers": COUNT}),
    "NewBatch": object_of(
        {
            "items": {
                **list_of(object_of({}, _NEW_MESSAGE, closed=True)),
                "minItems": 1,
                "maxItems": MOST_MESSAGES,
            }
        },
        closed=True,
    ),
    "PublishedBatch": object_of({"ids": list_of(TEXT)}),
    "Payload": {"description": "The payload of the message, of any type."},
    "Transfer": object_of(
        {},
        {
            "to": {
                "description": "`first` for the original queue of each dead letter, or a queue.",
                "anyOf": [
                    {"const": "first"},
                    object_of({"channel": TEXT, "queue": QUEUE_ID}, closed=True),
                ],
                "default": "first",
            },
            "ids": {**list_of({**TEXT, "minLength": 1}), "minItems": 1, "maxItems": 1_000},
            "count": {**up_to(10_000), "default": 1_000},
            "filter": TEXT,
            "filter_language": TEXT,
            "dry_run": {**TRUTH, "default": False, "description": "Only count."},
        },
        closed=True,
    ),
    "TransferList": _items("Transferred"),
    "Transferred": object_of(
        {
            "id": TEXT,
            "count": {**COUNT, "description": "Matching messages."},
            "moved": COUNT,
            "examined": COUNT,
            "failed": list_of(object_of({"reason": TEXT, "count": COUNT})),
            "targets": list_of(object_of({"channel": TEXT, "queue": QUEUE_ID, "count": COUNT})),
            "more": {**TRUTH, "description": "There may be more matching messages."},
            "stopped": {**TRUTH, "description": "It was stopped by a request."},
            "running": TRUTH,
        }
    ),
    "Record": {"type": "object"},
    "RecordList": _items("Record"),
    "CursorChange": object_of({}, {"start": _START, "sequence": COUNT}, closed=True),
    "FeedOptions": object_of({}, {"filter": TEXT, "filter_language": TEXT}, closed=True),
    "Definitions": object_of({}, {"channels": RECORDS, "routers": RECORDS}, closed=True),
    "Imported": object_of(
        {
            "created": list_of(TEXT),
            "changed": list_of(TEXT),
            "unchanged": COUNT,
            "failed": list_of(object_of({"what": TEXT, "reason": TEXT})),
            "dry_run": TRUTH,
        }
    ),
    "Events": {**TEXT, "description": "A stream of server-sent events."},
    "OpenApi": {"type": "object"},
}
