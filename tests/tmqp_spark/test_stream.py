"""Streaming queries of a real Spark against a real broker."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tmqp_client import sync
from tmqp_spark.testing import Broker

GOLDEN: Final = Path(__file__).parent / "golden_checkpoint"
PATIENCE_S: Final = 60


def follow(spark: SparkSession, broker: Broker, **options: Any) -> DataFrame:
    reader = spark.readStream.format("tmqp").option("url", broker.url)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.schema("queue int, seq long, value string").load()


class Seen:
    """What the batches of queries brought, in the driver's memory."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[int, int]]] = []

    def __call__(self, frame: DataFrame, _batch: int) -> None:
        self.batches.append(sorted((row["queue"], row["seq"]) for row in frame.collect()))

    @property
    def all(self) -> list[tuple[int, int]]:
        return [each for batch in self.batches for each in batch]


def run_now(frame: DataFrame, seen: Callable[..., None], checkpoint: Path) -> StreamingQuery:
    """Read what there is, as a job that is started from time to time."""
    query = (
        frame.writeStream.foreachBatch(seen)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE_S)
    return query


def until(condition: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.05)


def sequence_of(broker: Broker, channel: str, queue: int, group: str) -> int:
    with sync.connect(broker.url) as client:
        (found,) = [each for each in client.cursors(channel, queue) if each.name == group]
        return found.sequence


@pytest.mark.long
def test_a_job_that_is_started_from_time_to_time(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """AvailableNow: limited batches, a restart goes on, the last look commits everything."""
    broker.push("jobs", 1, [b"x"] * 25)
    frame = follow(
        spark,
        broker,
        subscribe="jobs",
        startingOffsets="earliest",
        group="job",
        maxOffsetsPerTrigger=10,
    )
    seen = Seen()
    query = run_now(frame, seen, tmp_path / "checkpoint")
    assert [len(batch) for batch in seen.batches] == [10, 10, 5]
    assert seen.all == [(1, number) for number in range(1, 26)]
    assert sequence_of(broker, "jobs", 1, "job") == 25
    told = [each["sources"][0] for each in query.recentProgress if each["numInputRows"]]
    assert json.loads(told[0]["endOffset"])["q"]["jobs/1"]["s"] == 11
    behind = [json.loads(each["latestOffset"])["behind"]["messages"] for each in told]
    assert behind == [15, 5, 0], "the batch itself is no lag"
    broker.push("jobs", 2, [b"new queue"] * 2)
    broker.push("jobs", 1, [b"x"] * 3)
    run_now(frame, seen, tmp_path / "checkpoint")
    assert seen.all[25:] == [(1, 26), (1, 27), (1, 28), (2, 1), (2, 2)]
    run_now(frame, seen, tmp_path / "checkpoint")
    assert len(seen.all) == 30, "nothing new: no batch"


def test_a_query_that_stays_sees_what_comes_and_survives_the_broker(
    spark: SparkSession, own_broker: Broker, tmp_path: Path
) -> None:
    own_broker.push("stays", 1, [b"old"] * 3)
    seen = Seen()
    query = (
        follow(
            spark, own_broker, subscribe="stays/1", startingOffsets="latest", group="g", retries=50
        )
        .writeStream.foreachBatch(seen)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        until(lambda: query.lastProgress is not None, query)
        own_broker.push("stays", 1, [b"x"] * 2)
        until(lambda: len(seen.all) == 2, query)
        own_broker.kill()
        own_broker.start()
        own_broker.push("stays", 1, [b"x"] * 2)
        until(lambda: len(seen.all) == 4, query)
        until(lambda: sequence_of(own_broker, "stays", 1, "g") == 7, query)
        time.sleep(1)
        batches = len(seen.batches)
        time.sleep(1)
        assert len(seen.batches) == batches, "an idle query has no batches"
    finally:
        query.stop()
    assert seen.all == [(1, 4), (1, 5), (1, 6), (1, 7)]


@pytest.mark.long
def test_a_query_can_be_stopped_during_an_outage(
    spark: SparkSession, own_broker: Broker, tmp_path: Path
) -> None:
    """It waits ten minutes for the broker, but not when it is stopped."""
    own_broker.push("outage", 1, [b"x"])
    query = (
        follow(spark, own_broker, subscribe="outage/1", startingOffsets="earliest")
        .writeStream.foreachBatch(Seen())
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        until(lambda: query.lastProgress is not None, query)
        own_broker.kill()
        time.sleep(2)
        assert query.isActive, query.exception()
        began = time.monotonic()
    finally:
        query.stop()
    assert time.monotonic() - began < 20


class Crash(Exception):  # noqa: N818 - an end, not an error
    """What the batch function ends with, as a driver that dies would."""


@pytest.mark.long
def test_a_batch_that_was_not_finished_comes_again_the_same(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.push("crash", 1, [b"x"] * 20)
    frame = follow(
        spark, broker, subscribe="crash/1", startingOffsets="earliest", maxOffsetsPerTrigger=8
    )
    seen = Seen()

    def failing(batch: DataFrame, number: int) -> None:
        seen(batch, number)
        if number == 1:
            raise Crash("in the middle")

    with pytest.raises(StreamingQueryException, match="in the middle"):
        run_now(frame, failing, tmp_path / "checkpoint")
    broker.push("crash", 1, [b"x"] * 5)
    run_now(frame, seen, tmp_path / "checkpoint")
    assert seen.batches[1] == seen.batches[2] == [(1, number) for number in range(9, 17)]
    assert [seq for _, seq in seen.all] == [*range(1, 17), *range(9, 26)]


@pytest.mark.long
def test_latest_stays_where_it_was_pinned(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A query that ended before its first batch was recorded has lost nothing."""
    broker.push("pin", 1, [b"old"] * 3)
    frame = follow(spark, broker, subscribe="pin/1", startingOffsets="latest", group="pin")
    seen = Seen()
    run_now(frame, seen, tmp_path / "checkpoint")
    assert seen.all == []
    shutil.rmtree(tmp_path / "checkpoint", ignore_errors=True)
    broker.push("pin", 1, [b"new"] * 2)
    run_now(frame, seen, tmp_path / "checkpoint")
    assert seen.all == [(1, 4), (1, 5)]


@pytest.mark.long
def test_data_loss_ends_the_query_with_what_to_do(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.push("loss", 1, [b"x"] * 4)
    options: dict[str, Any] = {"subscribe": "loss/1", "startingOffsets": "earliest"}
    seen = Seen()
    run_now(follow(spark, broker, **options), seen, tmp_path / "checkpoint")
    with sync.connect(broker.url) as client:
        client.remove_queue("loss", 1)
    broker.push("loss", 1, [b"y"] * 2)
    with pytest.raises(StreamingQueryException) as caught:
        run_now(follow(spark, broker, **options), seen, tmp_path / "checkpoint")
    text = str(caught.value)
    assert f"{broker.url} loss/1: the queue was removed and re-created" in text
    assert "failOnDataLoss=false" in text
    run_now(follow(spark, broker, failOnDataLoss="false", **options), seen, tmp_path / "checkpoint")
    assert seen.all == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 1), (1, 2)]


def test_a_mistake_is_said_when_the_query_starts(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    misspelt = follow(spark, broker, subscribe="a/1", maxOffsetPerTrigger=1)
    with pytest.raises(PySparkException, match="did you mean maxOffsetsPerTrigger"):
        run_now(misspelt, Seen(), tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="has no queue nowhere/1; create it"):
        run_now(follow(spark, broker, subscribe="nowhere/1"), Seen(), tmp_path / "checkpoint")


def test_a_checkpoint_of_the_first_version_is_read(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The directory was written by a query of the first version, which ended in its second batch;
    only the incarnation is ours."""
    broker.push("golden", 1, [b"x"] * 10)
    with sync.connect(broker.url) as client:
        (state,) = client.offsets("golden", 1)
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(GOLDEN, checkpoint)
    for offset in (checkpoint / "offsets").iterdir():
        text = offset.read_text(encoding="utf-8")
        assert "INCARNATION" in text
        offset.write_text(text.replace("INCARNATION", state.incarnation), encoding="utf-8")
    seen = Seen()
    frame = follow(spark, broker, subscribe="golden/1", startingOffsets="earliest")
    run_now(frame, seen, checkpoint)
    assert seen.batches == [[(1, 3), (1, 4)], [(1, number) for number in range(5, 11)]]
