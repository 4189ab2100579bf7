"""The console in a headless Chromium, against a running server: every page, hostile texts, who may
what, a phone, the keyboard, and a server that stops and comes back."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.browser import Browser
from tests.tmqp_server.admin.console_driving import (
    MARKS,
    expected,
    open_row,
    put,
    shown,
    wait,
    yes,
)
from tests.tmqp_server.admin.console_world import ADMIN, CLERK, HOSTILE, PAYLOADS, World

pytestmark = MARKS

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
    ("log", ("Log", "lines", "in the clear")),
    ("audit", ("Audit", "create-queue", HOSTILE, "done")),
    ("storage", ("saving", "Write of a batch", "Sync", "Free", "Damaged messages\n0", "Back up")),
    ("you", ("Rights", "see-server", "manage-clients")),
    ("slow", ("Slow consumers", "No consumer is slow", "Slow turns")),
    ("limits", ("max_total_bytes", "How much is used")),
)


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
    for place in (
        "overview",
        "queues",
        "channels",
        "clients",
        "queues/orders/1",
        f"queues/{name}/1",
    ):
        shown(page, there, place)
        wait(page, HOSTILE)
    shown(page, there, f"queues/{name}/1/messages")
    wait(page, HOSTILE)
    for number, payload in enumerate(PAYLOADS):
        page.run(f"document.querySelectorAll('main td button')[{number}].click()")
        page.until("document.querySelector('.split > :last-child').innerText.includes('Headers')")
        words = json.dumps(payload[:20] if payload.isprintable() else "U+")
        page.until(f"document.querySelector('.split > :last-child').innerText.includes({words})")
        for form in ("Text", "Hex"):
            page.click(form)
        assert (
            page.run("document.querySelectorAll('main img, main iframe, main script').length") == 0
        )
    page.run("document.querySelectorAll('main td button')[0].click()")
    wait(page, "U+202E", "U+0000", "</script><script>")
    shown(page, there, f"queues?filter={name}")
    wait(page, "is not a term")
    expected(page, 400)
    assert page.run("({}).hurt") is None


def test_the_policy_holds(page: Browser, there: World) -> None:
    """What a mistake in a script of the console might do, the browser refuses."""
    shown(page, there, "limits")
    for code in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
        "document.createElement('script').text = 'window.hurt = 1'",
        "document.body.setAttribute('onclick', 'window.hurt = 1')",
        "trustedTypes.createPolicy('mine', {})",
    ):
        found = f"(() => {{ try {{ {code}; return 'done' }} catch (e) {{ return e.name }} }})()"
        assert page.run(found) == "TypeError", code
    page.run("document.body.append(document.createElement('img'))")
    page.run("document.body.lastChild.src = 'http://127.0.0.1:9/x'")
    page.run("new Promise((done) => setTimeout(done, 50))")
    assert any("img-src" in each for each in page.complaints), page.complaints
    page.complaints.clear()


def log_in(page: Browser, there: World, token: str) -> None:
    """Go to the console, and log in."""
    page.open("about:blank")
    page.open(there.url)
    page.until("document.title === 'Log in - tmqp'")
    assert page.run("document.activeElement.name") == "token"
    page.type(token)
    page.key("Enter")


def enter(page: Browser, there: World, token: str) -> None:
    """Come to the console with a session: no refused log-in, after which the server pauses."""
    page.open(f"{there.url}console/icon.svg")
    page.until("document.contentType === 'image/svg+xml'")
    body = json.dumps(json.dumps({"token": token}))
    asked = f"fetch('/api/v1/session', {{method: 'POST', body: {body}}}).then((a) => a.status)"
    assert page.run(asked) == 201
    page.open(there.url)
    page.until("document.title === 'Overview - tmqp'")


def test_a_session_ends_with_the_server(page: Browser, guarded: World) -> None:
    enter(page, guarded, ADMIN)
    guarded.stop()
    wait(page, "The server does not answer, since")
    guarded.start()
    page.until("document.title === 'Log in - tmqp'")
    page.complaints[:] = [each for each in page.complaints if "ERR_" not in each]
    expected(page, 401, 404)


def test_log_in_and_out(page: Browser, guarded: World) -> None:
    log_in(page, guarded, "wrong")
    wait(page, "The server does not know this token")
    page.type(ADMIN)
    page.key("Enter")
    page.until("document.title === 'Overview - tmqp'")
    assert page.run("document.cookie") == "", "no script reads it"
    kept = page.run("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
    assert ADMIN not in kept
    page.open("about:blank")
    page.open(f"{guarded.url}#/queues")
    page.until("document.title === 'Queues - tmqp'")
    page.click("Create…")
    put(page, "channel", "by-session")
    yes(page)
    page.until("location.hash === '#/queues/by-session/1'")
    page.click("Log out")
    page.until("document.title === 'Log in - tmqp'")
    expected(page, 401, 421)


def test_what_one_may_not_do_is_not_shown_and_is_refused(page: Browser, guarded: World) -> None:
    enter(page, guarded, CLERK)
    menu = page.run(
        "[...document.querySelectorAll('nav a')].map((each) => each.firstChild.textContent)"
    )
    assert menu == ["Overview", "Queues", "Channels", "Publish", "You"]
    page.run("location.hash = '#/queues'")
    wait(page, "orders/1")
    assert "dead/1" not in page.text()
    assert "Create…" not in page.text()
    page.run("location.hash = '#/queues/orders/1'")
    wait(page, "Messages here", "Publish")
    buttons = page.run(
        "[...document.querySelectorAll('main button')].map((each) => each.textContent)"
    )
    assert not {"Clear…", "Remove…", "Edit…", "Pause"} & set(buttons)
    page.run("location.hash = '#/limits'")
    wait(page, "You have no right to see this")
    asked = (
        "fetch('api/v1/session').then((answer) => answer.json()).then(({csrf}) =>"
        " fetch('api/v1/channels/orders/queues/1', {method: 'DELETE', headers:"
        " {'X-Tmqp-Csrf': csrf}})).then((answer) => answer.status)"
    )
    assert page.run(asked) == 403
    page.click("Log out")
    page.until("document.title === 'Log in - tmqp'")
    expected(page, 401, 403, 404, 421)


def test_with_the_keyboard_only(page: Browser, there: World) -> None:
    shown(page, there, "overview")
    page.key("Tab")
    assert page.run("document.activeElement.id") == "skip"
    page.key("Enter")
    assert page.run("document.activeElement.id") == "main"
    for key in "gq":
        page.key(key)
    page.until("document.title === 'Queues - tmqp' && !!document.querySelector('.vrow')")
    page.key("/")
    assert page.run("document.activeElement.name") == "filter"
    page.type("name:orders")
    page.until("document.querySelectorAll('.vrow').length === 2")
    page.until("document.activeElement.name === 'filter'")
    page.run("document.querySelector('.vrow').focus()")
    page.key("j")
    assert page.run("document.activeElement.getAttribute('aria-rowindex')") == "3"
    page.key("x")
    page.until("document.body.innerText.includes('1 picked')")
    page.key("k")
    page.key("Enter")
    page.until("location.hash === '#/queues/orders/1'")
    page.key("?")
    page.until("document.getElementById('question').open")
    page.key("Escape")
    page.until("!document.getElementById('question').open")


def test_on_a_phone(page: Browser, there: World) -> None:
    page.screen(390, 844)
    shown(page, there, "overview")
    menu = "document.getElementById('nav').getClientRects().length > 0"
    assert not page.run(menu)
    page.click("Menu")
    page.until(menu)
    page.run("document.querySelector('nav a[href=\"#/queues\"]').click()")
    page.until(f"document.title === 'Queues - tmqp' && !({menu})")
    page.until("document.querySelectorAll('.vrow').length > 2")
    open_row(page, "orders/1")
    page.until("location.hash === '#/queues/orders/1'")
    page.click("Edit…")
    page.until("document.getElementById('question').open")
    assert page.run("document.documentElement.scrollWidth") <= 390
    page.key("Escape")
    page.screen(1280, 800)
    page.run("document.getElementById('theme').click()")
    page.run("document.getElementById('theme').click()")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 28)"
    page.run("document.getElementById('theme').click()")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(245, 246, 249)"


def test_a_server_that_stops_and_comes_back(page: Browser, there: World) -> None:
    shown(page, there, "queues/orders/1")
    there.stop()
    wait(page, "The server does not answer, since")
    there.start()
    wait(page, "The server answers again")
    page.until("document.querySelector('main h1').textContent === 'orders/1'")
    page.complaints[:] = [each for each in page.complaints if "ERR_" not in each]


def test_the_last_messages_are_shown_the_newest_first(page: Browser, there: World) -> None:
    with there.client("prolific") as client:
        client.create_queue("long", 1, status="pull")
        client.push_many("long", 1, [b"number %d" % number for number in range(180)])
    first = "document.querySelector('main td button').textContent"
    shown(page, there, "queues/long/1/messages?at=the%20last")
    wait(page, "50 messages; there are more")
    assert page.run(first) == "180"
    page.click("More")
    wait(page, "100 messages; there are more")
    rows = "[...document.querySelectorAll('main td button')].map((each) => each.textContent)"
    assert page.run(rows) == [str(number) for number in range(180, 80, -1)]
    for _ in range(2):
        page.click("More")
    page.until("document.querySelectorAll('main td button').length === 180")
    wait(page, "180 messages. Looking")
    put(page, "at", "the first")
    page.click("Look")
    page.until(f"{first} === '1'")


def test_who_works_fast_is_seen(page: Browser, there: World) -> None:
    """Rates of clients, and the order by growth."""
    with there.client("busy") as client:
        client.create_queue("grows", 1, status="pull")
        shown(page, there, "queues")
        page.click("Fastest growing")
        found = "document.querySelector('.vrow').innerText.includes('grows/1')"
        for _ in range(20):
            client.push_many("grows", 1, [b"x"] * 20)
            if page.run(found):
                break
            page.run("new Promise((done) => setTimeout(done, 500))")
        page.until(found)
        pressed = "document.querySelector('.bar-of-views [aria-pressed=true]').textContent"
        assert page.run(pressed) == "Fastest growing"
        shown(page, there, "clients?filter=name:busy")
        rate = "[...document.querySelectorAll('[data-label=\"In/s\"]')].at(-1).innerText"
        wait(page, "busy")
        client.push_many("grows", 1, [b"x"] * 20)
        page.until(f"parseFloat({rate}) > 0")


def test_ten_thousand_queues(page: Browser, crowded: World) -> None:
    shown(page, crowded, "queues?sort=-waiting")
    wait(page, "200 of 10,003 rows are here", "many/9999")
    rows = "document.querySelectorAll('.vrow').length"
    assert page.run(rows) < 60, "only those that are seen are in the document"
    took = []
    for _ in range(5):
        step = page.run(
            "(() => { const table = document.querySelector('.vtable'), began = performance.now();"
            " table.scrollTop += table.clientHeight; table.dispatchEvent(new Event('scroll'));"
            " return performance.now() - began; })()"
        )
        took.append(step)
    # The quickest tells what a step costs, however busy the machine is.
    assert min(took) < 100, f"steps took {took} ms"
    page.run("document.querySelector('.vtable').scrollTop = 200 * 38")
    wait(page, "400 of 10,003 rows are here")
    assert page.run(rows) < 60
    page.run("document.querySelector('.vtable').scrollTop = 0")
    page.until("document.querySelector('[aria-rowindex=\"2\"]') !== null")
    page.run("document.querySelector('[aria-rowindex=\"2\"]').focus()")
    page.key("End")
    page.until("Number(document.activeElement.getAttribute('aria-rowindex')) >= 401")
    put(page, "filter", "name:many and queue>=9990")
    wait(page, "10 rows")
