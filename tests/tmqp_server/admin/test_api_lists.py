"""Lists of the API: order, filters, pages, and what a client may see."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.tmqp_server.admin.api_stage import ApiStage, Caller
from tests.tmqp_server.peers import operation, push
from tmqp.constants import OP_CREATE_QUEUE, OP_REMOVE_CHANNEL
from tmqp_server.access.gate import Question, Verdict


def with_queues(stage: ApiStage, *names: str) -> int:
    """Queue 1 of each of these channels; the first one has no message, the next one has one..."""
    producer = stage.connect("p")
    for count, name in enumerate(names):
        headers = [("Queue-Id", "1"), ("Queue-Status", "pull")]
        stage.say(producer, operation(OP_CREATE_QUEUE, name, headers=headers))
        for number in range(count):
            stage.say(producer, push(name, 1, f"{name}{number}", source="p"))
    return producer


def names_of(answer: Any) -> list[str]:
    """The channels of a list of queues."""
    return [each["channel"] for each in answer.items]


def test_queues_of_all_channels_are_listed_by_name() -> None:
    stage = ApiStage()
    with_queues(stage, "zebra", "ape", "mole")
    answer = stage.caller().get("/api/v1/queues")
    assert answer.status == 200
    assert names_of(answer) == ["ape", "mole", "zebra"]
    assert [each["waiting"] for each in answer.items] == [1, 2, 0]
    assert answer.json["total"] == answer.json["examined"] == 3
    assert answer.json["next"] is None


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("sort=-waiting", ["c", "b", "a"]),
        ("sort=-waiting&limit=2", ["c", "b"]),
        ("sort=-status,-name", ["c", "b", "a"]),
        ("filter=waiting%3E0", ["b", "c"]),
        ("filter=name%3Ac+and+waiting%3E0", ["c"]),
        ("filter=status%3Dpull+and+waiting%3C1", ["a"]),
        ("filter=status%3Dpush", []),
        ("filter=consumers%3E0", []),
        ("filter=name%3A*", ["a", "b", "c"]),
    ],
)
def test_a_list_is_sorted_and_filtered(query: str, names: list[str]) -> None:
    stage = ApiStage()
    with_queues(stage, "a", "b", "c")
    assert names_of(stage.caller().get(f"/api/v1/queues?{query}")) == names


@pytest.mark.parametrize(
    "query",
    [
        "sort=size",
        "sort=name,queue,waiting,done,dead",
        "filter=waiting",
        "filter=size%3E1",
        "filter=" + "+and+".join(["waiting%3E0"] * 9),
        "filter=" + "a" * 600,
        "limit=0",
        "limit=1001",
        "after=x",
        "x=1",
    ],
)
def test_a_list_that_nobody_can_make_is_refused(query: str) -> None:
    assert ApiStage().caller().get(f"/api/v1/queues?{query}").status == 400


def test_pages_repeat_nothing_and_pass_nothing_over_while_numbers_change() -> None:
    stage = ApiStage()
    names = [f"c{number:03}" for number in range(100)]
    producer = with_queues(stage, *names[:3], *names[3:])
    caller = stage.caller()
    seen: list[str] = []
    target = "/api/v1/queues?sort=-waiting&limit=40"
    while target:
        answer = caller.get(target)
        seen += names_of(answer)
        # What was last becomes first, which would shift a list that is sorted anew.
        for number in range(200):
            stage.say(producer, push("c000", 1, f"x{len(seen)}-{number}", source="p"))
        following = answer.json["next"]
        target = f"/api/v1/queues?after={following}&limit=40" if following else ""
    assert sorted(seen) == names
    assert seen == list(reversed(names))


def test_queues_are_sorted_by_how_fast_they_grow() -> None:
    stage = ApiStage()
    producer = with_queues(stage, "a", "b", "c")
    caller = stage.caller()
    assert names_of(caller.get("/api/v1/queues?sort=-growth,name")) == ["a", "b", "c"]
    for number in range(6):
        stage.say(producer, push("c", 1, f"new-{number}", source="p"))
    stage.say(producer, push("b", 1, "new", source="p"))
    stage.now += 3.0
    stage.turn.on_deadline(stage.now)
    assert names_of(caller.get("/api/v1/queues?sort=-growth,name")) == ["c", "b", "a"]
    assert names_of(caller.get("/api/v1/queues?filter=growth%3E1")) == ["c"]
    stage.now += 100.0
    stage.turn.on_deadline(stage.now)
    again = stage.caller().get("/api/v1/queues?sort=-growth,name")
    assert names_of(again) == ["a", "b", "c"], "what is older than a minute tells nothing"


def test_a_page_tells_which_of_its_queues_have_gone() -> None:
    stage = ApiStage()
    producer = with_queues(stage, "a", "b", "c")
    caller = stage.caller()
    first = caller.get("/api/v1/queues?limit=1")
    stage.say(producer, operation(OP_REMOVE_CHANNEL, "b"))
    rest = caller.get(f"/api/v1/queues?after={first.json['next']}")
    assert rest.items[0] == {"channel": "b", "queue": 1, "gone": True}
    assert rest.items[1]["channel"] == "c"


def test_a_view_is_kept_for_a_while_and_for_its_own_client() -> None:
    stage = ApiStage()
    with_queues(stage, "a", "b")
    caller = stage.caller()
    following = caller.get("/api/v1/queues?limit=1").json["next"]
    other = stage.caller(Authorization="Bearer other")
    assert other.get(f"/api/v1/queues?after={following}").status == 410
    assert names_of(caller.get(f"/api/v1/queues?after={following}")) == ["b"]
    stage.now += 31.0
    stage.turn.on_deadline(stage.now)
    answer = caller.get(f"/api/v1/queues?after={following}")
    assert (answer.status, answer.json["type"]) == (410, "/problems/gone")


def test_only_wanted_members_are_shown() -> None:
    stage = ApiStage()
    with_queues(stage, "a")
    answer = stage.caller().get("/api/v1/queues?fields=waiting,status")
    assert answer.items == [{"channel": "a", "queue": 1, "status": "pull", "waiting": 0}]


class Seeing(ApiStage):
    """Channels whose names begin so may be seen."""

    def __init__(self, prefix: str) -> None:
        super().__init__(guarded=True)
        self.prefix = prefix

    def verdict(self, question: Question) -> Verdict:
        if question.right != "see-channel" or not question.names:
            return super().verdict(question)
        seen = frozenset([name for name in question.names if name.startswith(self.prefix)])
        return Verdict(bool(seen), names=seen)


def listed(caller: Caller, target: str) -> list[str]:
    """The channels of all pages."""
    found: list[str] = []
    answer = caller.get(target)
    while True:
        assert answer.status == 200
        found += names_of(answer)
        following = answer.json["next"]
        if following is None:
            return found
        answer = caller.get(f"/api/v1/queues?after={following}&limit=10")


def test_a_client_sees_the_channels_that_it_may_see_and_no_others() -> None:
    """Whole portions are refused where it may see none of their channels."""
    stage = Seeing("b")
    names = [f"{letter}{number}" for letter in "abc" for number in range(70)]
    with_queues(stage, *names)
    mine = sorted(name for name in names if name.startswith("b"))
    assert listed(stage.caller(), "/api/v1/queues?limit=10") == mine
    assert stage.caller().get("/api/v1/queues").json["total"] == 70
    stage.prefix = "z"
    assert stage.caller().get("/api/v1/queues").status == 403


def test_a_right_that_is_taken_away_between_two_pages_hides_what_it_showed() -> None:
    stage = Seeing("b")
    with_queues(stage, *[f"b{number}" for number in range(20)])
    caller = stage.caller()
    following = caller.get("/api/v1/queues?limit=1").json["next"]
    stage.prefix = "z"
    rest = caller.get(f"/api/v1/queues?after={following}")
    assert all(set(each) == {"channel", "queue", "gone"} for each in rest.items)


# --- Live ----------------------------------------------------------------------------------------


def heard(stage: ApiStage, caller: Caller, seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """What a stream tells within so many seconds."""
    end = stage.now + seconds
    while stage.turn.next_deadline() <= end:
        stage.now = max(stage.now, stage.turn.next_deadline())
        stage.turn.on_deadline(stage.now)
        stage.attend()
    stage.now = end
    data = bytes(caller.wire.sent)
    caller.wire.sent.clear()
    found = re.findall(rb"event: (\w+)\ndata: (.*)\n\n", data)
    return [(name.decode(), json.loads(value)) for name, value in found]


def test_a_stream_tells_everything_first_and_then_what_has_changed() -> None:
    stage = ApiStage()
    producer = with_queues(stage, "a", "b")
    caller = stage.caller()
    caller.send("GET", "/api/v1/live?topics=overview,queue:a/1,queue:none/1")
    first = dict(heard(stage, caller, 0.5))
    assert (first["overview"]["queues"], first["overview"]["ready"]) == (2, True)
    stage.say(producer, push("a", 1, "new", source="p"))
    later = heard(stage, caller, 1.0)
    queue = dict(later)["queue"]
    assert {"channel", "queue", "waiting", "counts"} <= queue.keys()
    assert not {"status", "deferred", "consumers", "options"} & queue.keys()
    assert (queue["channel"], queue["waiting"]) == ("a", 1)
    assert "queues" not in dict(later)["overview"]
    stage.say(producer, operation(OP_REMOVE_CHANNEL, "a"))
    assert ("queue", {"channel": "a", "queue": 1, "gone": True}) in heard(stage, caller, 1.0)


def test_a_stream_ends_when_its_right_is_taken_away() -> None:
    stage = ApiStage(guarded=True)
    with_queues(stage, "a")
    caller = stage.caller()
    caller.send("GET", "/api/v1/live?topics=queue:a/1")
    assert [name for name, _ in heard(stage, caller, 0.5)] == ["queue"]
    stage.policy = lambda question: question.right != "see-channel"
    assert heard(stage, caller, 1.5) == [("end", {"reason": "a right was taken away"})]
    assert stage.caller().get("/api/v1/live?topics=queue:a/1").status == 403


@pytest.mark.parametrize(
    "topics",
    [
        "",
        "all",
        "queue:a",
        "queue:a/x",
        "queue:/1",
        "queue:a/70000",
        "queue:a/000000001999999",
        "queue:a/" + "0" * 5_000,
        ",".join([f"queue:a/{number}" for number in range(33)]),
    ],
)
def test_topics_that_nobody_can_follow_are_refused(topics: str) -> None:
    assert ApiStage().caller().get(f"/api/v1/live?topics={topics}").status == 400


def test_the_numbers_of_the_server_are_counted_once_a_second_for_all() -> None:
    stage = ApiStage()
    producer = with_queues(stage, "a")
    first = stage.caller().get("/api/v1/server")
    stage.say(producer, push("a", 1, "m", source="p"))
    assert stage.caller().get("/api/v1/server").json == first.json
    stage.now += 1.0
    stage.turn.on_deadline(stage.now)
    assert stage.caller().get("/api/v1/server").json["messages"]["waiting"] == 1
