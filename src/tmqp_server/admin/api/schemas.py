"""The schemas of what requests and answers of the API contain, as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tmqp.constants import (
    MAX_QUEUE_ID,
    BindingHttpMethod,
    BindingInteraction,
    BindingType,
)
from tmqp_server.admin.api.consuming import (
    DEFAULT_WINDOW,
    IDLE_S,
    LONGEST_IDLE_S,
    MOST_ANSWERS,
    MOST_WINDOW,
    OUTCOMES,
)
from tmqp_server.admin.api.shapes import COUNTS, STATUS_WORDS
from tmqp_server.doors.http.contents import PUT_BACK_PLACES
from tmqp_server.engine.option_table import (
    ADDRESS,
    CHANNEL_OPTIONS,
    FLAG,
    IDS,
    NUMBER,
    QUEUE_OPTIONS,
    STATUS,
    Option,
)
from tmqp_server.hub.tracing import LONGEST_S
from tmqp_server.replication.view import GROUP_ROLES
from tmqp_server.settings.log import LEVELS
from tmqp_server.settings.routers import ROUTE_METHODS

__all__ = ["SCHEMAS", "schema_of_option"]

_Schema = dict[str, Any]

_TEXT: Final[_Schema] = {"type": "string"}
_FLAG: Final[_Schema] = {"type": "boolean"}
_NUMBER: Final[_Schema] = {"type": "integer"}
_COUNT: Final[_Schema] = {"type": "integer", "minimum": 0}
_REAL: Final[_Schema] = {"type": "number"}
_QUEUE_ID: Final[_Schema] = {"type": "integer", "minimum": 0, "maximum": MAX_QUEUE_ID}
_MAYBE_COUNT: Final[_Schema] = {"type": ["integer", "null"]}
_MAYBE_TEXT: Final[_Schema] = {"type": ["string", "null"]}


def _object(needed: _Schema, more: _Schema | None = None, *, closed: bool = False) -> _Schema:
    found: _Schema = {"type": "object", "properties": {**needed, **(more or {})}}
    if needed:
        found["required"] = list(needed)
    if closed:
        found["additionalProperties"] = False
    return found


def _one_of(words: Iterable[str]) -> _Schema:
    return {"type": "string", "enum": list(words)}


def _up_to(most: int) -> _Schema:
    return {"type": "integer", "minimum": 1, "maximum": most}


def _list(item: _Schema) -> _Schema:
    return {"type": "array", "items": item}


_RECORDS: Final[_Schema] = _list({"type": "object"})
_ROLE: Final = _one_of(GROUP_ROLES)
_START: Final = _one_of(("earliest", "latest"))


def _named(name: str) -> _Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _items(name: str) -> _Schema:
    return _object({"items": _list(_named(name))})


def _page(name: str) -> _Schema:
    return _object(
        {
            "items": _list(_named(name)),
            "next": {**_MAYBE_TEXT, "description": "What `after` of the next page is."},
            "total": {**_COUNT, "description": "Items of all pages."},
            "examined": {**_COUNT, "description": "Items that were looked at."},
            "taken_at_ms": _NUMBER,
        }
    )


def schema_of_option(option: Option) -> _Schema:
    """The schema of one option of queues or channels."""
    found: _Schema = {"description": option.meaning}
    if option.kind == STATUS:
        found |= _one_of(sorted(set(STATUS_WORDS.values())))
    elif option.kind == FLAG:
        found |= {"type": "boolean"}
    elif option.kind == NUMBER:
        found |= {"type": "integer", "minimum": option.least}
    elif option.kind == ADDRESS:
        place = _object({"channel": _TEXT, "queue": _QUEUE_ID}, closed=True)
        found |= {"anyOf": [place, {"type": "null"}]}
    elif option.kind == IDS:
        found |= {"type": ["array", "null"], "items": _QUEUE_ID}
    elif option.words:
        found |= _one_of(option.words)
    else:
        found |= {"type": ["string", "null"]}
    return found


def _options(declared: tuple[Option, ...]) -> _Schema:
    return {each.name: schema_of_option(each) for each in declared}


def _words(kind: Any) -> _Schema:
    return _one_of(each.name.lower().replace("_", "-") for each in kind)


_STATUS: Final[_Schema] = _one_of(sorted(set(STATUS_WORDS.values())))
_COUNTS: Final[_Schema] = _object(dict.fromkeys(COUNTS, _COUNT))
_HISTOGRAM: Final[_Schema] = _object(
    {"bounds": _list(_NUMBER), "counts": _list(_COUNT), "sum": _COUNT}
)
_GONE: Final[_Schema] = {"gone": {**_FLAG, "description": "It was there when the list was made."}}

_QUEUE: Final[_Schema] = {
    "channel": _TEXT,
    "queue": _QUEUE_ID,
    "status": _STATUS,
    "waiting": _COUNT,
    "high_priority": _COUNT,
    "spilled": _COUNT,
    "deferred": _COUNT,
    "in_flight": _COUNT,
    "consumers": _COUNT,
    "oldest_age_s": _REAL,
    "bytes": _COUNT,
    "disk_bytes": _COUNT,
    "counts": _COUNTS,
    "last_received_ms": _MAYBE_COUNT,
    "last_sent_ms": _MAYBE_COUNT,
    "options": _object({}, _options(QUEUE_OPTIONS)),
}
_CHANNEL: Final[_Schema] = {
    "name": _TEXT,
    "queues": _list(_QUEUE_ID),
    "consumers": _COUNT,
    "owner": _MAYBE_TEXT,
    "options": _object({}, _options(CHANNEL_OPTIONS)),
    "queue_options": _object({}, _options(QUEUE_OPTIONS)),
}
_CONSUMER: Final[_Schema] = {
    "id": _TEXT,
    "name": _TEXT,
    "type": _TEXT,
    "door": _TEXT,
    "online_ms": _COUNT,
    "authenticated": _FLAG,
    "subscriptions": _COUNT,
    "in_flight": _COUNT,
    "pushed": _COUNT,
    "delivered": _COUNT,
    "acknowledged": _COUNT,
    "negative_acks": _COUNT,
    "ack_timeouts": _COUNT,
    "unknown_acks": _COUNT,
    "blocked": _FLAG,
}
_CLIENT: Final[_Schema] = {
    **_CONSUMER,
    "properties": {"type": "object", "additionalProperties": _TEXT},
}
_SUBSCRIPTION: Final[_Schema] = {
    "channel": _TEXT,
    "queues": _list(_QUEUE_ID),
    "credit": {**_NUMBER, "description": "-1 for no bound."},
    "window": {**_NUMBER, "description": "-1 for no bound."},
    "held": {**_MAYBE_COUNT, "description": "Null if nobody counts that."},
    "ack_timeout_s": _REAL,
    "priority": _NUMBER,
    "filtered": _FLAG,
    "joined_ms": _COUNT,
}
_ROUTER: Final[_Schema] = {
    "name": _TEXT,
    "method": _TEXT,
    "enabled": _FLAG,
}
_BINDING: Final[_Schema] = {
    "kind": _words(BindingType),
    "target": _TEXT,
}
_OF_BINDING: Final[_Schema] = {
    "name": _TEXT,
    "priority": _NUMBER,
    "interaction": _words(BindingInteraction),
    "method": _one_of(ROUTE_METHODS),
    "queue": _QUEUE_ID,
    "content_type": _QUEUE_ID,
    "http_method": _words(BindingHttpMethod),
}
_MESSAGE: Final[_Schema] = {
    "id": _TEXT,
    "source": _TEXT,
    "sequence": _COUNT,
    "state": _one_of(("waiting", "deferred", "in-flight")),
    "attempt": _COUNT,
    "attempts": _COUNT,
    "priority": {"const": "high"},
    "at_ms": _NUMBER,
    "due_at_ms": _NUMBER,
    "expires_at_ms": _NUMBER,
    "headers": _list(_list(_TEXT)),
    "text": {**_TEXT, "description": "The payload, if it is UTF-8."},
    "base64": {**_TEXT, "description": "The payload, if it is not."},
}

#: Every schema by its name.
SCHEMAS: Final[dict[str, _Schema]] = {
    "Problem": _object(
        {"type": _TEXT, "title": _TEXT, "status": _NUMBER, "detail": _TEXT, "instance": _TEXT},
        {"code": {**_NUMBER, "description": "The broker's result code."}},
    ),
    "Server": _object(
        {
            "version": _TEXT,
            "build": _TEXT,
            "python": _TEXT,
            "started_at_ms": _NUMBER,
            "now_ms": _NUMBER,
            "uptime_s": _COUNT,
            "ready": _FLAG,
            "draining": _FLAG,
            "problems": _list(_TEXT),
            "limits_near": _list(_TEXT),
            "channels": _COUNT,
            "queues": _COUNT,
            "queues_without_consumers": _COUNT,
            "clients": _COUNT,
            "connections": _COUNT,
            "connections_blocked": _COUNT,
            "outbound_waiting_bytes": _COUNT,
            "messages": _object(
                {
                    "waiting": _COUNT,
                    "spilled": _COUNT,
                    "deferred": _COUNT,
                    "in_flight": _COUNT,
                    "oldest_age_s": _REAL,
                }
            ),
            "counts": {"type": "object", "additionalProperties": _COUNT},
            "doors": {
                "type": "object",
                "additionalProperties": {"type": "object", "additionalProperties": _COUNT},
            },
            "memory_used_bytes": _COUNT,
            "memory_limit_bytes": _COUNT,
            "process": {"type": "object"},
        }
    ),
    "Limits": _object(
        {
            "items": _list(
                _object({"name": _TEXT, "used": _MAYBE_COUNT, "limit": _NUMBER, "near": _FLAG})
            )
        }
    ),
    "Settings": _object({"items": _list(_object({"name": _TEXT, "value": {}}))}),
    "Storage": _object(
        {
            "stored": _FLAG,
            "saving": _FLAG,
            "problem": _MAYBE_TEXT,
            "failures": _COUNT,
            "bytes": {"type": ["number", "null"]},
            "free_bytes": {"type": ["number", "null"]},
            "floor_bytes": _COUNT,
            "write_us": _HISTOGRAM,
            "read_us": _HISTOGRAM,
            "batch_messages": _HISTOGRAM,
        }
    ),
    "Draining": _object({}, {"stop": {**_FLAG, "default": False}}, closed=True),
    "Drained": _object({"draining": _FLAG, "stop": _FLAG}),
    "Reloaded": _object({"reloads": {"type": "object", "additionalProperties": _COUNT}}),
    "Slow": _object(
        {
            "slow_turn_ms": _REAL,
            "count": _COUNT,
            "turns": _list(
                _object(
                    {
                        "at_ms": _COUNT,
                        "took_ms": _REAL,
                        "session": _COUNT,
                        "session_ms": _REAL,
                        "peer": _TEXT,
                    }
                )
            ),
            "consumers": _list(
                _object(
                    {
                        "session": _COUNT,
                        "peer": _TEXT,
                        "waiting_bytes": _COUNT,
                        "blocked_s": _REAL,
                    }
                )
            ),
        }
    ),
    "Tracing": _object({}, {"seconds": _up_to(int(LONGEST_S))}, closed=True),
    "Trace": _object(
        {
            "client": _TEXT,
            "running": _FLAG,
            "ends_at_ms": _COUNT,
            "count": _COUNT,
            "lines": _list(
                _object(
                    {
                        "number": _COUNT,
                        "at_ms": _COUNT,
                        "way": _TEXT,
                        "what": _TEXT,
                        "head": {"type": "object"},
                    }
                )
            ),
        }
    ),
    "Audit": _object({"items": _RECORDS}),
    "Health": _object(
        {"alive": _FLAG, "ready": _FLAG, "problems": _list(_TEXT), "storage": _MAYBE_TEXT},
        {"role": _ROLE},
    ),
    "LogIn": {
        "oneOf": [
            _object({"token": {**_TEXT, "minLength": 1}}, closed=True),
            _object(
                {"user": {**_TEXT, "minLength": 1}, "password": {**_TEXT, "minLength": 1}},
                closed=True,
            ),
        ]
    },
    "LoggedIn": _object({"csrf": _TEXT, "idle_s": _COUNT, "client": _TEXT}),
    "Session": _object(
        {
            "client": _TEXT,
            "session": _FLAG,
            "csrf": _MAYBE_TEXT,
            "ends_in_s": _MAYBE_COUNT,
        }
    ),
    "Rights": _object({"rights": _list(_TEXT)}),
    "Channel": _object(_CHANNEL),
    "ChannelItem": _object({"name": _TEXT}, {**_CHANNEL, **_GONE}),
    "ChannelList": _page("ChannelItem"),
    "ChannelName": _object({"name": _TEXT}),
    "ChannelOptions": _object(
        {},
        {
            **_options(CHANNEL_OPTIONS),
            "queue_options": _object({}, _options(QUEUE_OPTIONS), closed=True),
        },
        closed=True,
    ),
    "Queue": _object(_QUEUE),
    "QueueItem": _object({"channel": _TEXT, "queue": _QUEUE_ID}, {**_QUEUE, **_GONE}),
    "QueueList": _page("QueueItem"),
    "QueueName": _object({"channel": _TEXT, "queue": _QUEUE_ID}),
    "QueueOptions": _object({}, _options(QUEUE_OPTIONS), closed=True),
    "Consumer": _object(_CONSUMER),
    "ConsumerList": _items("Consumer"),
    "ClientItem": _object({"id": _TEXT}, {**_CLIENT, **_GONE}),
    "ClientList": _page("ClientItem"),
    "Client": _object(
        {**_CLIENT, "joined": _list(_object(_SUBSCRIPTION)), "joined_hidden": _COUNT}
    ),
    "Node": _object(
        {
            "id": _TEXT,
            "name": _TEXT,
            "host": _TEXT,
            "slave": _FLAG,
            "connected": _FLAG,
            "lifetime_ms": _COUNT,
        },
        {"role": _ROLE, "shard": _COUNT, "epoch": _COUNT, "applied": _COUNT, "behind": _COUNT},
    ),
    "NodeList": _items("Node"),
    "Router": _object(_ROUTER),
    "RouterList": _items("Router"),
    "RouterOptions": _object({}, {"method": _one_of(ROUTE_METHODS), "enabled": _FLAG}, closed=True),
    "RouterChanges": _object({"enabled": _FLAG}, closed=True),
    "Binding": _object(_BINDING, _OF_BINDING, closed=True),
    "BindingList": _items("Binding"),
    "Message": _object({}, _MESSAGE),
    "MessageList": _items("Message"),
    "LogLines": _object(
        {
            "items": _list(
                _object(
                    {
                        "number": _COUNT,
                        "at_ms": _NUMBER,
                        "level": _TEXT,
                        "logger": _TEXT,
                        "text": _TEXT,
                    },
                    {"exception": _TEXT},
                )
            ),
            "last": {**_COUNT, "description": "The number of the last line that there is."},
        }
    ),
    "LogLevel": _object({"level": _TEXT}),
    "NewLogLevel": _object({"level": _one_of(LEVELS)}, closed=True),
    "Tls": _object(
        {
            "enabled": _FLAG,
            "certificate_expires_at_ms": {"type": ["integer", "null"]},
            "minimum_version": _MAYBE_TEXT,
            "ciphers": _MAYBE_TEXT,
            "client_certificates": _MAYBE_TEXT,
        }
    ),
    "Backup": _object(
        {
            "possible": _FLAG,
            "last": {
                "anyOf": [
                    {"type": "null"},
                    _object(
                        {
                            "name": {**_TEXT, "description": "Of its directory."},
                            "running": _FLAG,
                            "complete": _FLAG,
                            "began_at_ms": _NUMBER,
                            "ended_at_ms": {"type": ["integer", "null"]},
                            "said": {**_TEXT, "description": "What the copying has said."},
                        }
                    ),
                ]
            },
        }
    ),
    "NewConsumer": _object(
        {"channel": {**_TEXT, "minLength": 1}},
        {
            "window": {
                **_up_to(MOST_WINDOW),
                "description": "So many may be unacknowledged at a time.",
                "default": DEFAULT_WINDOW,
            },
            "ack_timeout_ms": {
                **_COUNT,
                "description": "Time to acknowledge; 0: as the queue has.",
                "default": 0,
            },
            "idle_s": {
                **_up_to(LONGEST_IDLE_S),
                "description": "It ends when so long nothing was asked of it.",
                "default": IDLE_S,
            },
            "filter": _TEXT,
            "filter_language": _TEXT,
        },
        closed=True,
    ),
    "HttpConsumer": _object(
        {
            "id": _TEXT,
            "channel": _TEXT,
            "waiting": {**_COUNT, "description": "Delivered, and not yet fetched."},
            "idle_s": _COUNT,
            "ends_in_s": _COUNT,
        }
    ),
    "HttpConsumers": _items("HttpConsumer"),
    "Fetched": _object(
        {
            "items": _list(
                _object(
                    {
                        "queue": _QUEUE_ID,
                        "ack": {**_FLAG, "description": "It must be answered for."},
                        "id": _TEXT,
                    },
                    _MESSAGE,
                )
            )
        }
    ),
    "Answers": _object(
        {
            "items": {
                **_list(
                    _object(
                        {"id": {**_TEXT, "minLength": 1}},
                        {
                            "queue": {**_QUEUE_ID, "default": 0},
                            "outcome": {**_one_of(OUTCOMES), "default": "ack"},
                            "reason": {**_TEXT, "description": "Why it is refused."},
                            "put_back": _one_of(PUT_BACK_PLACES),
                            "delay_ms": _COUNT,
                            "timeout_ms": {**_COUNT, "description": "More time, from now on."},
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
    "Answered": _object(
        {
            "items": _list(
                _object(
                    {
                        "id": _TEXT,
                        "queue": _QUEUE_ID,
                        "code": {**_COUNT, "description": "0; 404 if it is not the client's."},
                    }
                )
            )
        }
    ),
    "Published": _object({"id": _TEXT}, {"receivers": _COUNT}),
    "Payload": {"description": "The payload of the message, of any type."},
    "Transfer": _object(
        {},
        {
            "to": {
                "description": "`first`, where each dead letter was first, or a queue.",
                "anyOf": [
                    {"const": "first"},
                    _object({"channel": _TEXT, "queue": _QUEUE_ID}, closed=True),
                ],
                "default": "first",
            },
            "ids": {**_list({**_TEXT, "minLength": 1}), "minItems": 1, "maxItems": 1_000},
            "count": {**_up_to(10_000), "default": 1_000},
            "filter": _TEXT,
            "filter_language": _TEXT,
            "dry_run": {**_FLAG, "default": False, "description": "Only count."},
        },
        closed=True,
    ),
    "TransferList": _items("Transferred"),
    "Transferred": _object(
        {
            "id": _TEXT,
            "count": {**_COUNT, "description": "Messages that fit."},
            "moved": _COUNT,
            "examined": _COUNT,
            "failed": _list(_object({"reason": _TEXT, "count": _COUNT})),
            "targets": _list(_object({"channel": _TEXT, "queue": _QUEUE_ID, "count": _COUNT})),
            "more": {**_FLAG, "description": "There may be more that fit."},
            "stopped": {**_FLAG, "description": "Somebody has stopped it."},
            "running": _FLAG,
        }
    ),
    "Record": {"type": "object"},
    "RecordList": _items("Record"),
    "CursorChange": _object({}, {"start": _START, "sequence": _COUNT}, closed=True),
    "FeedOptions": _object({}, {"filter": _TEXT, "filter_language": _TEXT}, closed=True),
    "Definitions": _object({}, {"channels": _RECORDS, "routers": _RECORDS}, closed=True),
    "Imported": _object(
        {
            "created": _list(_TEXT),
            "changed": _list(_TEXT),
            "unchanged": _COUNT,
            "failed": _list(_object({"what": _TEXT, "reason": _TEXT})),
            "dry_run": _FLAG,
        }
    ),
    "Events": {**_TEXT, "description": "A stream of server-sent events."},
    "OpenApi": {"type": "object"},
}
