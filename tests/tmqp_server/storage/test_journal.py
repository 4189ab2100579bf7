"""The journal: what is gathered, what cancels, what is owed after a failure."""

from __future__ import annotations

import pytest

from tests.tmqp_server.storage.gathering import Codec, Gathering
from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, FLAG_TRANSIENT, FLAG_WANTS
from tmqp_server.engine.commands import Synced
from tmqp_server.engine.effects import (
    Append,
    ClearStored,
    ForgetQueue,
    StoreChannel,
    StoreQueue,
)
from tmqp_server.engine.model.message import MARK_HIGH, MARK_WANTS
from tmqp_server.engine.model.times import AT_ONCE, NEVER
from tmqp_server.engine.options import ChannelOptions, QueueOptions
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.port import (
    REGULAR_ONLY,
    DropQueue,
    KeepChannel,
    KeepQueue,
    SettleAll,
    UnknownDoorError,
)


def test_what_is_gathered_is_one_batch_and_has_one_answer() -> None:
    all_of_it = Gathering()
    assert all_of_it.journal.is_empty
    all_of_it.change(StoreChannel("c", ChannelOptions()))
    all_of_it.append(1)
    all_of_it.append(2)
    all_of_it.erase(9)
    writing, appended, settled = all_of_it.take()
    assert (appended, settled) == ([1, 2], [9])
    assert [type(each) for each in writing.batch.changes] == [KeepChannel]
    all_of_it.append(3)  # while that is written
    assert all_of_it.finished(writing, ok=True) == (1, True, 3)
    writing, appended, _ = all_of_it.take()
    assert appended == [3]
    assert all_of_it.finished(writing, ok=True) == (4, True, 1)
    assert all_of_it.journal.is_empty


def test_a_message_as_it_is_kept_and_read_again() -> None:
    one = Gathering()
    message = one.append(4, marks=MARK_HIGH | MARK_WANTS, transient=True)
    rare = message.rarely()
    rare.expires_at, rare.due_at, rare.put_backs, rare.hops = 8.0, 6.0, 70_000, 2
    message.attempts = 3
    one = Gathering()
    one.journal.append(Append(1, message, "c", 1, 1, 4, True, 0, 0), 5.0)
    (kept,) = one.journal.take().batch.appended[1]
    assert kept.flags == FLAG_HIGH | FLAG_WANTS | FLAG_TRANSIENT | 7 << FLAG_DOOR_SHIFT
    assert (kept.timestamp_us, kept.expires_us, kept.due_us) == (
        1_005_000_000,
        1_008_000_000,
        1_006_000_000,
    )
    assert (kept.body, kept.payload_offset, kept.payload_size) == (b"<m4>", 1, 2)
    assert (kept.attempts, kept.put_backs, kept.hops) == (3, 65_535, 2)
    again = one.journal.kept(kept, 5.0)
    assert (again.sequence, again.message_id, again.source) == (4, "m4", "producer")
    assert (again.door, again.channel) == ("plain", None)  # a dead letter has its queue's address
    assert (again.expires_at, again.due_at) == (8.0, 6.0)
    assert again.transient
    assert again.wants_confirm
    kept.hops = 0
    assert one.journal.kept(kept, 5.0).channel == "Spelt"
    kept.body = b"garbage"
    with pytest.raises(ValueError, match="not one of mine"):
        one.journal.kept(kept, 5.0)
    kept.flags = 0
    with pytest.raises(UnknownDoorError):
        one.journal.kept(kept, 5.0)


def test_an_expiry_of_before_the_boot_is_not_taken_for_never() -> None:
    """A machine that reboots starts its monotonic clock anew, so saved times may lie before it."""
    before = Journal([Codec()], 1_000.0)
    message = Gathering().append(4)
    rare = message.rarely()
    rare.expires_at, rare.due_at = 8.0, 6.0
    before.append(Append(1, message, "c", 1, 1, 4, True, 0, 0), 5.0)
    (stored,) = before.take().batch.appended[1]
    after = Journal([Codec()], 2_000.0)  # booted 1,000 s later
    again = after.kept(stored, 1.0)
    assert (again.expires_at, again.due_at) == (-992.0, -994.0)
    stored.expires_us = stored.due_us = 0
    again = after.kept(stored, 1.0)
    assert (again.expires_at, again.due_at) == (NEVER, AT_ONCE)


def test_a_wall_clock_at_the_beginning_of_unix_time_makes_no_expiry_never() -> None:
    journal = Journal([Codec()], 0.0)
    message = Gathering().append(4)
    message.rarely().expires_at = 0.0
    journal.append(Append(1, message, "c", 1, 1, 4, True, 0, 0), 0.0)
    (stored,) = journal.take().batch.appended[1]
    assert journal.kept(stored, 0.0).expires_at <= 0.000_001


def test_what_is_settled_before_it_was_written_is_not_written() -> None:
    some = Gathering()
    some.append(1)
    some.append(2)
    some.erase(1)
    writing, appended, settled = some.take()
    assert (appended, settled) == ([2], [])
    some.erase(2)  # too late for that batch
    assert some.finished(writing, ok=True) == (1, True, 2)
    assert some.take()[1:] == ([], [2])


def test_a_queue_that_retains_is_told_of_both() -> None:
    some = Gathering()
    some.change(StoreQueue(1, "c", 1, QueueOptions(retain_bytes=5), 0))
    some.append(1)
    some.erase(1)
    writing, appended, settled = some.take()
    assert (appended, settled) == ([1], [1])
    some.finished(writing, ok=False)
    assert some.take()[1:] == ([], [])  # it was never there
    some.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
    some.append(2)
    some.erase(2)
    assert some.take()[1:] == ([], [])


def test_what_is_owed_after_a_failure_comes_first() -> None:
    some = Gathering()
    some.change(StoreChannel("c", ChannelOptions()))
    some.append(1)
    some.erase(7)
    some.journal.notes([(1, 5, 2, 1)])
    writing = some.take()[0]
    some.change(StoreChannel("d", ChannelOptions()))
    some.append(2)
    some.erase(8)
    assert some.finished(writing, ok=False) == (1, False, 2)
    writing, appended, settled = some.take()
    assert (appended, settled) == ([2], [7, 8])
    names = [each.name for each in writing.batch.changes if isinstance(each, KeepChannel)]
    assert names == ["c", "d"]
    assert [(each.sequence, each.attempts) for each in writing.batch.notes] == [(5, 2)]
    assert some.finished(writing, ok=True) == (3, True, 2)
    assert some.journal.is_empty


def test_an_older_copy_is_settled_with_the_newer_one_or_not_at_all() -> None:
    some = Gathering()
    some.append(9, old=4)
    writing, appended, settled = some.take()
    assert (appended, settled) == ([9], [4])
    some.finished(writing, ok=False)
    assert some.journal.is_empty


def test_clearing_takes_out_what_is_not_written() -> None:
    some = Gathering()
    for sequence in (1, 2, 4):
        some.append(sequence)
    some.append(3, marks=MARK_HIGH)
    some.append(2, key=2)
    some.change(ClearStored(1, False, 2, 4))
    writing, appended, _ = some.take()
    assert appended == [1, 3]
    assert len(writing.batch.appended[2]) == 1
    (change,) = writing.batch.changes
    assert isinstance(change, SettleAll)
    assert (change.key, change.first, change.last, change.priority) == (1, 2, 4, REGULAR_ONLY)
    assert some.finished(writing, ok=True) == (1, True, 6)


def test_a_queue_that_is_gone_takes_all_along() -> None:
    some = Gathering()
    some.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
    some.append(1)
    some.erase(8)
    some.change(ForgetQueue(1))
    writing, appended, settled = some.take()
    assert (appended, settled) == ([], [])
    assert [type(each) for each in writing.batch.changes] == [KeepQueue, DropQueue]


def test_notes_reach_messages_that_are_not_written_yet() -> None:
    some = Gathering()
    some.append(1)
    some.journal.notes([(1, 1, 3, 2), (1, 0, 1, 0)])
    writing = some.take()[0]
    (kept,) = writing.batch.appended[1]
    assert (kept.attempts, kept.put_backs) == (3, 2)
    assert [each.sequence for each in writing.batch.notes] == [0]


def test_an_empty_batch_with_nobody_to_answer() -> None:
    some = Gathering()
    writing = some.take()[0]
    assert writing.batch.is_empty()
    assert some.finished(writing, ok=True) is None
    assert isinstance(Synced(1, True), Synced)
