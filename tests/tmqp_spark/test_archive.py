"""The archive with a real Spark and a real broker: what was read is in the files once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from tests.tmqp_spark.commands import run
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def archived(folder: Path) -> list[tuple[str, int, bytes]]:
    """Path of its partition, sequence and value of every message in an archive."""
    found = []
    for file in sorted(folder.rglob("day=*/**/*.parquet")):
        table = pq.ParquetFile(file).read(["seq", "value"])
        place = str(file.parent.relative_to(folder)).partition("/")[2]
        found += [
            (place, seq, value)
            for seq, value in zip(table["seq"].to_pylist(), table["value"].to_pylist(), strict=True)
        ]
    return sorted(found)


def expected(channel: str, queue: int, count: int) -> list[tuple[str, int, bytes]]:
    return [
        (f"channel={channel}/queue={queue}", number + 1, b"%06d" % number)
        for number in range(count)
    ]


def test_what_is_kept_is_archived_once_and_then_only_what_is_new(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.push("arc", 7, [b"%06d" % number for number in range(3_000)])
    folder = tmp_path / "archive"
    command = ["archive", "arc/7", "--to", str(folder), "-a", broker.url]
    summary = run(*command, "-o", "maxRecordsPerPartition=1000")
    assert summary["messages"] == 3_000
    assert summary["files"] == 3
    assert summary["end"] == {"arc/7": 3_001}
    assert archived(folder) == expected("arc", 7, 3_000)
    assert run(*command)["batches"] == 0
    broker.push("arc", 7, [b"%06d" % number for number in range(3_000, 3_500)])
    assert run(*command)["messages"] == 500
    assert archived(folder) == expected("arc", 7, 3_500)
    assert spark.read.parquet(str(folder)).count() == 3_500


def test_spark_itself_archives_the_same(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    for queue in (1, 2):
        broker.push("arcs", queue, [b"%06d" % number for number in range(1_200)])
    folder = tmp_path / "archive"
    command = ["archive", "arcs", "--to", str(folder), "-a", broker.url, "--engine", "spark"]
    summary = run(*command)
    assert summary["messages"] == 2_400
    assert summary["end"] == {"arcs/1": 1_201, "arcs/2": 1_201}
    assert archived(folder) == expected("arcs", 1, 1_200) + expected("arcs", 2, 1_200)
    broker.push("arcs", 2, [b"%06d" % number for number in range(1_200, 1_300)])
    assert run(*command)["messages"] == 100
    assert archived(folder) == expected("arcs", 1, 1_200) + expected("arcs", 2, 1_300)
