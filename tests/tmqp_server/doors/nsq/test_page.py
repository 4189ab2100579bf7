"""The page about NSQ says what the options are."""

from __future__ import annotations

import ast

from tools.make_limits import documented_fields

from tests.project import ROOT
from tmqp_server.doors.nsq.options import NsqOptions

PAGE = ROOT / "docs" / "doors" / "nsq.md"
SOURCE = ROOT / "src" / "tmqp_server" / "doors" / "nsq" / "options.py"


def test_the_page_lists_every_option_as_it_is() -> None:
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    listed = {row.split("`")[1]: row for row in rows}
    for name, default, text in documented_fields(SOURCE, NsqOptions.__name__):
        value = "" if default == "_NO_NUMBERS" else ast.literal_eval(default)
        if isinstance(value, str):
            shown = f"`{value}`" if value else ""
        else:
            shown = str(value).lower() if isinstance(value, bool) else f"{value:,}"
        meaning = " ".join(text.split()).replace("``", "`")
        assert listed[name] == f"| `{name}` | {shown} | {meaning} |"
