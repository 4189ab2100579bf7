"""When and where a client tries to come back: pure, with the time and chance given."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp import LocalProtocolError
from tmqp.address import parse_address
from tmqp_client import ReconnectPolicy, connect
from tmqp_client.reconnect import Schedule

ONE = parse_address("tmq://one:1")
TWO = parse_address("tmq://two:2")


def never() -> float:
    return 0.0


def schedule(
    policy: ReconnectPolicy, chance: Callable[[], float] = never, first: int = 0
) -> Schedule:
    return Schedule(policy, [ONE, TWO], chance, 100.0, first)


def test_addresses_in_turn_with_a_wait_before_each_round() -> None:
    made = schedule(ReconnectPolicy(initial_delay_s=1.0, max_delay_s=3.0), first=1)
    seen = []
    for _ in range(8):
        attempt = made.next(100.0)
        assert attempt is not None
        seen.append((str(attempt.address), attempt.delay_s))
    one, two = str(ONE), str(TWO)
    assert seen == [
        *((two, 1.0), (one, 0.0), (two, 2.0), (one, 0.0)),
        *((two, 3.0), (one, 0.0), (two, 3.0), (one, 0.0)),
    ]


@given(chance=st.floats(0, 1, exclude_max=True), jitter=st.floats(0, 1), tries=st.integers(1, 3000))
def test_a_wait_is_shortened_and_never_lengthened(chance: float, jitter: float, tries: int) -> None:
    policy = ReconnectPolicy(initial_delay_s=0.5, max_delay_s=8.0, jitter=jitter)
    made = Schedule(policy, [ONE], lambda: chance, 0.0)
    for number in range(tries):
        attempt = made.next(0.0)
        assert attempt is not None
        longest_s = min(0.5 * 2.0 ** min(number, 50), 8.0)
        assert longest_s * (1 - jitter) - 1e-9 <= attempt.delay_s <= longest_s


def test_a_short_connection_does_not_start_the_waits_again() -> None:
    policy = ReconnectPolicy(initial_delay_s=0.1, max_delay_s=15.0)
    waits: list[float] = []
    doublings = 0
    for _ in range(9):  # each outage ends at its first attempt, and the connection is lost at once
        made = Schedule(policy, [ONE], never, 0.0, 0, doublings)
        attempt = made.next(0.0)
        assert attempt is not None
        waits.append(attempt.delay_s)
        doublings = made.doublings
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0]


def test_a_round_of_addresses_doubles_once() -> None:
    made = schedule(ReconnectPolicy(initial_delay_s=1.0))
    made.next(100.0)
    assert made.doublings == 1
    made.next(100.0)
    assert made.doublings == 1
    made.next(100.0)
    assert made.doublings == 2


def test_attempts_are_bounded() -> None:
    made = schedule(ReconnectPolicy(max_attempts=3))
    assert [made.next(100.0) is not None for _ in range(4)] == [True, True, True, False]
    assert made.why_over == "3 attempts failed"
    assert made.next(100.0) is None, "over is over"


def test_an_outage_is_bounded_by_the_end_of_the_next_wait() -> None:
    made = schedule(ReconnectPolicy(initial_delay_s=1.0, max_outage_s=10.0))
    assert made.next(108.9) is not None
    made = schedule(ReconnectPolicy(initial_delay_s=1.0, max_outage_s=10.0))
    assert made.next(109.0) is None
    assert "10 s" in made.why_over


def test_refused_logins_in_a_row_end_it_and_other_refusals_do_not() -> None:
    made = schedule(ReconnectPolicy(max_refusals=2))
    for code in (401, 503, 401, 0, 503, 482, 401):
        made.refused(code)
        assert made.next(100.0) is not None
    made.refused(403)
    assert made.next(100.0) is None
    assert "refused 2 times" in made.why_over


@pytest.mark.parametrize(
    "what",
    [
        *({"initial_delay_s": 0}, {"max_delay_s": -1.0}, {"jitter": 1.1}, {"jitter": -0.1}),
        *({"max_attempts": 0}, {"max_outage_s": 0.0}, {"max_refusals": 0}, {"max_sends": 0}),
        {"initial_delay_s": float("nan")},
        {"steady_after_s": -1.0},
        {"steady_after_s": float("nan")},
    ],
)
def test_a_policy_that_makes_no_sense(what: dict[str, float]) -> None:
    with pytest.raises(LocalProtocolError):
        ReconnectPolicy(**what)  # type: ignore[arg-type]


def test_other_choices_that_make_no_sense() -> None:
    with pytest.raises(LocalProtocolError, match="when_full"):
        connect("tmq://one:1", when_full="sometimes")  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError, match="linger_s"):
        connect("tmq://one:1", linger_s=-1)
