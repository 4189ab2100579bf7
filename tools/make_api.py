"""Make ``docs/api.md`` from the table of operations.

    python -m tools.make_api            write the page
    python -m tools.make_api --check    only tell whether it is up to date

Operations are those of ``tmqp_server.admin.api.operations``; the text around them is in
``tools/api.md``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

from tmqp_server.admin.api.operations import OPERATIONS
from tmqp_server.admin.api.table import PREFIX, Operation
from tmqp_server.doors.http.json_requests import SOCKET_OPERATIONS
from tools.generated import write_or_check

__all__ = ["PAGE", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "api.md"

_TEMPLATE: Final = ROOT / "tools" / "api.md"
_TITLES: Final = {
    "server": "Server",
    "audit": "Server",
    "logs": "Server",
    "session": "Sessions",
    "channels": "Channels and queues",
    "queues": "Channels and queues",
    "consumers": "Consumers",
    "clients": "Clients and nodes",
    "nodes": "Clients and nodes",
    "routers": "Routers",
    "offsets": "Readers and transactions",
    "groups": "Readers and transactions",
    "transactions": "Readers and transactions",
    "cells": "Cells",
    "definitions": "Definitions",
    "events": "Events",
    "live": "Events",
    "openapi.json": "The description",
}


def _code(words: tuple[str, ...]) -> str:
    return ", ".join([f"`{word}`" for word in words])


def _row(operation: Operation) -> str:
    path = re.sub(r":int\}", "}", operation.path)
    cli = ", ".join([f"`tmqp {each}`" for each in operation.cli])
    return (
        f"| `{operation.method} {path}` | {operation.summary} | {_code(operation.rights)} | {cli} |"
    )


def _parameters(operations: list[Operation]) -> list[str]:
    lines: list[str] = []
    seen: set[str] = set()
    for each in operations:
        if not each.query or repr(each.query) in seen:
            continue
        seen.add(repr(each.query))
        names = [other.name for other in operations if other.query == each.query]
        lines += ["", f"Parameters of {_code(tuple(names))}:", ""]
        for one in each.query:
            lines.append(f"- `{one.name}`: {one.meaning}{_bounds(dict(one.schema))}")
    return lines


def _bounds(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        first, *rest = [f"`{each}`" for each in schema["enum"]]
        return f" {', '.join([f'{first} (default)', *rest])}."
    if "minimum" in schema:
        return f" {schema['minimum']:,} to {schema['maximum']:,}; {schema['default']:,} by default."
    return ""


def _socket_rows() -> list[str]:
    """The table of the requests that a WebSocket with JSON accepts."""
    lines = ["| `op` | does | members | rights |", "|---|---|---|---|"]
    for each in SOCKET_OPERATIONS.values():
        members = [
            f"**`{name}`**" if member.needed else f"`{name}`"
            for name, member in each.members.items()
        ]
        lines.append(
            f"| `{each.name}` | {each.summary} | {', '.join(members)} | {_code(each.rights)} |"
        )
    meanings: dict[str, str] = {}
    for each in SOCKET_OPERATIONS.values():
        for name, member in each.members.items():
            if name not in ("channel", "queue", "event", "id"):
                meanings.setdefault(name, f"{member.meaning} ({member.kind})")
    lines.append("")
    lines += [f"- `{name}`: {meaning}" for name, meaning in meanings.items()]
    return lines


def render() -> str:
    """Return the text of the page."""
    sections: dict[str, list[Operation]] = {}
    for each in OPERATIONS:
        sections.setdefault(_TITLES[each.tag], []).append(each)
    lines: list[str] = []
    for title, operations in sections.items():
        lines += ["", f"### {title}", "", "| operation | does | rights | like |"]
        lines.append("|---|---|---|---|")
        lines += [_row(each) for each in operations]
        lines += _parameters(operations)
    audited = sorted({word for each in OPERATIONS for word in each.audited})
    template = _TEMPLATE.read_text(encoding="utf-8")
    text = template.replace("@OPERATIONS@", "\n".join(lines).strip())
    text = text.replace("@SOCKET@", "\n".join(_socket_rows()))
    return text.replace("@PREFIX@", PREFIX).replace("@AUDIT@", _code(tuple(audited)))


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it; 1 if it is out of date."""
    return write_or_check({PAGE: render()}, arguments, "make_api")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
