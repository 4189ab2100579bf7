"""Runs of pushes past consumers with filters: whatever is taken together leaves the same bytes and
the same books as single pushes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.push_stage import (
    CONSUMERS,
    FILTERS,
    PRODUCER,
    Stage,
    acts,
    compare,
    operation,
    pushes,
)
from tmqp.constants import Operation
from tmqp_server.engine.commands import PushRun
from tmqp_server.engine.limits import EngineLimits


@settings(max_examples=150)
@given(
    st.sampled_from((0, 1, 2, 3, 4, 8, 17, 18, 20, 21)),
    st.lists(st.sampled_from(range(len(FILTERS))), min_size=1, max_size=4),
    st.lists(
        st.one_of(
            acts,
            st.tuples(st.just("push"), st.integers(1, 60), st.sampled_from((0, 5, 8, 9))),
            st.tuples(st.just("choose"), st.integers(2, 5), st.sampled_from(range(len(FILTERS)))),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([1_000, 20]),
)
def test_runs_go_past_filters_to_those_that_single_pushes_would(
    queue: int, filters: list[int], script: list[tuple[str, int, int]], window: int
) -> None:
    limits = EngineLimits(max_in_flight_per_session=window)
    start = [("choose", number, each) for number, each in zip(CONSUMERS, filters, strict=False)]
    compare(queue, [*start, ("push", 30, 8), ("push", 30, 0), *script], 1 << 20, limits)


@pytest.mark.parametrize(
    ("queue", "headers", "effects", "heard"),
    [
        (0, 8, 1, 200),  # everybody whose filter accepts them gets the broadcast as one
        (0, 0, 0, 0),  # nobody wants them: dropped at once
        (2, 8, 1, 200),
        (17, 8, 2, 200),  # two take turns
        (0, 9, 64, 64),  # headers of its own in each: one by one, as many as a step takes
    ],
)
def test_a_run_of_equal_headers_passes_filters_in_one_go(
    queue: int, headers: int, effects: int, heard: int
) -> None:
    stage = Stage(queue, runs=True, limits=EngineLimits(), portion=1 << 20)
    wanted = "Filter=kind=order" if headers == 9 else "Filter=trace=1"
    takers = CONSUMERS[:2] if queue == 17 else CONSUMERS[:1]
    for number in CONSUMERS:
        terms = wanted if number in takers else "Filter=trace=2"
        stage.say(number, operation(Operation.JOIN, terms=terms))
    commands = stage.hub._sessions[PRODUCER].receive(pushes(0, 200, headers), 1.0)
    assert [type(each) for each in commands] == [PushRun]
    _, made = stage.broker.steps(commands, 0, 1.0, 1 << 20)
    assert len(made) == effects
    found = next(iter(stage.broker.queues()))
    assert found.counters.deliveries == heard
    assert found.counters.dropped == (0 if heard else 200)
