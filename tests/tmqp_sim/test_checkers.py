"""The proof that the checkers see: each finds its kind of bad history and passes good ones."""

from __future__ import annotations

import pytest

from tests.tmqp_sim.histories import WORK, confirmed, history_of, received, work
from tmqp_sim.checkers import first_flags, judge, lost, stuck, unexplained, untaken
from tmqp_sim.epochs import complaints, messages_of
from tmqp_sim.history import Receipt
from tmqp_sim.movers import misplaced
from tmqp_sim.world import Violation


def test_a_good_history_passes_all() -> None:
    history = history_of(work(), "a", "b")
    for uid in "ab":
        received(history, uid)
        confirmed(history, uid)
    sent = {7: ["a", "b"]}
    assert judge(history, 1, sent, {WORK: ["a", "b"]}, {"queue": 0}) == ("", [])


def test_what_was_confirmed_and_never_came_is_lost() -> None:
    history = history_of(work(), "a", "b")
    confirmed(history, "a")
    received(history, "b")
    confirmed(history, "b")
    (complaint,) = lost(history, 1)
    assert complaint.startswith("a of work queue work/1 was confirmed, came 0 times")


def test_what_came_and_was_refused_is_not_dealt_with() -> None:
    history = history_of(work(), "a")
    confirmed(history, "a")
    received(history, "a", "nack")
    assert len([*lost(history, 1)]) == 1
    received(history, "a", "ack")
    assert [*lost(history, 1)] == []


def test_what_was_removed_on_purpose_is_not_lost() -> None:
    history = history_of(work(), "a")
    confirmed(history, "a")
    history.excuse(history.sent["a"].place)
    assert [*lost(history, 1)] == []


def test_memory_dies_with_the_server_and_a_disk_does_not() -> None:
    history = history_of(work(), "a")
    confirmed(history, "a", life=1)
    assert [*lost(history, 2)] == []
    saved = history_of(work("saved", saves=True), "a")
    confirmed(saved, "a", life=1)
    assert len([*lost(saved, 2)]) == 1


def test_a_place_without_a_promise_may_lose() -> None:
    history = history_of(work("brief", "none"), "a")
    confirmed(history, "a")
    assert [*lost(history, 1)] == []


def test_what_the_broker_took_in_must_come_to_somebody() -> None:
    place = work("retry", "accepted")
    history = history_of(place, "a", "b")
    received(history, "b")
    assert [*untaken(history, {WORK: ["a", "b"]}, [place])] == [
        "a was accepted by retry queue work/1 and nobody dealt with it, nor its dead letter"
    ]


def test_more_on_the_wire_than_was_sent_is_unexplained() -> None:
    history = history_of(work(), "a")
    received(history, "a")
    received(history, "a")
    assert [*unexplained(history, {7: ["a", "a"]})] == []
    assert [*unexplained(history, {7: ["a"]})] == [
        "a came over link 7 as number 2, sent was nothing more"
    ]


def test_another_order_on_the_wire_is_unexplained() -> None:
    history = history_of(work(), "a", "b")
    received(history, "b")
    received(history, "a")
    assert [*unexplained(history, {7: ["b", "a", "c"]})] == []
    assert [*unexplained(history, {7: ["a", "b"]})] == [
        "b came over link 7 as number 1, sent was a"
    ]


def test_two_first_acquirers_of_one_push_are_one_too_many() -> None:
    history = history_of(work(), "a")
    received(history, "a")
    assert [*first_flags(history)] == []
    received(history, "a").first = True
    assert [*first_flags(history)] == ["a had 2 first acquirers, pushed 1 times"]


def test_what_is_left_at_the_end_is_stuck() -> None:
    history = history_of(work(), "a")
    received(history, "a")
    assert [*stuck(history, {"work/1": 3})] == [
        "work/1 still has 3",
        "a to work queue work/1 was pushed 1 times and never confirmed",
    ]


@pytest.mark.parametrize(
    ("uid", "payload", "source", "where", "words"),
    [
        ("z", b"", "producer", WORK, "unsent"),
        ("a", b"a|0|..", "producer", WORK, "another payload"),
        ("a", b"a|0|...", "somebody", WORK, "under the name 'somebody'"),
        ("a", b"a|0|...", "producer", ("other", 1), "came from ('other', 1)"),
    ],
)
def test_what_nobody_sent_like_this_is_invented(
    uid: str, payload: bytes, source: str, where: tuple[str, int], words: str
) -> None:
    history = history_of(work(), "a")
    with pytest.raises(Violation) as caught:
        history.received(Receipt(uid, "consumer", 7, where, 1.0, True), payload, source)
    assert caught.value.checker == "invented"
    assert words in caught.value.text


def test_nothing_comes_before_it_was_sent() -> None:
    history = history_of(work(), "a")
    history.sent["a"].pushes = 0
    with pytest.raises(Violation, match="came before it was sent"):
        received(history, "a")


# --- Epochs --------------------------------------------------------------------------------------


def ids_of(*epochs: int) -> list[str]:
    return [each for epoch in epochs for part in messages_of(epoch) for each in part]


def test_epochs_that_are_there_once_and_whole_pass() -> None:
    assert [*complaints(ids_of(0, 1, 2, 3), 3)] == []
    assert [*complaints(reversed(ids_of(0, 1, 2)), 1)] == [], "the last was not answered"
    assert [*complaints([], -1)] == []
    assert ids_of(0) == [], "an epoch may be empty"


@pytest.mark.parametrize(
    ("ids", "answered", "text"),
    [
        (ids_of(1, 3), 3, "epoch 2: 0 messages twice, missing"),
        (ids_of(1, 2, 2), 2, f"epoch 2: {len(ids_of(2))} messages twice, missing []"),
        (ids_of(1, 2)[:-1], 1, f"epoch 2: 0 messages twice, missing ['{ids_of(2)[-1]}']"),
        (ids_of(1, 1), 0, f"epoch 1: {len(ids_of(1))} messages twice"),
    ],
)
def test_epochs_that_are_not(ids: list[str], answered: int, text: str) -> None:
    (complaint,) = complaints(ids, answered)
    assert complaint.startswith(text)


def test_items_that_are_in_one_of_both_queues_pass() -> None:
    assert list(misplaced(["i1"], ["o2"], {1, 2}, {2})) == []
    assert list(misplaced([], [], set(), set())) == []
    assert list(misplaced(["i1"], [], set(), set())) == []


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (["i1"], ["o1"], "item 1 is there 1 times and was moved 1 times"),
        (["i1", "i1"], [], "item 1 is there 2 times and was moved 0 times"),
        ([], ["o1", "o1"], "item 1 is there 0 times and was moved 2 times"),
        ([], [], "item 1 is there 0 times and was moved 0 times"),
        (["i1"], [], "item 1 is there although it was moved"),
    ],
)
def test_items_that_are_not(before: list[str], after: list[str], text: str) -> None:
    assert list(misplaced(before, after, {1}, {1})) == [text]
