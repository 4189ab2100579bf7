"""The resources of the API, each with what it shows and changes."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.tmqp_server.admin.api_stage import ApiStage, Caller
from tests.tmqp_server.peers import operation, push
from tmqp.constants import OP_JOIN

QUEUE = "/api/v1/channels/c/queues/1"


@pytest.fixture
def stage() -> ApiStage:
    return ApiStage()


@pytest.fixture
def caller(stage: ApiStage) -> Caller:
    return stage.caller()


def statuses(caller: Caller, *asked: tuple[Any, ...]) -> list[int]:
    """The statuses of requests, one after the other."""
    return [caller.ask(*each).status for each in asked]


# --- Channels and queues -------------------------------------------------------------------------


def test_a_queue_is_created_once_shown_changed_and_removed(caller: Caller) -> None:
    options = {"status": "pull", "durable": False, "message_limit": 5}
    assert caller.ask("PUT", QUEUE, options).status == 201
    assert caller.ask("PUT", QUEUE, options).status == 200
    assert caller.ask("PUT", QUEUE, {"message_limit": 6}).status == 409
    assert caller.ask("PUT", QUEUE, options, If_None_Match="*").status == 412
    assert caller.ask("PUT", QUEUE, {"message_limit": 6}, If_Match="*").status == 200
    shown = caller.get(QUEUE).json
    assert (shown["status"], shown["options"]["message_limit"], shown["waiting"]) == ("pull", 6, 0)
    assert caller.ask("PATCH", QUEUE, {"status": "paused"}).status == 204
    assert caller.get(QUEUE).json["status"] == "paused"
    assert statuses(caller, ("DELETE", QUEUE), ("DELETE", QUEUE), ("GET", QUEUE)) == [204, 404, 404]


def test_a_channel_is_created_once_shown_changed_and_removed(caller: Caller) -> None:
    path = "/api/v1/channels/a%2Fb"
    options = {"client_limit": 3, "queue_options": {"message_limit": 9}}
    assert caller.ask("PUT", path, options).status == 201
    assert caller.ask("PUT", path, options).status == 200
    assert caller.ask("PUT", path, {"client_limit": 4}).status == 409
    assert caller.ask("PATCH", path, {"client_limit": 4}).status == 204
    shown = caller.get(path).json
    assert (shown["name"], shown["options"]["client_limit"]) == ("a/b", 4)
    assert shown["queue_options"]["message_limit"] == 9
    assert [each["name"] for each in caller.get("/api/v1/channels").items] == ["a/b"]
    assert statuses(caller, ("DELETE", path), ("DELETE", path)) == [204, 404]


@pytest.mark.parametrize(
    "body",
    [
        {"status": "no such"},
        {"status": 3},
        {"message_limit": "many"},
        {"no_such": 1},
        {"dead_letter": "c"},
        {"message_limit": 1 << 70},
    ],
)
def test_options_that_cannot_be_are_told(caller: Caller, body: object) -> None:
    answer = caller.ask("PUT", QUEUE, body)
    assert answer.status in (400, 409, 422)
    assert answer.json["detail"]
    assert caller.get(QUEUE).status == 404


def test_the_queues_of_a_channel_are_a_list_of_their_own(caller: Caller) -> None:
    for name in ("c", "cc"):
        caller.ask("PUT", f"/api/v1/channels/{name}/queues/1", {})
    items = caller.get("/api/v1/channels/c/queues").items
    assert [each["channel"] for each in items] == ["c"]
    assert caller.get("/api/v1/channels/c*/queues").status == 404


def with_messages(stage: ApiStage, caller: Caller, count: int, **options: object) -> int:
    """A pull queue with messages m0, m1...; returns the session of their producer."""
    caller.ask("PUT", QUEUE, {"status": "pull", **options})
    producer = stage.connect("p")
    for number in range(count):
        stage.say(producer, push("c", 1, f"m{number}", b"%d" % number, source="p"))
    return producer


@pytest.mark.parametrize("target", [QUEUE, f"{QUEUE}/messages"])
def test_more_than_somebody_has_seen_is_not_thrown_away(stage: ApiStage, target: str) -> None:
    caller = stage.caller()
    with_messages(stage, caller, 30)
    refused = caller.ask("DELETE", target, If_Match='"14"')
    assert (refused.status, "remove 30 messages" in refused.json["detail"]) == (412, True)
    assert caller.ask("DELETE", target, If_Match="some").status == 400
    assert caller.ask("DELETE", target, If_Match='"15"').status == 204


def test_a_queue_is_cleared_of_one_priority(stage: ApiStage, caller: Caller) -> None:
    producer = with_messages(stage, caller, 2)
    stage.say(producer, push("c", 1, "h", source="p", high_priority=True))
    assert caller.ask("DELETE", f"{QUEUE}/messages?priority=high").status == 204
    assert [each["id"] for each in caller.get(f"{QUEUE}/messages").items] == ["m0", "m1"]
    assert caller.ask("DELETE", f"{QUEUE}/messages").status == 204
    assert caller.get(QUEUE).json["waiting"] == 0


def test_messages_are_published_looked_at_taken_and_removed(caller: Caller) -> None:
    caller.ask("PUT", QUEUE, {"status": "pull"})
    for name in ("a", "b", "c"):
        sent = caller.ask(
            "POST", f"{QUEUE}/messages?id={name}", b"hello", Content_Type="text/plain"
        )
        assert (sent.status, sent.json) == (201, {"id": name})
    assert [each["text"] for each in caller.get(f"{QUEUE}/messages").items] == ["hello"] * 3
    assert caller.ask("DELETE", f"{QUEUE}/messages/b?state=waiting").status == 204
    assert caller.ask("DELETE", f"{QUEUE}/messages/b?state=waiting").status == 404
    taken = caller.ask("POST", f"{QUEUE}/deliveries?max=5")
    assert [each["id"] for each in taken.items] == ["a", "c"]


def test_consumers_of_a_queue_are_those_of_its_channel(stage: ApiStage, caller: Caller) -> None:
    caller.ask("PUT", QUEUE, {})
    stage.say(stage.connect("k"), operation(OP_JOIN, "c"))
    assert [each["id"] for each in caller.get(f"{QUEUE}/consumers").items] == ["k"]
    assert caller.get("/api/v1/channels/none/consumers").status == 404


def test_a_request_with_the_same_key_is_carried_out_once(stage: ApiStage, caller: Caller) -> None:
    """Who did not hear the answer published its message again."""
    caller.ask("PUT", QUEUE, {"status": "pull"})
    target = f"{QUEUE}/messages"
    first = caller.ask("POST", target, b"one", Idempotency_Key="k1")
    again = stage.caller().ask("POST", target, b"one", Idempotency_Key="k1")
    assert (first.status, first.json, again.json) == (201, {"id": "k1"}, first.json)
    assert caller.get(QUEUE).json["waiting"] == 1
    assert caller.ask("POST", target, b"two", Idempotency_Key="k1").status == 409
    other = stage.caller(Authorization="Bearer other")
    assert other.ask("POST", target, b"two", Idempotency_Key="k1").status == 201
    assert caller.ask("POST", target, b"one", Idempotency_Key=" ").status == 400
    stage.now += 601.0
    stage.turn.on_deadline(stage.now)
    assert stage.caller().ask("POST", target, b"one", Idempotency_Key="k1").status == 201
    assert stage.caller().get(QUEUE).json["waiting"] == 3


def test_a_request_that_was_refused_for_now_is_carried_out_when_it_comes_again(
    stage: ApiStage, caller: Caller
) -> None:
    stage.api.world.reload = None
    key = {"Idempotency_Key": "k"}
    assert caller.ask("POST", "/api/v1/server/reload", **key).status == 501
    stage.api.world.reload = lambda: None
    assert caller.ask("POST", "/api/v1/server/reload", **key).status == 202


# --- Transfers -----------------------------------------------------------------------------------


def ids(caller: Caller, path: str = QUEUE) -> list[str]:
    """The messages of a queue."""
    return [each["id"] for each in caller.get(f"{path}/messages").items]


def test_messages_are_moved_to_another_queue(stage: ApiStage, caller: Caller) -> None:
    with_messages(stage, caller, 250)
    other = "/api/v1/channels/d/queues/2"
    caller.ask("PUT", other, {"status": "pull"})
    to = {"to": {"channel": "d", "queue": 2}}
    trial = caller.ask("POST", f"{QUEUE}/transfers", {**to, "dry_run": True}).json
    assert (trial["count"], trial["moved"]) == (250, 0)
    assert trial["targets"] == [{"channel": "d", "queue": 2, "count": 250}]
    some = caller.ask("POST", f"{QUEUE}/transfers", {**to, "ids": ["m7", "m3", "none"]}).json
    assert (some["count"], some["moved"], ids(caller, other)) == (2, 2, ["m7", "m3"])
    few = caller.ask("POST", f"{QUEUE}/transfers", {**to, "count": 2}).json
    assert (few["moved"], few["more"]) == (2, True)
    rest = caller.ask("POST", f"{QUEUE}/transfers", to).json
    assert (rest["moved"], rest["failed"], caller.get(QUEUE).json["waiting"]) == (246, [], 0)
    assert caller.get(other).json["waiting"] == 250


def test_a_transfer_tells_how_far_it_is_and_can_be_stopped(stage: ApiStage, caller: Caller) -> None:
    with_messages(stage, caller, 250)
    caller.ask("PUT", "/api/v1/channels/d/queues/2", {"status": "pull"})
    asks = stage.caller()
    asks.send("POST", f"{QUEUE}/transfers", {"to": {"channel": "d", "queue": 2}})
    [running] = caller.get(f"{QUEUE}/transfers").items
    assert (running["running"], 0 < running["moved"] < 250) == (True, True)
    assert caller.ask("DELETE", f"{QUEUE}/transfers/none").status == 404
    assert caller.ask("DELETE", f"{QUEUE}/transfers/{running['id']}").status == 204
    stopped = asks.take().json
    assert (stopped["id"], stopped["stopped"], stopped["more"]) == (running["id"], True, True)
    assert caller.get(QUEUE).json["waiting"] == 250 - stopped["moved"] > 0
    assert caller.get(f"{QUEUE}/transfers").items == []


def test_a_transfer_ends_with_the_connection_of_its_client(stage: ApiStage, caller: Caller) -> None:
    with_messages(stage, caller, 250)
    caller.ask("PUT", "/api/v1/channels/d/queues/2", {"status": "pull"})
    asks = stage.caller()
    asks.send("POST", f"{QUEUE}/transfers", {"to": {"channel": "d", "queue": 2}})
    assert len(caller.get(f"{QUEUE}/transfers").items) == 1
    stage.end(asks.number)
    assert caller.get(f"{QUEUE}/transfers").items == []


def test_dead_letters_go_back_to_their_first_queues(stage: ApiStage, caller: Caller) -> None:
    dead = "/api/v1/channels/dead/queues/1"
    caller.ask("PUT", dead, {"status": "pull"})
    letter = {"channel": "dead", "queue": 1}
    with_messages(
        stage,
        caller,
        3,
        dead_letter=letter,
        message_timeout_ms=1_000,
        expired_to_dead_letter=True,
    )
    stage.now += 2.0
    stage.turn.on_deadline(stage.now)
    stage.attend()
    assert ids(caller, dead) == ["m0", "m1", "m2"]
    stage.say(stage.connect("q"), push("dead", 1, "no letter", source="q"))
    moved = caller.ask("POST", f"{dead}/transfers", {"to": "first"}).json
    assert (moved["moved"], moved["targets"]) == (3, [{"channel": "c", "queue": 1, "count": 3}])
    assert (ids(caller), ids(caller, dead)) == (["m0", "m1", "m2"], ["no letter"])
    headers = [name for name, _ in caller.get(f"{QUEUE}/messages").items[0]["headers"]]
    assert not [name for name in headers if name.startswith("Dead-Letter")]


def test_a_message_whose_target_refuses_it_stays(stage: ApiStage, caller: Caller) -> None:
    with_messages(stage, caller, 5)
    caller.ask("PUT", "/api/v1/channels/d/queues/2", {"status": "pull", "message_limit": 2})
    to = {"to": {"channel": "d", "queue": 2}}
    answer = caller.ask("POST", f"{QUEUE}/transfers", to).json
    assert (answer["moved"], [each["count"] for each in answer["failed"]]) == (2, [3])
    assert ids(caller) == ["m2", "m3", "m4"]


def test_nothing_is_copied_for_who_may_not_remove() -> None:
    """Everything was pushed, and then it turned out that nothing might be removed."""
    stage = ApiStage(guarded=True)
    caller = stage.caller()
    with_messages(stage, caller, 3)
    caller.ask("PUT", "/api/v1/channels/d/queues/2", {"status": "pull"})
    stage.policy = lambda question: question.right != "clear-messages"
    to = {"to": {"channel": "d", "queue": 2}}
    assert caller.ask("POST", f"{QUEUE}/transfers", to).status == 403
    assert caller.get("/api/v1/channels/d/queues/2").json["waiting"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"to": "last"},
        {"to": {"channel": "c"}},
        {"to": {"channel": "c", "queue": 1}},
        {"to": {"channel": "d", "queue": 70_000}},
        {"to": {"channel": "d", "queue": True}},
        {"ids": []},
        {"ids": [1]},
        {"count": 0},
        {"filter": "((", "filter_language": "none"},
        {"more": 1},
    ],
)
def test_a_transfer_that_cannot_be_is_told(caller: Caller, body: object) -> None:
    assert caller.ask("POST", f"{QUEUE}/transfers", body).status == 422


# --- Clients, nodes, routers ---------------------------------------------------------------------


def test_a_client_is_shown_and_disconnected(stage: ApiStage, caller: Caller) -> None:
    number = stage.connect("k")
    caller.ask("PUT", QUEUE, {})
    stage.say(number, operation(OP_JOIN, "c"))
    listed = caller.get("/api/v1/clients?filter=door%3Dtmqp").items
    assert [each["id"] for each in listed] == ["k"]
    shown = caller.get("/api/v1/clients/k").json
    assert [each["channel"] for each in shown["joined"]] == ["c"]
    assert (shown["session"], shown["address"]) == (number, stage.wires[number].peer)
    assert shown["blocked_s"] is None
    assert caller.ask("DELETE", "/api/v1/clients/k").status == 204
    assert number in stage.closed
    assert statuses(caller, ("DELETE", "/api/v1/clients/k"), ("GET", "/api/v1/clients/k")) == [
        404,
        404,
    ]


def test_channels_that_may_not_be_seen_are_not_told_by_their_consumers() -> None:
    stage = ApiStage(guarded=True)
    caller = stage.caller()
    number = stage.connect("k")
    for name in ("c", "secret"):
        caller.ask("PUT", f"/api/v1/channels/{name}/queues/1", {})
        stage.say(number, operation(OP_JOIN, name))
    stage.policy = lambda question: (
        question.right != "see-channel"
        or "secret"
        not in (
            question.subject,
            *question.names,
        )
    )
    shown = caller.get("/api/v1/clients/k")
    assert (shown.json["joined"], shown.json["joined_hidden"]) == ([], 2)
    assert b"secret" not in shown.body


def test_nodes_are_listed(caller: Caller) -> None:
    assert caller.get("/api/v1/nodes").json == {"items": []}


def test_a_binding_that_calls_out_where_none_may_is_told_so(caller: Caller) -> None:
    """Only that the server had no data directory was said, and 501 was not described."""
    caller.ask("PUT", "/api/v1/routers/r", {})
    wanted = {"kind": "http", "target": "http://127.0.0.1/x"}
    answer = caller.ask("PUT", "/api/v1/routers/r/bindings/b", wanted)
    assert answer.status == 501
    assert "[http] allows no calls" in answer.json["detail"]
    description = caller.get("/api/v1/openapi.json").json
    told = description["paths"]["/api/v1/routers/{router}/bindings/{binding}"]["put"]["responses"]
    assert "501" in told


def test_routers_and_bindings_come_and_go(stage: ApiStage, caller: Caller) -> None:
    router = "/api/v1/routers/r"
    binding = {"kind": "queue", "target": "c", "queue": 1, "priority": 3}
    assert caller.ask("PUT", router, {"method": "distribute"}).status == 201
    assert caller.ask("PUT", router, {"method": "distribute"}).status == 200
    assert caller.ask("PUT", router, {"method": "round-robin"}).status == 409
    assert caller.ask("PUT", f"{router}/bindings/b", binding).status == 201
    assert caller.ask("PUT", f"{router}/bindings/b", binding).status == 200
    assert caller.ask("PUT", f"{router}/bindings/b", {**binding, "queue": 2}).status == 409
    shown = caller.get(f"{router}/bindings").items
    assert shown == [{**binding, "name": "b", "interaction": "none"}]
    caller.ask("PUT", QUEUE, {"status": "pull"})
    sent = caller.ask("POST", f"{router}/messages", b"hi", Tmqp_Header_Country="fr")
    assert sent.status == 201
    (item,) = caller.get(f"{QUEUE}/messages").items
    assert (item["text"], ["Country", "fr"] in item["headers"]) == ("hi", True)
    assert caller.ask("PATCH", router, {"enabled": False}).status == 204
    assert caller.ask("POST", f"{router}/messages", b"hi").status == 404
    assert caller.get(router).json == {"name": "r", "method": "distribute", "enabled": False}
    assert caller.ask("DELETE", f"{router}/bindings/b").status == 204
    assert statuses(caller, ("DELETE", router), ("GET", router)) == [204, 404]


# --- Readers, feeds, definitions -----------------------------------------------------------------


def test_feeds_are_added_listed_and_removed(caller: Caller) -> None:
    for name in ("c", "d"):
        caller.ask("PUT", f"/api/v1/channels/{name}/queues/1", {})
    feed = f"{QUEUE}/feeds/d/1"
    assert statuses(caller, ("PUT", feed, {"filter": "Country=fr"}), ("PUT", feed, {})) == [204] * 2
    (item,) = caller.get("/api/v1/channels/c/feeds").items
    assert (item["target"], item["text"], item["queue"]) == ("d", "Country=fr", 1)
    assert statuses(caller, ("DELETE", feed), ("DELETE", feed)) == [204, 404]


def test_what_is_kept_cannot_be_read_where_nothing_is_kept(caller: Caller) -> None:
    caller.ask("PUT", QUEUE, {})
    for path in (f"{QUEUE}/records", f"{QUEUE}/cursors", "/api/v1/offsets", "/api/v1/groups"):
        assert caller.get(path).status == 501
    assert caller.get("/api/v1/transactions").status == 200


def test_definitions_that_were_exported_are_imported_elsewhere(caller: Caller) -> None:
    caller.ask("PUT", QUEUE, {"status": "pull", "message_limit": 7})
    caller.ask("PUT", "/api/v1/channels/d/queues/3", {})
    caller.ask("PUT", f"{QUEUE}/feeds/d/3", {"filter": "Country=fr"})
    caller.ask("PUT", "/api/v1/routers/r", {"enabled": False})
    caller.ask("PUT", "/api/v1/routers/r/bindings/b", {"kind": "tag", "target": "t"})
    tables = caller.get("/api/v1/definitions").json
    same = caller.ask("POST", "/api/v1/definitions", tables).json
    assert (same["created"], same["changed"], same["failed"]) == ([], [], [])
    other = ApiStage().caller()
    trial = other.ask("POST", "/api/v1/definitions?dry_run=yes", tables).json
    assert trial["created"] == [
        "channel c",
        "queue c/1",
        "channel d",
        "queue d/3",
        "router r",
        "binding r/b",
    ]
    assert other.get("/api/v1/definitions").json == {"channels": [], "routers": []}
    done = other.ask("POST", "/api/v1/definitions", tables).json
    assert (done["failed"], "feed c/1 to d/3" in done["created"]) == ([], True)
    assert other.get("/api/v1/definitions").json == tables


def test_definitions_are_the_same_as_toml(caller: Caller) -> None:
    odd = 'quo"te \u00e9\\ '
    caller.ask("PUT", QUEUE, {"status": "pull", "message_limit": 7, "durable": False})
    caller.ask("PUT", "/api/v1/channels/d/queues/3", {})
    caller.ask("PUT", f"{QUEUE}/feeds/d/3", {"filter": f"Country='{odd}'"})
    caller.ask("PUT", "/api/v1/routers/r", {"enabled": False})
    caller.ask("PUT", "/api/v1/routers/r/bindings/b", {"kind": "tag", "target": odd})
    tables = caller.get("/api/v1/definitions").json
    text = caller.get("/api/v1/definitions", Accept="application/toml").body
    assert tomllib.loads(text.decode()) == tables
    other = ApiStage().caller()
    kind = {"Content-Type": "application/toml"}
    done = other.ask("POST", "/api/v1/definitions", text, **kind).json
    assert done["failed"] == []
    assert other.get("/api/v1/definitions").json == tables
    assert other.ask("POST", "/api/v1/definitions", b"channels = [", **kind).status == 400


@pytest.mark.parametrize(
    "body", [{"queues": []}, {"channels": 1}, {"channels": [{"name": ""}]}, {"channels": [3]}]
)
def test_definitions_that_cannot_be_are_told(caller: Caller, body: object) -> None:
    assert caller.ask("POST", "/api/v1/definitions", body).status == 422


# --- Server --------------------------------------------------------------------------------------


def test_the_server_is_shown_in_numbers(stage: ApiStage, caller: Caller) -> None:
    with_messages(stage, caller, 3)
    shown = caller.get("/api/v1/server").json
    assert (shown["queues"], shown["messages"]["waiting"], shown["clients"]) == (1, 3, 2)
    assert shown["doors"]["tmqp"]["messages_received"] == 3
    assert (shown["saving"], shown["role"], shown["disk_bytes"]) == (None, None, None)
    assert len(shown["lag_us"]["counts"]) == len(shown["lag_us"]["bounds"]) + 1
    late = caller.ask("POST", f"{QUEUE}/messages?delay_ms={1 << 40}", b"x")
    assert (late.status, late.json["code"]) == (409, 482)
    limits = {each["name"]: each for each in caller.get("/api/v1/server/limits").items}
    assert limits["max_channels"]["used"] == 1
    assert (limits["max_channels"]["reached"], limits["max_delay_ms"]["reached"]) == (0, 1)
    assert limits["max_feeds"]["used"] is None
    storage = caller.get("/api/v1/server/storage").json
    assert (storage["stored"], storage["saving"]) == (False, True)
