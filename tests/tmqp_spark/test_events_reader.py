"""The streaming reader of events, asked as Spark asks: offsets, batches, and starting again."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tmqp_client import sync
from tmqp_spark.errors import InvalidOption, InvalidSchema, SparkError
from tmqp_spark.events import TmqpEventsDataSource, TmqpEventsReader
from tmqp_spark.feed import EVENTS, MISSED
from tmqp_spark.testing import Broker

ALL = ReadAllAvailable()
Make = Callable[..., TmqpEventsReader]


def _schema(*names: str) -> Any:
    fields = [
        SimpleNamespace(
            name=name,
            nullable=True,
            dataType=SimpleNamespace(simpleString=EVENTS.types[name].strip),
        )
        for name in names or EVENTS.names
    ]
    return SimpleNamespace(fields=fields)


@pytest.fixture
def made(broker: Broker) -> Iterator[Make]:
    """Makes readers of new channels, and ends them."""
    readers: list[TmqpEventsReader] = []

    def make(**options: str) -> TmqpEventsReader:
        given = {"url": broker.url, "events": "ChannelCreated", "pollWaitMs": "50", **options}
        readers.append(TmqpEventsDataSource(given).streamReader(_schema("event", "channel")))
        return readers[-1]

    yield make
    for reader in readers:
        reader.stop()


def _create(broker: Broker, *names: str) -> None:
    with sync.connect(broker.url, name="test") as client:
        for name in names:
            client.create_channel(name)


def _rows(reader: TmqpEventsReader, start: Any, end: Any) -> list[tuple[str, str | None]]:
    """A batch, read as executors do: by a copy that never listened."""
    copy = TmqpEventsDataSource({"url": "tmq://127.0.0.1:9"}).streamReader(
        _schema("event", "channel")
    )
    rows: list[tuple[str, str | None]] = []
    for part in reader.partitions(start, end):
        for batch in copy.read(pickle.loads(pickle.dumps(part))):  # noqa: S301 - our own
            rows += [(row["event"], row["channel"]) for row in batch.to_pylist()]
    return rows


def _latest(reader: TmqpEventsReader, start: Any, count: int) -> Any:
    """The offset so many events behind."""
    deadline = time.monotonic() + 20
    while (end := reader.latestOffset(start, ALL))["n"] < count:
        assert time.monotonic() < deadline, f"only {end} after {start}"
    return end


def test_batches_hold_each_event_once(broker: Broker, made: Make) -> None:
    reader = made()
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start, "nothing is no batch"
    assert reader.initialOffset() == start, "Spark asks twice"
    _create(broker, "er-1", "er-2")
    first = _latest(reader, start, 2)
    assert json.dumps(first) == json.dumps(first, sort_keys=True), "offsets are compared as text"
    wanted = [("ChannelCreated", "er-1"), ("ChannelCreated", "er-2")]
    assert _rows(reader, start, first) == wanted
    assert _rows(reader, start, first) == wanted, "a batch may be read twice"
    _create(broker, "er-3")
    second = _latest(reader, first, 3)
    assert _rows(reader, first, second) == [("ChannelCreated", "er-3")]
    reader.commit(second)
    assert reader.latestOffset(second, ALL) == second


def test_a_batch_is_bounded(broker: Broker, made: Make) -> None:
    reader = made(maxEventsPerTrigger="2")
    start = reader.initialOffset()
    _create(broker, *(f"eb-{number}" for number in range(5)))
    offsets = [start]
    while offsets[-1]["n"] < 5:
        offsets.append(_latest(reader, offsets[-1], offsets[-1]["n"] + 1))
    assert all(b["n"] - a["n"] <= 2 for a, b in pairwise(offsets))


def test_a_query_that_is_started_again_says_what_it_cannot_know(broker: Broker, made: Make) -> None:
    before = made()
    start = before.initialOffset()
    _create(broker, "ea-1", "ea-2")
    end = _latest(before, start, 2)
    before.stop()
    after = made()
    # The batch that was planned and not finished is gone.
    (gap,) = _rows(after, start, end)
    assert gap == (MISSED, None)
    assert after.latestOffset(end, ALL) == end, "nothing was heard yet"
    _create(broker, "ea-3")
    deadline = time.monotonic() + 20
    while (later := after.latestOffset(end, ALL)) == end:
        assert time.monotonic() < deadline
    assert _rows(after, end, later) == [(MISSED, None), ("ChannelCreated", "ea-3")]


def test_mistakes_are_named_when_the_query_is_planned(broker: Broker) -> None:
    with pytest.raises(InvalidOption, match=r"no option 'chanels'; did you mean channels\?"):
        TmqpEventsDataSource({"url": broker.url, "chanels": "*"})
    with pytest.raises(InvalidOption, match="needs the option channels"):
        TmqpEventsDataSource({"url": broker.url, "events": "ClientJoined"})
    with pytest.raises(InvalidOption, match="maxBufferedEvents must be a whole number"):
        TmqpEventsDataSource({"url": broker.url, "maxBufferedEvents": "0"})
    source = TmqpEventsDataSource({"url": broker.url})
    strange = _schema("event")
    strange.fields[0].name = "evnt"
    with pytest.raises(InvalidSchema, match=r"no column 'evnt'; did you mean event\?"):
        source.streamReader(strange)
    with pytest.raises(SparkError, match="keeps no events"):
        source.reader(strange)
