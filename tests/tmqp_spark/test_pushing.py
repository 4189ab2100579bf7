"""Pushing blocks of messages to a real broker: each is acknowledged, refused by name, or pushed
again after a loss."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from tmqp_client import sync
from tmqp_spark.encoding import EncodedBatch, MessageEncoder
from tmqp_spark.errors import BrokerRefused, BrokerUnreachable
from tmqp_spark.options import ConnectionOptions
from tmqp_spark.pushing import Pusher
from tmqp_spark.testing import Broker

Pushing = Callable[..., Pusher]


@pytest.fixture
def pushing() -> Iterator[Pushing]:
    """Makes connections that push, and closes them at the end."""
    made: list[Pusher] = []

    def make(broker: Broker, retries: int = 20) -> Pusher:
        made.append(Pusher(ConnectionOptions(url=broker.url, retries=retries), 16))
        made[-1].connect()
        return made[-1]

    yield make
    for pusher in made:
        pusher.close()


def _encoder(pusher: Pusher, channel: str, *, ask: bool = True) -> MessageEncoder:
    return MessageEncoder(channel, 1, pusher.client_id, "t-", ask=ask)


def _numbers(encoder: MessageEncoder, count: int, **more: pa.Array) -> EncodedBatch:
    values = [b"%09d" % (encoder.made + number) for number in range(count)]
    columns = {"value": pa.array(values, pa.binary()), **more}
    return encoder.encode(pa.record_batch(list(columns.values()), names=list(columns)))


def _push_all(pusher: Pusher, batch: EncodedBatch, most_bytes: int = 4_096) -> None:
    for start, end in pairwise(batch.cuts(most_bytes)):
        pusher.push(batch, start, end)


def _push_and_settle(pusher: Pusher, batch: EncodedBatch, marker: str = "") -> None:
    _push_all(pusher, batch)
    pusher.settle(marker)


def _kept(broker: Broker, channel: str) -> list[int]:
    """What is kept of queue 1, in order."""
    found: list[int] = []
    last = 0
    with sync.connect(broker.url, name="test") as client:
        while more := client.read_range(channel, 1, last + 1):
            found += [int(message.payload) for message in more]
            last = more[-1].sequence
    return found


def test_every_message_is_kept_in_order_and_acknowledged(broker: Broker, pushing: Pushing) -> None:
    broker.create("p-order", 1)
    pusher = pushing(broker)
    encoder = _encoder(pusher, "p-order")
    for _ in range(3):
        _push_all(pusher, _numbers(encoder, 4_000))
    pusher.settle("")
    pusher.close()
    assert pusher.resent == 0
    assert _kept(broker, "p-order") == list(range(12_000))


def test_a_consumer_that_is_quicker_than_the_acknowledge_changes_nothing(
    broker: Broker, pushing: Pushing
) -> None:
    broker.create("p-quick", 1)
    taken: list[int] = []

    def take() -> None:
        with sync.connect(broker.url, name="test") as client:
            for message in client.consume("p-quick", 1):
                taken.append(int(message.payload))
                if len(taken) == 5_000:
                    return

    consumer = threading.Thread(target=take)
    consumer.start()
    pusher = pushing(broker)
    _push_all(pusher, _numbers(_encoder(pusher, "p-quick"), 5_000))
    pusher.settle("")
    consumer.join(30)
    assert taken == list(range(5_000))


def test_messages_for_queues_that_keep_and_that_do_not_are_matched_by_id(
    broker: Broker, pushing: Pushing
) -> None:
    broker.create("p-mixed", 1)
    with sync.connect(broker.url, name="test") as client:
        client.create_queue("p-mixed", 2, status="pull")
    pusher = pushing(broker)
    encoder = _encoder(pusher, "p-mixed")
    queues = pa.array([1 + number % 2 for number in range(4_000)], pa.int32())
    _push_all(pusher, _numbers(encoder, 4_000, queue=queues))
    pusher.settle("")
    _push_all(pusher, _numbers(encoder, 1_000))
    pusher.settle("")
    with sync.connect(broker.url, name="test") as client:
        assert client.queue_information("p-mixed", 2).messages == 2_000
    assert _kept(broker, "p-mixed") == [*range(0, 4_000, 2), *range(4_000, 5_000)]


@pytest.mark.parametrize("ask", [True, False])
def test_a_refused_message_is_named_with_its_queue_and_reason(
    broker: Broker, ask: bool, pushing: Pushing
) -> None:
    channel = f"p-full-{ask}"
    broker.create(channel, 1, message_limit=100)
    pusher = pushing(broker)
    with pytest.raises(BrokerRefused) as caught:
        _push_and_settle(pusher, _numbers(_encoder(pusher, channel, ask=ask), 200), channel)
    assert caught.value.code == 482
    text = str(caught.value)
    assert f"{broker.url}: push into {channel}{'/1' if ask else ''}: 482" in text
    assert "message t-00000064" in text
    assert "consumers catch up" in text


def test_a_broker_that_does_not_know_the_queue_says_so(tmp_path: Path, pushing: Pushing) -> None:
    with Broker(tmp_path, "auto_channel_creation = false\n") as broker:
        pusher = pushing(broker)
        with pytest.raises(BrokerRefused, match=r"nowhere/1: 404 .*createQueue"):
            _push_and_settle(pusher, _numbers(_encoder(pusher, "nowhere"), 10))


@pytest.mark.long
def test_after_a_kill_everything_is_there_and_only_what_was_under_way_twice(
    own_broker: Broker, pushing: Pushing
) -> None:
    own_broker.create("p-kill", 1)
    pusher = pushing(own_broker)
    encoder = _encoder(pusher, "p-kill")
    for round_number in range(6):
        _push_all(pusher, _numbers(encoder, 5_000), 65_536)
        if round_number in (1, 3):
            own_broker.kill()
            threading.Timer(0.3, own_broker.start).start()
        encoder.rename(pusher.client_id)
    pusher.settle("")
    assert pusher.connections == 3
    assert pusher.resent > 0
    seen = Counter(_kept(own_broker, "p-kill"))
    assert set(seen) == set(range(encoder.made))
    assert sum(seen.values()) - len(seen) <= pusher.resent
    assert max(seen.values()) <= 3


def test_a_broker_that_stays_away_is_given_up(own_broker: Broker, pushing: Pushing) -> None:
    own_broker.create("p-gone", 1)
    pusher = pushing(own_broker, retries=2)
    batch = _numbers(_encoder(pusher, "p-gone"), 10)
    own_broker.kill()
    with pytest.raises(BrokerUnreachable, match="given up after 2 more attempts"):
        _push_and_settle(pusher, batch)


def test_what_the_broker_has_no_room_for_now_is_pushed_again(
    tmp_path: Path, pushing: Pushing
) -> None:
    with Broker(tmp_path, "[broker]\nmax_unsynced_bytes = 50000\n") as broker:
        broker.create("p-busy", 1)
        pusher = pushing(broker)
        _push_all(pusher, _numbers(_encoder(pusher, "p-busy"), 5_000), 65_536)
        pusher.settle("")
        assert pusher.resent > 0
        assert sorted(_kept(broker, "p-busy")) == list(range(5_000))
