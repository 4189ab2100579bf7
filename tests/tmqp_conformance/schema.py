"""The part of JSON Schema that the schema of reports uses: enough to hold a report against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

__all__ = ["violations"]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_KNOWN: Final = {
    "$schema",
    "$defs",
    "$ref",
    "title",
    "type",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "enum",
    "const",
}


def violations(value: object, schema: dict[str, Any]) -> list[str]:
    """What of a value breaks the schema; a sentence for each."""
    return list(_check("$", value, schema, schema))


def _check(
    where: str, value: object, schema: dict[str, Any], root: dict[str, Any]
) -> Iterator[str]:
    assert set(schema) <= _KNOWN, f"{where}: this checker does not know {set(schema) - _KNOWN}"
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from _check(where, value, root["$defs"][name], root)
        return
    kind = schema.get("type")
    if kind is not None:
        right = isinstance(value, _TYPES[kind])
        if not right or (isinstance(value, bool) and kind != "boolean"):
            yield f"{where} is {value!r}, not of type {kind}"
            return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r}, none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{where} is {value!r}, not {schema['const']!r}"
    if isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from _check(f"{where}[{place}]", item, schema["items"], root)
    if isinstance(value, dict):
        yield from (
            f"{where} has no {name}" for name in schema.get("required", ()) if name not in value
        )
        more = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in schema.get("properties", {}):
                yield from _check(f"{where}.{name}", item, schema["properties"][name], root)
            elif isinstance(more, dict):
                yield from _check(f"{where}.{name}", item, more, root)
            elif more is False:
                yield f"{where} has the unknown property {name}"
