"""Subscriptions, filters and splitting: what is decided without asking anybody."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_spark.blocks_for_tests import BASE_US, block, stored
from tests.tmqp_spark.reading import LinkTo, source, whole
from tmqp_spark.arrow import read_portion
from tmqp_spark.catalog import Subscription
from tmqp_spark.errors import InvalidOption
from tmqp_spark.filters import Filters
from tmqp_spark.options import SourceOptions
from tmqp_spark.ranges import QueueRange
from tmqp_spark.splitting import bytes_up_to, split_evenly, split_ranges
from tmqp_spark.starting import Edge, ending_edge, starting_edge
from tmqp_spark.testing import Broker

# --- Subscriptions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "covered", "left_out", "filters"),
    [
        ({"subscribe": "a/1"}, ["a/1"], ["a/2", "ab/1"], [("a", 1)]),
        ({"subscribe": "a"}, ["a/1", "a/2"], ["ab/1"], [("a", None)]),
        ({"subscribe": "a/1,a/2, b"}, ["a/1", "a/2", "b/9"], ["a/3"], [("a", None), ("b", None)]),
        ({"subscribe": "x/y/1"}, ["x/y/1"], ["x/1"], [("x/y", 1)]),
        ({"assign": '{"a":[1,2]}'}, ["a/1", "a/2"], ["a/3"], [("a", None)]),
        ({"subscribe": "a,b,c,d,e"}, ["e/1"], ["f/1"], [("*", None)]),
        ({"subscribePattern": "or-.*/7"}, ["or-eu/7"], ["or-eu/8"], [("or-*", None)]),
        ({"subscribePattern": "ab?/1"}, ["a/1", "ab/1"], ["b/1"], [("*", None)]),
        ({"subscribePattern": "abc*/1"}, ["ab/1", "abcc/1"], ["a/1"], [("*", None)]),
        ({"subscribePattern": "a/1|b/1"}, ["a/1", "b/1"], ["a/2"], [("*", None)]),
        ({"subscribePattern": ".*"}, ["a/1", "x/y/2"], [], [("*", None)]),
    ],
)
def test_a_subscription_covers_what_it_names(
    options: dict[str, str], covered: list[str], left_out: list[str], filters: list[Any]
) -> None:
    found = Subscription(source(**options))
    assert all(found.covers(key) for key in covered)
    assert not any(found.covers(key) for key in left_out)
    for key in covered:
        channel, _, queue = key.rpartition("/")
        assert any(
            (channel == name or (name.endswith("*") and channel.startswith(name[:-1])))
            and number in (None, int(queue))
            for name, number in found.filters()
        ), "the broker is asked for it"
    if "?" not in str(options) and "c*" not in str(options):
        assert found.filters() == filters


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "none is given"),
        ({"subscribe": "a", "assign": '{"a":[1]}'}, "subscribe and assign are given"),
        ({"subscribe": "a,,b"}, "an empty name"),
        ({"subscribe": "a/x"}, "is not channel/queue"),
        ({"assign": '["a"]'}, "must be JSON such as"),
        ({"assign": '{"a":[70000]}'}, "must be JSON such as"),
        ({"assign": "{"}, "must be JSON such as"),
    ],
)
def test_a_subscription_that_cannot_be_is_said_so(options: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        Subscription(source(**options))


def _start(options: SourceOptions) -> Edge:
    return starting_edge(options, "earliest")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingOffsets": "first"}, "earliest, latest, committed or JSON, got 'first'"),
        ({"startingOffsets": "latest", "startingTimestamp": 1}, "both say where to begin"),
        ({"startingOffsets": "committed"}, "needs the option group"),
        ({"startingOffsetsByTimestamp": '{"a/1":-1}'}, "a number from 0 on"),
        ({"endingOffsets": "earliest"}, "endingOffsets is latest, or JSON"),
        ({"endingOffsets": '{"a/1":-2}'}, "endingOffsets is latest, or JSON"),
        ({"endingTimestamp": 1, "endingOffsetsByTimestamp": '{"a/1":1}'}, "both say where to end"),
    ],
)
def test_an_edge_that_cannot_be_is_said_so(options: dict[str, Any], text: str) -> None:
    edge = ending_edge if any(name.startswith("ending") for name in options) else _start
    with pytest.raises(InvalidOption, match=text):
        edge(source(**options))


# --- Filters --------------------------------------------------------------------------------------

moments = st.integers(0, 20).map(lambda number: BASE_US + number)
filters = st.one_of(
    st.tuples(st.just("seq"), st.sampled_from(["=", "<", "<=", ">", ">="]), st.integers(-2, 22)),
    st.tuples(st.just("timestamp"), st.sampled_from(["=", "<", "<=", ">", ">="]), moments),
)
_COMPARE = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@given(st.lists(filters, max_size=4))
def test_an_accepted_filter_is_applied_exactly(chosen: list[tuple[str, str, int]]) -> None:
    messages = [stored(sequence) for sequence in range(1, 21)]
    portion = read_portion([(block(*messages), 0)], "all", "orders/7")
    applied = Filters()
    wanted = set(range(1, 21))
    for column, comparison, value in chosen:
        given_value: Any = value
        if column == "timestamp":
            given_value = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
        assert applied.accept(column, comparison, given_value)
        offset = BASE_US if column == "timestamp" else 0
        wanted = {each for each in wanted if _COMPARE[comparison](each + offset, value)}
    left = applied.apply(portion)
    found = {int(each) for each in left.entry["sequence"] if applied.first <= each <= applied.last}
    assert found == wanted


def test_channels_and_queues_are_chosen_by_equality() -> None:
    applied = Filters()
    assert applied.accept("channel", "in", ("a", "b"))
    assert applied.accept("channel", "=", "a")
    assert applied.accept("queue", "in", (1, 2))
    assert applied.covers("a", 1)
    assert not applied.covers("b", 1)
    assert not applied.covers("a", 3)


@pytest.mark.parametrize(
    ("column", "comparison", "value"),
    [
        ("value", "=", b"x"),
        ("message_id", "=", "x"),
        ("channel", "<", "a"),
        ("channel", "=", None),
        ("queue", ">", 1),
        ("seq", "in", (1, 2)),
        ("seq", "=", None),
        ("seq", "=", True),
        ("timestamp", ">", datetime(2026, 1, 1)),  # noqa: DTZ001 - that is the point
        ("timestamp", ">", 5),
    ],
)
def test_what_cannot_be_applied_exactly_is_left_to_spark(
    column: str, comparison: str, value: Any
) -> None:
    applied = Filters()
    assert not applied.accept(column, comparison, value)
    assert applied.covers("any", 1)


def test_a_moment_counts_whatever_its_zone() -> None:
    applied = Filters()
    moment = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=13)))
    assert applied.accept("timestamp", ">=", moment)
    assert applied.since_us == int(moment.timestamp()) * 1_000_000
    assert applied.by_time


# --- Splitting ------------------------------------------------------------------------------------


@given(st.integers(1, 1_000), st.integers(1, 50))
def test_parts_are_the_whole_and_do_not_overlap(length: int, count: int) -> None:
    parts = split_evenly(QueueRange("a", 1, "x", 10, 10 + length, 1_000), count)
    assert len(parts) == min(length, count)
    assert [part.start for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert (parts[0].start, parts[-1].end) == (10, 10 + length)
    sizes = [part.end - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_a_range_is_divided_by_bytes_and_messages(broker: Broker, link_to: LinkTo) -> None:
    broker.push("divided", 1, [b"x" * 1_000] * 1_500 + [b"y"] * 500)
    link = link_to(broker)
    everything = whole(link, "divided/1")

    def parts(**options: Any) -> list[QueueRange]:
        found = split_ranges(link, [everything], source(**options))
        assert [part.start for part in found[1:]] == [part.end for part in found[:-1]]
        assert (found[0].start, found[-1].end) == (1, 2_001)
        return found

    assert parts() == [everything]
    assert len(parts(minPartitions=7)) >= 7
    assert all(part.end - part.start <= 300 for part in parts(maxRecordsPerPartition=300))
    assert 4 <= len(parts(targetPartitionBytes="400k")) <= 7


def test_so_many_bytes_reach_so_far(broker: Broker, link_to: LinkTo) -> None:
    broker.push("reach", 1, [b"x" * 1_000] * 100)
    link = link_to(broker)
    everything = whole(link, "reach/1")
    end, size = bytes_up_to(link, everything, 20_000)
    assert 10 <= end <= 20
    assert 0 < size <= 20_000
    assert bytes_up_to(link, everything, 1)[0] == 2, "one message at least"
    assert bytes_up_to(link, everything, 10**9)[0] == everything.end


def test_numpy_compares_as_the_filters_do() -> None:
    """Times are compared as 64 bits: the largest bounds do not overflow."""
    times = np.array([0, BASE_US], dtype=np.int64)
    applied = Filters()
    assert ((times >= applied.since_us) & (times <= applied.until_us)).all()
