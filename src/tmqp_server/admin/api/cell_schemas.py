"""The schemas of what requests and answers about cells contain."""

from __future__ import annotations

from typing import Final

from tmqp_server.admin.api.cells import CHANGES
from tmqp_server.admin.api.schema_parts import (
    COUNT,
    MAYBE_COUNT,
    TEXT,
    Schema,
    list_of,
    object_of,
    one_of,
)
from tmqp_server.doors.http.contents import MOST_DELAY_MS
from tmqp_server.doors.native.cells import KINDS
from tmqp_server.engine.commands import MOST_COUNT

__all__ = ["CELL_SCHEMAS"]

_TTL: Final[Schema] = {**COUNT, "maximum": MOST_DELAY_MS, "description": "How long it lives."}
_TIME: Final[Schema] = {**COUNT, "maximum": MOST_DELAY_MS}
_COUNT: Final[Schema] = {**COUNT, "maximum": MOST_COUNT}
_COUNTER: Final[Schema] = object_of({"count": _COUNT, "ttl_ms": _TTL}, closed=True)
_SIZE: Final[Schema] = {**COUNT, "description": "How long a value is."}

_NEEDED: Final[Schema] = {
    "key": {**TEXT, "description": "Bytes that are no text are written as `%xx`."},
    "kind": one_of(KINDS),
    "ttl_ms": {**COUNT, "description": "How long it lives from now on."},
}
_HELD: Final[Schema] = {"count": {**_COUNT, "description": "Of a counter."}}


def _change(name: str) -> Schema:
    """The schema of a change: the member that names it, and the members that may go with it."""
    amount = _TIME if name.endswith("_ms") else _COUNT
    more = {"initial": {**_COUNTER, "description": "Made first if there is no counter."}}
    return object_of({name: amount}, more if name in ("add", "subtract") else None, closed=True)


CELL_SCHEMAS: Final[dict[str, Schema]] = {
    "Cell": object_of(
        _NEEDED,
        {
            **_HELD,
            "text": {**TEXT, "description": "A value, if it is UTF-8."},
            "base64": {**TEXT, "description": "A value, if it is not."},
        },
    ),
    "CellList": object_of(
        {
            "items": list_of(object_of(_NEEDED, {**_HELD, "bytes": _SIZE})),
            "next": {**MAYBE_COUNT, "description": "What `after` of the next page is."},
            "counters": {**COUNT, "description": "Counters of the whole space."},
            "values": COUNT,
            "value_bytes": COUNT,
        }
    ),
    "CellFigures": object_of(
        {
            **_NEEDED,
            "reads": COUNT,
            "writes": COUNT,
            "reads_per_minute": {**COUNT, "description": "Of the last minute."},
            "writes_per_minute": COUNT,
        },
        {**_HELD, "bytes": _SIZE},
    ),
    "NewCell": {
        "oneOf": [
            _COUNTER,
            object_of({"text": TEXT, "ttl_ms": _TTL}, closed=True),
            object_of({"base64": TEXT, "ttl_ms": _TTL}, closed=True),
        ]
    },
    "CellChange": {"oneOf": [_change(each) for each in CHANGES]},
}
