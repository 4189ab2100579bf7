"""End-to-end latency: how exact its percentiles are, what is counted, and that nobody else pays."""

from __future__ import annotations

import json
import sys
from collections import Counter
from math import ceil
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.doors.nsq.server import Client, Server
from tests.tmqp_server.doors.nsq.stage import Stage
from tests.tmqp_server.nsq_costs import nsq_consumed
from tmqp_server.doors.nsq.measuring import MeasuringSession
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_server.doors.nsq_latency import Counts, Latencies, shown
from tmqp_server.doors.tables import record_of_options
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import MessageReceived

MS: Final = 1_000_000
S: Final = 1_000 * MS
PERCENTILES: Final = (0.5, 0.99, 1.0)


def values(latencies: Latencies, now_ns: int, channel: bytes = b"c") -> list[int]:
    """The percentiles of a channel of the topic ``t``; of all channels without a name."""
    rows: Any = latencies.told(b"t", channel, now_ns)["percentiles"]
    return [each["value"] for each in rows]


def count(latencies: Latencies, now_ns: int, channel: bytes = b"c") -> object:
    return latencies.told(b"t", channel, now_ns)["count"]


def is_near(found: int, exact: int) -> bool:
    """Whether a percentile is within 0.8 % or a microsecond of the exact one."""
    return abs(found - exact) <= max(exact * 0.008, 1_024)


@given(
    st.lists(st.one_of(st.integers(0, 10 * MS), st.integers(0, 40 * 86_400 * S)), min_size=1),
    st.lists(st.floats(0.001, 1.0), min_size=1, max_size=5),
)
def test_a_percentile_is_within_less_than_a_hundredth(
    taken: list[int], percentiles: list[float]
) -> None:
    latencies = Latencies(tuple(percentiles), 60_000, 10)
    for place, each in enumerate(taken):
        latencies.of(b"t", b"ab"[place % 2 :][:1], 0).note(each, 0)
    taken.sort()
    exact = [taken[max(1, ceil(each * len(taken) - 1e-9)) - 1] for each in percentiles]
    found = values(latencies, 0, b"")
    assert all(map(is_near, found, exact)), (found, exact)
    assert count(latencies, 0, b"") == len(taken)


def test_a_channel_takes_bounded_memory_whatever_its_latencies_are() -> None:
    counts = Counts()
    for place in range(80):
        counts.add((1 << place) - 1, 1)
        counts.add(1 << place, 1)
    counts.add(-5, 1)
    assert counts.total == 161
    buckets = [each for row in counts.rows if row is not None for each in row]
    assert len(buckets) == 37 * 64
    assert sum(buckets) == 161


def test_what_is_older_than_the_window_is_forgotten_in_halves() -> None:
    latencies = Latencies(PERCENTILES, 10_000, 10)
    latencies.of(b"t", b"c", 0).note(1 * MS, 0)
    latencies.of(b"t", b"c", 0).note(3 * MS, 6 * S)
    assert count(latencies, 9 * S) == 2
    assert is_near(values(latencies, 9 * S)[0], 1 * MS)
    assert count(latencies, 10 * S) == 1
    assert is_near(values(latencies, 10 * S)[0], 3 * MS)
    assert (count(latencies, 40 * S), values(latencies, 40 * S)) == (0, [0, 0, 0])
    latencies.of(b"t", b"c", 0).note(1 * MS, 100 * S)
    assert count(latencies, 100 * S) == 1


def test_no_more_channels_are_measured_than_may_be() -> None:
    latencies = Latencies(PERCENTILES, 10_000, 2)
    for place, name in enumerate((b"a", b"b", b"a", b"c")):
        latencies.of(b"t", name, 0).note(MS, place)
    assert [count(latencies, 9, each) for each in (b"a", b"b", b"c", b"")] == [2, 0, 1, 3]
    latencies.forget(b"t", b"a")
    latencies.forget(b"t", b"none")
    latencies.forget(b"none")
    assert count(latencies, 9, b"") == 1
    latencies.forget(b"t")
    latencies.of(b"t", b"d", 0)
    latencies.of(b"u", b"d", 0)
    assert count(latencies, 9, b"") == 0


def test_percentiles_are_told_as_the_original_tells_them() -> None:
    latencies = Latencies(PERCENTILES, 10_000, 2)
    latencies.of(b"t", b"c", 0).note(2_495_090, 0)
    told = latencies.told(b"t", b"c", 0)
    rows = [{"quantile": each, "value": 2_506_752} for each in (0.5, 0.99, 1)]
    assert json.dumps(told) == json.dumps({"count": 1, "percentiles": rows})
    assert shown(told) == "2.5ms, 2.5ms, 2.5ms"
    rows = [{"quantile": 1, "value": each} for each in (0, 1_000, 1_001, 2 * S)]
    assert shown({"percentiles": rows}) == "0.0ns, 1000.0ns, 1.0us, 2.0s"
    assert shown({"percentiles": None}) == ""


class Measured(Server):
    """A server that measures."""

    def __init__(self, **options: Any) -> None:
        given = record_of_options(NsqOptions(), {"e2e_processing_latency_percentiles": [1]})
        percentiles = given.e2e_processing_latency_percentiles
        limits = NsqLimits(max_rdy_count=20)
        super().__init__(limits, e2e_processing_latency_percentiles=percentiles, **options)

    def told(self, channel: str = "x") -> tuple[Any, Any]:
        """How many messages of the channel were counted, and how long the slowest took."""
        now_ns = self.context.unix_ns(self.now)
        found: Any = self.context.world.latencies.told(b"t", channel.encode(), now_ns)
        return found["count"], found["percentiles"][0]["value"]

    def consumer(self, rdy: int, **fields: Any) -> Client:
        """A client that consumes ``t:x``."""
        return self.subscriber("t", "x", rdy, **fields)


def test_the_time_from_publishing_to_fin_is_measured() -> None:
    server = Measured()
    consumer = server.consumer(5)
    server.publish("t", b"one", b"two")
    one, two = consumer.take()
    assert isinstance(one, MessageReceived)
    assert isinstance(two, MessageReceived)
    server.pass_s(2)
    assert server.told() == (0, 0)
    consumer.send(writing.fin(one.message_id))
    assert server.told()[0] == 1
    assert is_near(server.told()[1], 2 * S)
    consumer.send(writing.req(two.message_id, 1_000))
    server.pass_s(3)
    consumer.send(writing.fin(consumer.message().message_id))
    assert server.told()[0] == 2
    assert is_near(server.told()[1], 5 * S)
    # What waits in the channel has taken its time, too.
    consumer.send(writing.rdy(0))
    server.publish("t", b"three")
    server.pass_s(10)
    consumer.send(writing.rdy(1))
    consumer.send(writing.fin(consumer.message().message_id))
    assert is_near(server.told()[1], 10 * S)
    server.context.world.forget_topic(b"t")
    assert server.told() == (0, 0)


def test_a_fin_that_failed_is_not_counted() -> None:
    server = Measured()
    consumer = server.consumer(1, msg_timeout=1_000)
    server.publish("t", b"m")
    name = consumer.message().message_id
    consumer.send(writing.rdy(0))
    server.pass_s(2)  # it times out, which the session does not hear
    consumer.send(writing.fin(name))
    assert b"E_FIN_FAILED" in consumer.raw()
    assert server.told() == (0, 0)
    consumer.send(writing.rdy(1))
    assert consumer.message().attempts == 2
    consumer.send(writing.fin(name) + writing.fin(name) + writing.fin(b"f" * 16))
    assert consumer.raw().count(b"E_FIN_FAILED") == 2
    assert server.told()[0] == 1
    consumer.send(writing.fin(name))
    assert server.told()[0] == 1


def test_a_session_remembers_no_more_messages_than_it_may_have_twice() -> None:
    server = Measured()
    consumer = server.consumer(20, msg_timeout=1_000)
    session = server.hub._sessions[consumer.number]
    assert isinstance(session, MeasuringSession)
    # Each message of the first twenty is requeued late, so the next ones come before it again.
    server.publish("t", *[b"m"] * 200)
    held = session.held_bytes()
    for _ in range(8):
        events = [each for each in consumer.take() if isinstance(each, MessageReceived)]
        consumer.send(*[writing.req(each.message_id, 600_000) for each in events])
        assert len(session._published_ns) <= 40
    assert len(session._published_ns) == 40
    assert session.held_bytes() >= held


def test_messages_that_sampling_skips_are_not_measured() -> None:
    server = Measured()
    consumer = server.consumer(20, sample_rate=50)
    server.publish("t", *[b"m"] * 100)
    got = 0
    while events := [each for each in consumer.take() if isinstance(each, MessageReceived)]:
        got += len(events)
        consumer.send(*[writing.fin(each.message_id) for each in events])
    assert 20 < got < 80
    assert server.told()[0] == got


def test_the_statistics_show_percentiles_and_deleting_a_channel_forgets_them() -> None:
    options = {"nsq": {"e2e_processing_latency_percentiles": [0.99, 0.5]}}
    stage = Stage(options)
    for channel in ("a", "b"):
        consumer = stage.dial("nsq", b"  V2", b"SUB t %b\nRDY 1\n" % channel.encode())
        stage.ask("nsqd-http", "POST", "/pub?topic=t", b"m")
        stage.sleep(1)
        consumer.say(writing.fin(consumer.take()[-17:-1]))
    (topic,) = json.loads(stage.ask("nsqd-http", "GET", "/stats?format=json").body)["topics"]
    told = [each["e2e_processing_latency"] for each in (topic, *topic["channels"])]
    assert [each["count"] for each in told] == [2, 1, 1]
    assert [row["quantile"] for row in told[0]["percentiles"]] == [0.99, 0.5]
    assert all(is_near(row["value"], S) for each in told for row in each["percentiles"])
    text = stage.ask("nsqd-http", "GET", "/stats").body
    assert text.count(b"e2e%: 998.2ms, 998.2ms\n") + text.count(b"e2e%: 1.0s, 1.0s\n") == 3
    config = stage.ask("nsqd-http", "GET", "/config/e2e_processing_latency_percentiles")
    assert config.body == b"[0.99,0.5]"
    stage.ask("nsqd-http", "POST", "/channel/delete?topic=t&channel=a", b"")
    stage.ask("nsqd-http", "POST", "/channel/create?topic=t&channel=a", b"")
    (topic,) = json.loads(stage.ask("nsqd-http", "GET", "/stats?format=json").body)["topics"]
    assert [each["e2e_processing_latency"]["count"] for each in (topic, *topic["channels"])] == [
        1,
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([0], "must be above 0 and at most 1, got 0"),
        ([0.5, 1.01], "must be above 0 and at most 1, got 1.01"),
        (0.5, "must be a list of numbers, not 0.5"),
        (["0.5"], "must be a list of numbers"),
        ([True], "must be a list of numbers"),
    ],
)
def test_percentiles_that_cannot_be_are_refused(value: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        record_of_options(NsqOptions(), {"e2e_processing_latency_percentiles": value})


@pytest.mark.cold  # compiled code calls without being seen
def test_messages_cost_nothing_more_where_nothing_is_measured() -> None:
    called: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called[frame.f_code.co_filename.rpartition("/")[2]] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        nsq_consumed(400)
    finally:
        sys.setprofile(before)
    assert called["session.py"] > 10
    assert called["measuring.py"] == 0
    assert called["nsq_latency.py"] <= 4, "once for each door and session, never for a message"
