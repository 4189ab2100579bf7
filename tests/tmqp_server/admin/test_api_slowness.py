"""Slow turns, slow consumers, and traces of single clients."""

from __future__ import annotations

import pytest

from tests.tmqp_server.access.kept import Kept
from tests.tmqp_server.admin.api_stage import ApiStage, Caller
from tests.tmqp_server.peers import operation, push
from tmqp.constants import OP_CREATE_QUEUE, OP_JOIN
from tmqp_server.access.auditing import Auditor
from tmqp_server.hub.tracing import MOST_LINES

TRACE = "/api/v1/clients/p/trace"


@pytest.fixture
def stage() -> ApiStage:
    return ApiStage()


@pytest.fixture
def caller(stage: ApiStage) -> Caller:
    return stage.caller()


def test_a_slow_turn_is_kept_with_the_connection_it_was_spent_with(
    stage: ApiStage, caller: Caller
) -> None:
    busy = stage.connect("p")
    pulse = stage.turn.pulse
    pulse.woke, pulse.at, pulse.number, pulse.gap = 1.0, 1.02, busy, 0.0
    slow = pulse.end(1.2)
    assert slow is not None
    stage.turn.turn_was_slow(slow)
    told = caller.get("/api/v1/server/slow").json
    assert (told["slow_turn_ms"], told["count"], told["consumers"]) == (50, 1, [])
    (turn,) = told["turns"]
    assert turn["took_ms"] == pytest.approx(200)
    assert turn["session_ms"] == pytest.approx(180)
    assert (turn["session"], turn["peer"]) == (busy, stage.wires[busy].peer)


def test_consumers_are_slow_that_have_not_read_for_a_second(
    stage: ApiStage, caller: Caller
) -> None:
    producer, consumer = stage.connect("p"), stage.connect("k")
    headers = [("Queue-Id", "1"), ("Queue-Status", "broadcast")]
    stage.say(producer, operation(OP_CREATE_QUEUE, "c", b"{}", headers=headers))
    stage.say(consumer, operation(OP_JOIN, "c"))
    stage.wires[consumer].room = 0
    for number in range(40):
        stage.say(producer, push("c", 1, f"m{number}", b"x" * 8_000, source="p"))
    assert caller.get("/api/v1/server/slow").json["consumers"] == []
    stage.now += 1.5
    stage.turn.on_deadline(stage.now)
    (slow,) = caller.get("/api/v1/server/slow").json["consumers"]
    assert slow["session"] == consumer
    assert slow["waiting_bytes"] > 2_000
    assert slow["blocked_s"] >= 1.5


def test_a_trace_shows_what_a_client_does_and_nothing_that_messages_say(
    stage: ApiStage, caller: Caller
) -> None:
    client, other = stage.connect("p"), stage.connect("other")
    assert caller.ask("POST", TRACE, {}).status == 201
    stage.say(client, push("c", 1, "m1", b"secret", source="p", pending_acknowledge=True))
    stage.say(other, push("c", 1, "m2", b"x", source="other"))
    stage.say(client, operation(OP_JOIN, "c"))
    answer = caller.get(TRACE)
    assert b"secret" not in answer.body
    lines = answer.json["lines"]
    asked = [each["what"] for each in lines if each["way"] == "in"]
    assert asked == ["Push", "Join"]
    first = next(each for each in lines if each["what"] == "Push")
    assert first["head"]["message_id"] == "m1"
    assert (first["head"]["channel"], first["head"]["queue_id"]) == ("c", 1)
    last = lines[-1]["number"]
    assert caller.get(f"{TRACE}?after={last}").json["lines"] == []
    stage.end(client)
    ended = caller.get(f"{TRACE}?after={last}").json
    assert (ended["running"], ended["lines"][-1]["way"]) == (False, "end")
    assert caller.ask("DELETE", TRACE).status == 204
    assert caller.get(TRACE).status == 404
    assert not stage.hub.tracer.running


def test_a_trace_is_over_after_its_time_and_keeps_the_last_lines(
    stage: ApiStage, caller: Caller
) -> None:
    client = stage.connect("p")
    assert caller.ask("POST", TRACE, {"seconds": 10}).status == 201
    for number in range(MOST_LINES + 5):
        stage.say(client, push("c", 1, f"m{number}", source="p"))
    told = caller.get(TRACE).json
    assert told["count"] > MOST_LINES
    assert len(told["lines"]) == MOST_LINES
    stage.now += 11
    stage.say(client, push("c", 1, "late", source="p"))
    told = caller.get(TRACE).json
    assert not told["running"]
    assert all(each["head"].get("message_id") != "late" for each in told["lines"])


def test_so_many_clients_are_traced_and_only_those_that_are_there(
    stage: ApiStage, caller: Caller
) -> None:
    for number in range(5):
        stage.connect(f"c{number}")
    asked = [f"/api/v1/clients/c{number}/trace" for number in range(5)]
    assert [caller.ask("POST", each, {}).status for each in asked] == [201] * 4 + [409]
    assert caller.ask("POST", asked[0], {"seconds": 1}).status == 201, "it is traced anew"
    stage.now += 2
    assert caller.ask("POST", asked[4], {}).status == 201, "in the place of one that is over"
    assert caller.ask("POST", "/api/v1/clients/nobody/trace", {}).status == 404
    assert caller.ask("POST", asked[1], {"seconds": 301}).status == 422


def test_who_traced_whom_is_audited_also_of_those_who_may_not() -> None:
    stage = ApiStage(guarded=True)
    kept = Kept()
    stage.hub.auditor = Auditor(kept)
    stage.connect("p")
    caller = stage.caller()
    assert caller.ask("POST", TRACE, {"seconds": 60}).status == 201
    assert caller.get(TRACE).status == 200
    assert caller.ask("DELETE", TRACE).status == 204
    assert caller.ask("DELETE", TRACE).status == 404
    stage.policy = lambda question: question.right != "manage-clients"
    curious = stage.caller()
    assert curious.ask("POST", TRACE, {}).status == 403
    found = [each for each in kept.told() if each[1] != "log-in"]
    assert [each[1:] for each in found] == [
        ("begin-trace", "p", 200),
        ("end-trace", "p", 200),
        ("end-trace", "p", 404),
        ("begin-trace", "p", 401),
    ]
    assert len({each[0] for each in found}) == 2, "it says who asked"
    assert stage.hub.gate is not None
    assert stage.hub.gate.denied == {"manage-clients": 1}


def test_where_the_audit_is_required_and_cannot_be_written_nobody_is_traced(
    stage: ApiStage, caller: Caller
) -> None:
    kept = Kept()
    kept.ready = False
    stage.hub.auditor = Auditor(kept, required=True)
    stage.connect("p")
    assert caller.ask("POST", TRACE, {}).status == 503
    assert not stage.hub.tracer.running
