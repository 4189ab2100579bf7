"""The sinks with a real Spark and a real broker: rows become messages, once or at least once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tmqp_client import sync
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _kept(broker: Broker, channel: str, queue: int = 1) -> list[Any]:
    """What is kept of a queue, in order."""
    found: list[Any] = []
    last = 0
    with sync.connect(broker.url, name="test") as client:
        while more := client.read_range(channel, queue, last + 1):
            found += more
            last = more[-1].sequence
    return found


def _numbers(broker: Broker, channel: str, queue: int = 1) -> list[int]:
    return sorted(int(message.payload) for message in _kept(broker, channel, queue))


def _write(frame: DataFrame, broker: Broker, channel: str, **options: Any) -> None:
    writer = frame.write.format("tmqp").mode("append").option("url", broker.url)
    given = {"channel": channel, "queue": 1, **options}
    for name, value in given.items():
        if value is not None:
            writer = writer.option(name, value)
    writer.save()


def _range(spark: SparkSession, count: int, parts: int = 2) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr("cast(id as string) as value")


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_every_row_is_written_once_when_nothing_fails(
    spark: SparkSession, broker: Broker, guarantee: str
) -> None:
    channel = f"s-{guarantee}"
    broker.create(channel, 1)
    _write(_range(spark, 25_000), broker, channel, guarantee=guarantee)
    assert _numbers(broker, channel) == list(range(25_000))
