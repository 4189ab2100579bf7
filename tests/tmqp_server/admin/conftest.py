"""The console's tests share one browser and the servers that it looks at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Browser, browser
from tests.tmqp_server.admin.console_world import World, world


@pytest.fixture(scope="session")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture(scope="session")
def shared() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture
def page(shared: Browser) -> Iterator[Browser]:
    """The browser; nothing may have complained while it was used."""
    shared.screen(1280, 800)
    shared.complaints.clear()
    shared.asked.clear()
    yield shared
    assert shared.complaints == []
    assert shared.run("window.hurt") is None


@pytest.fixture(scope="session")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("crowded"), hostile=False, stores=False) as made:
        made.crowd("many", 10_000)
        with made.client("maker") as client:
            for _ in range(9):
                client.push("many", 9_999, "one that waits")
        yield made


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("guarded"), guarded=True, hostile=False) as made:
        yield made
