"""The pure parts of the consumers: RDY counts, backing off, pools, options, names of files."""

from __future__ import annotations

import math
import os
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp_nsq.addresses import Address, parse_address
from tmqp_nsq.consumer.options import ConsumerOptions, read_options
from tmqp_nsq.consumer.pace import Pace
from tmqp_nsq.flags import FlagError, parse
from tmqp_nsq.to_file.names import file_template, read_settings
from tmqp_nsq.to_http.pools import FastestPool, HealthyPool, RoundRobinPool, make_pool
from tmqp_nsq.tool_flags import NSQ_TO_FILE

pytestmark = pytest.mark.cold


def test_messages_in_flight_are_divided() -> None:
    pace = Pace(10, 1.0, 120.0, 5.0)
    assert pace.shares(0.0) == {}
    for number, limit in ((1, 2500), (2, 2500), (3, 2)):
        pace.join(number, limit)
    assert pace.shares(0.0) == {1: 3, 2: 3, 3: 2}
    pace.leave(2)
    assert pace.shares(0.0) == {1: 5, 3: 2}
    assert pace.deadline(0.0) == math.inf
    pace.stop()
    assert pace.shares(0.0) == {1: 0, 3: 0}


def test_with_more_connections_than_messages_all_have_a_turn() -> None:
    pace = Pace(2, 1.0, 120.0, 5.0)
    for number in range(5):
        pace.join(number, 2500)
    turns: Counter[int] = Counter()
    now = 0.0
    for _ in range(10):
        shares = pace.shares(now)
        assert sum(shares.values()) == 2
        turns.update({number: count for number, count in shares.items() if count})
        assert pace.shares(now + 4.9) == shares
        assert pace.deadline(now) == now + 5.0
        now += 5.0
    assert set(turns) == set(range(5))
    assert max(turns.values()) - min(turns.values()) <= 1


def test_backing_off_and_coming_back() -> None:
    pace = Pace(10, 1.0, 120.0, 5.0)
    pace.join(1, 2500)
    pace.join(2, 2500)
    pace.report(False, 0.0)
    assert pace.shares(0.0) == {1: 0, 2: 0}
    assert pace.deadline(0.0) == 2.0
    pace.report(False, 1.0)  # was in flight before: says nothing new
    assert sorted(pace.shares(2.0).values()) == [0, 1]
    pace.report(False, 2.0)
    assert pace.deadline(2.0) == 6.0
    assert sorted(pace.shares(6.0).values()) == [0, 1]
    pace.report(True, 6.0)
    assert pace.shares(7.9) == {1: 0, 2: 0}
    assert sorted(pace.shares(8.0).values()) == [0, 1]
    pace.report(True, 8.0)
    assert pace.shares(8.0) == {1: 5, 2: 5}


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 300)), max_size=60), st.integers(1, 6))
def test_a_pause_never_exceeds_its_limit_and_ends(
    events: list[tuple[bool, float]], connections: int
) -> None:
    pace = Pace(3, 1.0, 120.0, 5.0)
    for number in range(connections):
        pace.join(number, 2500)
    now = 0.0
    for success, later in events:
        now += later
        pace.report(success, now)
        assert 0 <= sum(pace.shares(now).values()) <= 3
        if not sum(pace.shares(now).values()):
            assert now < pace.deadline(now) <= now + 120.0
    assert sum(pace.shares(now + 120.0).values()) >= 1


def test_round_robin_and_all() -> None:
    pool = RoundRobinPool(3)
    assert [pool.choose(0.0, 0.0) for _ in range(4)] == [(0,), (1,), (2,), (0,)]
    assert make_pool("anything", 3).choose(0.0, 0.0) == (0, 1, 2)
    assert isinstance(make_pool("hostpool", 2), HealthyPool)
    assert isinstance(make_pool("epsilon-greedy", 2), FastestPool)


def test_a_failed_address_pauses_longer_each_time() -> None:
    pool = HealthyPool(2)
    pool.mark(0, False, 1.0, 0.0)
    assert {pool.choose(1.0, 0.0)[0] for _ in range(4)} == {1}
    assert {pool.choose(30.0, 0.0)[0] for _ in range(4)} == {0, 1}
    pool.mark(0, False, 1.0, 30.0)
    assert not pool.is_healthy(0, 89.9)
    assert pool.is_healthy(0, 90.0)
    pool.mark(1, False, 1.0, 31.0)
    assert {pool.choose(40.0, 0.0)[0] for _ in range(4)} == {0, 1}  # all are down: all are tried
    pool.mark(0, True, 1.0, 41.0)
    assert {pool.choose(42.0, 0.0)[0] for _ in range(4)} == {0}


def test_the_fastest_address_gets_most() -> None:
    pool = FastestPool(3)
    for place, took in enumerate((0.3, 0.1, 0.2)):
        pool.mark(place, True, took, 0.0)
    assert {pool.choose(1.0, 0.5)[0] for _ in range(5)} == {1}
    assert {pool.choose(1.0, 0.05)[0] for _ in range(5)} == {0, 1, 2}
    pool.mark(1, False, 0.1, 1.0)
    assert {pool.choose(2.0, 0.5)[0] for _ in range(5)} == {2}


def test_consumer_options() -> None:
    words = ["max_attempts,10", "snappy", "msg-timeout,30s", "write_timeout,1s", "tls_v1,true"]
    options = read_options(words, ConsumerOptions(max_in_flight=7))
    assert (options.max_attempts, options.snappy, options.tls_v1) == (10, True, True)
    assert options.msg_timeout_ns == 30_000_000_000
    assert options.max_in_flight == 7


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("max_attemps,1", "unknown option 'max_attemps'; did you mean max_attempts"),
        ("max_attempts,many", "max_attempts: not a whole number"),
        ("max_attempts,70000", "max_attempts must be from 0 to 65535"),
        ("sample_rate,100", "sample_rate must be from 0 to 99"),
        ("msg_timeout", "msg_timeout: not a duration"),
    ],
)
def test_wrong_consumer_options(word: str, text: str) -> None:
    with pytest.raises(FlagError, match=text):
        read_options([word], ConsumerOptions())
    with pytest.raises(FlagError, match="cannot both be on"):
        read_options(["snappy", "deflate"], ConsumerOptions())


def template(*words: str) -> str:
    return file_template(read_settings(parse(NSQ_TO_FILE, words)), "api", "web1.example.net", 77)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ((), "api.web1.<DATETIME>.log"),
        (("--gzip",), "api.web1<REV>.<DATETIME>.log.gz"),
        (("--rotate-size=1",), "api.web1<REV>.<DATETIME>.log"),
        (("--rotate-interval=1s",), "api.web1<REV>.<DATETIME>.log"),
        (("--work-dir=/elsewhere",), "api.web1<REV>.<DATETIME>.log"),
        (("--work-dir=/tmp",), "api.web1.<DATETIME>.log"),
        (("--host-identifier=<HOSTNAME>",), "api.web1.example.net.<DATETIME>.log"),
        (("--host-identifier=x-<SHORT_HOST>",), "api.x-web1.<DATETIME>.log"),
        (("--filename-format=<TOPIC>/<PID>.<DATETIME>",), "api/77.<DATETIME>"),
    ],
)
def test_names_of_files(words: tuple[str, ...], name: str) -> None:
    assert template(*words) == name


def test_the_time_in_a_name() -> None:
    settings = read_settings(parse(NSQ_TO_FILE, ["--datetime-format=%Y%m%d"]))
    zone = os.environ.get("TZ")
    assert settings.name("a.<DATETIME>", 0.0) == "a." + time.strftime("%Y%m%d", time.localtime(0))
    assert os.environ.get("TZ") == zone


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--gzip", "--filename-format=<TOPIC>"), "missing <REV> in --filename-format"),
        (("--gzip-level=0",), r"invalid --gzip-level value \(0\), should be 1-9"),
        (("--rotate-size=-1",), "cannot be negative"),
        (("--filename-format=../<TOPIC>",), "leads out of the directory"),
        (("--filename-format=/etc/<TOPIC>",), "leads out of the directory"),
    ],
)
def test_names_that_cannot_be(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(FlagError, match=text):
        template(*words)


def test_addresses() -> None:
    assert str(parse_address("a:1", "x")) == "a:1"
    assert parse_address(":4150", "x") == Address("127.0.0.1", 4150)
    assert parse_address(":4150", "x", listening=True) == Address("0.0.0.0", 4150)
    assert str(parse_address("[::1]:4150", "x")) == "[::1]:4150"
    assert parse_address("/run/nsqd.sock", "x", listening=True).path == "/run/nsqd.sock"
    for text in ("a", "a:", "a:b", "a:99999", "::1:4150", "a:0", "/run/x", "a:\u0661"):
        with pytest.raises(FlagError, match="--x"):
            parse_address(text, "x")
