"""Pictures of the console, to be looked at: every page, light and dark, on a screen and a phone.

``python -m tests.tmqp_server.admin.console_pictures FOLDER``
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.browser import CHROMIUM, Browser, browser
from tests.tmqp_server.admin.console_world import World, world
from tmqp_client import sync

__all__ = ["PAGES", "main"]

#: The file of each picture, and the page that is in it.
PAGES: Final = {
    "overview": "overview",
    "queues": "queues",
    "queue": "queues/orders/1",
    "messages": "queues/orders/1/messages",
    "dead-letters": "queues/dead/1",
    "channels": "channels",
    "publish": "publish?name=orders/1",
    "routers": "routers",
    "clients": "clients",
    "nodes": "nodes",
    "events": "events",
    "log": "log",
    "audit": "audit",
    "storage": "storage",
    "slow": "slow",
    "limits": "limits",
    "you": "you",
}
_SIZES: Final = ((1280, 860), (390, 844))
#: For how long the charts are drawn before they are looked at.
_LIVELY_S: Final = 24.0
_NAMES: Final = ("invoices", "mails", "thumbnails", "audit", "billing-eu", "billing-us", "search")


def _busy(client: sync.Client, over: threading.Event) -> None:
    """Push now more, now less."""
    dice = random.Random(7)
    while not over.is_set():
        for _ in range(dice.randrange(2, 14)):
            client.push(dice.choice(("mails", "invoices")), 1, "{}", nowait=True)
        over.wait(0.1)


def _consume(client: sync.Client, over: threading.Event) -> None:
    with client.consume("mails", 1) as messages:
        for _ in messages:
            if over.is_set():
                return


@contextmanager
def _lively(there: World) -> Iterator[None]:
    over = threading.Event()
    with there.client("producer-7", "web") as producer, there.client("mailer-1") as consumer:
        for name in _NAMES:
            producer.create_queue(name, 1)
        for number in range(40):
            producer.push("audit", 1, f"entry {number}")
        threads = [
            threading.Thread(target=each, args=(client, over), daemon=True)
            for each, client in ((_busy, producer), (_consume, consumer))
        ]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            over.set()
            for each in threads:
                each.join(5)


def _show(page: Browser, place: str) -> None:
    if page.run("location.hash") == f"#/{place}":
        return
    page.run("document.title = ''")
    page.run(f"location.hash = '#/{place}'")
    page.until("document.title !== '' && document.title !== 'tmqp'")
    page.until("!document.body.innerText.includes('Loading…')")


def _take(page: Browser, folder: Path) -> None:
    for name, place in PAGES.items():
        page.screen(*_SIZES[0])
        _show(page, place)
        if name == "messages":
            page.run("document.querySelector('main td button').click()")
        if name == "clients":
            page.until("!!document.querySelector('.vrow')")
            page.run("document.querySelector('.vrow').click()")
            page.until("document.body.innerText.includes('Subscriptions')")
        for width, height in _SIZES:
            for dark in (False, True):
                page.screen(width, height, dark=dark)
                time.sleep(0.3)  # charts are drawn again in their new colours
                page.picture(folder / f"{name}-{width}-{'dark' if dark else 'light'}.png")


def main() -> None:
    """Take them."""
    if CHROMIUM is None:
        sys.exit("chromium is not installed (Debian: chromium)")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory())
        there = stack.enter_context(world(Path(place), hostile=False))
        stack.enter_context(_lively(there))
        page = stack.enter_context(browser())
        page.screen(*_SIZES[0])
        page.open(f"{there.url}#/overview")
        page.until("document.title === 'Overview - tmqp'")
        time.sleep(_LIVELY_S)
        _take(page, folder)
        assert page.complaints == [], page.complaints
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


if __name__ == "__main__":
    main()
