"""Captures and events as Spark reads them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from tests.project import ROOT
from tmqp_client import sync
from tmqp_spark.capture import CaptureOptions
from tmqp_spark.encoding import SINK_COLUMNS
from tmqp_spark.events import EventOptions
from tmqp_spark.feed import EVENTS, MISSED
from tmqp_spark.options import option_names
from tmqp_spark.recorded import CAPTURE
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A micro-batch takes a second, and ten times that where others keep the machine busy.
HEARD_S = 240
CAPTURES = ROOT / "tests" / "data" / "captures"


def _section(title: str) -> list[str]:
    """The first cells of a section's tables in the manual, and the second ones behind them."""
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    return [f"{name.strip().strip('`')} {more.strip()}" for name, more in rows]


def test_the_manual_has_each_column_and_option() -> None:
    captures = _section("Captures and corpora")
    assert captures[: len(CAPTURE.names)] == [f"{n} {t}" for n, t in CAPTURE.types.items()]
    told = [row.split()[0] for row in captures[len(CAPTURE.names) :]]
    assert told == option_names(CaptureOptions)
    events = _section("Events")
    assert events[: len(EVENTS.names)] == [f"{n} {t}" for n, t in EVENTS.types.items()]
    assert [row.split()[0] for row in events[len(EVENTS.names) :]] == option_names(EventOptions)
    writing = _section("Writing")[: len(SINK_COLUMNS)]
    assert writing == [f"{name} {types}" for name, types in SINK_COLUMNS.items()]


def test_captures_are_a_table(spark: SparkSession, tmp_path: Path) -> None:
    frames = spark.read.format("tmqp_capture").load(str(CAPTURES))
    types = {row["type"]: row["count"] for row in frames.groupBy("type").count().collect()}
    assert types["QUEUE_MESSAGE"] > 100
    corpus = spark.read.format("tmqp_capture").schema("error string, error_offset long")
    corpus = corpus.option("layout", "corpus").option("skipBytes", 1)
    assert (
        corpus.load(str(ROOT / "fuzz" / "corpus" / "decoder.txt"))
        .where("error is not null")
        .count()
        > 5
    )
    with pytest.raises(PySparkException, match="does not exist"):
        spark.read.format("tmqp_capture").load(str(tmp_path / "none")).collect()


@pytest.mark.long
@pytest.mark.timeout(3 * HEARD_S)
def test_events_are_a_stream_and_gaps_are_rows(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A query that is started again cannot know what happened meanwhile, and says so."""
    out = str(tmp_path / "out")
    heard: list[tuple[str, str | None]] = []
    for run in range(2):
        query = (
            spark.readStream.format("tmqp_events")
            .schema("event string, channel string, ts timestamp")
            .options(url=broker.url, events="ChannelCreated")
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start(out)
        )
        deadline = time.monotonic() + HEARD_S
        number = 0
        with sync.connect(broker.url, name="test") as client:
            # It begins to listen at some moment: until then nobody hears.
            while not _of_run(heard, run):
                assert time.monotonic() < deadline, heard
                client.create_channel(f"e-{run}-{number}")
                number += 1
                time.sleep(0.5)
                files = spark.read.schema("event string, channel string, ts timestamp")
                rows = files.parquet(out).collect()
                heard = [(row["event"], row["channel"]) for row in sorted(rows, key=_by_time)]
        query.stop()
    channels = _of_run(heard, 0) + _of_run(heard, 1)
    assert len(channels) == len(set(channels)), "none twice"
    assert {event for event, channel in heard if channel not in channels} == {MISSED}


def _of_run(heard: list[tuple[str, str | None]], run: int) -> list[str]:
    return [channel for _, channel in heard if channel and channel.startswith(f"e-{run}-")]


def _by_time(row: Any) -> Any:
    return row["ts"]


def test_events_cannot_be_read_in_a_batch(spark: SparkSession, broker: Broker) -> None:
    with pytest.raises(PySparkException, match="broker keeps no events"):
        spark.read.format("tmqp_events").option("url", broker.url).load().collect()
