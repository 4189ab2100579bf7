"""The console in a headless Chromium, against a running server: every page, every action, hostile
texts, a phone, the keyboard, and a server that stops and comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.browser import CHROMIUM, Browser, browser
from tests.tmqp_server.admin.console_world import HOSTILE, World, world

pytestmark = [
    pytest.mark.cold,
    pytest.mark.long,
    pytest.mark.xdist_group("console"),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

#: A page, and words that are on it.
PAGES: Final = (
    ("overview", ("ready", "Messages a second", "Largest queues", "Doors", "Memory for messages")),
    ("queues", ("orders/1", "dead/1", "Waiting", "In flight", "No consumers")),
    ("queues/orders/1", ("Messages here", "Options", "Consumers", "web-1", "In memory")),
    ("queues/orders/1/messages", ("Sequence", "pizza", "deferred")),
    ("queues/dead/1", ("Dead letters in this queue", "orders/2", "Send again…")),
    ("channels", ("orders", "Joined", "Ends with")),
    ("publish", ("Queue or router", "Headers, one a line")),
    ("routers", ("Where messages go", "sales", "to-clerks", "hook", "distribute")),
    ("clients", ("web-1", "tmqp", "In flight")),
    ("nodes", ("stands alone",)),
    ("events", ("Nothing has happened", "Pause")),
    ("storage", ("saving", "Write of a batch", "Free")),
    ("limits", ("max_total_bytes", "How much is used")),
)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture(scope="module")
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


def shown(page: Browser, there: World, place: str) -> str:
    """The text of a page, when it is there."""
    page.open("about:blank")
    page.open(f"{there.url}#/{place}")
    page.until("!!document.querySelector('main h1') && document.title !== 'tmqp'")
    return page.text()


def wait(page: Browser, *words: str) -> None:
    """Wait until the page has these words."""
    for each in words:
        page.until(f"document.body.innerText.includes({json.dumps(each)})")


def put(page: Browser, name: str, value: str) -> None:
    """Give the field of a form a value, as a user does."""
    page.until(f"!!document.querySelector('[name={name}]')")
    page.run(
        f"(() => {{ const field = [...document.querySelectorAll('[name={name}]')].at(-1);"
        f" field.value = {json.dumps(value)};"
        " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )


def yes(page: Browser) -> None:
    """Answer the question with what it offers, and wait until it is done."""
    page.until("document.getElementById('question').open")
    page.run("document.getElementById('question-yes').click()")
    page.until("!document.getElementById('question').open")


def api(page: Browser, path: str) -> Any:
    """What the server says."""
    return page.run(f"fetch('api/v1/{path}').then((answer) => answer.json())")


@pytest.mark.parametrize(("place", "words"), PAGES, ids=[place for place, _ in PAGES])
def test_page(page: Browser, there: World, place: str, words: tuple[str, ...]) -> None:
    """Each page shows what it is for, on a screen and on a phone, dark and light."""
    shown(page, there, place)
    wait(page, *words)
    page.screen(390, 844, dark=True)
    wide = page.run("document.documentElement.scrollWidth")
    assert wide <= 390, f"it is {wide} wide"
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 28)"
    assert {url for url in page.asked if not url.startswith((there.url, "about:"))} == set()


def test_hostile_texts_are_shown_and_do_nothing(page: Browser, there: World) -> None:
    name = page.run(f"encodeURIComponent({json.dumps(HOSTILE)})")
    for place in ("overview", "queues", "channels", f"queues/{name}/1"):
        shown(page, there, place)
        wait(page, HOSTILE)
    shown(page, there, f"queues/{name}/1/messages")
    wait(page, HOSTILE)
    page.run("document.querySelector('main td button').click()")
    wait(page, "U+202E", "U+0000", "</script><script>")
    shown(page, there, f"queues?filter={name}")
    wait(page, "is no term")
    page.complaints[:] = [each for each in page.complaints if "400 (Bad Request)" not in each]
    assert page.run("document.querySelectorAll('main img, main script').length") == 0
