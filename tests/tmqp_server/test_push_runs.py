"""Runs of pushes: whatever is taken together leaves the same bytes and the same books."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.line_door import LineDoor
from tests.tmqp_server.outputs import faults, touched
from tests.tmqp_server.push_stage import (
    ASKED,
    BOTH,
    CONSUMERS,
    HIGH_AMONG,
    IN_THEIR_TURN,
    IN_TURN,
    PRIORITIES,
    PRODUCER,
    QUEUES,
    TERMS,
    TURNS,
    Stage,
    acts,
    answers,
    compare,
    hello,
    operation,
    pushes,
)
from tmqp import Frame, FrameRun, MessageType
from tmqp.constants import Operation
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import AcknowledgeRun, Push, PushRun, RunNotes, RunWire
from tmqp_server.engine.effects import Deliver, DeliverRun
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import MARK_HIGH
from tmqp_server.engine.model.queues import Queue
from tmqp_server.hub.hub import Hub


@settings(max_examples=300)
@given(
    st.sampled_from(range(len(QUEUES))),
    st.lists(acts, min_size=1, max_size=10),
    st.sampled_from([0, 600, 1 << 20]),
    st.sampled_from(
        [
            (1_000, 1 << 20, 1 << 30),
            (2, 1 << 20, 1 << 30),
            (1_000, 200, 1 << 30),
            (9, 9_999, 75_000),
        ]
    ),
    st.sampled_from([1_000, 1, 7, 20, 37]),
)
def test_runs_leave_what_single_pushes_would(
    queue: int,
    script: list[tuple[str, int, int]],
    portion: int,
    bounds: tuple[int, int, int],
    window: int,
) -> None:
    limits = EngineLimits(
        max_messages_per_queue=bounds[0],
        max_queue_bytes=bounds[1],
        max_total_bytes=bounds[2],
        max_in_flight_per_session=window,
    )
    joins = [("join", number, 0) for number in range(2, 2 + len(script) % 5)]
    compare(queue, [*(joins or [("join", 1, 0)]), *script], portion, limits)


@settings(max_examples=150)
@given(
    st.sampled_from((0, 2, 3, 4, 8, 17, 18, 20)),
    st.lists(st.sampled_from((-1, 0, 1, 2, 7, 25, 60)), min_size=1, max_size=4),
    st.lists(
        st.one_of(acts, st.tuples(st.just("grant"), st.integers(2, 5), st.sampled_from((1, 20)))),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([1_000, 20]),
)
def test_runs_spend_the_credit_that_single_pushes_would(
    queue: int, credits: list[int], script: list[tuple[str, int, int]], window: int
) -> None:
    limits = EngineLimits(max_in_flight_per_session=window)
    start = [("join", number, 0) for number in CONSUMERS[: len(credits)]]
    start += [("grant", number, each) for number, each in zip(CONSUMERS, credits, strict=False)]
    compare(queue, [*start, ("push", 30, 0), *script], 1 << 20, limits)


@settings(max_examples=150)
@given(
    st.sampled_from((0, 2, 3, 10, 11, 17, 18, 20, 21)),
    st.lists(st.sampled_from(range(len(TERMS))), min_size=1, max_size=4),
    st.lists(
        st.one_of(
            acts, st.tuples(st.just("join"), st.integers(2, 5), st.sampled_from(range(len(TERMS))))
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([1_000, 20]),
)
def test_runs_keep_the_terms_that_single_pushes_would(
    queue: int, terms: list[int], script: list[tuple[str, int, int]], window: int
) -> None:
    limits = EngineLimits(max_in_flight_per_session=window)
    start = [("join", number, each) for number, each in zip(CONSUMERS, terms, strict=False)]
    compare(queue, [*start, ("push", 30, 0), *script], 1 << 20, limits)


def one_run(queue: int, consumers: int) -> tuple[Stage, Queue, int]:
    """Two hundred pushes at once; how many effects that made is in the third place."""
    stage = Stage(queue, runs=True, limits=EngineLimits(), portion=1 << 20)
    for number in CONSUMERS[:consumers]:
        stage.say(number, operation(Operation.JOIN))
    session = stage.hub._sessions[PRODUCER]
    commands = session.receive(pushes(0, 200, 0), 1.0)
    assert [type(each) for each in commands] == [PushRun]
    _, effects = stage.broker.steps(commands, 0, 1.0, 1 << 20)
    found = next(iter(stage.broker.queues()))
    return stage, found, len(effects)


@pytest.mark.parametrize("queue", [0, 1])
@pytest.mark.parametrize("consumers", [1, 2])
def test_a_run_is_really_taken_in_one_go(queue: int, consumers: int) -> None:
    _, found, effects = one_run(queue, consumers)
    assert effects == consumers
    assert found.counters.received == found.counters.sent == found.counters.done == 200
    assert found.counters.deliveries == 200 * consumers


def one_mixed_run(kind: int, consumers: int = 2, queue: int = 0) -> tuple[Stage, PushRun, int]:
    """200 pushes of a kind brought as one command; what is known then, and how many effects."""
    stage = Stage(queue, runs=True, limits=EngineLimits(), portion=1 << 20)
    for number in CONSUMERS[:consumers]:
        stage.say(number, operation(Operation.JOIN))
    (run,) = stage.hub._sessions[PRODUCER].receive(pushes(0, 200, kind), 1.0)
    assert isinstance(run, PushRun)
    _, effects = stage.broker.steps([run], 0, 1.0, 1 << 20)
    return stage, run, len(effects)


@pytest.mark.parametrize("kind", [TURNS, PRIORITIES, BOTH])
def test_a_mixed_run_is_really_taken_in_one_go(kind: int) -> None:
    stage, run, effects = one_mixed_run(kind)
    assert run.is_mixed
    assert effects == 2
    received = [queue.counters.received for queue in stage.broker.queues()]
    assert received == ([67, 67, 66] if kind != PRIORITIES else [200, 0, 0])
    assert [queue.sequence for queue in stage.broker.queues()] == received


def test_a_door_of_another_kind_gets_each_message_of_a_mixed_run_in_its_place() -> None:
    stage = Stage(0, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    stage.say(PRODUCER, pushes(0, 7, TURNS))
    (run,) = stage.hub._sessions[PRODUCER].receive(pushes(7, 20, BOTH), 1.0)
    _, (effect,) = stage.broker.steps([run], 0, 1.0, 1 << 20)
    assert isinstance(effect, DeliverRun)
    told = [
        (each.message.message_id, each.message.queue_id, each.message.sequence, each.message.marks)
        for each in effect.deliveries()
    ]
    assert told == [
        (f"m{each}", 1 + each % IN_TURN, 1 + each // IN_TURN, MARK_HIGH * (each % HIGH_AMONG == 2))
        for each in range(7, 27)
    ]


@pytest.mark.parametrize(("kind", "effects"), [(TURNS, 1), (PRIORITIES, 1), (ASKED, 2)])
def test_a_mixed_run_to_be_acknowledged_by_one_is_taken_in_one_go(kind: int, effects: int) -> None:
    stage, run, count = one_mixed_run(kind, consumers=1, queue=2)
    assert run.is_mixed
    assert count == effects
    flights = [queue.flights for queue in stage.broker.queues()]
    assert [len(each) for each in flights] == ([67, 67, 66] if kind != PRIORITIES else [200, 0, 0])
    for each in flights:
        for message_id, message in each.items():
            high = kind != TURNS and int(message_id[1:]) % HIGH_AMONG == 2
            assert message.high_priority is high


@pytest.mark.parametrize("kind", [PRIORITIES, ASKED])
@pytest.mark.parametrize("again", [15, 20, 29])
def test_a_mixed_run_with_a_message_that_is_in_flight_leaves_what_single_pushes_would(
    kind: int, again: int
) -> None:
    stages = [Stage(2, runs=runs, limits=EngineLimits(), portion=1 << 20) for runs in (False, True)]
    for stage in stages:
        stage.say(2, operation(Operation.JOIN))
        stage.say(PRODUCER, pushes(20, 10, kind))
        stage.say(PRODUCER, pushes(again, 20, kind), 2.0)
        stage.listen()
    single, together = stages
    assert together.heard == single.heard
    assert together.books() == single.books()
    assert len(next(iter(together.broker.queues())).flights) > 4


def test_queues_that_differ_in_what_is_answered_take_no_mixed_run() -> None:
    stage = Stage(2, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    list(stage.broker.queues())[1].options.request_acknowledge = False
    (run,) = stage.hub._sessions[PRODUCER].receive(pushes(0, 20, TURNS), 1.0)
    _, effects = stage.broker.steps([run], 0, 1.0, 1 << 20)
    assert {type(each) for each in effects} == {Deliver}
    assert [len(queue.flights) for queue in stage.broker.queues()] == [7, 0, 6]


def test_answers_to_several_queues_are_taken_together() -> None:
    stage = Stage(2, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    stage.say(PRODUCER, pushes(0, 70, TURNS))
    (run,) = stage.hub._sessions[2].receive(answers(2, 70, IN_THEIR_TURN), 1.0)
    assert isinstance(run, AcknowledgeRun)
    assert run.queues
    assert stage.broker.steps([run], 0, 1.0, 1 << 20) == (1, [])
    assert [queue.counters.acks for queue in stage.broker.queues()] == [24, 23, 23]


def test_of_answers_to_several_queues_those_before_one_that_is_gone_are_taken_together() -> None:
    stage = Stage(2, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    stage.say(PRODUCER, pushes(0, 70, TURNS))
    removal = Frame.build(
        int(MessageType.SERVER),
        "c",
        int(Operation.REMOVE_QUEUE),
        message_id="o",
        headers=[("Queue-Id", "3")],
    )
    stage.say(PRODUCER, removal.raw)
    session = stage.hub._sessions[2]
    (run,) = session.receive(answers(2, 70, IN_THEIR_TURN), 1.0)
    assert isinstance(run, AcknowledgeRun)
    at, _ = stage.broker.steps([run], 0, 1.0, 1 << 20)
    while at == 0:
        at, _ = stage.broker.steps([run], 0, 1.0, 1 << 20)
    assert [queue.counters.acks for queue in stage.broker.queues()] == [24, 23]
    assert stage.broker.statistics().unknown_acks == 23
    assert run.notes.unmixed
    assert not run.notes.divided


def test_runs_stay_unmixed_for_long_once_a_mixed_one_was_divided() -> None:
    stage, _, effects = one_mixed_run(TURNS, consumers=2, queue=2)
    assert effects == 128  # as many as a step takes: each is to be acknowledged by two
    session = stage.hub._sessions[PRODUCER]
    for chunk in range(1, 1_024, 2):
        assert {type(each) for each in session.receive(pushes(chunk * 9, 4, TURNS), 1.0)} == {Push}
        assert [type(each) for each in session.receive(pushes(0, 2, 0), 1.0)] == [PushRun]
    assert [type(each) for each in session.receive(pushes(0, 20, TURNS), 1.0)] == [PushRun]


def test_a_broadcast_that_nobody_hears_is_dropped_in_one_go() -> None:
    _, found, effects = one_run(0, 0)
    assert effects == 0
    assert found.counters.received == found.counters.dropped == 200


def test_after_a_run_was_divided_the_next_chunks_come_singly() -> None:
    stage, _, effects = one_run(5, 1)
    assert effects == 64  # as many as a step takes: one by one, for names are to be hidden
    session = stage.hub._sessions[PRODUCER]
    for chunk in range(1, 65):
        commands = session.receive(pushes(chunk * 200, 20, 0), 1.0)
        assert [type(each) for each in commands] == [Push] * 20
    commands = session.receive(pushes(65 * 200, 20, 0), 1.0)
    assert [type(each) for each in commands] == [PushRun]


def test_a_step_takes_a_run_that_must_be_divided_to_its_end() -> None:
    stage = Stage(5, runs=True, limits=EngineLimits(), portion=0)
    stage.say(2, operation(Operation.JOIN))
    (run,) = stage.hub._sessions[PRODUCER].receive(pushes(0, 200, 0), 1.0)
    assert len(stage.broker.step(run, 1.0)) == 200
    found = next(iter(stage.broker.queues()))
    assert found.counters.received == found.counters.done == 200


@pytest.mark.parametrize(("kind", "effects"), [(0, 1), (5, 2)])
def test_a_run_to_be_acknowledged_is_taken_in_one_go(kind: int, effects: int) -> None:
    """The one consumer has each message in hand, and the producer that asked is told."""
    stage = Stage(2, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    (run,) = stage.hub._sessions[PRODUCER].receive(pushes(0, 200, kind), 1.0)
    assert isinstance(run, PushRun)
    assert len(stage.broker.steps([run], 0, 1.0, 1 << 20)[1]) == effects
    found = next(iter(stage.broker.queues()))
    assert len(found.flights) == found.count == 200
    assert found.bytes == run.size


def test_more_than_may_be_unanswered_is_taken_one_by_one() -> None:
    limits = EngineLimits(max_in_flight_per_session=150)
    stage = Stage(2, runs=True, limits=limits, portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    stage.say(PRODUCER, pushes(0, 200, 0))
    found = next(iter(stage.broker.queues()))
    assert len(found.flights) == 150
    assert found.waiting_count() == 50


def test_answers_in_a_row_are_taken_together() -> None:
    stage = Stage(2, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    stage.say(PRODUCER, pushes(0, 70, 0))
    found = next(iter(stage.broker.queues()))
    assert len(found.flights) == 70
    (run,) = stage.hub._sessions[2].receive(answers(2, 70, 0), 1.0)
    assert isinstance(run, AcknowledgeRun)
    assert stage.broker.steps([run], 0, 1.0, 1 << 20) == (1, [])
    assert found.counters.acks == found.counters.done == 70
    assert not found.flights


def test_a_step_takes_all_answers_of_a_run() -> None:
    stage = Stage(11, runs=True, limits=EngineLimits(), portion=1 << 20)
    stage.say(2, operation(Operation.JOIN))
    stage.say(PRODUCER, pushes(0, 70, 0))
    found = next(iter(stage.broker.queues()))
    (run,) = stage.hub._sessions[2].receive(answers(2, 70, 0), 1.0)
    assert len(stage.broker.step(run, 1.0)) >= 69  # each lets the next one go
    assert found.counters.acks == found.counters.done == 70


def test_a_door_of_another_kind_gets_each_message() -> None:
    """The consumer speaks another protocol: each message of the run is encoded by itself."""

    class Lines(RunWire):
        def pushes(self, run: PushRun) -> list[Push]:
            return [
                Push(run.session, f"m{each}", run.channel, 1, False, False, 5, f"text {each}")
                for each in range(run.count)
            ]

        def contents(self) -> tuple[list[str], list[int], list[object]]:
            return [f"m{each}" for each in range(3)], [5] * 3, [None] * 3

    broker = Broker()
    hub = Hub(broker)
    door = LineDoor("x")
    for number in (1, 2):
        hub.open(number, door, 0.0)
        hub.receive(number, f"connect n{number}".encode(), 0.0)
        touched(hub)
    hub.receive(2, b"join c", 0.0)
    broker.step(Push(1, "first", "c", 1, False, False, 5, "first"), 0.0)
    (queue,) = broker.queues()
    queue.options.request_acknowledge = False
    run = PushRun(1, "c", 1, False, False, 3, 15, 5, Lines(), RunNotes())
    hub._run(1, [run], 1.0)
    assert not faults(hub)
    assert queue.counters.received == 4
    words = " ".join(door.sessions[2].words())
    assert words.index("m0") < words.index("m1") < words.index("m2")


def test_a_run_prints_what_it_is() -> None:
    stage = Stage(0, runs=True, limits=EngineLimits(), portion=0)
    (run,) = stage.hub._sessions[PRODUCER].receive(pushes(0, 5, 0), 1.0)
    assert isinstance(run, PushRun)
    assert "FrameRun of 5" in repr(run)
    frames = getattr(run.wire, "frames")  # noqa: B009 - the native door's own
    assert isinstance(frames, FrameRun)
    assert run.size == frames.size


# --- Dealt: each message goes to one consumer -----------------------------------------------------

ROUND_ROBIN: Final = 17
FIRST_ACQUIRER: Final = 18


def dealt(stage: Stage, count: int, first: int = 0) -> list[tuple[list[int], int, int, int]]:
    """Who gets which places of a run of so many pushes: sessions, start, step, stop."""
    commands = stage.hub._sessions[PRODUCER].receive(pushes(first, count, 0), 1.0)
    assert [type(each) for each in commands] == [PushRun]
    _, effects = stage.broker.steps(commands, 0, 1.0, 1 << 20)
    assert [type(each) for each in effects] == [DeliverRun] * len(effects)
    return [
        (each.sessions, each.start, each.step, each.stop)
        for each in effects
        if isinstance(each, DeliverRun)
    ]


def test_each_consumer_gets_every_nth_message_of_a_run_in_turn() -> None:
    stage = Stage(ROUND_ROBIN, runs=True, limits=EngineLimits(), portion=1 << 20)
    for number in CONSUMERS:
        stage.say(number, operation(Operation.JOIN))
    assert dealt(stage, 6) == [([2], 0, 4, 6), ([3], 1, 4, 6), ([4], 2, 4, 6), ([5], 3, 4, 6)]
    assert dealt(stage, 2, 6) == [([4], 0, 2, 2), ([5], 1, 2, 2)], "it was their turn"
    found = next(iter(stage.broker.queues()))
    assert found.turn == 3
    assert found.counters.deliveries == 8


def test_who_has_no_room_left_drops_out_and_the_others_go_on_in_turn() -> None:
    limits = EngineLimits(max_in_flight_per_session=5)
    stage = Stage(ROUND_ROBIN, runs=True, limits=limits, portion=1 << 20)
    for number in (2, 3):
        stage.say(number, operation(Operation.JOIN))
    stage.say(PRODUCER, pushes(100, 4, 0))
    stage.say(3, answers(3, 104, 0))
    assert dealt(stage, 9) == [
        *[([2], 0, 2, 6), ([3], 1, 2, 6)],
        ([3], 6, 1, 8),
    ]
    found = next(iter(stage.broker.queues()))
    assert (len(found.flights), found.waiting_count()) == (10, 1)
    assert found.waiting


def test_a_first_acquirer_gets_all_that_it_can_take_and_the_next_the_rest() -> None:
    limits = EngineLimits(max_in_flight_per_session=5)
    stage = Stage(FIRST_ACQUIRER, runs=True, limits=limits, portion=1 << 20)
    for number in (2, 3):
        stage.say(number, operation(Operation.JOIN))
    assert dealt(stage, 7) == [([2], 0, 1, 5), ([3], 5, 1, 7)]
    found = next(iter(stage.broker.queues()))
    assert found.counters.skipped == 2


def test_a_run_that_nobody_can_take_is_lined_up_in_one_go() -> None:
    stage = Stage(ROUND_ROBIN, runs=True, limits=EngineLimits(), portion=1 << 20)
    assert dealt(stage, 9) == []
    assert dealt(stage, 9, 9) == []
    found = next(iter(stage.broker.queues()))
    assert found.waiting_count() == found.counters.received == 18
    stage.say(2, operation(Operation.JOIN))
    assert list(found.flights) == [f"m{number}" for number in range(18)]


def test_a_run_for_consumers_of_very_different_rooms_is_divided() -> None:
    limits = EngineLimits(max_in_flight_per_session=50)
    stage = Stage(ROUND_ROBIN, runs=True, limits=limits, portion=1 << 20)
    session = stage.hub._sessions[PRODUCER]
    for number in range(10, 22):
        stage.hub.open(number, stage.door, 0.0)
        stage.say(number, b"TMQP/2.0" + hello(f"client{number}") + operation(Operation.JOIN))
        stage.broker._core.sessions[number].in_flight = 40 - number
    (run,) = session.receive(pushes(0, 400, 0), 1.0)
    assert isinstance(run, PushRun)
    _, effects = stage.broker.steps([run], 0, 1.0, 1 << 20)
    assert {type(each) for each in effects} == {Deliver}
