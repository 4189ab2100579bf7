"""Batch queries of a real Spark against a real broker."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tmqp_spark.testing import Broker


def load(
    spark: SparkSession, broker: Broker, schema: str | None = None, **options: Any
) -> DataFrame:
    reader = spark.read.format("tmqp").option("url", broker.url)
    for name, value in options.items():
        reader = reader.option(name, value)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load()


def values(frame: DataFrame) -> list[bytes]:
    return [bytes(row["value"]) for row in frame.select("value").collect()]


def test_everything_that_is_kept_is_read(spark: SparkSession, broker: Broker) -> None:
    broker.push("all", 7, [b"%05d" % number for number in range(5_000)])
    frame = load(spark, broker, subscribe="all/7")
    found = frame.orderBy("seq").collect()
    assert [bytes(row["value"]) for row in found] == [b"%05d" % number for number in range(5_000)]
    assert {(row["channel"], row["queue"]) for row in found} == {("all", 7)}
    assert [row["seq"] for row in found] == list(range(1, 5_001))
    assert frame.count() == 5_000
