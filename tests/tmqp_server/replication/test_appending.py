"""An append has two outcomes, and who does not know it asks again."""

from __future__ import annotations

import pytest

from tmqp_server.replication.appending import ASKING, DONE, FENCED, Appending
from tmqp_server.storage.log import Appended, Fenced, Leader, LogAnswer, LogEntry, Misplaced

MINE = LogEntry(4, b"mine")
OTHER = Leader("b", "tmqp://b", "t", 9, 1)


def test_what_is_not_answered_is_asked_again_with_the_same_number_and_bytes() -> None:
    appending = Appending(7, MINE)
    asked = appending.request
    pauses = [appending.unanswered() for _ in range(8)]
    assert (appending.state, appending.request) == (ASKING, asked)
    assert (asked.epoch, asked.number, asked.data) == (7, 4, b"mine")
    assert pauses == sorted(pauses)
    assert pauses[-1] == 0.5


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (Appended(), DONE, ""),
        (Misplaced(4, b"mine"), DONE, ""),
        (Misplaced(9, b"mine"), DONE, ""),
        (Misplaced(4, b"theirs"), FENCED, "entry 4 of the log has another content"),
        (Misplaced(2, b""), FENCED, "entry 4 of the log has another content"),
        (Fenced(OTHER), FENCED, "the claim has ended and b leads"),
        (Fenced(None), FENCED, "the claim has ended and no server leads"),
    ],
)
def test_an_answer_settles_it(answer: LogAnswer, state: int, reason: str) -> None:
    appending = Appending(7, MINE)
    appending.answered(answer)
    assert (appending.state, appending.reason) == (state, reason)


def test_what_was_settled_stays_so_whatever_comes_late() -> None:
    appending = Appending(7, MINE)
    appending.answered(Appended())
    appending.answered(Fenced(OTHER))
    assert appending.state == DONE
