"""What an operator changes by the console, in a headless Chromium against a running server."""

from __future__ import annotations

from typing import Any

from tests.browser import Browser
from tests.tmqp_server.admin.console_driving import (
    MARKS,
    api,
    expected,
    open_row,
    put,
    shown,
    wait,
    yes,
)
from tests.tmqp_server.admin.console_world import HOSTILE, World
from tmqp.models import QueueOptions

pytestmark = MARKS


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
    wait(page, "Messages wait, and there is no consumer")
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
        client.create_queue("swells", 1)
        client.push("swells", 1, "the one that was seen")
        shown(page, there, "queues/swells/1")
        page.click("Clear…")
        wait(page, "1 messages go")
        for _ in range(20):
            client.push("swells", 1, "later")
    yes(page)
    wait(page, "this would remove 21 messages, not 1")
    assert api(page, "channels/swells/queues/1")["waiting"] == 21
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


def test_chosen_dead_letters_are_deleted(page: Browser, there: World) -> None:
    with there.client("maker") as client:
        little = QueueOptions(message_limit=1, when_full="dead-letter", dead_letter_queue="tomb;1")
        client.create_queue("tiny", 1, little)
        client.create_queue("tomb", 1)
        for number in range(4):
            client.push("tiny", 1, f"tiny {number}")
    shown(page, there, "queues/tomb/1")
    wait(page, "Dead letters in this queue", "None picked", "Export")
    assert "Delete…" not in page.text(), "all at once are cleared, which asks for the name"
    page.run("document.querySelector('[aria-label^=Pick]').click()")
    wait(page, "1 picked")
    page.click("Delete…")
    yes(page)
    wait(page, "1 dead letters are deleted")
    left = api(page, "channels/tomb/queues/1/messages")["items"]
    assert [each["text"] for each in left] == ["tiny 1", "tiny 2"]


def test_a_client_is_looked_at_and_disconnected(page: Browser, there: World) -> None:
    shown(page, there, "clients")
    with there.client("to-be-cut") as client:
        client.join("orders")
        page.until("document.body.innerText.includes('to-be-cut')")
        open_row(page, "to-be-cut")
        wait(page, "Subscriptions", "orders", "Credit", "127.0.0.1:")
        page.click("Trace 5 min")
        wait(page, "to-be-cut is traced")
        client.push("orders", 1, "not to be seen here", message_id="seen")
        wait(page, "message_id=seen", "asks Push")
        assert "not to be seen here" not in page.text()
        page.click("End the trace")
        wait(page, "The trace has ended")
        page.click("Disconnect…")
        yes(page)
        wait(page, "to-be-cut is disconnected")
    expected(page, 404)  # its page may have been brought up to date in between


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


def choose(page: Browser, name: str, value: str) -> None:
    """Choose from a list, as a user does."""
    put(page, name, value)
    page.run(f"document.querySelector('[name={name}]').dispatchEvent(new Event('change'))")


def test_an_operator_logs_more_and_backs_up(page: Browser, there: World) -> None:
    shown(page, there, "log")
    choose(page, "level", "debug")
    wait(page, "From now on debug")
    assert api(page, "server/log-level") == {"level": "debug"}
    shown(page, there, "storage")
    page.click("Back up")
    wait(page, "complete", "copied")
    assert api(page, "server/backup")["last"]["complete"] is True
    shown(page, there, "log")
    wait(page, "is complete")
    put(page, "text", "is complete")
    page.until("document.querySelectorAll('ol.log li').length === 1")
    choose(page, "level", "warning")
    wait(page, "From now on warning")
