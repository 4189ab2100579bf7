"""The schemas of what the API tells of the server itself."""

from __future__ import annotations

from typing import Final

from tmqp_server.admin.api.schema_parts import (
    COUNT,
    HISTOGRAM,
    MAYBE_COUNT,
    MAYBE_REAL,
    MAYBE_TEXT,
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
from tmqp_server.hub.tracing import LONGEST_S
from tmqp_server.replication.view import GROUP_ROLES
from tmqp_server.settings.log import LEVELS

__all__ = ["ROLE", "SERVER_SCHEMAS"]

ROLE: Final = one_of(GROUP_ROLES)
#: The schemas by name.
SERVER_SCHEMAS: Final[dict[str, Schema]] = {
    "Server": object_of(
        {
            "version": TEXT,
            "build": TEXT,
            "python": TEXT,
            "started_at_ms": WHOLE,
            "now_ms": WHOLE,
            "uptime_s": COUNT,
            "ready": TRUTH,
            "draining": TRUTH,
            "saving": {"type": ["boolean", "null"]},
            "role": MAYBE_TEXT,
            "problems": list_of(TEXT),
            "limits_near": list_of(TEXT),
            "channels": COUNT,
            "queues": COUNT,
            "queues_without_consumers": COUNT,
            "clients": COUNT,
            "connections": COUNT,
            "connections_blocked": COUNT,
            "outbound_waiting_bytes": COUNT,
            "messages": object_of(
                {
                    "waiting": COUNT,
                    "spilled": COUNT,
                    "deferred": COUNT,
                    "in_flight": COUNT,
                    "oldest_age_s": REAL,
                }
            ),
            "counts": {"type": "object", "additionalProperties": COUNT},
            "doors": {
                "type": "object",
                "additionalProperties": {"type": "object", "additionalProperties": COUNT},
            },
            "memory_used_bytes": COUNT,
            "memory_limit_bytes": COUNT,
            "disk_bytes": MAYBE_REAL,
            "disk_free_bytes": MAYBE_REAL,
            "disk_floor_bytes": COUNT,
            "lag_us": HISTOGRAM,
            "process": {"type": "object"},
        }
    ),
    "Limits": object_of(
        {
            "items": list_of(
                object_of(
                    {
                        "name": TEXT,
                        "used": MAYBE_COUNT,
                        "limit": WHOLE,
                        "near": TRUTH,
                        "reached": COUNT,
                    }
                )
            )
        }
    ),
    "Settings": object_of({"items": list_of(object_of({"name": TEXT, "value": {}}))}),
    "Storage": object_of(
        {
            "stored": TRUTH,
            "saving": TRUTH,
            "problem": MAYBE_TEXT,
            "failures": COUNT,
            "bytes": MAYBE_REAL,
            "free_bytes": MAYBE_REAL,
            "floor_bytes": COUNT,
            "write_us": HISTOGRAM,
            "sync_us": {"anyOf": [HISTOGRAM, {"type": "null"}]},
            "read_us": HISTOGRAM,
            "batch_messages": HISTOGRAM,
        }
    ),
    "Draining": object_of({}, {"stop": {**TRUTH, "default": False}}, closed=True),
    "Drained": object_of({"draining": TRUTH, "stop": TRUTH}),
    "Reloaded": object_of({"reloads": {"type": "object", "additionalProperties": COUNT}}),
    "Slow": object_of(
        {
            "slow_turn_ms": REAL,
            "count": COUNT,
            "turns": list_of(
                object_of(
                    {
                        "at_ms": COUNT,
                        "took_ms": REAL,
                        "session": COUNT,
                        "session_ms": REAL,
                        "peer": TEXT,
                    }
                )
            ),
            "consumers": list_of(
                object_of(
                    {
                        "session": COUNT,
                        "peer": TEXT,
                        "waiting_bytes": COUNT,
                        "blocked_s": REAL,
                    }
                )
            ),
        }
    ),
    "Tracing": object_of({}, {"seconds": up_to(int(LONGEST_S))}, closed=True),
    "Trace": object_of(
        {
            "client": TEXT,
            "running": TRUTH,
            "ends_at_ms": COUNT,
            "count": COUNT,
            "lines": list_of(
                object_of(
                    {
                        "number": COUNT,
                        "at_ms": COUNT,
                        "way": TEXT,
                        "what": TEXT,
                        "head": {"type": "object"},
                    }
                )
            ),
        }
    ),
    "Audit": object_of({"items": RECORDS}),
    "Health": object_of(
        {"alive": TRUTH, "ready": TRUTH, "problems": list_of(TEXT), "storage": MAYBE_TEXT},
        {"role": ROLE},
    ),
    "LogLines": object_of(
        {
            "items": list_of(
                object_of(
                    {
                        "number": COUNT,
                        "at_ms": WHOLE,
                        "level": TEXT,
                        "logger": TEXT,
                        "text": TEXT,
                    },
                    {"exception": TEXT},
                )
            ),
            "last": {**COUNT, "description": "The number of the last line."},
        }
    ),
    "LogLevel": object_of({"level": TEXT}),
    "NewLogLevel": object_of({"level": one_of(LEVELS)}, closed=True),
    "Tls": object_of(
        {
            "enabled": TRUTH,
            "certificate_expires_at_ms": {"type": ["integer", "null"]},
            "minimum_version": MAYBE_TEXT,
            "ciphers": MAYBE_TEXT,
            "client_certificates": MAYBE_TEXT,
        }
    ),
    "Backup": object_of(
        {
            "possible": TRUTH,
            "last": {
                "anyOf": [
                    {"type": "null"},
                    object_of(
                        {
                            "name": {**TEXT, "description": "The name of its directory."},
                            "running": TRUTH,
                            "complete": TRUTH,
                            "began_at_ms": WHOLE,
                            "ended_at_ms": {"type": ["integer", "null"]},
                            "said": {**TEXT, "description": "The output of the backup."},
                        }
                    ),
                ]
            },
        }
    ),
    "Copy": object_of(
        {
            "id": TEXT,
            "group": TEXT,
            "running": TRUTH,
            "complete": TRUTH,
            "bytes": WHOLE,
            "said": {**TEXT, "description": "What the copying has said."},
        }
    ),
    "Block": {"description": "Up to 1 MiB of the copy."},
}
