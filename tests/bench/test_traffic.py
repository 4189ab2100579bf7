"""Loads of messages that differ, and of producers with windows of their own."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from tests.bench.test_brokers import a_pipe, cut
from tmqp.codec import FrameDecoder
from tmqp.constants import TYPE_ACKNOWLEDGE, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_bench.broker.counting import Rotation
from tmqp_bench.broker.loop import Sample, Shape, run
from tmqp_bench.broker.mixture import alike, subject, varied
from tmqp_bench.broker.processes import Spent
from tmqp_bench.broker.redis_wire import GroupReader
from tmqp_bench.broker.report import as_text
from tmqp_bench.broker.suite import BrokerPlan, BrokerResults, Figures, compare_brokers
from tmqp_bench.broker.tmqp_mixed import MixedTaker

SIZES = (0, 16, 252, 253, 300, 70_000)


def a_taker(monkeypatch: pytest.MonkeyPatch, *, acks: bool) -> MixedTaker:
    monkeypatch.setattr("tmqp_bench.broker.tmqp_mixed.join", lambda *_: socket.socket())
    taker = MixedTaker(1, "taker", "teller", acks=acks)
    taker.socket.close()
    return taker


def test_a_consumer_answers_each_message_whatever_it_looks_like_and_however_it_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = [
        Frame.build(
            TYPE_QUEUE_MESSAGE,
            "bench",
            1 + number * 100,
            b"x" * size,
            message_id=f"{number:032x}",
            source="teller",
            headers=[("Trace", "1" * number)] if number % 2 else [],
        )
        for number, size in enumerate(SIZES)
    ]
    stream = b"".join([frame.raw for frame in frames])
    for pieces in cut(stream, range(1, 400, 13)):
        taker = a_taker(monkeypatch, acks=True)
        found = [taker.received(piece) for piece in pieces]
        assert sum(count for count, _ in found) == len(SIZES)
        answers = FrameDecoder().feed(b"".join([answer for _, answer in found]))
        assert [(each.type, each.message_id, each.content_type) for each in answers] == [
            (TYPE_ACKNOWLEDGE, f"{number:032x}", 1 + number * 100) for number in range(len(SIZES))
        ]


def test_a_consumer_that_need_not_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Frame.build(TYPE_QUEUE_MESSAGE, "bench", 1, b"x", message_id="1", source="teller")
    for pieces in cut(frame.raw * 3, range(1, 40)):
        taker = a_taker(monkeypatch, acks=False)
        found = [taker.received(piece) for piece in pieces]
        assert sum(count for count, _ in found) == 3
        assert not any(answer for _, answer in found)


def _entry(number: int, *fields: bytes) -> bytes:
    texts = b"".join([b"$%d\r\n%s\r\n" % (len(text), text) for text in fields])
    name = b"1700000000000-%d" % number
    return b"*2\r\n$%d\r\n%s\r\n*%d\r\n%s" % (len(name), name, len(fields), texts)


def test_entries_of_several_redis_streams_are_acknowledged_however_they_are_cut() -> None:
    first, second = subject(0), subject(1)
    entries = [_entry(1, b"Trace", b"1", b"d", b"x" * 40), _entry(2, b"d", b"")]
    answer = b"*2\r\n*2\r\n$9\r\n%s\r\n*2\r\n%s" % (first, b"".join(entries))
    answer += b"*2\r\n$9\r\n%s\r\n*1\r\n%s" % (second, _entry(3, b"d", b"x" * 10))
    for pieces in cut(b":2\r\n" + answer, range(1, 200, 7)):
        reader = GroupReader.__new__(GroupReader)
        reader._rest, reader._ask = b"", b"more"
        found = [reader.received(piece) for piece in pieces]
        assert sum(count for count, _ in found) == 3
        said = b"".join([each for _, each in found])
        assert said.endswith(b"more")
        assert said.count(b"XACK") == 2
        assert said.index(b"1700000000000-2") < said.index(second) < said.index(b"1700000000000-3")
        assert found[-1][0] == 3, "not before all of it is there"


class _Numbered:
    """Each byte is a message; it notes what it was asked for."""

    confirms = False

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.asked: list[int] = []

    def messages(self, count: int) -> bytes:
        self.asked.append(count)
        return b"m" * count

    def confirmed(self, data: bytes) -> int:
        return 0

    def received(self, data: bytes) -> tuple[int, bytes]:
        return len(data), b""


def test_each_producer_has_its_own_window_and_goes_on_when_its_consumer_has_it() -> None:
    with ExitStack() as stack:
        ends = [stack.enter_context(a_pipe()) for _ in range(3)]
        producers = [_Numbered(given) for given, _ in ends]
        shape = Shape(copies=1, window=2, warm_up_s=0.05, seconds=0.2, each=True)
        consumers = [_Numbered(taken) for _, taken in ends]
        sample = run(producers, consumers, shape, lambda: Spent(0.0, 0.0))
    assert sample.deliveries == sample.messages > 10
    assert sample.load_share > 0.0
    for producer in producers:
        assert producer.asked[0] == 2
        assert set(producer.asked) <= {1, 2}
        assert len(producer.asked) > 2


def test_what_is_sent_comes_round_again() -> None:
    rotation = Rotation([b"a", b"b", b"c"])
    assert [rotation.take(count) for count in (2, 2, 7)] == [b"ab", b"ca", b"bcabcab"]


def test_a_mixture_is_the_same_each_time_and_goes_through_its_queues_evenly() -> None:
    assert varied() == varied.__wrapped__()
    assert {16, 2_000} <= {len(body) for body in varied().bodies}
    assert len(alike(100, 50).bodies) % 50 == 0


@pytest.mark.parametrize(("share", "said"), [(0.97, "97%!"), (0.5, "50%")])
def test_a_row_that_the_load_may_limit_is_marked(share: float, said: str) -> None:
    results = BrokerResults(BrokerPlan(("turns",), 1, 1.0, False, ("compiled",)))
    results.figures["turns", "tmqp"] = Figures([Sample(10, 10, 1.0, 1.0, share, [])], [1])
    (row,) = [line for line in as_text(results).splitlines() if line.startswith("tmqp ")]
    assert said in row.split()


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["pairs-once", "turns", "varied", "producers-100", "competing-16", "stalled"]
)
def test_our_server_under_loads_that_nothing_was_made_for(name: str) -> None:
    plan = BrokerPlan((name,), 1, 0.2, False, ("interpreted",))
    results = compare_brokers(plan, lambda _: None)
    assert not results.missing
    assert results.figures[name, "tmqp, interpreted"].rate > 0
