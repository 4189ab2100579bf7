"""Commits in the journal: whole in one batch, in order, and void as a whole."""

from __future__ import annotations

from array import array

import pytest

from tests.tmqp_server.storage.gathering import Gathering
from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, FLAG_WANTS
from tmqp_server.engine.commands import MessageSet, Segment
from tmqp_server.engine.effects import (
    ClearStored,
    CommitPart,
    CommitStored,
    ForgetMark,
    ForgetQueue,
    StoreQueue,
)
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.options import QueueOptions
from tmqp_server.storage.journal import Writing
from tmqp_server.storage.port import DropMark, KeepMark, KeepQueue


def segment(*bodies: str) -> Segment:
    """Messages for the plain door; one that begins with ``!`` has high priority."""
    made = Segment()
    for body in bodies:
        high = int(body.startswith("!"))
        made.add(MessageSet("plain", "c", 1, body.encode(), 1, high, len(body), len(body)))
    return made


def commit(first: int, *segments: Segment, key: int = 1, expires_at: float = NEVER) -> CommitStored:
    count = sum([each.count for each in segments])
    part = CommitPart(key, first, count, list(segments), expires_at)
    return CommitStored("app", 7, 5.0, [part])


def appended(writing: Writing) -> list[int]:
    """The sequences in the order in which a store appends them to queue 1."""
    batch = writing.batch
    found = [each.sequence for each in batch.appended.get(1, [])]
    for portion in batch.portions:
        if portion.key == 1:
            found += [each.sequence for each in portion.messages()]
    return found


def test_a_commit_is_one_batch_with_its_mark() -> None:
    some = Gathering()
    some.change(commit(3, segment("<a", "!b"), segment("<c"), expires_at=9.0))
    writing = some.journal.take()
    (mark,) = writing.batch.changes
    assert isinstance(mark, KeepMark)
    assert (mark.application, mark.epoch, mark.at_us) == ("app", 7, 1_005_000_000)
    kept = [each for portion in writing.batch.portions for each in portion.messages()]
    assert [each.sequence for each in kept] == [3, 4, 5]
    assert [each.body for each in kept] == [b"<a", b"!b", b"<c"]
    flags = 7 << FLAG_DOOR_SHIFT | FLAG_WANTS
    assert [each.flags for each in kept] == [flags, flags | FLAG_HIGH, flags]
    assert {each.timestamp_us for each in kept} == {1_005_000_000}
    assert {each.expires_us for each in kept} == {1_009_000_000}
    assert (kept[0].payload_offset, kept[0].payload_size) == (1, 1)
    assert some.finished(writing, ok=True) == (1, True, 1)
    assert some.journal.is_empty


def laid_out(*sizes: int, high: bool = False) -> Segment:
    """A segment of message sets whose door said how their messages lie: ten of a size each."""
    made = Segment()
    for size in sizes:
        body = b"x" * size * 10
        numbers = [array("I", [each]).tobytes() for each in (size, 1)]
        count = 10 if high else 0
        made.add(MessageSet("plain", "c", 1, body, 10, count, len(body), size, None, *numbers))
    return made


def test_a_commit_whose_messages_are_laid_out_is_written_without_looking_at_them() -> None:
    some = Gathering()
    some.change(commit(3, laid_out(5, 7), laid_out(9, high=True), expires_at=9.0))
    first, second = some.journal.take().batch.portions
    flags = 7 << FLAG_DOOR_SHIFT | FLAG_WANTS
    found = [*first.runs(), *second.runs()]
    assert [(each.first, each.count, each.flags) for each in found] == [
        (3, 10, flags), (13, 10, flags), (23, 10, flags | FLAG_HIGH),
    ]  # fmt: skip
    assert {(each.timestamp_us, each.expires_us) for each in found} == {
        (1_005_000_000, 1_009_000_000)
    }
    kept = [message for each in found for message in each.messages()]
    assert [each.sequence for each in kept] == list(range(3, 33))
    assert [(len(each.body), each.payload_offset) for each in kept[::10]] == [
        (5, 1), (7, 1), (9, 1),
    ]  # fmt: skip


def test_one_message_set_that_is_not_laid_out_has_all_of_its_segment_looked_at() -> None:
    some = Gathering()
    mixed = laid_out(5)
    mixed.add(MessageSet("plain", "c", 1, b"<a", 1, 0, 2, 2))
    some.change(commit(1, mixed))
    (portion,) = some.journal.take().batch.portions
    assert portion.runs() == []


def test_what_is_appended_before_and_behind_stands_in_its_place() -> None:
    some = Gathering()
    some.append(1)
    some.append(2)
    some.change(commit(3, segment("<a", "<b")))
    some.append(5)
    some.change(commit(6, segment("<c")))
    some.append(7)
    some.append(1, key=2)
    writing = some.journal.take()
    assert appended(writing) == [1, 2, 3, 4, 5, 6, 7]
    assert [each.sequence for each in writing.batch.appended[2]] == [1]
    some.append(8)
    assert appended(some.journal.take()) == [8], "the next batch knows nothing of it"


def test_a_commit_that_fails_is_void_with_its_mark_and_all_else_is_owed() -> None:
    some = Gathering()
    some.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
    some.append(1)
    some.change(commit(2, segment("<a", "<b")))
    some.change(ForgetMark("old"))
    some.erase(1)
    some.change(ClearStored(1, False, 1, 3))
    some.erase(99)
    writing = some.journal.take()
    assert sorted(set(writing.batch.settled[1])) == [1, 2, 3, 99]
    assert some.finished(writing, ok=False) == (1, False, 5)
    again = some.journal.take()
    kinds = [type(each).__name__ for each in again.batch.changes]
    assert kinds == ["KeepQueue", "DropMark", "SettleAll"]
    assert again.batch.portions == []
    assert again.batch.settled == {1: [99]}


def test_only_one_priority_of_a_commit_is_cleared() -> None:
    some = Gathering()
    some.change(commit(2, segment("<a", "!b", "<c")))
    some.change(ClearStored(1, True, 1, 9))
    assert some.journal.take().batch.settled == {1: [3]}
    some.change(commit(5, segment("<a", "!b", "<c")))
    some.change(ClearStored(1, False, 1, 6))
    some.change(ClearStored(2, False, 1, 6))
    assert some.journal.take().batch.settled == {1: [5]}


def test_a_queue_that_is_gone_takes_nothing() -> None:
    some = Gathering()
    some.append(1)
    some.change(commit(2, segment("<a")))
    some.change(ForgetQueue(1))
    writing = some.journal.take()
    assert appended(writing) == []
    assert [type(each) for each in writing.batch.changes][-1] is KeepMark


def test_a_mark_is_forgotten_and_made_anew_in_one_batch() -> None:
    some = Gathering()
    some.change(ForgetMark("app"))
    some.change(commit(1, segment("<a")))
    changes = some.journal.take().batch.changes
    assert [type(each) for each in changes] == [DropMark, KeepMark]
    assert not any(isinstance(each, KeepQueue) for each in changes)


def test_a_message_set_that_does_not_hold_what_it_says_fails_its_batch() -> None:
    some = Gathering()
    wrong = segment("<a")
    wrong.count = 2
    some.change(commit(1, wrong))
    (portion,) = some.journal.take().batch.portions
    with pytest.raises(ValueError, match="does not match its head"):
        portion.messages()
