"""The pace of the storage: one case for each cell of its states, and a machine beside a store."""

from __future__ import annotations

import math
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.tmqp_server.shell.desk import Desk, fetch, offsets
from tmqp_server.engine.commands import Fetched, Synced
from tmqp_server.engine.effects import StoreQueue
from tmqp_server.engine.model.message import MARK_DONE_CONFIRMS
from tmqp_server.engine.options import QueueOptions
from tmqp_server.shell.saving import (
    CATCHING_UP,
    CLOSED,
    CLOSING,
    FINISHING,
    IDLE,
    LINGERING,
    PAUSED,
    READING,
    STOPPED,
    WRITING,
)
from tmqp_server.shell.world import (
    CatchUp,
    CloseStore,
    ReadBatch,
    WorldEffect,
    WriteBatch,
)
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import ANY_PRIORITY, Portion, StoreError

ERROR: Final = StoreError("no room")


@pytest.fixture
def desk() -> Desk:
    return Desk()


# --- At rest -------------------------------------------------------------------------------------


def test_nothing_is_wanted_where_nothing_is_to_be_done(desk: Desk) -> None:
    assert not desk.saving.wants
    assert desk.saving.state == IDLE
    assert desk.saving.due() == math.inf


def test_a_message_is_written_at_once(desk: Desk) -> None:
    desk.push()
    desk.wake()
    assert desk.saving.state == WRITING
    assert not desk.told()
    assert desk.write() == ["saved 1+1"]
    assert desk.saving.state == IDLE


def test_what_nobody_waits_for_waits_for_company(desk: Desk) -> None:
    desk.settle(1)
    desk.wake()
    assert desk.saving.state == LINGERING
    assert desk.work() == []
    assert not desk.saving.wants
    desk.settle(2)
    desk.wake()
    desk.pass_time()
    assert desk.now == pytest.approx(0.005)
    assert desk.begin().batch.settled == {1: [1, 2]}


def test_what_came_in_the_same_round_missed_the_batch(desk: Desk) -> None:
    """Of 64 producers with one message each, every second sync was for the first one alone."""
    desk.push()
    desk.wake()
    desk.push()
    desk.ask(fetch())
    desk.wake()
    assert desk.begin().count == 2
    desk.push()
    desk.wake()
    assert desk.write() == ["saved 1+2"]
    desk.wake()
    assert desk.write() == ["saved 3+1"]
    assert desk.read(1) == ["Fetched"]


def test_a_batch_begins_at_once_where_the_last_one_had_a_single_message(desk: Desk) -> None:
    def at_once(messages: int) -> bool:
        for _ in range(messages):
            desk.push()
        desk.wake()
        (work,) = desk.work()
        assert isinstance(work, WriteBatch)
        desk.saving.take()
        desk.begun = True
        desk.write()
        return work.at_once

    assert [at_once(count) for count in (1, 2, 1, 1)] == [False, True, False, True]
    desk.settle(1)
    desk.wake()
    desk.pass_time()
    desk.write()
    assert at_once(1), "nobody waited for what was settled"


def test_what_somebody_waits_for_takes_along_what_lingers(desk: Desk) -> None:
    desk.settle(1)
    desk.wake()
    desk.sequence = 1
    desk.push()
    assert desk.saving.wants
    desk.wake()
    assert desk.saving.state == WRITING
    assert desk.write() == ["saved 1+1"]


def test_a_read_is_asked_at_once(desk: Desk) -> None:
    desk.ask(fetch())
    desk.wake()
    assert desk.saving.state == READING
    assert desk.read(1) == ["Fetched"]
    assert desk.saving.state == IDLE


# --- At work -------------------------------------------------------------------------------------


def test_one_batch_is_out_and_the_next_gathers(desk: Desk) -> None:
    desk.push()
    desk.wake()
    desk.begin()
    desk.push()
    desk.push()
    assert not desk.saving.wants
    desk.wake()
    assert desk.write() == ["saved 1+1"]
    assert desk.work() == []  # the broker hears the answers first
    desk.wake()
    assert desk.write() == ["saved 2+2"]


def test_reads_go_behind_the_batch_that_was_gathered_before_them(desk: Desk) -> None:
    desk.push()
    desk.ask(fetch())
    desk.wake()
    desk.begin()
    desk.push()
    desk.ask(offsets())
    assert desk.write() == ["saved 1+1"]
    assert desk.saving.state == READING
    assert desk.read(1) == ["Fetched"]
    desk.wake()
    assert desk.saving.state == WRITING
    assert desk.write() == ["saved 2+1"]
    assert desk.read(1) == ["Fetched"]


def test_reads_are_asked_together_up_to_a_mebibyte(desk: Desk) -> None:
    desk.ask(fetch(600_000), fetch(600_000), fetch(600_000), offsets())
    desk.wake()
    (first,) = desk.work()
    assert isinstance(first, ReadBatch)
    assert len(first.questions) == 2
    desk.saving.read([Fetched(1, [], 0)] * 2, None, desk.now)
    (second,) = desk.work()
    assert isinstance(second, ReadBatch)
    assert len(second.questions) == 2


def test_a_large_write_is_caught_up_with_before_the_next(desk: Desk) -> None:
    desk.push()
    desk.ask(fetch())
    desk.wake()
    desk.begin().batch.portions.append(Portion(1))
    desk.saving.written(None, desk.now)
    assert desk.told() == ["saved 1+1"]
    assert desk.saving.state == CATCHING_UP
    (work,) = desk.work()
    assert isinstance(work, CatchUp)
    desk.saving.caught_up(OSError("a bug of the store"), desk.now)
    assert desk.saving.state == READING
    assert desk.logs() == [
        "the store failed",
        "the store could not tidy up after a large write: OSError: a bug of the store",
    ]


def test_answers_come_in_steps_of_a_thousand(desk: Desk) -> None:
    for _ in range(2_500):
        desk.push()
    desk.wake()
    assert desk.write() == ["saved 1+1000", "saved 1001+1000", "saved 2001+500"]


# --- Failing -------------------------------------------------------------------------------------


def test_a_batch_that_is_out_for_too_long_keeps_others_from_waiting(desk: Desk) -> None:
    desk.saving.patience_s = 1.0
    desk.push()
    desk.wake()
    assert desk.saving.due() == 1.0
    desk.now = 1.0
    desk.saving.on_deadline(desk.now)
    assert desk.told() == ["fails"]
    assert desk.saving.failing == "a batch is not written after 1 s"
    assert desk.saving.due() == math.inf
    desk.now = 9.0
    assert desk.write() == ["works", "saved 1+1"]  # none of it was lost
    assert desk.saving.failing == ""
    desk.push()
    desk.wake()
    assert desk.saving.due() == 10.0  # the next one has all the time again
    assert desk.write() == ["saved 2+1"]


def test_a_batch_that_was_late_and_failed_is_a_failure_like_any_other(desk: Desk) -> None:
    desk.saving.patience_s = 1.0
    desk.push()
    desk.wake()
    desk.now = 1.0
    desk.saving.on_deadline(desk.now)
    assert desk.told() == ["fails"]
    assert desk.write(ERROR) == ["fails", "refused 1+1"]
    assert desk.saving.failing == "no room"
    desk.pass_time()
    desk.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
    desk.wake()
    desk.write()
    assert desk.saving.failing == "no room"  # that nothing was brought proves nothing


def test_a_store_that_is_waited_for_patiently_is_never_late(desk: Desk) -> None:
    desk.push()
    desk.wake()
    assert desk.saving.due() == math.inf


def test_a_failed_write_refuses_its_messages(desk: Desk) -> None:
    desk.push()
    desk.wake()
    assert desk.write(ERROR) == ["fails", "refused 1+1"]
    assert desk.saving.failing == "no room"
    assert desk.saving.state == PAUSED
    assert desk.saving.due() == pytest.approx(0.05)
    assert desk.logs() == ["the storage cannot save, messages to be saved are refused: no room"]


def test_with_nothing_owed_the_next_message_is_the_trial(desk: Desk) -> None:
    desk.push()
    desk.wake()
    desk.write(ERROR)
    desk.pass_time()
    assert desk.told() == ["works"]
    assert desk.saving.failing  # nothing has proved it
    desk.push()
    desk.wake()
    assert desk.write() == ["works", "saved 2+1"]
    assert not desk.saving.failing
    assert desk.logs()[-1] == "the storage saves again"


def test_what_is_owed_is_tried_again_after_a_growing_pause(desk: Desk) -> None:
    desk.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
    desk.wake()
    pauses = []
    for _ in range(7):
        desk.write(ERROR)
        began = desk.now
        desk.pass_time()
        pauses.append(round(desk.now - began, 3))
        assert "works" not in desk.told()
        desk.wake()
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert len(desk.logs()) == 1


def test_only_a_batch_that_brings_messages_is_the_proof(desk: Desk) -> None:
    """There may be room for all else, and none for messages."""
    desk.push()
    desk.wake()
    desk.write(ERROR)
    desk.pass_time()
    desk.told()
    desk.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
    desk.wake()
    assert desk.write() == ["saved 2+1"]
    assert desk.saving.failing
    assert desk.saving.state == PAUSED


def test_reads_that_were_asked_before_a_failed_write_are_answered(desk: Desk) -> None:
    desk.push()
    desk.ask(fetch())
    desk.wake()
    desk.write(ERROR)
    assert desk.saving.state == READING
    assert desk.read(1) == ["Fetched"]
    assert desk.saving.state == PAUSED


def test_a_failed_read_refuses_readers_and_keeps_the_brokers_questions(desk: Desk) -> None:
    desk.ask(fetch(), offsets(), fetch(), offsets())
    desk.wake()
    assert desk.read(1, ERROR) == ["Fetched", "OffsetsFound", "OffsetsFound"]
    assert desk.saving.state == PAUSED
    assert desk.saving.due() == pytest.approx(1.0)
    desk.pass_time()
    desk.wake()
    assert desk.read(1) == ["Fetched"]
    assert desk.logs() == ["the storage cannot be read, retrying: no room"]


def test_a_failed_read_slows_nothing_that_comes_after_it(desk: Desk) -> None:
    """A server that was only read from answered in bursts for good; writes paused as well."""
    desk.ask(offsets())
    desk.wake()
    desk.read(0, ERROR)
    desk.pass_time()
    for _ in range(3):
        desk.push()
        desk.ask(fetch())
        desk.wake()
        desk.write()
        desk.read(1)
        assert desk.saving.state == IDLE


def test_a_bug_of_the_store_is_a_failure_like_any_other(desk: Desk) -> None:
    desk.push()
    desk.wake()
    assert desk.write(ValueError("a bug")) == ["fails", "refused 1+1"]
    assert desk.logs()[0] == "the store failed"
    assert desk.saving.failing == "ValueError: a bug"


# --- The end -------------------------------------------------------------------------------------


def test_what_is_out_comes_to_its_end_before_the_store_is_closed(desk: Desk) -> None:
    desk.push()
    desk.wake()
    desk.begin()
    desk.push()
    desk.saving.stop()
    assert desk.saving.state == WRITING
    assert desk.write() == ["saved 1+1"]
    assert desk.saving.state == STOPPED
    desk.saving.finish([(1, 1, 3, 0)])
    assert desk.saving.state == FINISHING
    desk.begin()
    desk.saving.written(None, desk.now)
    assert desk.saving.state == CLOSING
    (work,) = desk.work()
    assert isinstance(work, CloseStore)
    assert work.clean
    desk.saving.closed(None)
    assert desk.saving.state == CLOSED


@pytest.mark.parametrize("state", [IDLE, LINGERING, PAUSED])
def test_nothing_has_to_be_waited_for_at_rest(desk: Desk, state: int) -> None:
    if state == LINGERING:
        desk.settle(1)
        desk.wake()
    elif state == PAUSED:
        desk.push()
        desk.wake()
        desk.write(ERROR)
    assert desk.saving.state == state
    desk.saving.stop()
    assert desk.saving.state == STOPPED
    assert desk.saving.due() == math.inf


def test_a_failed_last_batch_is_no_clean_stop(desk: Desk) -> None:
    desk.saving.stop()
    desk.saving.finish([])
    desk.begin()
    desk.saving.written(ERROR, desk.now)
    (work,) = desk.work()
    assert isinstance(work, CloseStore)
    assert not work.clean
    desk.saving.closed(ValueError("a bug"))
    assert desk.logs() == [
        "the storage could not be closed cleanly: no room",
        "the store failed",
        "the storage could not be closed cleanly: ValueError: a bug",
    ]


# --- Beside a store ------------------------------------------------------------------------------


class Beside(RuleBasedStateMachine):
    """Messages, reads, failures and time in any order, with a store in memory behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.store = MemoryStore("beside")
        self.store.recover()
        self.out: WorldEffect | None = None
        self.desk.change(StoreQueue(1, "c", 1, QueueOptions(), 0))
        self.unanswered = {1}
        self.saved: set[int] = set()
        #: Tickets of messages that were settled before they were answered for.
        self.done_early: set[int] = set()
        self._attend()

    def _attend(self) -> None:
        """Tell the broker, then see what is to be done."""
        for answer in list(self.desk.answers):
            if isinstance(answer, Synced):
                tickets = set(range(answer.ticket, answer.ticket + answer.count))
                assert tickets <= self.unanswered, "each is answered once"
                self.unanswered -= tickets
                if answer.ok:
                    # The first is the queue's.
                    self.saved |= {each - 1 for each in tickets - self.done_early}
        self.desk.answers.clear()
        self.desk.wake()
        work = self.desk.work()
        if work:
            assert self.out is None, "one piece of work is out at a time"
            (self.out,) = work

    @rule()
    def push(self) -> None:
        self.desk.push()
        self.unanswered.add(self.desk.ticket)
        self._attend()

    @rule()
    def push_what_may_be_done(self) -> None:
        self.desk.push(MARK_DONE_CONFIRMS)
        self.unanswered.add(self.desk.ticket)
        self._attend()

    @precondition(lambda self: self.unanswered - self.done_early - {1})
    @rule(data=st.data())
    def settle_early(self, data: st.DataObject) -> None:
        unanswered = sorted(self.unanswered - self.done_early - {1})
        ticket = data.draw(st.sampled_from(unanswered))
        self.done_early.add(ticket)
        self.desk.erase(ticket - 1, ticket=ticket)
        self._attend()

    @rule()
    def read(self) -> None:
        self.desk.ask(fetch())
        self._attend()

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(sorted(self.saved)))
        self.saved.discard(sequence)
        if sequence:
            self.desk.settle(sequence)
        self._attend()

    @precondition(lambda self: self.out is not None)
    @rule(fails=st.sampled_from((False, False, True)))
    def done(self, fails: bool) -> None:
        work, self.out = self.out, None
        error = ERROR if fails else None
        if isinstance(work, WriteBatch):
            writing = self.desk.saving.take()
            if not fails:
                self.store.write(writing.batch, 1)
            self.desk.saving.written(error, self.desk.now)
        elif isinstance(work, ReadBatch):
            answers = [] if fails else [Fetched(1, [], 0) for _ in work.questions]
            self.desk.saving.read(answers, error, self.desk.now)
        self._attend()

    @precondition(lambda self: self.desk.saving.due() < math.inf)
    @rule()
    def pass_time(self) -> None:
        self.desk.pass_time()
        self._attend()

    @invariant()
    def something_happens(self) -> None:
        """What is to be done is out, or has its time."""
        saving = self.desk.saving
        if saving.state in (WRITING, READING):
            assert self.out is not None
        elif saving.state in (LINGERING, PAUSED):
            assert saving.due() <= self.desk.now + 1.0
            journal = self.desk.journal
            assert saving.state == PAUSED or not journal.is_urgent or journal.may_be_done
        else:
            assert saving.state == IDLE
            assert self.desk.journal.is_empty

    @invariant()
    def what_is_confirmed_is_there(self) -> None:
        kept = self.store.fetch(1, 0, 1 << 40, 1 << 20, 1 << 40, ANY_PRIORITY) if self.saved else []
        assert self.saved - {0} <= {each.sequence for each in kept}


TestBeside = Beside.TestCase
TestBeside.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
