"""Consumers over HTTP, which outlive their connections: nothing is lost when a client vanishes."""

from __future__ import annotations

from typing import Any

from tests.tmqp_server.admin.api_stage import ApiStage, Caller
from tests.tmqp_server.peers import operation, push
from tmqp.constants import OP_REMOVE_CHANNEL
from tmqp_server.admin.api import consuming
from tmqp_server.doors.port import SERVER_STOPS

CONSUMERS = "/api/v1/consumers"


def make_stage(**options: Any) -> ApiStage:
    """A server with a queue orders/1."""
    stage = ApiStage(**options)
    stage.caller().ask("PUT", "/api/v1/channels/orders/queues/1", {"status": "push"})
    return stage


def publish(stage: ApiStage, *names: str) -> None:
    for name in names:
        target = f"/api/v1/channels/orders/queues/1/messages?id={name}"
        assert stage.caller().ask("POST", target, b"x").status == 201


def create(caller: Caller, **more: Any) -> str:
    answer = caller.ask("POST", CONSUMERS, {"channel": "orders", **more})
    assert answer.status == 201, answer
    return f"{CONSUMERS}/{answer.json['id']}"


def ids(caller: Caller, consumer: str, query: str = "") -> list[str]:
    answer = caller.get(f"{consumer}/messages{query}")
    assert answer.status == 200, answer
    return [each["id"] for each in answer.items]


def settle(caller: Caller, consumer: str, *items: dict[str, Any]) -> list[int]:
    said = [{"queue": 1, **each} for each in items]
    answer = caller.ask("POST", f"{consumer}/acknowledges", {"items": said})
    assert answer.status == 200, answer
    return [each["code"] for each in answer.items]


def pass_time(stage: ApiStage, seconds: float) -> None:
    """The event loop's timer fires, and everybody's deadlines come."""
    stage.now += seconds
    for each in stage.world.beats:
        each(stage.now)
    stage.turn.on_deadline(stage.now)
    stage.attend()


def waiting(stage: ApiStage) -> int:
    """Messages that wait in all queues."""
    found: int = stage.caller().get("/api/v1/queues?fields=waiting").items[0]["waiting"]
    return found


def test_a_consumer_is_asked_by_one_connection_after_the_other() -> None:
    stage = make_stage()
    consumer = create(stage.caller())
    publish(stage, "m1", "m2", "m3")
    assert waiting(stage) == 3, "nothing comes that nobody has asked for"
    assert ids(stage.caller(), consumer, "?max=2") == ["m1", "m2"]
    assert settle(stage.caller(), consumer, {"id": "m1"}, {"id": "m2"}) == [0, 0]
    assert settle(stage.caller(), consumer, {"id": "m1"}, {"id": "m3"}) == [404, 404]
    assert ids(stage.caller(), consumer) == ["m3"]
    assert stage.caller().ask("DELETE", consumer).status == 204
    assert stage.caller().get(consumer).status == 404
    assert waiting(stage) == 1


def test_a_fetch_waits_for_the_first_message() -> None:
    stage = make_stage()
    caller = stage.caller()
    consumer = create(caller)
    assert ids(caller, consumer, "?wait_ms=500") == []
    caller.send("GET", f"{consumer}/messages?wait_ms=5000")
    assert not caller.wire.sent
    stage.say(stage.connect("bob"), push("orders", 1, "m1", b"x", source="bob"))
    answer = caller.take()
    assert [(each["id"], each["queue"], each["ack"]) for each in answer.items] == [("m1", 1, True)]


def test_a_fetch_looks_at_nothing_until_something_comes() -> None:
    """It looked every 20 ms, with as many wake-ups of the server as there were consumers."""
    stage = make_stage()
    caller = stage.caller()
    consumer = create(caller)
    began = stage.now
    caller.send("GET", f"{consumer}/messages?wait_ms=5000")
    stage.turn.on_deadline(stage.now)
    stage.attend()
    assert stage.hub.session_deadline(caller.number) == began + 5.0
    stage.now += 1.0
    bob = stage.connect("bob")
    said = [push("orders", 1, f"m{each}", b"x", source="bob") for each in range(3)]
    stage.say(bob, *said)
    assert [each["id"] for each in caller.take().items] == ["m0", "m1", "m2"]
    assert stage.now == began + 1.0, "it was answered in the moment in which they came"


def test_the_end_of_a_consumer_ends_the_fetch_that_waits_for_it() -> None:
    stage = make_stage()
    for end in ("DELETE", "REMOVE"):
        caller = stage.caller()
        consumer = create(caller)
        caller.send("GET", f"{consumer}/messages?wait_ms=60000")
        began = stage.now
        if end == "DELETE":
            assert stage.caller().ask("DELETE", consumer).status == 204
        else:
            stage.say(stage.connect("bob"), operation(OP_REMOVE_CHANNEL, "orders"))
        assert caller.take().status == 404
        assert stage.now == began


def test_each_outcome_is_that_of_the_broker() -> None:
    stage = make_stage()
    caller = stage.caller()
    consumer = create(caller)
    publish(stage, "m1", "m2")
    assert ids(caller, consumer) == ["m1", "m2"]
    release = {"id": "m1", "outcome": "release", "put_back": "start"}
    extend = {"id": "m2", "outcome": "extend", "timeout_ms": 60_000}
    assert settle(caller, consumer, release, extend) == [0, 0]
    assert ids(caller, consumer) == ["m1"]
    assert settle(caller, consumer, {"id": "m1", "outcome": "nack", "reason": "no"}) == [0]
    for wrong in (
        {"outcome": "burn", "id": "m"},
        {},
        {"id": "m", "reason": "two\nlines", "outcome": "nack"},
        {"id": "m", "outcome": "extend"},
        {"id": "m", "wrong": 1},
        {"id": 5},
    ):
        answer = caller.ask("POST", f"{consumer}/acknowledges", {"items": [wrong]})
        assert answer.status == 422


# --- Who vanishes --------------------------------------------------------------------------------


def test_what_an_abandoned_consumer_has_goes_to_another_one() -> None:
    stage = make_stage()
    consumer = create(stage.caller(), idle_s=30, ack_timeout_ms=1_000_000)
    publish(stage, "m1", "m2", "m3")
    assert ids(stage.caller(), consumer, "?max=2") == ["m1", "m2"]
    assert settle(stage.caller(), consumer, {"id": "m1"}) == [0]
    pass_time(stage, 29.0)
    assert waiting(stage) == 1
    pass_time(stage, 2.0)
    assert stage.caller().get(consumer).status == 404
    assert len(stage.api.consumers) == 0
    other = create(stage.caller())
    assert sorted(ids(stage.caller(), other)) == ["m2", "m3"]


def test_a_client_that_vanishes_while_it_waits_loses_nothing() -> None:
    stage = make_stage()
    consumer = create(stage.caller())
    gone = stage.caller()
    gone.send("GET", f"{consumer}/messages?wait_ms=5000&max=10")
    stage.end(gone.number)
    publish(stage, "m1", "m2")
    assert waiting(stage) == 0, "they were delivered: somebody had asked for them"
    assert ids(stage.caller(), consumer) == ["m1", "m2"]


def test_an_answer_that_nobody_got_comes_again_when_the_time_to_acknowledge_is_over() -> None:
    stage = make_stage()
    consumer = create(stage.caller(), ack_timeout_ms=1_000)
    publish(stage, "m1")
    lost = stage.caller()
    lost.send("GET", f"{consumer}/messages?wait_ms=5000")
    stage.end(lost.number)
    pass_time(stage, 1.5)
    assert ids(stage.caller(), consumer, "?wait_ms=1000") == ["m1"]


def test_what_lapses_before_it_is_fetched_is_not_shown() -> None:
    stage = make_stage()
    consumer = create(stage.caller(), ack_timeout_ms=1_000)
    gone = stage.caller()
    gone.send("GET", f"{consumer}/messages?wait_ms=100")
    stage.end(gone.number)
    publish(stage, "m1")
    assert stage.caller().get(consumer).json["waiting"] == 1
    stage.caller().ask("DELETE", "/api/v1/channels/orders/queues/1/messages?in_flight=yes")
    pass_time(stage, 1.5)
    assert ids(stage.caller(), consumer) == []


def test_a_second_fetch_takes_the_place_of_the_first() -> None:
    stage = make_stage()
    consumer = create(stage.caller())
    first, second = stage.caller(), stage.caller()
    first.send("GET", f"{consumer}/messages?wait_ms=60000")
    second.send("GET", f"{consumer}/messages?wait_ms=60000")
    assert first.take().items == []
    publish(stage, "m1")
    assert [each["id"] for each in second.take().items] == ["m1"]


def test_the_end_of_its_channel_and_of_the_server_is_its_own() -> None:
    stage = make_stage()
    consumer = create(stage.caller())
    stage.say(stage.connect("bob"), operation(OP_REMOVE_CHANNEL, "orders"))
    assert stage.caller().get(f"{consumer}/messages").status == 404
    stage = make_stage()
    create(stage.caller())
    stage.turn.close_all(SERVER_STOPS, stage.now)
    stage.attend()
    pass_time(stage, 61.0)
    assert stage.hub.broker.statistics().sessions == 0


def test_an_operator_can_end_it() -> None:
    stage = make_stage()
    consumer = create(stage.caller())
    publish(stage, "m1")
    assert ids(stage.caller(), consumer) == ["m1"]
    clients = stage.caller().get("/api/v1/clients?filter=subscriptions%3D1")
    [client] = [each["id"] for each in clients.items] or [""]
    assert stage.caller().ask("DELETE", f"/api/v1/clients/{client}").status == 204
    assert waiting(stage) == 1
    assert stage.caller().get(f"{consumer}/messages").status == 404


# --- Who may -------------------------------------------------------------------------------------


def test_a_consumer_belongs_to_who_made_it() -> None:
    stage = make_stage(guarded=True)
    ann, bob = {"Authorization": "Bearer ann"}, {"Authorization": "Bearer bob"}
    consumer = create(stage.caller(**ann))
    publish(stage, "m1")
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/messages", None),
        ("POST", "/acknowledges", {"items": [{"id": "m1", "queue": 1}]}),
        ("DELETE", "", None),
    ):
        answer = stage.caller(**bob).ask(method, f"{consumer}{path}", body)
        there_is_none = stage.caller(**bob).ask(method, f"{CONSUMERS}/none{path}", body)
        assert (answer.status, answer.json["detail"]) == (404, there_is_none.json["detail"])
    assert stage.caller(**bob).get(CONSUMERS).items == []
    assert len(stage.caller(**ann).get(CONSUMERS).items) == 1


def test_who_may_join_no_more_gets_nothing_more() -> None:
    stage = make_stage(guarded=True)
    consumer = create(stage.caller())
    publish(stage, "m1", "m2")
    assert ids(stage.caller(), consumer, "?max=1") == ["m1"]
    stage.policy = lambda question: question.right != "join"
    assert stage.caller().get(f"{consumer}/messages").status == 403
    assert stage.caller().ask("POST", CONSUMERS, {"channel": "orders"}).status == 403
    assert stage.caller().ask("POST", CONSUMERS, {"channel": "none"}).status == 403
    assert settle(stage.caller(), consumer, {"id": "m1"}) == [0]
    stage.policy = lambda _: True
    assert stage.caller().ask("POST", CONSUMERS, {"channel": "none"}).status == 404
    pass_time(stage, 0.3)
    assert len(stage.api.consumers) == 1, "what was refused has left nothing"


def test_there_are_not_too_many(monkeypatch: Any) -> None:
    monkeypatch.setattr(consuming, "_MOST_OF_ONE", 2)
    stage = make_stage()
    for _ in range(2):
        create(stage.caller())
    refused = stage.caller().ask("POST", CONSUMERS, {"channel": "orders"})
    assert (refused.status, refused.json["code"]) == (409, 482)
