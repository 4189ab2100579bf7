"""A real Spark reads a broker's database where it lies, while the broker works on it."""

from __future__ import annotations

import secrets
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.tmqp_spark.test_batch import load, said
from tests.tmqp_spark.test_stream import Seen, follow, run_now
from tmqp_client import sync
from tmqp_spark.testing import Broker


def data_of(broker: Broker) -> str:
    return str(broker.data)


def rows(frame: DataFrame) -> list[Any]:
    return frame.orderBy("channel", "queue", "seq").collect()


def test_a_batch_is_the_same_as_over_the_network(spark: SparkSession, broker: Broker) -> None:
    channel = f"same-{secrets.token_hex(4)}"  # a test that Spark was late for is run again
    for queue in (1, 2):
        broker.push(channel, queue, [b"%05d" % number * (number % 30) for number in range(4_000)])
    broker.push(channel, 2, [b"urgent"], headers={"Kind": "a"}, high_priority=True)
    broker.create(channel, 3, retain_time_ms=0)
    broker.push(channel, 3, [b"%d" % number for number in range(500)])
    with sync.connect(broker.url) as client, client.consume(channel, 3) as messages:
        for number, _ in enumerate(messages, 1):
            if number == 300:
                break
    options = {"subscribe": channel, "includeHeaders": "true", "includeFrame": "true"}
    remote = rows(load(spark, broker, **options))
    # A client that a busy machine keeps waiting sends again under the same id.
    assert len({row["message_id"] for row in remote}) == 8_001 + 200
    options |= {"journalDir": data_of(broker), "maxRecordsPerPartition": "1500"}
    local = rows(load(spark, broker, **options))
    assert local == remote
    narrow = load(spark, broker, "value binary", **options).filter("length(value) = 5").count()
    assert narrow == sum(len(row["value"]) == 5 for row in remote)


@pytest.mark.long
def test_a_stream_has_each_message_once_while_the_broker_works_and_is_killed(
    spark: SparkSession, own_broker: Broker, tmp_path: Path
) -> None:
    own_broker.create("live", 1, retain_time_ms=0, retain_for_readers=True)
    frame = follow(
        spark,
        own_broker,
        subscribe="live/1",
        journalDir=data_of(own_broker),
        group="local",
        startingOffsets="earliest",
        maxOffsetsPerTrigger=700,
        outageTimeout="60s",
    )
    seen, pushed = Seen(), 0

    def push(count: int, times: int) -> None:
        nonlocal pushed
        with sync.connect(own_broker.url) as client:
            for _ in range(times):
                client.push_many("live", 1, [b"%0100d" % (pushed + n) for n in range(count)])
                pushed += count

    def consume(count: int) -> None:
        while not seen.all:  # what is erased before the query begins is not there for it
            time.sleep(0.01)
        with sync.connect(own_broker.url) as client, client.consume("live", 1) as messages:
            for number, _ in enumerate(messages, 1):
                if number == count:
                    break

    push(500, 4)
    # Written, merged, consumed and erased while the query reads.
    workers = [
        threading.Thread(target=push, args=(40, 60)),
        threading.Thread(target=consume, args=(3_000,)),
    ]
    for worker in workers:
        worker.start()
    run_now(frame, seen, tmp_path / "checkpoint")
    for worker in workers:
        worker.join()
    own_broker.kill()
    restart = threading.Timer(0.5, own_broker.start)
    restart.start()
    run_now(frame, seen, tmp_path / "checkpoint")
    restart.join()
    assert sorted(seen.all) == [(1, number + 1) for number in range(pushed)]


def test_a_directory_that_is_not_the_brokers_is_named(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.push("named", 1, [b"x"] * 3)
    elsewhere = load(spark, broker, subscribe="named/1", journalDir=str(tmp_path / "nowhere"))
    assert elsewhere.count() == 3, "another machine: over the network"
    text = said(load(spark, broker, subscribe="named/1", journalDir=str(tmp_path)).collect)
    assert "journalDir is the data directory of the broker" in text
