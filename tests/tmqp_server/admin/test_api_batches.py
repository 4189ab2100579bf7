"""Batches of the API: several messages, all or none of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_server.admin.api_stage import ApiStage, Caller

QUEUE = "/api/v1/channels/c/queues/1"


@pytest.fixture
def caller() -> Caller:
    caller = ApiStage().caller()
    assert caller.ask("PUT", QUEUE, {"status": "pull", "message_limit": 3}).status == 201
    return caller


def ask(caller: Caller, *items: Any) -> Any:
    return caller.ask("POST", f"{QUEUE}/batches", {"items": list(items)})


def waiting(caller: Caller) -> int:
    count: int = caller.get(QUEUE).json["waiting"]
    return count


def test_a_batch_is_published_in_its_order_with_all_that_it_says(caller: Caller) -> None:
    answer = ask(
        caller,
        {"id": "one", "text": "first", "headers": {"Country": "fr"}, "expires_ms": 60_000},
        {"base64": "//4="},
        {"id": "late", "text": "third", "delay_ms": 60_000},
    )
    assert answer.status == 201
    ids = answer.json["ids"]
    assert (ids[0], ids[2], len(ids)) == ("one", "late", 3)
    shown = {each["id"]: each for each in caller.get(f"{QUEUE}/messages").items}
    assert shown.keys() == set(ids)
    assert shown["one"]["text"] == "first"
    assert ["Country", "fr"] in shown["one"]["headers"]
    assert "expires_at_ms" in shown["one"]
    assert shown[ids[1]]["base64"] == "//4="
    assert shown["late"]["state"] == "deferred"
    assert shown["one"]["sequence"] < shown[ids[1]]["sequence"]


def test_a_batch_that_does_not_fit_leaves_nothing(caller: Caller) -> None:
    answer = ask(caller, *[{"text": str(number)} for number in range(4)])
    assert (answer.status, answer.json["code"]) == (409, 482)
    assert waiting(caller) == 0


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "a list of 1 to 1000 messages"),
        ([{}] * 1_001, "a list of 1 to 1000 messages"),
        ([{}, "x"], "items[1] must be an object"),
        ([{"queue": 2}], "items[0]: no member 'queue'"),
        ([{"text": "x", "base64": "eA=="}], "items[0]: a message has either text or base64"),
        ([{"base64": "%"}], "items[0]: base64 cannot be read"),
        ([{"delay_ms": -1}], "items[0]: delay_ms must be a whole number"),
        ([{"headers": {"a": 1}}], "items[0]: headers must have strings"),
        ([{"id": "a"}, {"id": "a"}], "two messages have the same id"),
    ],
)
def test_what_is_wrong_with_a_batch_is_said_and_nothing_is_published(
    caller: Caller, items: list[Any], words: str
) -> None:
    answer = ask(caller, *items)
    assert answer.status == 422
    assert words in answer.json["detail"]
    assert waiting(caller) == 0
