"""Expiry wheels and wake-ups: never early, at most one tick late, nothing forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.timers import TICK_S, ExpiryWheel, Sleeper, Wakeups
from tmqp_server.engine.model.times import NEVER

PRODUCER = Origin(1, "p", None, None, "")


def message(sequence: int) -> Message:
    return Message(f"m{sequence}", PRODUCER, "ch", 1, 0, b"", 0, sequence)


def test_an_empty_wheel() -> None:
    wheel = ExpiryWheel()
    assert wheel.next_due() == NEVER
    assert wheel.take_due(1e9, 10) == []


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.integers(1, 7))
def test_every_message_comes_in_its_tick(times: list[float], limit: int) -> None:
    wheel = ExpiryWheel()
    due_at = {}
    for sequence, expires_at in enumerate(times):
        wheel.add(message(sequence), expires_at)
        due_at[sequence] = expires_at
    while due_at:
        now = wheel.next_due()
        taken = wheel.take_due(now, limit)
        assert 0 < len(taken) <= limit
        for each in taken:
            expires_at = due_at.pop(each.sequence)
            assert expires_at <= now <= expires_at + TICK_S
        assert not due_at or min(due_at.values()) > now - 2 * TICK_S
    assert wheel.next_due() == NEVER


def test_what_is_removed_does_not_come() -> None:
    wheel = ExpiryWheel()
    kept, gone = message(1), message(2)
    wheel.add(kept, 5.0)
    wheel.add(gone, 5.0)
    wheel.add(message(3), 1.0)
    wheel.remove(gone, 5.0)
    assert [each.sequence for each in wheel.take_due(100.0, 10)] == [3, 1]


def test_a_tick_that_became_empty_is_passed_over() -> None:
    wheel = ExpiryWheel()
    first, second = message(1), message(2)
    wheel.add(first, 1.0)
    wheel.add(second, 9.0)
    wheel.remove(first, 1.0)
    assert 9.0 <= wheel.next_due() <= 9.0 + TICK_S


def test_a_wheel_does_not_grow_with_messages_that_were_consumed() -> None:
    wheel = ExpiryWheel()
    for sequence in range(5_000):
        each = message(sequence)
        wheel.add(each, float(sequence))
        wheel.remove(each, float(sequence))
    assert len(wheel._order) <= 66
    assert wheel._ticks == {}


def test_sleepers_wake_in_order() -> None:
    wakeups = Wakeups()
    sleepers = [Sleeper() for _ in range(3)]
    for sleeper, when in zip(sleepers, (3.0, 1.0, 1.0), strict=True):
        wakeups.arm(sleeper, when)
    assert wakeups.next_due() == 1.0
    assert wakeups.take_due(0.9) is None
    assert wakeups.take_due(1.0) is sleepers[1]
    assert wakeups.take_due(1.0) is sleepers[2]
    assert wakeups.take_due(1.0) is None
    assert wakeups.take_due(3.0) is sleepers[0]
    assert wakeups.next_due() == NEVER


def test_a_later_time_changes_nothing_and_an_earlier_one_replaces() -> None:
    wakeups = Wakeups()
    sleeper = Sleeper()
    wakeups.arm(sleeper, 5.0)
    wakeups.arm(sleeper, 7.0)
    assert (len(wakeups), sleeper.wake_at) == (1, 5.0)
    wakeups.arm(sleeper, 2.0)
    assert wakeups.next_due() == 2.0
    assert wakeups.take_due(9.0) is sleeper
    assert sleeper.wake_at == NEVER
    # The forgotten entry wakes nobody.
    assert wakeups.take_due(9.0) is None
    assert len(wakeups) == 0
    wakeups.arm(sleeper, NEVER)
    assert len(wakeups) == 0
