"""Reads and writes definitions as TOML, as in a configuration file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tmqp_server.doors.http.messages import BadRequest, HttpRequest

__all__ = ["TOML", "is_toml", "read_toml", "toml_of", "wants_toml"]

TOML: Final = "application/toml"


def wants_toml(request: HttpRequest) -> bool:
    """Whether the client wants an answer as TOML: the field Accept names it first."""
    accept = request.header(b"accept") or b""
    return _bare_type(accept.partition(b",")[0]) == TOML


def is_toml(request: HttpRequest) -> bool:
    """Whether the body of a request is TOML."""
    return _bare_type(request.header(b"content-type") or b"") == TOML


def read_toml(body: bytes) -> dict[str, Any]:
    """The tables in a body.

    :raises BadRequest: when it is not TOML.
    """
    try:
        return tomllib.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, f"the body is not TOML: {error}") from None


def toml_of(tables: Mapping[str, Any]) -> bytes:
    """Tables as TOML; each table in a list of tables gets its own header.

    :param tables: texts, numbers, booleans, lists of these, tables, and lists of tables.
    """
    return "\n".join([*_lines(tables, ""), ""]).lstrip("\n").encode()


def _bare_type(media_type: bytes) -> str:
    """A media type without its parameters."""
    return media_type.decode("latin-1").lower().partition(";")[0].strip()


def _lines(table: Mapping[str, Any], prefix: str) -> Iterator[str]:
    below: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, Mapping) or (isinstance(value, list) and _of_tables(value)):
            below.append((f"{prefix}{name}", value))
        else:
            yield f"{name} = {_value(value)}"
    for path, value in below:
        for each in value if isinstance(value, list) else [value]:
            yield f"\n[[{path}]]" if isinstance(value, list) else f"\n[{path}]"
            yield from _lines(each, f"{path}.")


def _of_tables(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[0], Mapping)


def _value(value: object) -> str:
    """Write a value.  A JSON string is also a TOML string, except for DEL, which JSON does not
    escape.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
