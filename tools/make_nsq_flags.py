"""Make ``docs/nsq-programs.md``: the programs of NSQ, their purposes and their flags.

    python -m tools.make_nsq_flags            write the page
    python -m tools.make_nsq_flags --check    only tell whether it is up to date

The tables come from the tables that the programs read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tmqp_nsq.flags import Flag, FlagTable
from tmqp_nsq.server_flags import NSQD, NSQLOOKUPD
from tmqp_nsq.tool_flags import NSQ_TO_FILE, NSQ_TO_HTTP, NSQADMIN
from tools.generated import write_or_check

__all__ = ["PAGE", "main", "render"]

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "nsq-programs.md"
_TEXT: Final = Path(__file__).resolve().parent / "nsq_programs.md"
_TABLES: Final = {
    each.program: each for each in (NSQD, NSQLOOKUPD, NSQADMIN, NSQ_TO_FILE, NSQ_TO_HTTP)
}


def _row(flag: Flag) -> str:
    shown = flag.kind.show(flag.default).strip('"').replace("|", "\\|")
    default = f"`{shown}`" if shown and flag.default != -1 else ""
    key = f"`{flag.config_key}`" if flag.config_key else ""
    text = f"no effect: {flag.ignored}" if flag.ignored else flag.help
    cells = (f"`{flag.name}`", flag.kind.word or "bool", default, key, text.replace("|", "\\|"))
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def _table(table: FlagTable) -> str:
    head = "| flag | value | default | key in the file | meaning |\n|---|---|---|---|---|"
    return "\n".join([head, *[_row(flag) for flag in table.flags]])


def render() -> str:
    """Return the text of the page, with a table in the place of each ``{flags of PROGRAM}``."""
    text = _TEXT.read_text(encoding="utf-8")
    for program, table in _TABLES.items():
        text = text.replace(f"{{flags of {program}}}", _table(table))
    return text


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say that it is out of date; 1 if it is."""
    return write_or_check({PAGE: render()}, arguments, "make_nsq_flags")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
