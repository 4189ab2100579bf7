"""How fast peers may send, and connections may come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.shell.stage import Stage, StubWire
from tmqp_server.shell.rates import Arrivals, RateLimits, Rates, TokenBucket, address_key, is_exempt
from tmqp_server.shell.steps import READ, WAIT


@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.floats(0.0, 10.0)), max_size=50),
    st.floats(0.1, 1_000.0),
    st.floats(0.1, 10.0),
)
def test_who_waits_as_told_gets_no_more_than_his_rate(
    takes: list[tuple[int, float]], rate: float, burst_s: float
) -> None:
    bucket = TokenBucket(rate, burst_s, 0.0)
    now, taken, last = 0.0, 0, 0
    for count, pause_s in takes:
        now += bucket.take(count, now) + pause_s
        taken, last = taken + count, count
    assert taken - last <= max(rate * burst_s, 1.0) + rate * now + 1e-6


def throttled(limits: RateLimits) -> Stage:
    stage = Stage()
    stage.turn.limit_rates(limits, stage.now)
    stage.open(1)
    stage.open(2)
    return stage


def test_a_client_that_pushes_too_fast_is_not_read_from_until_its_debt_is_paid() -> None:
    stage = throttled(RateLimits(client_messages=2.0, burst_s=1.0))
    assert stage.hear(1, "push c a; push c b") == READ
    assert stage.hear(1, "push c d; push c e") == WAIT
    assert stage.hear(2, "push c f") == READ, "another client is not concerned"
    stage.pass_time(0.9)
    assert stage.resumed == []
    stage.pass_time(0.2)
    assert stage.resumed == [1]
    assert stage.turn.tally.waits == {"client_messages": 1}


def test_the_clients_of_an_address_share_its_bytes() -> None:
    stage = throttled(RateLimits(address_bytes=100.0, burst_s=2.0))
    for number in (3, 4):
        stage.wires[number] = StubWire()
        stage.turn.opened(number, stage.door, stage.wires[number], "10.0.0.1", stage.now)
        stage.attend()
    assert stage.hear(3, "connect " + "n" * 142) == READ
    assert stage.hear(4, "connect " + "m" * 142) == WAIT
    assert stage.hear(1, "push c " + "x" * 1_000) == READ, "this machine is exempt"
    stage.pass_time(1.1)
    assert stage.resumed == [4]
    assert stage.turn.tally.waits == {"address_bytes": 1}


def test_who_comes_back_finds_what_its_address_has_used() -> None:
    rates = Rates(RateLimits(address_bytes=100.0, burst_s=1.0), {})
    flow = rates.flow("10.0.0.1", 0.0)
    flow.left -= 200
    assert flow.note(0, 0.0)
    rates.leave("10.0.0.1")
    flow = rates.flow("10.0.0.1", 0.0)
    flow.left -= 1
    assert flow.note(0, 0.0)
    assert flow.until > 1.0
    for number in range(3_000):
        rates.flow(f"10.1.{number // 250}.{number % 250}", 0.0)
        rates.leave(f"10.1.{number // 250}.{number % 250}")
    assert len(rates._addresses) <= 1_025


def test_many_short_connections_of_an_address_are_no_faster_than_one() -> None:
    """Each sent a little less than makes the server look at its rate, and went."""
    stage = throttled(RateLimits(address_bytes=400.0, burst_s=1.0))
    answers = []
    for number in range(3, 20):
        stage.wires[number] = StubWire()
        stage.turn.opened(number, stage.door, stage.wires[number], "10.0.0.1", stage.now)
        stage.attend()
        answers.append(stage.hear(number, "connect " + "n" * 100))
        stage.turn.closed(number, stage.now)
    assert answers[0] == READ
    assert answers[-1] == WAIT


def test_limits_that_are_taken_away_let_everybody_go_on() -> None:
    stage = throttled(RateLimits(client_bytes=1.0, burst_s=1.0))
    assert stage.hear(1, "push c a") == WAIT
    stage.turn.limit_rates(RateLimits(), stage.now)
    stage.attend()
    assert 1 in stage.resumed
    assert stage.hear(1, "push c b") == READ
    stage.turn.limit_rates(RateLimits(client_messages=1.0, burst_s=1.0), stage.now)
    assert stage.hear(1, "push c d") == READ, "what was pushed before does not count"


def test_a_peer_that_is_not_read_from_is_not_asked_for_a_sign_of_life() -> None:
    stage = Stage()
    stage.door.due = 5.0
    stage.turn.limit_rates(RateLimits(client_bytes=1.0, burst_s=1.0), stage.now)
    session = stage.open(1)
    stage.hear(1, "push c " + "x" * 20)
    before = len(session.deadlines)
    stage.pass_time(10.0)
    assert len(session.deadlines) == before


def test_the_time_in_which_a_peer_is_not_read_from_does_not_count_for_its_deadlines() -> None:
    """A request whose end waited to be read was answered with 408 (seed 10642)."""
    stage = Stage()
    stage.door.due = 5.0
    stage.turn.limit_rates(RateLimits(client_bytes=10.0, burst_s=1.0), stage.now)
    session = stage.open(1)
    stage.hear(1, "push c " + "x" * 100)
    began = stage.now
    while 1 not in stage.resumed:
        stage.pass_time(0.5)
    held_s = stage.now - began
    assert held_s > 5.0
    assert session.deadlines == []
    stage.pass_time(held_s - 1.5)
    assert session.deadlines == []
    stage.pass_time(1.5)
    assert len(session.deadlines) == 1


def test_who_was_held_back_when_the_limits_changed_is_asked_when_that_time_has_passed() -> None:
    stage = Stage()
    stage.door.due = 5.0
    stage.turn.limit_rates(RateLimits(client_bytes=1.0, burst_s=1.0), stage.now)
    session = stage.open(1)
    stage.hear(1, "push c " + "x" * 100)
    stage.pass_time(10.0)
    stage.turn.limit_rates(RateLimits(), stage.now)
    stage.attend()
    assert session.deadlines == []
    stage.pass_time(10.0)
    assert session.deadlines == [stage.now]


def test_connections_of_an_address_begin_later_and_those_far_too_many_are_refused() -> None:
    counts: dict[str, int] = {}
    arrivals = Arrivals(RateLimits(address_connections=2.0, burst_s=1.0), counts)
    waits = [arrivals.wait("10.0.0.1", 0.0) for _ in range(30)]
    assert waits[:4] == [0.0, 0.0, 0.5, 1.0]
    assert waits[-1] < 0.0
    assert max(waits) == 10.0
    assert counts == {"address_connections": 28}
    assert arrivals.wait("10.0.0.2", 0.0) == 0.0
    assert arrivals.wait("127.0.0.1", 0.0) == 0.0
    assert arrivals.wait("10.0.0.1", 10.0) == 0.5, "those that were refused have used nothing"


def test_an_address_that_came_before_a_reload_comes_as_fast_as_it_may_behind_it() -> None:
    arrivals = Arrivals(RateLimits(address_connections=1.0, burst_s=1.0), {})
    assert [arrivals.wait("10.0.0.1", 0.0) for _ in range(3)] == [0.0, 1.0, 2.0]
    arrivals.limit_to(RateLimits(address_connections=10.0, burst_s=0.1))
    assert [arrivals.wait("10.0.0.1", 0.0) for _ in range(3)] == [0.0, 0.1, 0.2]


def test_addresses_of_one_subscriber_are_one() -> None:
    assert address_key("10.0.0.1") == "10.0.0.1"
    assert address_key("2001:db8::1") == address_key("[2001:db8::ffff]") == "2001:db8::/64"
    assert address_key("::ffff:10.0.0.1") == "10.0.0.1"
    assert address_key("unix:/x") == "unix:/x"
    networks = RateLimits(exempt=("10.0.0.0/8", "2001:db8::/32")).exempt
    for host in ("unix", "127.0.0.5", "::1", "10.9.9.9", "2001:db8::7", "::ffff:10.0.0.1"):
        assert is_exempt(host, networks), host
    for host in ("192.168.0.1", "2001:db9::1", "fe80::1%eth0"):
        assert not is_exempt(host, networks), host


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(4, 3_000), st.floats(0.0, 0.1)), max_size=99),
    st.floats(1.0, 10_000.0),
    st.floats(100.0, 100_000.0),
)
def test_four_connections_of_an_address_get_no_more_than_its_rate_and_a_burst_beyond(
    chunks: list[tuple[int, int, float]], messages: float, size: float
) -> None:
    limits = RateLimits(address_messages=messages, address_bytes=size, burst_s=1.0)
    rates = Rates(limits, {})
    flows = [rates.flow("10.0.0.1", 0.0) for _ in range(4)]
    pushed = [0] * 4
    free_at = [0.0] * 4
    now, got, largest = 0.0, 0, 0
    for which, count, pause_s in chunks:
        now += pause_s
        if now < free_at[which]:
            continue
        flow = flows[which]
        pushed[which] += 1
        got, largest = got + count, max(largest, count)
        flow.left -= count
        if flow.left < 0 and flow.note(pushed[which], now):
            free_at[which] = flow.until
    # Each may be one chunk beyond, and all together have been given half a burst.
    assert got <= 1.5 * size + size * now + 4 * largest + 1
    assert sum(pushed) <= 1.5 * max(messages, 1.0) + messages * now + 4 + 1
