"""The site of the documents: every page is in its menu, and links lead to pages."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from typing import Final

import pytest
from tools import make_speed

from tests.docs.pages import page, section, table
from tests.project import ROOT, settings

pytestmark = pytest.mark.cold

SETTINGS: Final = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
#: Pages in the menu, by the lines of the settings that name them.
MENU: Final = re.findall(r"^ +- (?:[^:\n]+: )?([\w/-]+\.md)$", SETTINGS, re.MULTILINE)


def hook() -> ModuleType:
    """The hook that shows files outside ``docs/``; only ``make docs`` installs what it needs."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: make docs")
    from tools import site_pages  # noqa: PLC0415 - see above

    return site_pages


def test_every_page_is_in_the_menu_once() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert sorted(MENU) == sorted(pages)


def test_the_index_lists_every_page_but_guides() -> None:
    index = page("index.md")
    listed = set(re.findall(r"\]\(([\w/-]+\.md)", index))
    own = {name for name in MENU if not name.startswith("guides/") and name != "index.md"}
    assert own <= listed
    for heading in ("Run a server", "Write programs", "Change tmqp"):
        assert f"\n## {heading}\n" in index


def test_links_to_other_files_become_pages() -> None:
    site = hook()
    text = "[a](../examples/demo.py) [b](server.md#tls) [c](../examples) [d](https://x.org/a)"
    assert site.relinked("docs/x.md", text, "x.md") == (
        "[a](files/examples/demo.py.md) [b](server.md#tls) c [d](https://x.org/a)"
    )
    assert site.relinked("docs/guides/x.md", "[a](../../README.md)", "guides/x.md") == (
        "[a](../files/README.md)"
    )
    assert site.page_of(".importlinter") == "files/dot-importlinter.md"


def test_a_file_outside_is_shown_with_its_links() -> None:
    site = hook()
    assert "```python\n" in site.shown("examples/demo.py")
    contributing = site.shown("CONTRIBUTING.md")
    assert "](../architecture.md)" in contributing


def test_figures_of_the_picture_are_those_of_the_page() -> None:
    for name, _heading in make_speed.GROUPS:
        rows = make_speed.figures(name)
        assert rows[0][0] == "tmqp"
        assert len(rows) > 1
    with pytest.raises(ValueError, match="no table for push-nothing"):
        make_speed.figures("push-nothing")


def test_the_glossary_has_each_word_once_and_in_order() -> None:
    words: list[str] = []
    for heading in ("Terms", "Our own words"):
        rows = table(section(page("glossary.md"), heading), heading.split()[-1].rstrip("s").lower())
        found = [row[0].casefold() for row in rows]
        assert found == sorted(found)
        assert all(row[1] for row in rows)
        words += found
    assert len(set(words)) == len(words) > 50


def test_the_index_lists_every_extra_that_a_user_may_want() -> None:
    rows = table(section(page("index.md"), "Install"), "extra")
    listed = [row[0].strip("`") for row in rows]
    extras = {*settings()["project"]["optional-dependencies"]}
    assert sorted(listed) == sorted(
        {"none", *extras} - {"bench", "bench-peers", "deploy", "dev", "docs", "interop"}
    )
