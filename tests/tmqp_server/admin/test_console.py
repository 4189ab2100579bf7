"""The console in a headless Chromium, against a running server: every page, every action, hostile
texts, a phone, the keyboard, and a server that stops and comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.browser import CHROMIUM, Browser, browser
from tests.tmqp_server.admin.console_world import (
    ADMIN,
    CLERK,
    HOSTILE,
    PAYLOADS,
    World,
    world,
)
from tmqp.models import QueueOptions

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
    wait(page, "is no term")
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


# --- Changes --------------------------------------------------------------------------------------


def test_queues_are_created_changed_cleared_and_removed(page: Browser, there: World) -> None:
    shown(page, there, "queues")
    page.click("Create…")
    put(page, "channel", "made")
    put(page, "queue", "7")
    put(page, "message_limit", "50")
    put(page, "dead_letter", "dead")
    page.run("document.getElementById('question-yes').click()")
    wait(page, "Write a queue as CHANNEL/NUMBER")
    put(page, "dead_letter", "dead/1")
    yes(page)
    page.until("location.hash === '#/queues/made/7'")
    wait(page, "made/7", "Message limit")
    options = api(page, "channels/made/queues/7")["options"]
    assert options["message_limit"] == 50
    assert options["dead_letter"] == {"channel": "dead", "queue": 1}
    page.click("Edit…")
    put(page, "message_limit", "60")
    yes(page)
    wait(page, "made/7 is changed")
    changed = api(page, "channels/made/queues/7")["options"]
    assert changed == {**options, "message_limit": 60}, "nothing else has changed"
    page.click("Pause")
    wait(page, "made/7 is paused", "paused")
    page.click("Go on")
    wait(page, "made/7 delivers")
    with there.client("filler") as client:
        for number in range(3):
            client.push("made", 7, f"{number}")
    wait(page, "Messages wait, and nobody consumes them")
    page.click("Clear…")
    wait(page, "3 messages go")
    assert page.run("document.activeElement.textContent") == "Cancel"
    page.key("Escape")
    page.until("!document.getElementById('question').open")
    assert api(page, "channels/made/queues/7")["waiting"] == 3
    page.click("Clear…")
    yes(page)
    wait(page, "made/7 is cleared")
    assert api(page, "channels/made/queues/7")["waiting"] == 0
    page.click("Remove…")
    yes(page)
    page.until("location.hash === '#/queues'")
    assert "made/7" not in [
        f"{each['channel']}/{each['queue']}" for each in api(page, "queues?limit=1000")["items"]
    ]


def test_many_messages_go_only_when_the_name_is_typed(page: Browser, there: World) -> None:
    with there.client("filler") as client:
        client.create_queue("many", 1)
        for _ in range(101):
            client.push("many", 1, "m", nowait=True)
        client.push("many", 1, "the last")
    shown(page, there, "queues/many/1")
    page.click("Clear…")
    put(page, "typed", "many/2")
    page.run("document.getElementById('question-yes').click()")
    wait(page, "This is not many/1")
    put(page, "typed", "many/1")
    yes(page)
    wait(page, "many/1 is cleared")
    assert api(page, "channels/many/queues/1")["waiting"] == 0


def test_nothing_is_cleared_when_much_more_has_come_meanwhile(page: Browser, there: World) -> None:
    with there.client("filler") as client:
        client.create_queue("grows", 1)
        client.push("grows", 1, "the one that was seen")
        shown(page, there, "queues/grows/1")
        page.click("Clear…")
        wait(page, "1 messages go")
        for _ in range(20):
            client.push("grows", 1, "later")
    yes(page)
    wait(page, "21 messages would go, and not 1")
    assert api(page, "channels/grows/queues/1")["waiting"] == 21
    expected(page, 412)


def test_several_queues_at_once(page: Browser, there: World) -> None:
    with there.client("maker") as client:
        for number in (1, 2, 3):
            client.create_queue("group", number)
    shown(page, there, "queues?filter=name:group")
    page.until("document.querySelectorAll('.vrow').length === 3")
    for _ in range(2):
        page.run(
            "[...document.querySelectorAll('.vrow:not([aria-selected=true]) input')][0].click()"
        )
    wait(page, "2 picked")
    page.click("Pause")
    wait(page, "2 queues are paused")
    found = [each["status"] for each in api(page, "queues?filter=name:group")["items"]]
    assert sorted(found) == ["paused", "paused", "push"]


def test_channels_are_created_changed_and_removed(page: Browser, there: World) -> None:
    shown(page, there, "channels")
    page.click("Create…")
    put(page, "channel", "fresh")
    put(page, "client_limit", "4")
    yes(page)
    wait(page, "The channel fresh is created")
    open_row(page, "fresh")
    page.click("Edit…")
    put(page, "client_limit", "5")
    yes(page)
    wait(page, "The channel fresh is changed")
    assert api(page, "channels/fresh")["options"]["client_limit"] == 5
    open_row(page, "fresh")
    page.click("Remove…")
    yes(page)
    wait(page, "The channel fresh is removed")


def test_routers_are_created_bound_switched_off_and_removed(page: Browser, there: World) -> None:
    shown(page, there, "routers")
    page.click("Create…")
    put(page, "name", HOSTILE)
    yes(page)
    wait(page, HOSTILE, "It has no bindings")
    page.click("Add a binding…")
    put(page, "name", "first")
    put(page, "target", "orders")
    put(page, "queue", "2")
    yes(page)
    wait(page, "first", "orders/2")
    page.click("Disable")
    wait(page, "is disabled", "disabled")
    page.click("Enable")
    wait(page, "is enabled")
    page.run("[...document.querySelectorAll('td button')].at(-1).click()")
    yes(page)
    wait(page, "The binding first is removed", "It has no bindings")
    page.click("Remove router…")
    yes(page)
    wait(page, "is removed")
    assert [each["name"] for each in api(page, "routers")["items"]] == ["sales"]


def test_messages_are_published(page: Browser, there: World) -> None:
    with there.client("maker") as client:
        client.create_queue("letters", 1)
    shown(page, there, "publish?name=letters/1")
    put(page, "headers", "Country: fr\nColour: bleu\n")
    put(page, "body", '{"a": "é"}')
    put(page, "count", "3")
    page.run("document.querySelector('main form button').click()")
    wait(page, "3 messages are published to letters/1")
    (first, *_) = found = api(page, "channels/letters/queues/1/messages")["items"]
    assert [each["text"] for each in found] == ['{"a": "é"}'] * 3
    assert ["Country", "fr"] in first["headers"]
    put(page, "to", "router")
    put(page, "name", "sales")
    put(page, "count", "1")
    page.run("document.querySelector('main form button').click()")
    wait(page, "The message is published to sales")
    put(page, "to", "queue")
    put(page, "name", "letters")
    page.run("document.querySelector('main form button').click()")
    wait(page, "Write a queue as CHANNEL/NUMBER")


def test_a_deferred_message_is_cancelled(page: Browser, there: World) -> None:
    with there.client("maker") as client:
        client.create_queue("later", 1)
        client.push("later", 1, "tomorrow", delay_s=86_400)
    shown(page, there, "queues/later/1/messages")
    page.run("document.querySelector('main td button').click()")
    wait(page, "tomorrow", "Due")
    page.click("Cancel message…")
    yes(page)
    wait(page, "The message is cancelled", "No message fits")
    assert api(page, "channels/later/queues/1")["deferred"] == 0


def test_looking_takes_no_message(page: Browser, there: World) -> None:
    with there.client("maker") as client:
        client.create_queue("calm", 1)
        client.push("calm", 1, "still here")
    before = api_of_queue(page, there, "calm")
    shown(page, there, "queues/calm/1/messages")
    wait(page, "still here")
    after = api_of_queue(page, there, "calm")
    assert (after["waiting"], after["counts"]) == (before["waiting"], before["counts"])


def api_of_queue(page: Browser, there: World, channel: str) -> Any:
    """The first queue of a channel."""
    shown(page, there, "queues")
    return api(page, f"channels/{channel}/queues/1")


def test_dead_letters_are_sent_again(page: Browser, there: World) -> None:
    with there.client("maker") as client:
        little = QueueOptions(message_limit=1, when_full="dead-letter", dead_letter_queue="grave;1")
        client.create_queue("small", 1, little)
        client.create_queue("grave", 1)
        client.create_queue("other", 1)
        for number in range(4):
            client.push("small", 1, f"small {number}")
    shown(page, there, "queues/grave/1")
    wait(page, "Dead letters in this queue", "full", "small/1")
    page.run("document.querySelector('[aria-label^=Pick]').click()")
    wait(page, "1 picked")
    page.click("Send to…")
    put(page, "to", "other/1")
    yes(page)
    wait(page, "1 messages")
    yes(page)
    wait(page, "The messages are sent to other/1")
    moved = api(page, "channels/other/queues/1/messages")["items"]
    assert [each["text"] for each in moved] == ["small 0"]
    page.until("document.querySelectorAll('[aria-label^=Pick]').length === 2")
    with there.client("maker") as client:
        client.update_queue("small", 1, QueueOptions(message_limit=10))
    page.click("Send again…")
    wait(page, "2 messages")
    yes(page)
    wait(page, "The messages are sent to their first queues")
    assert api(page, "channels/grave/queues/1")["waiting"] == 0
    assert api(page, "channels/small/queues/1")["waiting"] == 3


def test_a_client_is_looked_at_and_disconnected(page: Browser, there: World) -> None:
    shown(page, there, "clients")
    with there.client("to-be-cut") as client:
        client.join("orders")
        page.until("document.body.innerText.includes('to-be-cut')")
        open_row(page, "to-be-cut")
        wait(page, "Subscriptions", "orders", "Credit")
        page.click("Disconnect…")
        yes(page)
        wait(page, "to-be-cut is disconnected")


def test_events_are_shown_as_they_happen(page: Browser, there: World) -> None:
    shown(page, there, "events")
    wait(page, " · connected")
    with there.client("noisy") as client:
        wait(page, "ClientConnected", "noisy")
        client.create_queue("loud", 1)
        wait(page, "ChannelCreated", "loud")
        page.click("Pause")
        put(page, "channel", "loud")
        page.click("Follow")
        page.until("location.hash === '#/events?channel=loud'")
        wait(page, "Of the channel loud", " · connected")
        client.create_queue("loud", 2)
        wait(page, "QueueCreated", "loud/2")
    wait(page, "ClientDisconnected")
    put(page, "text", "loud")
    page.until("!document.querySelector('.log').innerText.includes('ClientDisconnected')")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("crowded"), hostile=False, stores=False) as made:
        made.crowd("many", 10_000)
        with made.client("maker") as client:
            for _ in range(9):
                client.push("many", 9_999, "one that waits")
        yield made


# --- Who may --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("guarded"), guarded=True, hostile=False) as made:
        yield made


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
    assert menu == ["Overview", "Queues", "Channels", "Publish"]
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


# --- Keyboard, many rows, a server that goes and comes back ---------------------------------------


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


def test_ten_thousand_queues(page: Browser, crowded: World) -> None:
    shown(page, crowded, "queues?sort=-waiting")
    wait(page, "200 of 10,003 rows are here", "many/9999")
    rows = "document.querySelectorAll('.vrow').length"
    assert page.run(rows) < 60, "only those that are seen are in the document"
    for _ in range(5):
        took = page.run(
            "(() => { const table = document.querySelector('.vtable'), began = performance.now();"
            " table.scrollTop += table.clientHeight; table.dispatchEvent(new Event('scroll'));"
            " return performance.now() - began; })()"
        )
        assert took < 100, f"a step took {took:.0f} ms"
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
