"""The archive that Spark itself writes: a streaming query from queues to Parquet.

It works with every file system of Spark.  Spark guarantees that each message is in the archive
once: the checkpoint has what was read, and ``_spark_metadata`` has the valid files.  Spark reads
only those; other programs may see the files of a batch that is being written, or that was not
finished.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tmqp_spark.errors import SparkError
from tmqp_spark.pipelines.archive import ArchiveSummary
from tmqp_spark.pipelines.parquet import archive_columns
from tmqp_spark.pipelines.reporting import Reporter, plain_number
from tmqp_spark.pipelines.stopping import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["archive_with_spark"]

_LOOK_S: Final = 0.25
#: The checkpoint, in a folder of the archive that readers skip.
_CHECKPOINT: Final = "_tmqp/checkpoint"
#: The type of times in files: Spark's old one has no statistics, and few programs read it.
_TIMES: Final = ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


def archive_with_spark(
    spark: SparkSession,
    options: Mapping[str, str],
    folder: str,
    *,
    stop: Stop,
    reporter: Reporter,
    headers: bool = True,
    follow: bool = False,
    every_s: float = 10.0,
    compression: str = "zstd",
) -> ArchiveSummary:
    """Archive as :func:`tmqp_spark.pipelines.archive.archive_with_arrow` does, by Spark's writer.

    :param options: the options of the source, including ``url`` and the queues.
    :param folder: a URL of Spark, such as ``s3a://bucket/orders``.
    :raises SparkError: if the folder has an archive of the other engine.
    """
    began = time.monotonic()
    _check_engine(spark, folder)
    rows = (
        spark.readStream.format("tmqp")
        .options(**{**options, "includeHeaders": str(headers).lower()})
        .schema(_schema(headers))
        .load()
        .selectExpr(
            "date_format(timestamp, 'yyyy-MM-dd') as day", "channel", "queue", *_names(headers)
        )
    )
    writer = (
        rows.writeStream.format("parquet")
        .option("path", folder)
        .option("checkpointLocation", f"{folder}/{_CHECKPOINT}")
        .option("compression", "uncompressed" if compression == "none" else compression)
        .partitionBy("day", "channel", "queue")
    )
    if follow:
        writer = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
    else:
        writer = writer.trigger(availableNow=True)
    summary = ArchiveSummary(engine="spark", folder=folder)
    before = spark.conf.get(_TIMES[0])
    spark.conf.set(*_TIMES)
    try:
        query = writer.start()  # with the settings of this moment
    finally:
        spark.conf.set(_TIMES[0], before or "INT96")
    try:
        _watch(query, stop, reporter, summary)
    finally:
        query.stop()
        summary.seconds = round(time.monotonic() - began, 3)
        summary.stopped = stop.wanted
    return summary


def _names(headers: bool) -> list[str]:
    return [name for name, _, _ in archive_columns(headers)]


def _schema(headers: bool) -> str:
    columns = [("channel", "string", False), ("queue", "int", False), *archive_columns(headers)]
    return ", ".join(
        f"{name} {kind}{'' if nullable else ' not null'}" for name, kind, nullable in columns
    )


def _check_engine(spark: SparkSession, folder: str) -> None:
    """Refuse an archive of the engine arrow, whose files are not in Spark's log."""
    java: Any = spark.sparkContext._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    path = java.org.apache.hadoop.fs.Path(f"{folder}/_tmqp/archive.json")
    if path.getFileSystem(configuration).exists(path):
        raise SparkError(
            f"{folder}: this archive is written by the engine arrow, and stays with it: --engine"
            " arrow, or another folder"
        )


def _watch(query: StreamingQuery, stop: Stop, reporter: Reporter, summary: ArchiveSummary) -> None:
    """Report progress until the query ends, or a stop is requested and no batch is in progress."""
    told = -1
    while True:
        ended = query.awaitTermination(_LOOK_S)  # type: ignore[arg-type]  # fractions will do
        last = query.lastProgress
        if last is not None and last["batchId"] > told:
            for progress in query.recentProgress:
                if progress["batchId"] > told:
                    told = progress["batchId"]
                    _tell(progress, reporter, summary)
        if ended:
            return
        if stop.wanted and not query.status["isTriggerActive"]:
            return


def _tell(progress: Any, reporter: Reporter, summary: ArchiveSummary) -> None:
    rows = progress["numInputRows"]
    source = progress["sources"][0]
    end = _places(source["endOffset"])
    summary.end = {key: place["s"] for key, place in end.items()}
    if not rows:
        return
    summary.batches += 1
    summary.messages += rows
    behind = (_plain(source["latestOffset"]).get("behind") or {}).get("messages", 0)
    reporter.say(
        "batch",
        f"batch {progress['batchId']}: {plain_number(rows)} messages; {plain_number(behind)}"
        " behind",
        batch=progress["batchId"],
        messages=rows,
        behind=behind,
    )


def _plain(offset: Any) -> dict[str, Any]:
    """Read an offset from Spark's report: JSON, or the text ``null`` if there is none."""
    found = json.loads(offset) if isinstance(offset, str) else offset
    return found if isinstance(found, dict) else {}


def _places(offset: Any) -> dict[str, Any]:
    found: dict[str, Any] = _plain(offset).get("q", {})
    return found
