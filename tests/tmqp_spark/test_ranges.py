"""Ranges are read whole, whatever the broker's bounds are and however often it goes away."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.tmqp_client.server import running_server
from tests.tmqp_spark.reading import LinkTo, look, sequences, source, whole
from tmqp_client import sync
from tmqp_spark.arrow import BatchBuilder
from tmqp_spark.errors import BrokerRefused, BrokerUnreachable, DataLost
from tmqp_spark.options import ConnectionOptions
from tmqp_spark.ranges import QueueRange, read_answers, read_range
from tmqp_spark.schema import COLUMNS, default_columns, project
from tmqp_spark.testing import Broker
from tmqp_spark.transport import BrokerLink


@pytest.mark.parametrize("bodies", [True, False])
@pytest.mark.parametrize("prefetch", [0, 2, 6])
@pytest.mark.parametrize("batch_bytes", [2_000, 100_000])
def test_every_message_comes_once_and_in_order(
    broker: Broker, link_to: LinkTo, prefetch: int, batch_bytes: int, bodies: bool
) -> None:
    key = f"range{prefetch}-{batch_bytes}-{bodies}/1"
    broker.push(key[:-2], 1, [b"%d" % number * (1 + number % 50) for number in range(3_000)])
    link = link_to(broker)
    options = source(prefetch=prefetch, batchBytes=batch_bytes)
    everything = whole(link_to(broker), key)
    assert sequences(link, everything, options, bodies) == list(range(1, 3_001))
    assert link.connections == 1
    assert link.is_quiet(), "another task can use it"


def test_a_part_has_what_is_in_it_and_no_more(broker: Broker, link_to: LinkTo) -> None:
    broker.push("part", 1, [b"x"] * 100)
    all_of_it = whole(link_to(broker), "part/1")
    part = QueueRange("part", 1, all_of_it.incarnation, 31, 61)
    assert sequences(link_to(broker), part, source()) == list(range(31, 61))
    empty = QueueRange("part", 1, all_of_it.incarnation, 31, 31)
    assert sequences(link_to(broker), empty, source()) == []


def test_columns_of_the_index_are_the_same_without_bodies(broker: Broker, link_to: LinkTo) -> None:
    broker.push("bare", 1, [b"%d" % number * 300 for number in range(2_000)])
    broker.push("bare", 1, [b"urgent"], high_priority=True)
    link = link_to(broker)
    wanted = whole(link_to(broker), "bare/1")
    columns = [each for each in default_columns() if not project([each]).bodies]
    assert [name for name, _, _ in columns] == [
        "channel",
        "queue",
        "seq",
        "timestamp",
        "high_priority",
        "delivery_count",
    ]
    found = []
    for bodies in (True, False):
        builder = BatchBuilder(project(columns), "bare", 1, wanted.incarnation, "bare/1")
        portions = read_range(link, wanted, source(), bodies)
        found.append(pa.Table.from_batches(map(builder.build, portions)).combine_chunks())
    assert found[0] == found[1]
    assert found[0].num_rows == 2_001
    narrow = sum(len(data) for data, _ in read_answers(link, wanted, source(), False))
    assert narrow < sum(len(data) for data, _ in read_answers(link, wanted, source())) / 5


@pytest.mark.parametrize(
    "names", [["value"], ["seq", "timestamp", "value"], ["hops", "value", "high_priority", "queue"]]
)
def test_columns_that_the_broker_chose_are_the_same(
    broker: Broker, link_to: LinkTo, names: list[str]
) -> None:
    channel = "chosen" + names[0]
    broker.push(channel, 1, [b"%d" % number * (number % 20) for number in range(2_500)])
    broker.push(channel, 1, [b"urgent"], high_priority=True)
    link = link_to(broker)
    everything = whole(link_to(broker), f"{channel}/1")
    part = QueueRange(channel, 1, everything.incarnation, 100, 2_345)
    fields = {column.name: (column.name, column.types[0], True) for column in COLUMNS}
    projection = project([fields[name] for name in names])
    for wanted in (everything, part):
        found, sizes = [], []
        for columns in (None, projection.at_broker):
            builder = BatchBuilder(projection, channel, 1, wanted.incarnation, channel)
            portions = read_range(link, wanted, source(), columns=columns)
            found.append(pa.Table.from_batches(map(builder.build, portions)).combine_chunks())
            answers = read_answers(link, wanted, source(), columns=columns)
            sizes.append(sum(len(data) - start for data, start in answers))
        assert found[0] == found[1]
        assert found[0].num_rows == wanted.end - wanted.start
        assert sizes[1] * 2 < sizes[0]


def test_what_only_whole_messages_tell_is_not_asked_for_in_columns() -> None:
    assert project([("value", "binary", True), ("source", "string", True)]).at_broker is None
    assert project([("seq", "bigint", True)]).at_broker == "sequence"


def test_gaps_are_no_end(own_broker: Broker, link_to: LinkTo) -> None:
    """What was consumed is gone where nothing is kept for readers."""
    own_broker.create("gaps", 1, retain_time_ms=0)
    own_broker.push("gaps", 1, [b"%d" % number for number in range(4_000)])
    with (
        sync.connect(own_broker.url) as client,
        client.consume("gaps", 1, acknowledge="manual") as messages,
    ):
        kept = []
        for number, message in enumerate(messages):
            if 1_500 <= number < 3_900:
                message.ack()
            else:
                kept.append(number + 1)
            if number == 3_999:
                break
    found = sequences(link_to(own_broker), whole(link_to(own_broker), "gaps/1"), source())
    assert set(kept) <= set(found)
    assert found == sorted(set(found))


def test_a_message_larger_than_a_batch_comes_alone(broker: Broker, link_to: LinkTo) -> None:
    broker.push("large", 1, [b"a", b"b" * 500_000, b"c"])
    link = link_to(broker)
    portions = list(read_range(link, whole(link, "large/1"), source(batchBytes=1_000)))
    assert [len(portion) for portion in portions] == [1, 1, 1]


def test_reading_goes_on_when_the_broker_comes_back(own_broker: Broker, link_to: LinkTo) -> None:
    own_broker.push("back", 1, [b"%06d" % number for number in range(20_000)])
    wanted = whole(link_to(own_broker), "back/1")
    link = link_to(own_broker)
    found: list[int] = []
    portions = read_range(link, wanted, source(batchBytes=50_000))
    for number, portion in enumerate(portions):
        found += [int(sequence) for sequence in portion.entry["sequence"]]
        if number in (2, 7):
            own_broker.kill()
            own_broker.start()
    assert found == list(range(1, 20_001))
    assert link.connections == 3


def test_a_broker_that_stays_away_is_given_up(own_broker: Broker, link_to: LinkTo) -> None:
    own_broker.push("away", 1, [b"x"] * 10)
    wanted = whole(link_to(own_broker), "away/1")
    own_broker.kill()
    link = link_to(own_broker, retries=2, retryBackoffMs=1)
    with pytest.raises(BrokerUnreachable, match=r"messages 1 to 10 of away/1: .*given up after 2"):
        sequences(link, wanted, source())


def remove(broker: Broker) -> None:
    with sync.connect(broker.url) as client:
        client.remove_queue("lost", 1)


def create_anew(broker: Broker) -> None:
    remove(broker)
    broker.push("lost", 1, [b"other"] * 20)


@pytest.mark.parametrize(
    ("happens", "text"),
    [(remove, "was removed; start from a new"), (create_anew, "was removed and re-created")],
)
def test_another_queue_of_that_name_is_data_loss(
    own_broker: Broker, link_to: LinkTo, happens: Callable[[Broker], None], text: str
) -> None:
    own_broker.push("lost", 1, [b"x"] * 10)
    wanted = whole(link_to(own_broker), "lost/1")
    happens(own_broker)
    with pytest.raises(DataLost, match=text) as caught:
        sequences(link_to(own_broker), wanted, source())
    assert own_broker.url in str(caught.value)
    assert sequences(link_to(own_broker), wanted, source(failOnDataLoss="false")) == []


def test_a_beginning_that_is_not_kept_any_more_is_data_loss(
    own_broker: Broker, link_to: LinkTo
) -> None:
    own_broker.create("aged", 1, retain_time_ms=0)
    own_broker.push("aged", 1, [b"x" * 1000] * 3_000)
    wanted = whole(link_to(own_broker), "aged/1")
    with sync.connect(own_broker.url) as client, client.consume("aged", 1) as messages:
        for number, _ in enumerate(messages):
            if number == 2_500:
                break
    with pytest.raises(DataLost, match=r"messages 1 to 3000 .* the earliest is \d+; let the queue"):
        sequences(link_to(own_broker), wanted, source())
    left = sequences(link_to(own_broker), wanted, source(failOnDataLoss="false"))
    assert left
    assert left == list(range(left[0], 3_001))


def test_a_broker_without_a_store_says_so() -> None:
    with (
        running_server() as (url, _),
        BrokerLink(ConnectionOptions(url=url)) as link,
        pytest.raises(BrokerRefused, match=r"501 .* start the broker with a data directory"),
    ):
        look(link, subscribe="a/1")
