"""Make the register of rules of the conformance suite from ``docs/protocol.md``.

    python -m tools.make_rules            write the register
    python -m tools.make_rules --check    only tell whether it is up to date

Each rule of the page is in the register under its stable id: ``F48`` for a numbered rule,
``rule-source`` for a violation, ``x-filters`` for a section about an extension.  The register is a
file of the tool's package, because the page is not installed with it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Final

from tools.generated import write_or_check

__all__ = ["PAGE", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "fuzz" / "tmqp_conformance" / "rules.json"
_PROTOCOL: Final = ROOT / "docs" / "protocol.md"
#: The sections of level 2 that have no numbered rules, and their subsections.
_EXTENSIONS: Final = ("Durable queues", "Extensions")
_RULE: Final = re.compile(r'^- <a id="(f\d+)"></a>\*\*(F\d+)\*\* ', re.MULTILINE)
_VIOLATION: Final = re.compile(r'^\| <a id="(rule-[^"]+)"></a>`[^`]+` \|(.+)\|$', re.MULTILINE)
_HEADING: Final = re.compile(r"^(##+) (.+)$", re.MULTILINE)
_TEXT_CHARACTERS: Final = 1_200


def render() -> str:
    """Return the text of the register."""
    page = _PROTOCOL.read_text(encoding="utf-8")
    rules = [*_numbered(page), *_violations(page), *_extensions(page)]
    return json.dumps({"rules": rules}, ensure_ascii=False, indent=1) + "\n"


def _numbered(page: str) -> list[dict[str, str]]:
    headings = [(found.start(), found[2]) for found in _HEADING.finditer(page)]
    rules = []
    for found in _RULE.finditer(page):
        section = [name for start, name in headings if start < found.start()][-1]
        # To the next item, heading, picture of bytes or empty line before something not indented.
        rest = re.split(r"\n(?=- |#|```)|\n\n(?! )", page[found.end() :], maxsplit=1)[0]
        rules.append(_rule(found[2], found[1], section, rest))
    return sorted(rules, key=lambda rule: int(rule["id"][1:]))


def _violations(page: str) -> list[dict[str, str]]:
    rules = []
    for found in _VIOLATION.finditer(page):
        who, what, code, hears = (cell.strip() for cell in found[2].split("|"))
        text = (
            f"The peer ({who}) {what}: it receives {hears}, code {code}, and the connection ends."
        )
        rules.append(_rule(found[1], found[1], "Violations", text))
    return rules


def _extensions(page: str) -> list[dict[str, str]]:
    rules = []
    headings = list(_HEADING.finditer(page))
    inside = False
    for found, following in zip(headings, [*headings[1:], None], strict=True):
        if found[1] == "##":
            inside = found[2] in _EXTENSIONS
        if not inside or len(found[1]) > 3 or re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", found[2]):
            continue
        slug = re.sub(r"[^a-z0-9]+", "-", found[2].lower()).strip("-")
        text = page[found.end() : following.start() if following else len(page)]
        rules.append(_rule(f"x-{slug}", slug, found[2], text))
    return rules


def _rule(name: str, anchor: str, section: str, text: str) -> dict[str, str]:
    return {"id": name, "anchor": anchor, "section": section, "text": _plain(text)}


def _plain(text: str) -> str:
    """Return a text without Markdown's marks, in one line."""
    text = re.sub(r'<a id="[^"]*"></a>', "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = " ".join(re.sub(r"(?<!\w)\*+|\*+(?!\w)", "", text).split())
    if len(text) <= _TEXT_CHARACTERS:
        return text
    return text[:_TEXT_CHARACTERS].rpartition(" ")[0] + " ..."


def main(arguments: list[str]) -> int:
    """Write the register, or with ``--check`` compare it; 1 if it is out of date."""
    return write_or_check({PAGE: render()}, arguments, "make_rules")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
