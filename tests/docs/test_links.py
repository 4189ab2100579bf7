"""The test that no page points at something that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import anchors, links, pages
from tests.project import ROOT

pytestmark = pytest.mark.cold

ELSEWHERE: Final = ("http://", "https://", "mailto:")


def dead_links(path: Path) -> list[str]:
    """The links of a page that lead nowhere inside the project."""
    text = path.read_text(encoding="utf-8")
    dead = []
    for link in links(text):
        if link.startswith(ELSEWHERE):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        alive = target.exists() and target.is_relative_to(ROOT)
        if alive and anchor:
            alive = anchor in anchors(target.read_text(encoding="utf-8"))
        if not alive:
            dead.append(link)
    return dead


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    assert dead_links(path) == []


def test_there_are_pages_with_links() -> None:
    counts = {path.name: len(links(path.read_text(encoding="utf-8"))) for path in pages()}
    assert counts["protocol.md"] > 100
    assert counts["io-contract.md"] > 10


def test_dead_links_are_found() -> None:
    page = ROOT / "docs" / "protocol.md"
    text = page.read_text(encoding="utf-8")
    assert "f44" in anchors(text)
    assert "direct-messages-and-responses" in anchors(text)
    assert "f999" not in anchors(text)
    assert links("[a](b.md#c) `[d](e)` ![f](g.svg)\n```\n[h](i)\n```\n") == ["b.md#c", "g.svg"]
