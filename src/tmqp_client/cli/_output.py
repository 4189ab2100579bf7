"""Prints results: a table on a terminal, plain columns in a pipe, JSON if requested."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from tmqp_client.cli._run import printable

__all__ = ["plain", "readable", "show_fields", "show_rows", "table", "to_line"]


def plain(value: object) -> Any:
    """A value in JSON's types: a model as its fields, a member of an enumeration as its name."""
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value, str) else value.name.lower().replace("_", "-")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def to_line(value: object) -> str:
    """A value as one line of JSON."""
    return json.dumps(plain(value), ensure_ascii=True)


def readable(name: str, value: object) -> object:
    """A value for people: milliseconds as a length of time."""
    if name.endswith("_ms") and isinstance(value, int) and not isinstance(value, bool):
        return _length(value)
    return value


def _length(milliseconds: int) -> str:
    """A length of time in its two largest units."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1_000:g} s"
    seconds = round(milliseconds / 1_000)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def _title(name: str) -> str:
    """The name of a column or field for people, without the unit, which is in the value."""
    return name.removesuffix("_ms").replace("_", " ")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(_cell(each) for each in value)
    return printable(str(value)).replace("\n", " ").replace("\t", " ") or "-"


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], title: str = "") -> Any:
    """A table for a terminal."""
    from rich.table import Table  # noqa: PLC0415 - it takes longer to load than most commands run
    from rich.text import Text  # noqa: PLC0415

    made = Table(title=title or None, title_justify="left", header_style="bold", box=None)
    found = list(rows)
    for column in columns:
        numbers = all(type(row.get(column)) in (int, float) for row in found)
        made.add_column(_title(column), justify="right" if numbers and found else "left")
    for row in found:
        made.add_row(*[Text(_cell(readable(column, row.get(column)))) for column in columns])
    return made


def show_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print a list: one JSON object per line, a table, or columns separated by tabs.

    In a pipe, the first line has the names of the columns if ``TMQP_HEADERS`` is set, and not to 0.
    """
    if as_json:
        for row in rows:
            click.echo(to_line(dict(row)))
    elif sys.stdout.isatty():
        from rich.console import Console  # noqa: PLC0415

        Console().print(table(columns, rows))
    else:
        if os.environ.get("TMQP_HEADERS", "0") != "0":
            click.echo("\t".join(columns))
        for row in rows:
            click.echo("\t".join(_cell(row.get(column)) for column in columns))


def show_fields(value: object, *, as_json: bool) -> None:
    """Print everything about one thing."""
    if as_json:
        click.echo(to_line(value))
        return
    found: dict[str, Any] = plain(value)
    width = max(len(_title(name)) for name in found)
    for name, each in found.items():
        click.echo(f"{_title(name):<{width}}  {_cell(readable(name, each))}")
