"""Cells of the API: counters and values that live for a time."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.tmqp_server.admin.api_stage import ApiStage, Caller

SPACE: Final = "/api/v1/cells/calls"
MINUTE: Final = 60_000


@pytest.fixture
def stage() -> ApiStage:
    return ApiStage()


@pytest.fixture
def caller(stage: ApiStage) -> Caller:
    return stage.caller()


def change(caller: Caller, key: str, **what: Any) -> Any:
    return caller.ask("POST", f"{SPACE}/{key}/changes", what)


def test_a_counter_is_made_changed_and_removed(caller: Caller) -> None:
    ann = f"{SPACE}/ann"
    assert caller.get(ann).status == 404
    assert caller.ask("PUT", ann, {"count": 5, "ttl_ms": MINUTE}).status == 204
    assert caller.ask("PUT", ann, {"count": 1, "ttl_ms": MINUTE}).status == 409
    assert change(caller, "ann", add=2).json["count"] == 7
    assert change(caller, "ann", subtract=4).json["count"] == 3
    assert change(caller, "ann", set=2**64 - 1).json["count"] == 2**64 - 1
    too_much = change(caller, "ann", add=1)
    assert (too_much.status, too_much.json["code"]) == (409, 406)
    found = caller.get(ann).json
    assert (found["kind"], found["count"]) == ("counter", 2**64 - 1)
    assert MINUTE - 1_000 < found["ttl_ms"] <= MINUTE
    assert caller.ask("DELETE", ann).status == 204
    assert caller.ask("DELETE", ann).status == 404


def test_a_limiter_lets_so_many_calls_through(caller: Caller) -> None:
    terms = {"subtract": 1, "initial": {"count": 2, "ttl_ms": MINUTE}}
    statuses = [change(caller, "bob", **terms).status for _ in range(4)]
    assert statuses == [200, 200, 409, 409]


def test_a_change_that_comes_again_with_its_key_counts_once(caller: Caller) -> None:
    body = {"add": 1, "initial": {"count": 0, "ttl_ms": MINUTE}}
    for _ in range(2):
        answer = caller.ask("POST", f"{SPACE}/c/changes", body, Idempotency_Key="once")
        assert answer.json["count"] == 1
    assert caller.get(f"{SPACE}/c").json["count"] == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"text": "since noon"}, {"text": "since noon"}),
        ({"text": ""}, {"text": ""}),
        ({"base64": "//4="}, {"base64": "//4="}),
    ],
)
def test_a_value_is_put_and_replaced(
    caller: Caller, given: dict[str, str], told: dict[str, str]
) -> None:
    path = f"{SPACE}/v"
    assert caller.ask("PUT", path, {"text": "old", "ttl_ms": MINUTE}).status == 204
    assert caller.ask("PUT", path, {**given, "ttl_ms": MINUTE}).status == 204
    found = caller.get(path).json
    assert found.items() >= told.items()
    assert found["kind"] == "value"
    counted = change(caller, "v", add=1)
    assert (counted.status, counted.json["code"]) == (409, 406)
    assert caller.ask("PUT", f"{SPACE}/n", {"count": 1, "ttl_ms": MINUTE}).status == 204
    assert caller.ask("PUT", f"{SPACE}/n", {**given, "ttl_ms": MINUTE}).status == 409


def test_how_long_a_cell_lives_is_changed(stage: ApiStage, caller: Caller) -> None:
    caller.ask("PUT", f"{SPACE}/t", {"text": "x", "ttl_ms": 1_000})
    assert 60_000 < change(caller, "t", extend_ms=60_000).json["ttl_ms"] <= 61_000
    assert change(caller, "t", shorten_ms=60_000).json["ttl_ms"] <= 1_000
    assert 4_000 < change(caller, "t", ttl_ms=5_000).json["ttl_ms"] <= 5_000
    stage.now += 6.0
    assert change(caller, "t", ttl_ms=5_000).status == 404
    assert caller.get(f"{SPACE}/t").status == 404


def test_cells_are_listed_page_by_page_in_the_order_in_which_they_were_made(
    caller: Caller,
) -> None:
    for name in ("z", "a", "m"):
        caller.ask("PUT", f"{SPACE}/{name}", {"text": name * 3, "ttl_ms": MINUTE})
    caller.ask("PUT", f"{SPACE}/n", {"count": 7, "ttl_ms": MINUTE})
    first = caller.get(f"{SPACE}?limit=3").json
    assert [each["key"] for each in first["items"]] == ["z", "a", "m"]
    assert first["items"][0]["bytes"] == 3
    rest = caller.get(f"{SPACE}?limit=3&after={first['next']}").json
    assert [(each["key"], each["count"]) for each in rest["items"]] == [("n", 7)]
    assert rest["next"] is None
    assert (rest["counters"], rest["values"], rest["value_bytes"]) == (1, 3, 9)
    assert caller.get("/api/v1/cells/nowhere").json["items"] == []


def test_figures_tell_reads_and_are_none(caller: Caller) -> None:
    caller.ask("PUT", f"{SPACE}/f", {"count": 0, "ttl_ms": MINUTE})
    caller.get(f"{SPACE}/f")
    change(caller, "f", add=1)
    for _ in range(2):
        found = caller.get(f"{SPACE}/f/figures").json
        assert (found["reads"], found["writes"], found["writes_per_minute"]) == (1, 2, 2)
    assert caller.get(f"{SPACE}/g/figures").status == 404


def test_a_key_may_be_any_bytes(caller: Caller) -> None:
    """Those that are no text stand in a path as they stand in lists, percent-encoded."""
    caller.ask("PUT", f"{SPACE}/%25FF%2500", {"count": 1, "ttl_ms": MINUTE})
    caller.ask("PUT", f"{SPACE}/M%C3%BCller%2FB", {"count": 2, "ttl_ms": MINUTE})
    assert [each["key"] for each in caller.get(SPACE).items] == ["%FF%00", "Müller/B"]
    assert caller.get(f"{SPACE}/%25FF%2500").json["count"] == 1


@pytest.mark.parametrize(
    ("method", "end", "body", "words"),
    [
        ("PUT", "", {"ttl_ms": 1}, "give one of count, text and base64"),
        ("PUT", "", {"count": 1, "text": "x", "ttl_ms": 1}, "give one of count, text and base64"),
        ("PUT", "", {"count": 1}, "ttl_ms must be a whole number from 0"),
        ("PUT", "", {"count": 2**64, "ttl_ms": 1}, "count must be a whole number from 0"),
        ("PUT", "", {"count": True, "ttl_ms": 1}, "count has the wrong type"),
        ("PUT", "", {"base64": "?", "ttl_ms": 1}, "base64 cannot be read"),
        ("PUT", "", {"text": "\ud800", "ttl_ms": 1}, "text has half a character"),
        ("POST", "/changes", {}, "give one of set, add"),
        ("POST", "/changes", {"add": 1, "set": 1}, "give one of set, add"),
        ("POST", "/changes", {"add": -1}, "add must be a whole number from 0"),
        ("POST", "/changes", {"set": 1, "initial": {}}, "initial belongs to add and subtract"),
        ("POST", "/changes", {"add": 1, "initial": {"count": 1}}, "initial needs count and ttl_ms"),
    ],
)
def test_what_cannot_be_is_named(
    caller: Caller, method: str, end: str, body: Any, words: str
) -> None:
    answer = caller.ask(method, f"{SPACE}/k{end}", body)
    assert answer.status in (400, 422)
    assert words in answer.json["detail"]
    assert caller.get(SPACE).items == []
