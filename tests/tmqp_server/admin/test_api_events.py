"""Streams of events that a client comes back to: what it has missed is told, with rights asked."""

from __future__ import annotations

import re

import pytest

from tests.tmqp_server.admin.api_stage import ApiStage, Caller
from tests.tmqp_server.peers import operation
from tmqp.constants import OP_REMOVE_CHANNEL
from tmqp_server.admin.api import recalling
from tmqp_server.admin.api.recalling import KEEPER

CREATED = "/api/v1/events?kind=ChannelCreated"


def follow(stage: ApiStage, target: str = CREATED, last: str | None = None) -> Caller:
    caller = stage.caller(**({} if last is None else {"Last-Event-ID": last}))
    caller.send("GET", target)
    return caller


def heard(caller: Caller) -> list[tuple[str, str]]:
    """The ids and the names of the channels of all events since the last call."""
    text = bytes(caller.wire.sent).decode()
    caller.wire.sent.clear()
    found = re.findall(r'(?:id: (\S+)\n)?event: (\S+)\ndata: (?:{"Name":"(\w+)")?', text)
    return [(number, name or event) for number, event, name in found]


def beat(stage: ApiStage) -> None:
    """The event loop's timer fires."""
    stage.now += 0.25
    for each in stage.world.beats:
        each(stage.now)
    stage.attend()


def create(stage: ApiStage, *names: str) -> None:
    for name in names:
        stage.caller().ask("PUT", f"/api/v1/channels/{name}", {})


def test_who_comes_back_hears_what_it_has_missed() -> None:
    stage = ApiStage()
    first = follow(stage)
    beat(stage)
    create(stage, "a", "b")
    [(one, _), (two, _)] = told = heard(first)
    assert [name for _, name in told] == ["a", "b"]
    assert one != two
    stage.end(first.number)
    create(stage, "c", "d")
    again = follow(stage, last=one)
    assert [name for _, name in heard(again)] == ["b", "c", "d"]
    create(stage, "e")
    assert [name for _, name in heard(again)] == ["e"], "and each is told once"
    assert heard(follow(stage)) == [], "who names no id hears what happens from now on"


def test_another_event_or_channel_is_not_told() -> None:
    stage = ApiStage()
    create(stage, "a", "b")
    of_a = "/api/v1/events?kind=QueueCreated&channel=a"
    for target in (CREATED, of_a, "/api/v1/events?kind=QueueCreated&channel=b"):
        follow(stage, target)
    beat(stage)
    for name in ("a", "b"):
        stage.caller().ask("PUT", f"/api/v1/channels/{name}/queues/1", {})
    create(stage, "c")
    epoch = heard(follow(stage, last=""))[-1][0].partition("-")[0]
    text = follow(stage, of_a, f"{epoch}-0").wire.sent.decode()
    assert text.count("event: QueueCreated") == 1
    assert "ChannelCreated" not in text


@pytest.mark.parametrize("last", ["", "0", "-", "00000000-5", "x" * 100, "-1", "٣"])
def test_an_id_that_is_not_known_is_answered_with_what_there_is(last: str) -> None:
    stage = ApiStage()
    stage.end(follow(stage).number)
    beat(stage)
    create(stage, "a")
    caller = stage.caller()
    caller.fields["Last-Event-ID"] = last.encode().decode("latin-1")
    stage.say(
        caller.number,
        f"GET {CREATED} HTTP/1.1\r\nHost: here\r\nLast-Event-ID: {last}\r\n\r\n".encode(),
    )
    assert [name for _, name in heard(caller)] == ["missed", "a"]


def test_more_than_are_kept_are_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalling, "_KEPT", 3)
    stage = ApiStage()
    first = follow(stage)
    beat(stage)
    create(stage, "a")
    [(one, _)] = heard(first)
    stage.end(first.number)
    create(stage, "b", "c", "d")
    assert [name for _, name in heard(follow(stage, last=one))] == ["b", "c", "d"]
    create(stage, "e")
    assert [name for _, name in heard(follow(stage, last=one))] == ["missed", "c", "d", "e"]


def test_who_has_lost_the_right_hears_nothing() -> None:
    stage = ApiStage(guarded=True)
    first = follow(stage)
    beat(stage)
    stage.end(first.number)
    create(stage, "a")
    stage.policy = lambda question: question.right != "subscribe"
    caller = follow(stage, last="")
    assert caller.take().status == 403


def test_the_keeper_follows_no_more_than_it_may_and_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recalling, "_MOST_PLACES", 1)
    stage = ApiStage()
    create(stage, "a")
    follow(stage)
    beat(stage)
    follow(stage, "/api/v1/events?kind=QueueCreated&channel=a")
    beat(stage)
    session = stage.hub.broker.statistics().sessions
    stage.say(stage.connect("bob"), operation(OP_REMOVE_CHANNEL, "a"))
    beat(stage)
    clients = stage.caller().get("/api/v1/clients?filter=name%3Devents").items
    assert len(clients) == 1
    stage.caller().ask("DELETE", f"/api/v1/clients/{clients[0]['id']}")
    follow(stage)
    beat(stage)
    beat(stage)
    assert len(stage.caller().get("/api/v1/clients?filter=name%3Devents").items) == 1
    assert session > 0 < KEEPER
    create(stage, "b")
    assert [name for _, name in heard(follow(stage, last=""))][-1] == "b"
