"""Batch queries of a real Spark against a real broker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit, to_timestamp

from tests.tmqp_spark.reading import LinkTo, look
from tmqp_client import sync
from tmqp_spark.testing import Broker


def load(
    spark: SparkSession, broker: Broker, schema: str | None = None, **options: Any
) -> DataFrame:
    reader = spark.read.format("tmqp").option("url", broker.url)
    for name, value in options.items():
        reader = reader.option(name, value)
    return (reader if schema is None else reader.schema(schema)).load()


def numbered(frame: DataFrame) -> list[int]:
    return sorted(row["seq"] for row in frame.select("seq").collect())


def said(frame_or_call: Any) -> str:
    """The text of the error that a query ends with."""
    with pytest.raises(PySparkException) as caught:
        frame_or_call()
    return str(caught.value)


def test_every_column_of_every_message(spark: SparkSession, broker: Broker) -> None:
    broker.push("columns", 7, [b"%05d" % number for number in range(3_000)])
    broker.push("columns", 7, ["grün"], headers={"Kind": "a", "More": "b"}, high_priority=True)
    frame = load(spark, broker, subscribe="columns/7", includeHeaders="true", includeFrame="true")
    assert frame.count() == 3_001
    assert frame.select("channel", "queue").distinct().collect() == [("columns", 7)]
    found = frame.orderBy("seq").collect()
    assert [row["seq"] for row in found] == list(range(1, 3_002))
    assert [bytes(row["value"]) for row in found[:-1]] == [b"%05d" % n for n in range(3_000)]
    last = found[-1]
    assert last["high_priority"] is True
    assert found[0]["high_priority"] is False
    assert [(pair["key"], pair["value"]) for pair in last["headers"]] == [
        ("Kind", "a"),
        ("More", "b"),
    ]
    assert last["message_id"]
    assert last["source"]
    assert last["pending_ack"] is True
    assert bytes(last["frame"]).endswith("grün".encode())
    assert abs(last["timestamp"].timestamp() - time.time()) < 300


def test_the_schema_chooses_columns_and_their_order(spark: SparkSession, broker: Broker) -> None:
    broker.push("schema", 1, ["one", "two"])
    frame = load(
        spark, broker, "value string NOT NULL, incarnation string, seq long", subscribe="schema/1"
    )
    found = frame.orderBy("seq").collect()
    assert [(row["value"], row["seq"]) for row in found] == [("one", 1), ("two", 2)]
    assert frame.columns == ["value", "incarnation", "seq"]
    broker.push("schema", 2, [b"\xff\xfe"])
    wrong = load(spark, broker, "value string", subscribe="schema/2")
    text = said(wrong.collect)
    assert "column value of 1 messages (1 to 1) is not UTF-8; read it as binary" in text
    assert f"{broker.url} schema/2" in text
    text = said(load(spark, broker, "valeu binary", subscribe="schema/1").collect)
    assert "no column 'valeu'; did you mean value?" in text
    assert "seq is bigint, not int" in said(
        load(spark, broker, "seq int", subscribe="schema/1").collect
    )


def test_queues_are_chosen_by_name_pattern_or_assignment(
    spark: SparkSession, broker: Broker
) -> None:
    for channel, queue in (("chosen", 1), ("chosen", 2), ("chosenmore", 1)):
        broker.push(channel, queue, [f"{channel}/{queue}"])

    def keys(**options: Any) -> list[str]:
        frame = load(spark, broker, "value string", **options)
        return sorted(row["value"] for row in frame.collect())

    assert keys(subscribe="chosen") == ["chosen/1", "chosen/2"]
    assert keys(subscribe="chosen/2, chosenmore") == ["chosen/2", "chosenmore/1"]
    assert keys(subscribePattern="chosen[a-z]*/1") == ["chosen/1", "chosenmore/1"]
    assert keys(assign='{"chosen":[2]}') == ["chosen/2"]
    assert "chosen/9; create it" in said(lambda: keys(subscribe="chosen/9"))
    assert keys(subscribePattern="nothing.*") == []


def test_a_range_by_offsets_and_by_time(
    spark: SparkSession, broker: Broker, link_to: LinkTo
) -> None:
    for queue in (1, 2):
        broker.push("range", queue, [b"x"] * 5)
    time.sleep(0.01)
    middle = int(time.time() * 1000)
    time.sleep(0.01)
    for queue in (1, 2):
        broker.push("range", queue, [b"y"] * 5)

    def by_queue(**options: Any) -> dict[int, list[int]]:
        frame = load(spark, broker, "queue int, seq long", subscribe="range", **options)
        found: dict[int, list[int]] = {}
        for row in sorted(frame.collect()):
            found.setdefault(row["queue"], []).append(row["seq"])
        return found

    start, end = json.dumps({"range/1": 3, "range/2": -2}), json.dumps({"range/1": 5, "range/2": 3})
    assert by_queue(startingOffsets=start, endingOffsets=end) == {1: [3, 4], 2: [1, 2]}
    assert by_queue(startingTimestamp=middle) == {1: [6, 7, 8, 9, 10], 2: [6, 7, 8, 9, 10]}
    assert by_queue(endingTimestamp=middle) == {1: [1, 2, 3, 4, 5], 2: [1, 2, 3, 4, 5]}
    assert by_queue(
        startingOffsetsByTimestamp=json.dumps({"range/2": middle}),
        endingOffsets=json.dumps({"range/1": 2}),
    ) == {1: [1], 2: [6, 7, 8, 9, 10]}
    with sync.connect(broker.url) as client:
        client.commit_cursor("range", 1, "job", 8)
    assert by_queue(startingOffsets="committed", group="job")[1] == [9, 10]
    assert by_queue(startingOffsets=json.dumps({"range/1": 11, "range/2": 11})) == {}, "empty"
    assert "reads nothing in a batch" in said(lambda: by_queue(startingOffsets="latest"))
    assert "needs the option group" in said(lambda: by_queue(startingOffsets="committed"))
    assert "does not read" in said(lambda: by_queue(startingOffsets='{"other/1":1}'))


def test_a_queue_is_divided_into_tasks(spark: SparkSession, broker: Broker) -> None:
    broker.push("parts", 1, [b"x" * 1_000] * 2_000)

    def parts(**options: Any) -> list[int]:
        frame = load(spark, broker, "seq long", subscribe="parts/1", **options)
        counts: list[int] = frame.rdd.mapPartitions(lambda rows: [len(list(rows))]).collect()
        assert sum(counts) == 2_000
        return counts

    assert len(parts()) == 1
    assert len(parts(minPartitions=3)) >= 3
    assert max(parts(maxRecordsPerPartition=600)) <= 600
    by_bytes = parts(targetPartitionBytes="500k")
    assert 4 <= len(by_bytes) <= 6


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    """Spark offers filters to sources in Python."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_filters_are_applied_by_the_source_and_exactly(
    spark: SparkSession, broker: Broker, pushdown: None
) -> None:
    for queue in (1, 2):
        broker.push("filtered", queue, [b"x"] * 20)

    def fresh() -> DataFrame:
        columns = "channel string, queue int, seq long, timestamp timestamp"
        return load(spark, broker, columns, subscribePattern="filter.*", filterPushdown="true")

    everything = fresh().collect()
    assert len(everything) == 40
    middle = sorted(row["timestamp"] for row in everything if row["queue"] == 1)[10]
    chosen = fresh().where((col("queue") == 1) & (col("seq") > 3) & (col("seq") <= 17))
    plan = chosen._jdf.queryExecution().executedPlan().toString()
    assert "Filter (" not in plan, plan
    assert numbered(chosen) == list(range(4, 18))
    assert fresh().where(col("channel").isin("filtered", "other")).count() == 40
    assert fresh().where(col("channel") == "other").count() == 0
    by_time = fresh().where((col("timestamp") >= lit(middle)) & (col("queue") == 1))
    since = [row["seq"] for row in everything if row["queue"] == 1 and row["timestamp"] >= middle]
    assert numbered(by_time) == sorted(since)
    odd = fresh().where((col("seq") % 2 == 1) & (col("queue") == 2))
    assert numbered(odd) == list(range(1, 21, 2)), "Spark applies what the source does not"


def test_one_frame_serves_queries_with_different_filters(
    spark: SparkSession, broker: Broker, pushdown: None
) -> None:
    """Spark mixes up the plans of a source that takes filters: ours does not unless asked to."""
    for queue in (1, 2):
        broker.push("mixed", queue, [b"x"] * (queue * 10))
    frame = load(spark, broker, "queue int, seq long", subscribe="mixed")
    one, two = frame.where("queue = 1"), frame.where("queue = 2")
    assert one.union(two).groupBy("queue").count().orderBy("queue").collect() == [(1, 10), (2, 20)]
    assert (two.count(), frame.count(), one.count()) == (20, 30, 10)
    forced = load(spark, broker, "seq long", subscribe="mixed", filterPushdown="true")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    assert "filterPushdown.enabled" in said(forced.collect), "Spark does not offer it"


def test_mistakes_are_said_before_anything_runs(spark: SparkSession, broker: Broker) -> None:
    text = said(lambda: load(spark, broker, subscribe="a/1", startOffsets="earliest"))
    assert "no option" in text
    assert "did you mean startingOffsets?" in text
    assert "url is missing" in said(lambda: spark.read.format("tmqp").load())
    assert "subscribe, subscribePattern and assign" in said(load(spark, broker).collect)
    text = said(lambda: load(spark, broker, subscribe="a/1", window="5"))
    assert "the tmqp source has no option" in text, "an option of the sink"
    away = spark.read.format("tmqp").option("url", "tmq://127.0.0.1:1").option("retries", 0)
    assert "cannot connect to tmq://127.0.0.1:1" in said(
        away.option("subscribe", "a/1").load().collect
    )


def test_it_is_found_by_sql(spark: SparkSession, broker: Broker) -> None:
    broker.push("sql", 1, [b"x"] * 4)
    spark.sql(
        f"CREATE TEMPORARY VIEW kept USING tmqp OPTIONS (url '{broker.url}', subscribe 'sql/1')"
    )
    assert spark.sql("SELECT max(seq) AS m FROM kept").collect()[0]["m"] == 4


def test_times_are_the_same_whatever_the_sessions_zone(spark: SparkSession, broker: Broker) -> None:
    broker.push("zone", 1, [b"x"])
    frame = load(spark, broker, "timestamp timestamp", subscribe="zone/1")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        assert frame.where(col("timestamp") > to_timestamp(lit("2020-01-01"))).count() == 1
        moment = frame.selectExpr("unix_micros(timestamp) AS m").collect()[0]["m"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert frame.selectExpr("unix_micros(timestamp) AS m").collect()[0]["m"] == moment
    assert abs(moment / 1e6 - time.time()) < 300


def test_what_was_planned_and_is_gone_is_said(
    spark: SparkSession, broker: Broker, link_to: LinkTo
) -> None:
    broker.push("gone", 1, [b"x"] * 10)
    incarnation = look(link_to(broker), subscribe="gone/1")["gone/1"].incarnation
    assert incarnation
    frame = load(spark, broker, "seq long", subscribe="gone/1")
    assert frame.count() == 10
    with sync.connect(broker.url) as client:
        client.remove_queue("gone", 1)
    assert "gone/1" in said(frame.collect)


def test_a_table_was_created_and_could_never_be_read(spark: SparkSession, broker: Broker) -> None:
    """Spark hands a Python format none of the options of a catalogue table."""
    broker.push("tables", 1, [b"one", b"two"])
    options = f"url='{broker.url}', subscribe='tables/1'"
    create = f"CREATE TABLE no_columns USING tmqp OPTIONS ({options})"
    assert "CREATE VIEW v AS SELECT" in said(lambda: spark.sql(create))
    spark.sql("CREATE TABLE orders_table (value BINARY, seq BIGINT) USING tmqp")
    spark.sql("CREATE TABLE out_table (value BINARY) USING tmqp")
    try:
        missing = said(lambda: spark.sql("SELECT * FROM orders_table").collect())
        assert "For a table in Spark's catalogue" in missing
        select = "SELECT * FROM orders_table"
        spark.sql(f"CREATE VIEW orders_view AS {select} WITH ({options})")
        to = f"url='{broker.url}', channel='tables', queue='1'"
        insert = "INSERT INTO out_table"
        spark.sql(f"{insert} WITH ({to}) VALUES (CAST('three' AS BINARY))")
        seen = (
            spark.newSession().sql("SELECT CAST(value AS STRING), seq FROM orders_view").collect()
        )
        assert sorted(map(tuple, seen)) == [("one", 1), ("three", 3), ("two", 2)]
    finally:
        spark.sql("DROP VIEW IF EXISTS orders_view")
        spark.sql("DROP TABLE orders_table")
        spark.sql("DROP TABLE out_table")
