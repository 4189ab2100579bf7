"""How many guesses an address has, however many connections it opens."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tmqp_server.access.gate import AUTHENTICATE, Question
from tmqp_server.engine.commands import Connect
from tmqp_server.shell.log_ins import LogIns


def attempt(session: int) -> Question:
    return Question(session, (AUTHENTICATE, "a", -1, 0), Connect(session, None, "a"))


def test_the_pause_grows_with_each_refusal_of_an_address_and_is_forgiven() -> None:
    log_ins = LogIns()
    now = 0.0
    pauses: list[float] = []
    for session in range(28):
        assert log_ins.begin("10.0.0.1", attempt(session), now)
        pauses.append(log_ins.refused("10.0.0.1", session, now))
        now += pauses[-1]
    assert pauses[:7] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert pauses[18:] == [4.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0, 60.0]
    assert log_ins.begin("10.0.0.2", attempt(50), now)
    assert log_ins.refused("10.0.0.2", 50, now) == 0.25
    now += 60.0
    assert log_ins.begin("10.0.0.1", attempt(51), now)
    assert log_ins.refused("10.0.0.1", 51, now) == 0.25, "it was not refused for a minute"


def guesses(seconds: float, connections: int, host: str = "10.0.0.9") -> int:
    """How many wrong guesses are looked at, of an address that always has so many connections, each
    of which goes away at once where that helps."""
    log_ins = LogIns()
    random_ = random.Random(1)
    now, session, asked, made = 0.0, 0, [], 0
    open_ = 0
    while now < seconds:
        while open_ < connections:
            session += 1
            open_ += 1
            question = attempt(session)
            if log_ins.begin(host, question, now):
                asked.append(question)
        for question in asked:
            made += 1
            log_ins.refused(host, question.session, now)
            if random_.random() < 0.5:
                log_ins.ended(host, question.session, now)
            open_ -= 1
        asked.clear()
        due = log_ins.due()
        now = max(due, now) if due < seconds else seconds
        ready, late = log_ins.take_ready(now)
        asked += ready
        open_ -= len(late)
    return made


def test_a_thousand_connections_guess_no_faster_than_one() -> None:
    alone = guesses(1_200.0, 1)
    together = guesses(1_200.0, 1_000)
    assert alone < 50
    assert together <= alone + 16, "those of the very first moment are decided together"


def test_an_address_of_ipv6_is_a_network() -> None:
    log_ins = LogIns()
    assert log_ins.begin("2001:db8::1", attempt(1), 0.0)
    log_ins.refused("2001:db8::1", 1, 0.0)
    assert not log_ins.begin("2001:db8::2", attempt(2), 0.0)
    assert log_ins.begin("2001:db8:0:1::2", attempt(3), 0.0)
    assert log_ins.begin("::ffff:10.0.0.1", attempt(4), 0.0)
    log_ins.refused("::ffff:10.0.0.1", 4, 0.0)
    assert not log_ins.begin("10.0.0.1", attempt(5), 0.0)


def test_who_waits_too_long_for_his_turn_is_refused_without_a_look() -> None:
    log_ins = LogIns()
    assert log_ins.begin("h", attempt(1), 0.0)
    log_ins.refused("h", 1, 0.0)
    assert log_ins.begin("h", attempt(2), 0.25)
    for session in (3, 4):
        assert not log_ins.begin("h", attempt(session), 1.0)
    log_ins.ended("h", 4, 2.0)
    assert log_ins.take_ready(10.9) == ([], [])
    assert log_ins.due() == 11.0
    ready, late = log_ins.take_ready(11.0)
    assert (ready, [each.session for each in late]) == ([], [3])


def test_many_clients_that_may_log_in_do_not_wait_for_one_another() -> None:
    log_ins = LogIns()
    asked = [each for each in range(100) if log_ins.begin("h", attempt(each), 0.0)]
    assert len(asked) == 16
    done = 0
    while asked:
        for session in asked:
            log_ins.ended("h", session, 0.0)
            done += 1
        asked = [each.session for each in log_ins.take_ready(0.0)[0]]
    assert done == 100


@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "refuse", "allow", "go", "wait"]), st.integers(0, 9))
    )
)
def test_whatever_happens_each_attempt_is_asked_about_or_refused_once(
    said: list[tuple[str, int]],
) -> None:
    log_ins = LogIns()
    now, last = 0.0, 0
    asked: list[int] = []
    waiting: set[int] = set()
    for what, number in said:
        if what == "begin":
            last += 1
            if log_ins.begin("h", attempt(last), now):
                asked.append(last)
            else:
                waiting.add(last)
        elif what in ("refuse", "allow") and asked:
            session = asked.pop(number % len(asked))
            if what == "refuse":
                assert log_ins.refused("h", session, now) > 0.0
            else:
                log_ins.ended("h", session, now)
        elif what == "go" and waiting:
            session = sorted(waiting)[number % len(waiting)]
            waiting.remove(session)
            log_ins.ended("h", session, now)
        else:
            now += number
        ready, late = log_ins.take_ready(now)
        for question in (*ready, *late):
            waiting.remove(question.session)
        asked += [each.session for each in ready]
    for _ in range(200):
        for session in asked:
            log_ins.ended("h", session, now)
        now += 70.0
        ready, late = log_ins.take_ready(now)
        asked = [each.session for each in ready]
        waiting.difference_update([each.session for each in (*ready, *late)])
    assert not waiting
    assert log_ins.due() == float("inf")


def test_addresses_are_bounded() -> None:
    log_ins = LogIns()
    for number in range(2_000):
        host = f"10.1.{number // 250}.{number % 250}"
        assert log_ins.begin(host, attempt(number), 100.0)
        log_ins.refused(host, number, 100.0)
    assert len(log_ins._addresses) <= 1_025
