"""How many requests of operators work at once, and how much of the event loop's time they take.

No clock is read: the time that work takes is what the tests say.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_server.admin.api_stage import ApiStage, Caller
from tests.tmqp_server.admin.stage import value_of
from tmqp_server.admin.door import AdminDoor
from tmqp_server.admin.options import AdminOptions
from tmqp_server.admin.places import Places
from tmqp_server.admin.share import LoopShare
from tmqp_server.doors.tables import record_of_options

#: Its answer is made in steps, so it is at work until deadlines are seen to.
LONG = "/api/v1/server"


def places_of(stage: ApiStage) -> Places:
    assert isinstance(stage.admin, AdminDoor)
    return stage.admin.places


def crowd(stage: ApiStage, count: int) -> list[Caller]:
    """So many requests that are not answered yet, on connections of their own."""
    found = [stage.caller() for _ in range(count)]
    for each in found:
        each.send("GET", LONG)
        assert not each.wire.sent
    return found


# --- Places --------------------------------------------------------------------------------------


def test_so_many_work_at_once_others_wait_and_further_ones_come_again() -> None:
    stage = ApiStage(max_at_work=2, max_waiting=1)
    first, second, third = crowd(stage, 3)
    refused = stage.caller().get(LONG)
    assert (refused.status, dict(refused.headers)["Retry-After"]) == (503, "1")
    assert refused.json["type"] == "/problems/service-unavailable"
    found = places_of(stage)
    assert (len(found.at_work), len(found.line), found.refused) == (2, 1, 1)
    assert [each.take().status for each in (third, first, second)] == [200, 200, 200]
    assert (len(found.at_work), len(found.line)) == (0, 0)
    text = stage.metrics()
    assert value_of(text, "tmqp_admin_requests_at_work") == 1, "the page itself"
    assert value_of(text, "tmqp_admin_requests_waiting") == 0
    assert value_of(text, "tmqp_admin_requests_refused_total") == 1


def test_those_that_wait_begin_in_the_order_in_which_they_came() -> None:
    stage = ApiStage(max_at_work=1)
    callers = crowd(stage, 4)
    order: list[int] = []
    while len(order) < len(callers):
        stage.turn.on_deadline(stage.now)
        stage.attend()
        order += [n for n, each in enumerate(callers) if each.wire.sent and n not in order]
    assert order == [0, 1, 2, 3]
    assert stage.now == 1.0, "each begins when the one before it is answered"


@pytest.mark.parametrize("which", [0, 1], ids=["at work", "in the line"])
def test_who_goes_gives_the_place_up(which: int) -> None:
    stage = ApiStage(max_at_work=1, max_waiting=1)
    callers = crowd(stage, 2)
    stage.end(callers[which].number)
    other = stage.caller()
    other.send("GET", LONG)
    assert callers[1 - which].take().status == 200
    assert other.take().status == 200


def test_a_server_that_closes_answers_those_that_wait() -> None:
    stage = ApiStage(max_at_work=1)
    callers = crowd(stage, 2)
    stage.turn.close_all("the server stops", stage.now)
    stage.attend()
    assert [each.take().status for each in callers] == [503, 503]
    assert not places_of(stage).at_work


def test_what_waits_for_messages_and_probes_need_no_place() -> None:
    stage = ApiStage(max_at_work=1, max_waiting=0)
    stage.caller().ask("PUT", "/api/v1/channels/c/queues/1", {"status": "push"})
    caller = stage.caller()
    consumer = caller.ask("POST", "/api/v1/consumers", {"channel": "c"}).json["id"]
    caller.send("GET", f"/api/v1/consumers/{consumer}/messages?wait_ms=60000")
    stage.caller().send("GET", "/api/v1/live?topics=overview", Accept="text/event-stream")
    assert not places_of(stage).at_work
    (busy,) = crowd(stage, 1)
    assert stage.caller().get("/healthz").status == 200
    assert stage.caller().ask("POST", "/api/v1/channels/c/queues/1/messages", b"x").status == 201
    assert busy.take().status == 200


def test_a_request_that_cannot_be_carried_out_keeps_no_place() -> None:
    stage = ApiStage(max_at_work=1, max_waiting=0)
    for target, status in (
        (f"{LONG}?wrong=1", 400),
        ("/api/v1/channels/none", 404),
        ("/api/v1/queues?sort=wrong", 400),
    ):
        assert stage.caller().get(target).status == status
    assert stage.caller().get(LONG).status == 200


# --- Share ---------------------------------------------------------------------------------------


class Work:
    """A clock by which each step takes so long; the loop's own time goes on by itself."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._at = 0.0

    def __call__(self) -> float:
        self._at += self._step_s
        return self._at


def spent_within(stage: ApiStage, seconds: float) -> float:
    """What requests take that follow each other without a pause, while the loop's time passes."""
    found = places_of(stage).share
    before = found.spent_s
    caller, until = stage.caller(), stage.now + seconds
    while stage.now < until:
        assert caller.get("/api/v1/session").status == 200
        stage.now += 0.001
    return found.spent_s - before


@pytest.mark.parametrize("woke", [0.0, 1.0], ids=["not measured", "one long turn"])
def test_requests_take_their_share_of_a_busy_loop_and_no_more(woke: float) -> None:
    """Each step takes 4 ms; where turns are not measured, nobody knows that the loop is idle."""
    stage = ApiStage(share=5)
    stage.world.clock = Work(0.004)
    stage.turn.pulse.woke = woke
    spent_within(stage, 1.0)  # what may come at once
    spent_s = spent_within(stage, 10.0)
    assert 0.4 < spent_s < 0.6
    assert value_of(stage.metrics(), "tmqp_admin_pauses_total") > 0


def test_requests_take_what_nobody_else_wants() -> None:
    stage = ApiStage(share=5)
    stage.world.clock = Work(0.004)
    stage.turn.pulse.woke = 1e9  # no turn is under way, and none has taken time
    spent_within(stage, 1.0)
    assert spent_within(stage, 2.0) > 1.0


def test_work_without_a_bound_never_pauses() -> None:
    stage = ApiStage(share=100)
    stage.world.clock = Work(10.0)
    spent_within(stage, 0.05)
    assert places_of(stage).share.pauses == 0


def test_a_step_under_way_waits_for_its_share_as_well() -> None:
    """A page of metrics is worked on in portions, and each is a step."""
    stage = ApiStage(share=5)
    stage.world.clock = Work(0.02)
    began = stage.now
    caller = stage.caller()
    for _ in range(4):
        assert caller.get("/metrics").status == 200
        stage.now += 1.0  # or it is the same page
    found = places_of(stage).share
    assert found.spent_s <= (stage.now - began) * 0.05 + 0.1 + 0.02
    assert caller.get("/healthz").status == 200


def test_what_the_broker_does_for_a_request_counts() -> None:
    share = LoopShare(5, iter_of([0.0, 0.1, 0.4, 0.5, 5.0, 5.2]), lambda _: -1.0)
    share.begin(1.0)
    share.end(1.0, asks=True)
    share.begin(1.0)  # the answer, in the same moment
    share.end(1.0, asks=False)
    assert share.spent_s == pytest.approx(0.4)
    share.begin(1.0)  # somebody else's
    share.end(1.0, asks=False)
    assert share.spent_s == pytest.approx(0.4 + 4.5)


def iter_of(values: list[float]) -> Any:
    found = iter(values)
    return lambda: next(found)


def test_a_protocol_within_a_web_socket_is_no_work_of_operators() -> None:
    stage = ApiStage(share=5)
    stage.world.clock = Work(1.0)
    caller = stage.caller()
    caller.send(
        "GET",
        "/api/v1/ws",
        Upgrade="websocket",
        Connection="Upgrade",
        Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==",
        Sec_WebSocket_Version="13",
        Sec_WebSocket_Protocol="tmqp",
    )
    spent_s = places_of(stage).share.spent_s
    stage.say(caller.number, b"\x89\x80\x00\x00\x00\x00")
    assert b"101" in caller.wire.sent
    assert places_of(stage).share.spent_s == spent_s


# --- Settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [("share", 0), ("share", 101), ("max_at_work", 0), ("max_waiting", -1)]
)
def test_a_bound_that_is_none_is_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        record_of_options(AdminOptions(), {name: value})
