"""The console's pages under the rules of axe-core: names, roles, contrast, order of headings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.browser import CHROMIUM, Browser, browser
from tests.interop.building import CACHE, EXPECTED, npm
from tests.tmqp_server.admin.console_pictures import PAGES
from tests.tmqp_server.admin.console_world import World, world

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(200),
    pytest.mark.xdist_group("npm"),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(
        bool(EXPECTED) and "axe-core" not in EXPECTED, reason="only other clients are asked for"
    ),
]

SOURCES: Final = Path(__file__).parent / "node"
_FOUND: Final = """axe.run(document, {resultTypes: ['violations']}).then((found) =>
    found.violations.map((each) => `${each.id}: ${each.nodes[0].html}`))"""


@pytest.fixture(scope="module")
def rules() -> str:
    folder = CACHE / "console-node"
    npm("axe-core", SOURCES, folder)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages(page: Browser, there: World, rules: str, dark: bool, width: int) -> None:
    page.screen(width, 800, dark=dark)
    for place in [*PAGES.values(), "nodes"]:
        page.open("about:blank")
        page.open(f"{there.url}#/{place}")
        page.until("!!document.querySelector('main h1') && document.title !== 'tmqp'")
        page.run(f"{rules}; 1")
        assert page.run(_FOUND) == [], place
