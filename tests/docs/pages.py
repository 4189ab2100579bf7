"""The reading of our pages: tables, blocks, anchors and links of Markdown."""

from __future__ import annotations

import re
from pathlib import Path

from tests.project import ROOT

__all__ = ["anchors", "blocks", "links", "page", "pages", "section", "table"]


def page(name: str) -> str:
    """The text of a page under ``docs/``."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def pages() -> list[Path]:
    """Every page: those at the root, and all under ``docs/`` and ``examples/``."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return sorted(found)


def _without_code(text: str) -> str:
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """The targets of all links and pictures, those inside code aside."""
    prose = re.sub(r"`[^`\n]*`", "``", _without_code(text))
    return re.findall(r"\]\(([^()\s]+)\)", prose)


def anchors(text: str) -> set[str]:
    """What a link may point at: explicit ids, and headings as they are spelt in addresses."""
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", _without_code(text), re.MULTILINE):
        plain = re.sub(r"[`*]", "", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def blocks(text: str, language: str) -> list[str]:
    """The contents of all code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next of any level.

    :raises ValueError: when there is no such heading.
    """
    pattern = rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)"
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"no heading {heading!r}")
    return found.group(1)


def table(text: str, *first_columns: str) -> list[list[str]]:
    """The rows of the one table whose header row begins with these columns.

    :raises ValueError: when there is none, or more than one.
    """
    result: list[list[list[str]]] = []
    for lines in re.findall(r"(?:^ *\|.*\|$\n?)+", text, re.MULTILINE):
        rows = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
            for line in lines.strip().splitlines()
        ]
        if rows[0][: len(first_columns)] == list(first_columns):
            result.append(rows[2:])
    if len(result) != 1:
        raise ValueError(f"{len(result)} tables begin with {first_columns}")
    return result[0]
