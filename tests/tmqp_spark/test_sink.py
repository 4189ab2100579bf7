"""The sinks with a real Spark and a real broker: rows become messages, once whatever happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tests.tmqp_spark import killing
from tmqp_client import sync
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Each point is struck so often; ``make soak`` does more.
#: The second shows that the first left nothing behind; `make soak` does fifty.
ROUNDS = {"itself": 2, "broker": 2}
#: A micro-batch is begun four times in each round, with new processes each time.
KILLED_S = 600


def _kept(broker: Broker, channel: str, queue: int = 1) -> list[Any]:
    """What is kept of a queue, in order."""
    found: list[Any] = []
    last = 0
    with sync.connect(broker.url, name="test") as client:
        while more := client.read_range(channel, queue, last + 1):
            found += more
            last = more[-1].sequence
    return found


def _numbers(broker: Broker, channel: str) -> list[int]:
    return sorted(int(message.payload) for message in _kept(broker, channel))


def _write(frame: DataFrame, broker: Broker, channel: str | None, **options: Any) -> None:
    writer = frame.write.format("tmqp").mode("append").option("url", broker.url)
    given = {"channel": channel, "queue": 1, "createQueue": True, **options}
    for name, value in given.items():
        if value is not None:
            writer = writer.option(name, value)
    writer.save()


def _range(spark: SparkSession, count: int, parts: int = 2) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr("cast(id as string) as value")


# --- Batch ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_every_row_is_written_once_when_nothing_fails(
    spark: SparkSession, broker: Broker, guarantee: str
) -> None:
    channel = f"s-{guarantee}"
    broker.create(channel, 1)
    _write(_range(spark, 25_000), broker, channel, guarantee=guarantee)
    assert _numbers(broker, channel) == list(range(25_000))


def test_columns_say_where_a_row_goes_and_what_the_message_is(
    spark: SparkSession, broker: Broker
) -> None:
    broker.create("s-columns", 3)
    frame = spark.sql(
        "select 's-columns' channel, 3 queue, 'text' value, 'id-1' message_id,"
        " map('Kind', 'a b') headers, true high_priority, 7 ttl"
    )
    _write(frame, broker, None, queue=None)
    (message,) = _kept(broker, "s-columns", 3)
    assert (message.payload, message.message_id, message.headers, message.high_priority) == (
        b"text",
        "id-1",
        [("Kind", "a b")],
        True,
    )
    assert message.source  # the broker's own word


def test_a_batch_with_a_name_and_number_counts_once(spark: SparkSession, broker: Broker) -> None:
    broker.create("s-named", 1)
    for count, version in [(10, 1), (10, 1), (20, 2), (5, 1)]:
        _write(_range(spark, count), broker, "s-named", txnAppId="nightly", txnVersion=version)
    assert _numbers(broker, "s-named") == sorted([*range(10), *range(20)])


@pytest.mark.long
@pytest.mark.parametrize("point", ["rows", "staged"])
def test_an_attempt_that_died_is_not_seen(
    spark: SparkSession, broker: Broker, tmp_path: Path, point: str
) -> None:
    """A task's process is killed and the task tried again; what it staged is never committed."""
    channel = f"s-died-{point}"
    broker.create(channel, 1)
    killing.register(spark)
    killing.arm(tmp_path, "itself", point)
    writer = _range(spark, 1_000).write.format("tmqp_killing").mode("append")
    writer = writer.option("url", broker.url).option("channel", channel).option("queue", 1)
    writer.option("kills", str(tmp_path)).save()
    assert killing.armed(tmp_path) == []
    assert _numbers(broker, channel) == list(range(1_000))


def _open_transactions(broker: Broker) -> set[int]:
    """The ids of the open ones; tests that share the broker may leave some."""
    with sync.connect(broker.url, name="test") as client:
        return {each.id for each in client.list_transactions() if each.state == "open"}


def test_a_write_that_fails_for_good_leaves_nothing(spark: SparkSession, broker: Broker) -> None:
    broker.create("s-nothing", 1)
    before = _open_transactions(broker)
    frame = _range(spark, 1_000).selectExpr("if(value = '999', null, value) as value")
    with pytest.raises(PySparkException, match="column value is null"):
        _write(frame, broker, "s-nothing")
    assert _kept(broker, "s-nothing") == []
    assert _open_transactions(broker) <= before


def _save(frame: DataFrame, broker: Broker, mode: str | None, **options: Any) -> None:
    writer = frame.write.format("tmqp").option("url", broker.url)
    for name, value in {"channel": "s-errors", "queue": 1, **options}.items():
        writer = writer.option(name, value)
    (writer if mode is None else writer.mode(mode)).save()


@pytest.mark.parametrize(
    ("mode", "options", "says"),
    [
        ("overwrite", {}, r"appended to, not overwritten: use .mode\(\"append\"\)"),
        (None, {}, "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        ("append", {"chanel": "x"}, r"no option 'chanel'; did you mean channel\?"),
        ("append", {"startingOffsets": "latest"}, "sink has no option 'startingoffsets'"),
        ("append", {"txnAppId": "x"}, "txnAppId and txnVersion belong together"),
        ("append", {"queue": "70000"}, "queue id, 0 to 65535"),
        ("append", {"guarantee": "once"}, "guarantee must be exactly_once or at_least_once"),
    ],
)
def test_a_mistake_is_named_before_anything_is_written(
    spark: SparkSession, broker: Broker, mode: str | None, options: dict[str, str], says: str
) -> None:
    with pytest.raises(AnalysisException, match=says):
        _save(_range(spark, 1), broker, mode, **options)


def test_an_unknown_column_is_an_error_or_passed_over(spark: SparkSession, broker: Broker) -> None:
    broker.create("s-unknown", 1)
    frame = _range(spark, 3).selectExpr("value", "'2026' as day")
    with pytest.raises(AnalysisException, match=r"no column 'day'.*ignoreUnknownColumns=true"):
        _write(frame, broker, "s-unknown")
    _write(frame, broker, "s-unknown", ignoreUnknownColumns=True)
    assert _numbers(broker, "s-unknown") == [0, 1, 2]


# --- Streams --------------------------------------------------------------------------------------


def test_an_aggregation_that_rewrites_its_result_is_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    counts = spark.readStream.format("rate").load().groupBy("value").count()
    query = (
        counts.selectExpr("cast(count as string) as value")
        .writeStream.format("tmqp")
        .outputMode("complete")
        .option("url", broker.url)
        .option("channel", "s-complete")
        .option("queue", 1)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    with pytest.raises(PySparkException, match="appended to, not overwritten"):
        query.awaitTermination(60)


def _run(spark: SparkSession, folder: Path, broker: Broker, channel: str) -> int:
    """Run the query until it has written everything; how often it ended before."""
    why = ""
    for failures in range(6):
        if not broker.running:
            broker.kill()
            broker.start()
        (folder / "broker").write_text(str(broker.pid))
        query = killing.start_query(spark, folder, broker.url, channel)
        try:
            query.awaitTermination()
        except PySparkException as error:
            why = str(error)
        else:
            return failures
    raise AssertionError(f"the query fails again and again: {why}")


@pytest.mark.long
@pytest.mark.timeout(KILLED_S)
@pytest.mark.parametrize("victim", ["itself", "broker"])
def test_whatever_is_killed_every_row_is_there_once(
    spark: SparkSession, own_broker: Broker, tmp_path: Path, victim: str
) -> None:
    """At each point of a micro-batch: the process that is there, or the broker.

    A process where a write is planned or committed takes the query with it; one of a task is only
    tried again.
    """
    channel = f"s-killed-{victim}"
    own_broker.create(channel, 1)
    killing.register(spark)
    folder = tmp_path / "query"
    folder.mkdir()
    for number in range(ROUNDS[victim]):
        killing.add_rows(folder, number)
        points = killing.POINTS if victim == "itself" else killing.POINTS[1:]
        killing.arm(folder, victim, *points)
        # Two tasks may kill the broker at once, each at its point.
        assert _run(spark, folder, own_broker, channel) in ({3} if victim == "itself" else {2, 3})
        assert killing.armed(folder) == []
        if not own_broker.running:
            own_broker.kill()
            own_broker.start()
        rows = (number + 1) * killing.ROWS
        assert killing.books(own_broker.url, channel) == (rows, 0, rows - 1)
