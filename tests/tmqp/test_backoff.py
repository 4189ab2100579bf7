"""The waits between attempts: they double, they are bounded, and chance only shortens them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp.backoff import Backoff


def test_each_failure_doubles_the_wait_up_to_the_bound() -> None:
    waits = Backoff(0.5, 3.0, 0.0)
    assert [waits.delay_s(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(("jitter", "shortest_s"), [(0.0, 8.0), (0.5, 4.0), (1.0, 0.0)])
def test_chance_shortens_a_wait_by_the_jitter_at_most(jitter: float, shortest_s: float) -> None:
    waits = Backoff(8.0, 8.0, jitter)
    assert waits.delay_s(1, 0.0) == 8.0
    assert waits.delay_s(1, 1.0) == shortest_s


@given(st.integers(1, 10**9), st.floats(0.0, 1.0, exclude_max=True))
def test_a_wait_is_a_finite_time_after_any_number_of_failures(failures: int, chance: float) -> None:
    assert 0.25 <= Backoff(0.5, 30.0).delay_s(failures, chance) <= 30.0
