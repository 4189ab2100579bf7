"""How tests drive the console: what they wait for, what they click, what the server says."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.browser import CHROMIUM, Browser
from tests.tmqp_server.admin.console_world import World

__all__ = ["MARKS", "api", "expected", "open_row", "put", "shown", "wait", "yes"]

#: The marks of such tests.
MARKS: Final = [
    pytest.mark.cold,
    pytest.mark.long,
    pytest.mark.xdist_group("console"),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


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


def expected(page: Browser, *statuses: int) -> None:
    """Forget complaints of the browser about answers with these statuses: they were wanted."""
    words = tuple(f"status of {status} " for status in statuses)
    page.complaints[:] = [
        each for each in page.complaints if not any(word in each for word in words)
    ]


def open_row(page: Browser, words: str) -> None:
    """Open the row of a table that has these words."""
    found = (
        f"[...document.querySelectorAll('.vrow')].find((row) => row.innerText.includes('{words}'))"
    )
    page.until(f"!!{found}")
    page.run(f"{found}.click()")


def api(page: Browser, path: str) -> Any:
    """What the server says."""
    return page.run(f"fetch('api/v1/{path}').then((answer) => answer.json())")
