"""Make the engine's records and the tables in the docs from the declarations of options.

    python -m tools.make_options            write them
    python -m tools.make_options --check    only tell whether they are up to date

An option is declared once, in ``src/tmqp/models/options.py``.  The engine reads options for each
message, so there they are plain attributes of compiled records, which this tool writes.  A table in
a document is between two comments that mark it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tmqp.constants import STATUS_HEADER_WORDS
from tmqp_server.engine.options.table import (
    ADDRESS,
    CHANNEL_OPTIONS,
    FLAG,
    IDS,
    NUMBER,
    QUEUE_OPTIONS,
    STATUS,
    TEXT,
    Option,
)
from tools.generated import write_or_check

__all__ = ["PAGE", "RECORDS", "main", "page", "records"]

ROOT: Final = Path(__file__).resolve().parent.parent
RECORDS: Final = ROOT / "src" / "tmqp_server" / "engine" / "options" / "values.py"
PAGE: Final = ROOT / "docs" / "server.md"

_TYPES: Final = {
    FLAG: "bool",
    NUMBER: "int",
    STATUS: "int",
    TEXT: "str",
    IDS: "tuple[int, ...] | None",
    ADDRESS: "tuple[str, int] | None",
}
_HEAD: Final = '''\
"""The values of a queue's options as records, made by ``python -m tools.make_options``.

Edit ``src/tmqp/models/options.py`` and ``table.py``, which declare the options.
"""

from __future__ import annotations

from tmqp_server.engine.records import Record

__all__ = ["GivenQueueValues", "QueueValues"]
'''


def _type_of(option: Option) -> str:
    kind = _TYPES[option.kind]
    return f"{kind} | None" if option.initial is None and "None" not in kind else kind


def _record(name: str, text: str, fields: Iterable[tuple[str, str, object]]) -> str:
    fields = list(fields)
    lines = ["", "", f"class {name}(Record):"]
    lines += [f'    """{text}"""', "", "    __slots__ = ("]
    lines += [f'        "{field}",' for field, _, _ in fields]
    lines += ["    )", "", "    def __init__(", "        self,", "        *,"]
    for field, kind, value in fields:
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        lines.append(f"        {field}: {kind} = {shown},")
    lines += ["    ) -> None:"]
    lines += [f"        self.{field} = {field}" for field, _, _ in fields]
    return "\n".join(lines) + "\n"


def records() -> str:
    """Return the module with the engine's records."""
    complete = [(each.name, _type_of(each), each.initial) for each in QUEUE_OPTIONS]
    given: list[tuple[str, str, object]] = [
        (name, kind if "None" in kind else f"{kind} | None", None) for name, kind, _ in complete
    ]
    return (
        _HEAD
        + _record("QueueValues", "All options of one queue.", complete)
        + _record("GivenQueueValues", "Options of a queue to set, or None.", given)
    )


def _default(option: Option) -> str:
    if option.kind == STATUS:
        (word,) = [word for word, number in STATUS_HEADER_WORDS.items() if number == option.initial]
        return f'`"{word}"`'
    if option.initial is None:
        return "all" if option.kind == IDS else "none"
    if isinstance(option.initial, bool):
        return f"`{str(option.initial).lower()}`"
    return str(option.initial) if isinstance(option.initial, int) else f'`"{option.initial}"`'


def _table(options: Iterable[Option]) -> str:
    rows = [f"| `{each.name}` | {_default(each)} | {each.meaning} |" for each in options]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows])


def page(text: str) -> str:
    """Return the page with new tables.

    :raises ValueError: if the comments around a table are missing.
    """
    for name, options in (("queue", QUEUE_OPTIONS), ("channel", CHANNEL_OPTIONS)):
        begin = f"<!-- The options of [{name}], made by `python -m tools.make_options`. -->\n"
        end = f"<!-- End of the options of [{name}]. -->"
        found = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        text, count = found.subn(lambda _: f"{begin}{_table(options)}\n{end}", text)  # noqa: B023
        if count != 1:
            raise ValueError(f"the table of [{name}] is not marked, or twice")
    return text


def main(arguments: list[str]) -> int:
    """Write the files, or with ``--check`` compare them; 1 if one is out of date."""
    made = {RECORDS: records(), PAGE: page(PAGE.read_text(encoding="utf-8"))}
    return write_or_check(made, arguments, "make_options")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
