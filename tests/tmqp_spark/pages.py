"""How the code on the pages about Spark is found: by a remark before each block."""

from __future__ import annotations

import re
from typing import Final

from tests.project import ROOT

__all__ = ["blocks"]

_PAGES: Final = ROOT / "docs" / "guides"
#: What a remark before a block says of it: its kind and its name.  Blocks of the kind ``apart``
#: make a session of their own, and need jars or packages; those of the kind ``job`` are files.
_MARKED: Final = re.compile(r"<!-- (\w+): (\w+) -->\n```\w+\n(.*?)```", re.DOTALL)


def blocks(page: str, kind: str) -> dict[str, str]:
    """The marked blocks of a page by their names, in order.

    :param page: its name among the guides; ``../spark`` is docs/spark.md.
    """
    text = (_PAGES / f"{page}.md").read_text(encoding="utf-8")
    return {name: code for found, name, code in _MARKED.findall(text) if found == kind}
