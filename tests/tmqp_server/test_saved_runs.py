"""Runs into durable queues: the same bytes, the same books and the same on disk as one by one,
whatever the storage says and whenever it says it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.outputs import asked_of_storage, faults
from tests.tmqp_server.push_stage import (
    BOOKS,
    CONSUMERS,
    FILTERS,
    PRODUCER,
    Stage,
    answers,
    books_of,
    hello,
    operation,
    pushes,
)
from tests.tmqp_server.storage.stores import owed
from tmqp import Limits
from tmqp.codec import FrameDecoder
from tmqp.constants import Operation
from tmqp_server.doors.native.door import NativeDoor, NativeSession
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import AcknowledgeRun, Push, PushRun, StorageState, Synced
from tmqp_server.engine.core import PendingRun
from tmqp_server.engine.effects import AppendRun, ConfirmRun, Deliver, DeliverRun, EraseRun, Fetch
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import MARK_TOGETHER
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.recovery import answer_of
from tmqp_server.storage.journal import Journal, Writing
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import Store, StoreError
from tmqp_server.storage.sqlite.front import SqliteStore

_KEPT: Final = b'{"Durable":true,"RequestAcknowledge":true'
QUEUES: Final = (
    ("push", _KEPT + b"}"),
    ("push", _KEPT + b',"AcknowledgeTimeout":3000}'),
    ("push", _KEPT + b',"RetainBytes":2000}'),
    ("push", _KEPT + b',"MemoryLimit":20}'),
    ("push", _KEPT + b',"MessageDeliveryHandler":"ack-received"}'),
    ("push", _KEPT + b',"MessageDeliveryHandler":"ack-consumer"}'),
    ("push", _KEPT + b',"MessageDeliveryHandler":"ack-sent"}'),
    ("push", _KEPT + b',"MessageDeliveryHandler":"allow-all"}'),
    ("push", _KEPT + b',"MessageDeliveryHandler":"ack-ifsaved","AcknowledgeTimeout":2000}'),
    ("push", _KEPT + b',"MessageDeliveryHandler":"putback-end"}'),
    ("push", _KEPT + b',"MessageDeliveryHandler":"putback-start","AcknowledgeTimeout":2000}'),
    ("push", _KEPT + b',"MessageTimeout":2000}'),
    ("push", _KEPT + b',"UseMessageId":false}'),
    ("push", _KEPT + b',"MessageLimit":40}'),
    ("push", b'{"Durable":true,"RequestAcknowledge":false}'),
    ("roundrobin", _KEPT + b"}"),
    ("pull", _KEPT + b"}"),
)


class SavedStage(Stage):
    """A stage with a storage, which answers when the script says so."""

    def __init__(self, queue: int, *, runs: bool, store: Store, limits: EngineLimits) -> None:
        self.store = store
        self.limits = limits
        self.runs = runs
        store.recover()
        self.ids = 0
        self.broker = Broker(limits, BrokerOptions(storage=True))
        self.door = NativeDoor(self.new_id, Limits())
        self.journal = Journal([self.door])
        self.hub = Hub(self.broker, 1 << 20, self.journal)
        self.heard: dict[int, bytes] = {}
        self.writing: Writing | None = None
        for number in (PRODUCER, *CONSUMERS):
            self.hub.open(number, self.door, 0.0)
            self.say(number, b"TMQP/2.0" + hello(f"client{number}"))
            session = self.hub._sessions[number]
            assert isinstance(session, NativeSession)
            session._connection.makes_runs = runs
            if not runs:
                session._runs.singly_for = 1 << 30
        status, options = QUEUES[queue]
        self.say(PRODUCER, operation(Operation.CREATE_QUEUE, options, status))
        self.write(0.0)

    def new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:032}"

    def take(self) -> None:
        """Begin to write what was gathered."""
        if self.writing is None:
            self.writing = self.journal.take()

    def write(self, now: float, failure: bool = False) -> None:
        """Write what was taken, or what is there; the store may have no room, or fail."""
        self.take()
        writing = self.writing
        assert writing is not None
        self.writing = None
        ok = not failure
        try:
            if ok and not writing.batch.is_empty():
                self.store.write(writing.batch, int(now * 1e6))
        except StoreError:
            ok = False
        if not ok:
            self.hub.perform(StorageState(False), now)
        for answer in self.journal.answers(writing, ok, 1_000):
            self.hub.perform(answer, now)
            self.listen()
        if not ok:
            self.hub.perform(StorageState(True), now)
        self.fetch(now)

    def fetch(self, now: float) -> None:
        """Bring back what is on disk only, as far as all has been written."""
        while self.writing is None and self.journal.is_empty:
            questions = asked_of_storage(self.hub)
            if not questions:
                return
            for question in questions:
                assert isinstance(question, Fetch)
                self.hub.perform(answer_of(self.store, self.journal, question, now), now)
                self.listen()

    def saved_books(self) -> list[object]:
        core = self.broker._core
        queues = [
            books_of(queue, (*BOOKS, "spilled", "appended", "safe"))
            for queue in self.broker.queues()
        ]
        flights = [
            (key, each.attempts, each.marks & ~MARK_TOGETHER, each.sequence, each.size,
             each.put_backs, each.sent_at, None if each.holder is None else each.holder.number)
            for queue in self.broker.queues()
            for key, each in queue.flights.items()
        ]  # fmt: skip
        return [queues, flights, core.total_bytes, core.unsynced_bytes,
                repr(self.broker.statistics()), sorted(self.broker.notes())]  # fmt: skip

    def on_disk(self) -> list[str]:
        """What a restart would find."""
        return [repr(each) for each in self.store.fetch(1, 0, 1 << 60, 1_000_000, 1 << 60, 0)]


#: Most scripts have one consumer.
CONSUMER: Final = st.sampled_from([2, 2, 2, 3, 4])

acts = st.one_of(
    st.tuples(st.just("push"), st.integers(2, 60), st.sampled_from([0, 0, 5, 5, 5, 4, 7, 8, 9])),
    st.tuples(st.just("push"), st.integers(2, 60), st.just(5)),
    st.tuples(st.sampled_from(["join", "leave", "block", "unblock"]), CONSUMER, st.just(0)),
    st.tuples(st.just("choose"), CONSUMER, st.sampled_from(range(len(FILTERS)))),
    st.tuples(st.just("answer"), CONSUMER, st.sampled_from([0, 0, 0, 5])),
    st.tuples(st.just("some"), st.integers(1, 40), st.sampled_from([0, 0, 5])),
    st.tuples(st.sampled_from(["take", "write", "fail"]), st.integers(1, 80), st.just(0)),
    st.tuples(st.just("write"), st.integers(1, 80), st.just(0)),
    st.tuples(st.sampled_from(["wait", "gone", "clear"]), st.integers(1, 3), st.just(0)),
)


def play(stage: SavedStage, script: list[tuple[str, int, int]]) -> None:
    first = 0
    gone = False
    for now, (what, number, kind) in enumerate(script, 1):
        stage.bring()
        if what == "push" and not gone:
            stage.say(PRODUCER, pushes(first, number, kind), float(now))
            first += number
        elif what == "answer":
            stage.say(number, answers(number, first, kind), float(now))
        elif what == "some":
            stage.say(2, answers(2, max(0, first - number), kind), float(now))
        elif what == "join":
            stage.say(number, operation(Operation.JOIN), float(now))
        elif what == "choose":
            stage.say(number, operation(Operation.JOIN, terms=FILTERS[kind]), float(now))
        elif what == "leave":
            stage.say(number, operation(Operation.LEAVE), float(now))
        elif what == "clear":
            stage.say(3, operation(Operation.CLEAR_MESSAGES), float(now))
        elif what == "block":
            stage.hub.block(number, float(now))
        elif what == "unblock":
            stage.hub.unblock(number, float(now))
        elif what == "take":
            stage.take()
        elif what in ("write", "fail"):
            stage.write(float(now), what == "fail")
        elif what == "wait":
            wait(stage, float(now))
        elif what == "gone" and number == 1 and not gone:
            gone = True
            stage.hub.forget(PRODUCER, float(now))
        stage.listen()


def wait(stage: SavedStage, now: float) -> None:
    while (due := stage.hub.broker_deadline()) is not None and due <= now:
        stage.hub.on_broker_deadline(now)
        stage.listen()


def compare(script: list[tuple[str, int, int]], single: SavedStage, together: SavedStage) -> None:
    """Play it on both stages, and to the end."""
    last = float(len(script) + 1)
    for stage in (single, together):
        play(stage, script)
    assert together.heard == single.heard
    assert together.saved_books() == single.saved_books()
    for stage in (single, together):
        for step in range(8):
            stage.write(last + step * 40)
            wait(stage, last + step * 40)
    assert together.heard == single.heard
    assert together.saved_books() == single.saved_books()
    assert together.on_disk() == single.on_disk()
    assert faults(together.hub) == faults(single.hub) == {}
    for stage in (single, together):
        assert not stage.broker._core.tickets or not stage.journal.is_empty
        for queue in stage.broker.queues():
            assert queue.imbalance() == 0


@pytest.mark.timeout(300)
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(range(len(QUEUES))),
    st.lists(acts, min_size=1, max_size=14),
    st.sampled_from([(1 << 30, 1 << 30), (3_000, 1 << 30), (1 << 30, 6_000)]),
    st.sampled_from([0, 5_000]),
)
def test_saved_runs_leave_what_single_pushes_would(
    queue: int, script: list[tuple[str, int, int]], bounds: tuple[int, int], capacity: int
) -> None:
    limits = EngineLimits(max_unsynced_bytes=bounds[0], max_queue_bytes=bounds[1])
    script = [("join", 2, 0), *script]
    single, together = [
        SavedStage(queue, runs=runs, store=MemoryStore("s", capacity), limits=limits)
        for runs in (False, True)
    ]
    compare(script, single, together)


PLANS: Final = (
    [("push", 50, 5), ("take", 1, 0), ("answer", 2, 0), ("push", 50, 5), ("write", 30, 0)],
    [("push", 50, 5), ("answer", 2, 5), ("write", 7, 0), ("answer", 2, 0)],
    [("push", 50, 5), ("fail", 20, 0), ("push", 9, 0), ("leave", 2, 0), ("join", 2, 0)],
    [("push", 40, 0), ("some", 20, 0), ("push", 40, 5), ("take", 1, 0), ("some", 9, 0)],
    [("push", 40, 5), ("take", 1, 0), ("some", 10, 5), ("fail", 5, 0), ("answer", 2, 0)],
)


@pytest.mark.parametrize("plan", range(len(PLANS)))
@pytest.mark.parametrize("queue", [0, 2, 8, 9])
def test_the_same_stands_on_the_disk(plan: int, queue: int, tmp_path: Path) -> None:
    """With the store that servers use, and what it finds when it is opened again."""
    script: list[tuple[str, int, int]] = [("join", 2, 0), *PLANS[plan], *PLANS[plan - 1]]
    stages: list[SavedStage] = []
    for runs in (False, True):
        store = SqliteStore(tmp_path / str(runs), floor_bytes=0)
        stages.append(SavedStage(queue, runs=runs, store=store, limits=EngineLimits()))
    for stage in stages:
        play(stage, script)
        stage.write(99.0)
    found: list[list[object]] = []
    for stage in stages:
        assert isinstance(stage.store, SqliteStore)
        stage.store._log.close()
        stage.store._database.close(False)  # as if the power had gone
        again = SqliteStore(stage.store.directory, floor_bytes=0)
        recovered = again.recover()
        there = again.fetch(1, 0, 1 << 60, 1_000_000, 1 << 60, 0)
        found.append([repr(recovered.queues), [repr(each) for each in there]])
        assert again.check().problems == []
        again.close(True)
    assert found[1] == found[0]


def one(queue: int = 0) -> SavedStage:
    """A stage with a consumer."""
    stage = SavedStage(queue, runs=True, store=MemoryStore(), limits=EngineLimits())
    stage.say(2, operation(Operation.JOIN))
    return stage


def chunk(stage: SavedStage, number: int, data: bytes, now: float = 1.0) -> list[object]:
    """The effects of what is in a chunk; they are carried out."""
    commands = stage.hub._sessions[number].receive(data, now)
    assert all(isinstance(each, (PushRun, AcknowledgeRun)) for each in commands)
    _, effects = stage.broker.steps(commands, 0, now, 1 << 20)
    stage.hub._carry_out(effects, now)
    stage.listen()
    return list(effects)


def test_a_run_is_kept_answered_for_and_forgotten_in_one_go() -> None:
    stage = one()
    effects = chunk(stage, PRODUCER, pushes(0, 200, 5))
    assert [type(each) for each in effects] == [AppendRun, DeliverRun]
    (pending,) = stage.broker._core.tickets.values()
    assert isinstance(pending, PendingRun)
    before = stage.heard.get(PRODUCER, b"")
    stage.take()
    writing = stage.writing
    assert writing is not None
    assert writing.count == 1
    assert [run.count for run in writing.batch.runs[1]] == [200]
    assert not writing.batch.appended
    erased = chunk(stage, 2, answers(2, 70, 0))
    assert [type(each) for each in erased] == [EraseRun]
    assert stage.heard.get(PRODUCER, b"") == before  # rule 1: nobody is told before it is safe
    (effect,) = stage.broker.step(Synced(writing.first, True, writing.count), 2.0)
    assert isinstance(effect, ConfirmRun)
    assert len(effect.message_ids) == 200
    (queue,) = stage.broker.queues()
    assert queue.counters.saved == 200
    assert queue.safe == 200


def test_what_is_settled_before_it_is_written_is_not_written() -> None:
    stage = one()
    chunk(stage, PRODUCER, pushes(0, 70, 5))
    chunk(stage, 2, answers(2, 70, 0))
    stage.take()
    writing = stage.writing
    assert writing is not None
    assert not writing.batch.brings()
    assert not writing.batch.settled
    assert writing.count == 1  # somebody waits for the answer all the same


def test_a_run_that_was_not_saved_is_refused_message_by_message() -> None:
    stage = one()
    chunk(stage, PRODUCER, pushes(0, 5, 5))
    before = len(stage.heard.get(PRODUCER, b""))
    stage.write(2.0, failure=True)
    assert stage.heard[PRODUCER][before:].count(b"Nack-Reason:") == 5
    (queue,) = stage.broker.queues()
    assert queue.counters.saved == 0
    assert len(queue.flights) == 5  # the consumer has them already
    chunk(stage, 2, answers(2, 5, 0))
    assert owed(stage.store) == []


@pytest.mark.parametrize("bound", [{"max_unsynced_bytes": 5_000}, {"max_queue_bytes": 9_000}])
def test_a_run_that_may_have_no_room_goes_one_by_one(bound: dict[str, int]) -> None:
    stage = SavedStage(0, runs=True, store=MemoryStore(), limits=EngineLimits(**bound))
    stage.say(2, operation(Operation.JOIN))
    (run,) = stage.hub._sessions[PRODUCER].receive(pushes(0, 200, 5), 1.0)
    assert isinstance(run, PushRun)
    _, effects = stage.broker.steps([run], 0, 1.0, 1 << 20)
    assert [each for each in effects if isinstance(each, Deliver)]
    assert not [each for each in effects if isinstance(each, (AppendRun, DeliverRun))]


def test_one_that_is_put_back_leaves_its_run() -> None:
    """It gets a copy at the end, and its producer hears when that one is safe."""
    stage = one(1)
    chunk(stage, PRODUCER, pushes(0, 10, 5))
    stage.take()
    data = answers(2, 10, 0)
    chunk(stage, 2, data[4 * (len(data) // 10) :], 2.0)
    stage.say(2, operation(Operation.LEAVE), 2.0)
    wait(stage, 5.0)  # m0 to m3 go to the end
    (queue,) = stage.broker.queues()
    assert queue.waiting_count() == 4
    stage.write(6.0)
    assert stage.heard[PRODUCER].count(b"m4") == 1
    assert stage.heard[PRODUCER].count(b"m3") == 0
    stage.write(7.0)
    assert stage.heard[PRODUCER].count(b"m4") == stage.heard[PRODUCER].count(b"m3") == 1
    assert owed(stage.store) == [11, 12, 13, 14]


def test_answers_come_in_portions_that_follow_one_another() -> None:
    for most in (1, 2, 7, 49, 50, 51, 1_000):
        stage = one()
        stage.bring()
        for first in range(0, 300, 50):
            chunk(stage, PRODUCER, pushes(first, 50, 5))
            session = stage.hub._sessions[PRODUCER]
            assert isinstance(session, NativeSession)
            stage.hub._run(1, [Push(1, f"s{first}", "c", 1, False, True, 3, _wire(first), None)], 1)
        stage.take()
        writing = stage.writing
        assert writing is not None
        found = stage.journal.answers(writing, True, most)
        tickets = [each.ticket + at for each in found for at in range(each.count)]
        assert tickets == list(range(writing.first, writing.first + writing.count))
        weights = dict(writing.runs)
        for each in found:
            weight = [weights.get(each.ticket + at, 1) for at in range(each.count)]
            assert sum(weight[:-1]) < most
        assert len(found) >= 306 // (most + 50)


def _wire(number: int) -> object:
    (frame,) = FrameDecoder(Limits()).feed(pushes(number, 1, 5))
    return frame
