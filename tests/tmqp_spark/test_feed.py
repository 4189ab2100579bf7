"""The feed of a broker's events: what it hears, and that it says where it heard nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tmqp_client import sync
from tmqp_spark.errors import InvalidOption, SparkError
from tmqp_spark.feed import MISSED, EventFeed, EventRow, EventSelection
from tmqp_spark.options import ConnectionOptions
from tmqp_spark.testing import Broker

Listen = Callable[..., EventFeed]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Makes feeds that hear, and ends them."""
    made: list[EventFeed] = []

    def make(broker: Broker, most: int = 1_000, **wanted: list[str]) -> EventFeed:
        chosen = EventSelection(
            wanted.get("events", []), wanted.get("channels", []), wanted.get("queues", [])
        )
        feed = EventFeed(ConnectionOptions(url=broker.url), chosen, most)
        made.append(feed)
        feed.listen()
        return feed

    yield make
    for feed in made:
        feed.stop()


def _until(feed: EventFeed, enough: Callable[[list[EventRow]], bool]) -> list[EventRow]:
    """What is heard until it is enough."""
    deadline = time.monotonic() + 20
    rows: list[EventRow] = []
    while time.monotonic() < deadline:
        count = feed.wait(len(rows), 1)
        rows = feed.rows(0, count)
        if enough(rows):
            return rows
    raise AssertionError(f"only this was heard: {rows}")


def _of(rows: list[EventRow], event: str) -> list[EventRow]:
    return [row for row in rows if row[1] == event]


def test_a_client_that_comes_and_goes_is_heard(own_broker: Broker, listen: Listen) -> None:
    feed = listen(own_broker, events=["ClientConnected", "clientdisconnected"])
    before = time.time_ns() // 1_000
    with sync.connect(own_broker.url, name="guest", client_id="g1"):
        pass
    rows = _until(feed, lambda rows: len(_of(rows, "ClientDisconnected")) > 0)
    assert [row[1] for row in rows] == ["ClientConnected", "ClientDisconnected"]
    ts, _, channel, queue, client_id, client_name, _, message_id, detail = rows[0]
    assert before <= ts <= time.time_ns() // 1_000
    assert (channel, queue, client_id, client_name, message_id) == (None, None, "g1", "guest", None)
    assert json.loads(detail)["Id"] == "g1"


def test_channels_and_queues_that_come_later_are_heard_too(
    own_broker: Broker, listen: Listen
) -> None:
    own_broker.create("f-old", 1)
    feed = listen(
        own_broker,
        events=["QueueCreated", "QueueRemoved", "MessageProduced"],
        channels=["*"],
        queues=["f-new/2"],
    )
    with sync.connect(own_broker.url, name="test") as client:
        client.create_queue("f-old", 3)
        client.create_channel("f-new")
        time.sleep(0.3)  # the feed subscribes when it hears of the channel, then of the queue
        client.create_queue("f-new", 2)
        time.sleep(0.3)
        message_id = client.push("f-new", 2, b"x")
        client.remove_queue("f-old", 3)
    rows = _until(feed, lambda rows: len(_of(rows, "QueueRemoved")) > 0)
    assert [row[2:4] for row in _of(rows, "QueueCreated")] == [("f-old", 3), ("f-new", 2)]
    (produced,) = _of(rows, "MessageProduced")
    assert (produced[2], produced[3], produced[7]) == ("f-new", 2, message_id)
    assert _of(rows, "ChannelCreated") == [], "it was for the feed's own use"


def test_what_there_is_no_room_for_is_counted(own_broker: Broker, listen: Listen) -> None:
    feed = listen(own_broker, most=4, events=["ChannelCreated"])
    with sync.connect(own_broker.url, name="test") as client:
        for number in range(10):
            client.create_channel(f"f-{number}")
    while feed.wait(0, 1) < 10:
        pass
    rows = feed.rows(0, 10)
    assert [row[1] for row in rows] == [MISSED] + ["ChannelCreated"] * 4
    assert json.loads(rows[0][8])["Count"] == 6
    assert [row[2] for row in feed.rows(8, 10)] == ["f-8", "f-9"]
    feed.drop(9)
    assert [row[2] for row in feed.rows(9, 10)] == ["f-9"]


def test_a_broker_that_was_away_leaves_a_row_about_it(own_broker: Broker, listen: Listen) -> None:
    feed = listen(own_broker, events=["ClientConnected"])
    own_broker.kill()
    own_broker.start()

    def heard_again(rows: list[EventRow]) -> bool:
        with sync.connect(own_broker.url, name="test", client_id="again"):
            pass
        return any(row[4] == "again" for row in rows)

    rows = _until(feed, heard_again)
    assert rows[0][1] == MISSED
    assert json.loads(rows[0][8])["Count"] is None
    assert "not connected" in json.loads(rows[0][8])["Reason"]


def test_a_broker_that_refuses_ends_it_with_the_reason() -> None:
    nobody = ConnectionOptions(
        url="tmq://127.0.0.1:9", connect_timeout_ms=300, request_timeout_ms=300
    )
    feed = EventFeed(nobody, EventSelection(["ClientConnected"], [], []), 10)
    with pytest.raises(SparkError, match="no connection came about"):
        feed.listen()


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ((["ClientArrived"], [], []), "no event 'ClientArrived'; the events are ClientConnected"),
        ((["QueueCreated"], [], []), "QueueCreated needs the option channels"),
        ((["MessageProduced"], ["*"], []), "MessageProduced .* option queues"),
        (([], [], ["orders"]), "queues is such as orders/7"),
        (([], [], ["orders/x"]), "queues is such as orders/7"),
    ],
)
def test_a_choice_that_cannot_be_is_explained(wanted: Any, says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        EventSelection(*wanted)


def test_without_names_all_that_are_possible_are_wanted() -> None:
    assert "QueueCreated" not in EventSelection([], [], []).events
    assert "ClientConnected" in EventSelection([], [], []).events
    every = EventSelection([], ["a"], ["a/1"])
    assert len(every.events) == 12
    assert "QueueCreated" in every.of_channel("a")
    assert every.of_channel("b") == []
