"""Slow turns and slow consumers: what is counted of them, and what the log says."""

from __future__ import annotations

from tests.tmqp_server.shell.stage import Stage, marks
from tmqp_server.shell.pulse import Pulse


def test_a_slow_turn_is_of_the_session_that_took_most_of_it() -> None:
    stage = Stage()
    for number in (1, 2, 3):
        stage.open(number)
    pulse = stage.turn.pulse
    stage.now = 10.0
    pulse.wake(stage.now)
    for number, took_s in ((1, 0.01), (2, 0.2), (3, 0.02)):
        stage.hear(number, "push c a")
        stage.now += took_s
    slow = pulse.end(stage.now)
    assert slow is not None
    assert (slow.session, round(slow.session_s, 3), round(slow.took_s, 3)) == (2, 0.2, 0.23)
    stage.turn.turn_was_slow(slow)
    stage.attend()
    words = "the event loop was busy for 230 ms, 200 of them with this connection"
    assert stage.logs[-1].text == words
    assert stage.logs[-1].session == 2
    assert (pulse.slow_count, [each.session for each in pulse.slow]) == (1, [2])


def test_the_last_session_of_a_turn_and_the_servers_own_work_can_be_slow() -> None:
    pulse = Pulse()
    pulse.wake(1.0)
    pulse.at, pulse.number = 1.0, 9
    slow = pulse.end(2.0)
    assert slow is not None
    assert (slow.session, slow.session_s) == (9, 1.0)
    pulse.wake(3.0)
    slow = pulse.end(3.06)
    assert slow is not None
    assert slow.session == 0
    assert pulse.end(3.01) is None
    for number in range(500):
        pulse.wake(float(number))
        pulse.end(number + 0.5)
    assert (len(pulse.slow), pulse.slow_count) == (128, 502)


def test_quick_turns_are_counted_with_the_others() -> None:
    pulse = Pulse()
    pulse.quick, pulse.quick_s = 1_000, 0.2
    pulse.woke = 0.0
    pulse.end(0.02)
    whole = pulse.seconds()
    assert whole.counts[0] == 1_000
    assert sum(whole.counts) == 1_001
    assert whole.total == 220_000
    assert sum(pulse.turns.counts) == 1, "it is a copy"


def test_no_more_than_ten_lines_a_minute_are_about_slow_turns() -> None:
    stage = Stage()
    for number in range(30):
        stage.turn.pulse.wake(float(number))
        slow = stage.turn.pulse.end(number + 0.1)
        assert slow is not None
        stage.turn.turn_was_slow(slow)
    stage.attend()
    assert len(stage.logs) == 10
    stage.turn.pulse.wake(70.0)
    slow = stage.turn.pulse.end(70.1)
    assert slow is not None
    stage.turn.turn_was_slow(slow)
    stage.attend()
    assert "(20 more were not logged)" in stage.logs[-1].text


def slow_lines(stage: Stage) -> list[str]:
    return [each.text for each in stage.logs if each.topic == "slow"]


def test_a_consumer_that_is_held_back_for_a_second_is_told_of_and_so_is_the_end() -> None:
    stage = Stage(marks(high=1_000, low=100, stall_s=60.0))
    stage.open(1, room=0)
    stage.say(b"x" * 2_000)
    stage.pass_time(0.5)
    assert slow_lines(stage) == []
    stage.pass_time(1.6)
    assert slow_lines(stage) == ["reads slowly: 2000 bytes wait, its deliveries are held back"]
    stage.pass_time(3.0)
    stage.read(2_000)
    assert slow_lines(stage)[1:] == ["its deliveries were held back for 5.1 s"]
    assert stage.turn.slow_consumers.count == 1
    stage.wires[1].room = 0
    stage.say(b"x" * 2_000)
    stage.pass_time(0.5)
    stage.read(2_000)
    stage.pass_time(5.0)
    assert len(slow_lines(stage)) == 2, "a moment is nothing"


def test_one_that_is_cut_has_not_been_forgotten() -> None:
    stage = Stage(marks(high=1_000, low=100, stall_s=3.0))
    stage.open(1, room=0)
    stage.say(b"x" * 2_000)
    stage.pass_time(10.0)
    assert 1 in stage.closed
    assert slow_lines(stage)[1].startswith("its deliveries were held back for 3")
    assert stage.turn.slow_consumers._since == {}
