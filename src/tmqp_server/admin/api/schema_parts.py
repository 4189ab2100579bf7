"""The building blocks of the API's schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from tmqp.constants import MAX_QUEUE_ID

__all__ = [
    "COUNT",
    "HISTOGRAM",
    "MAYBE_COUNT",
    "MAYBE_REAL",
    "MAYBE_TEXT",
    "QUEUE_ID",
    "REAL",
    "RECORDS",
    "TEXT",
    "TRUTH",
    "WHOLE",
    "Schema",
    "list_of",
    "object_of",
    "one_of",
    "up_to",
]

#: A JSON Schema.
Schema: TypeAlias = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
TRUTH: Final[Schema] = {"type": "boolean"}
WHOLE: Final[Schema] = {"type": "integer"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
REAL: Final[Schema] = {"type": "number"}
QUEUE_ID: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": MAX_QUEUE_ID}
MAYBE_COUNT: Final[Schema] = {"type": ["integer", "null"]}
MAYBE_REAL: Final[Schema] = {"type": ["number", "null"]}
MAYBE_TEXT: Final[Schema] = {"type": ["string", "null"]}


def object_of(needed: Schema, more: Schema | None = None, *, closed: bool = False) -> Schema:
    """An object with *needed* and optional members; if *closed*, with no others."""
    found: Schema = {"type": "object", "properties": {**needed, **(more or {})}}
    if needed:
        found["required"] = list(needed)
    if closed:
        found["additionalProperties"] = False
    return found


def one_of(words: Iterable[str]) -> Schema:
    """One of some texts."""
    return {"type": "string", "enum": list(words)}


def up_to(most: int) -> Schema:
    """A whole number from 1 on."""
    return {"type": "integer", "minimum": 1, "maximum": most}


def list_of(item: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": item}


RECORDS: Final[Schema] = list_of({"type": "object"})
HISTOGRAM: Final[Schema] = object_of(
    {"bounds": list_of(WHOLE), "counts": list_of(COUNT), "sum": COUNT}
)
