"""The archive with a real Spark and a real broker: what was read is in the files once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.tmqp_spark.commands import run
from tests.tmqp_spark.conftest import spark_environment
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


@pytest.mark.long
def test_what_is_kept_is_archived_once_and_then_only_what_is_new(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.push("arc", 7, [b"%06d" % number for number in range(3_000)])
    folder = tmp_path / "archive"
    command = ["archive", "arc/7", "--to", str(folder), "-a", broker.url]
    summary = run(*command, "-o", "maxRecordsPerPartition=1000")
    assert summary["messages"] == 3_000
    assert summary["files"] >= 3  # a part ends where a block does
    assert summary["end"] == {"arc/7": 3_001}
    assert archived(folder) == expected("arc", 7, 3_000)
    assert run(*command)["batches"] == 0
    broker.push("arc", 7, [b"%06d" % number for number in range(3_000, 3_500)])
    assert run(*command)["messages"] == 500
    assert archived(folder) == expected("arc", 7, 3_500)
    assert spark.read.parquet(str(folder)).count() == 3_500


@pytest.mark.long
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


def command_line(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """The command in a process of its own, as people start it."""
    spark_environment()
    return subprocess.Popen(
        [sys.executable, "-m", "tmqp_spark.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """What it tells, as it comes."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("{"):
            yield json.loads(line)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_killed_archive_goes_on_and_one_that_is_asked_to_end_ends_well(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    count = 6_000
    broker.push("kill", 7, [b"%06d" % number for number in range(count)])
    folder = tmp_path / "archive"
    command = ["archive", "kill/7", "--to", str(folder), "-a", broker.url, "--json-logs"]
    command += ["--batch-bytes", "40k", "--conf", "spark.ui.enabled=false", "--master", "local[1]"]
    killed = command_line(*command)
    told = events(killed)
    while next(told)["batch"] < 2:
        pass
    killed.kill()
    killed.communicate()
    assert len(archived(folder)) < count
    # The batches that counted are not read again; SIGTERM lets the one in hand be finished.
    asked = command_line(*command)
    told = events(asked)
    assert next(told)["batch"] > 2
    asked.terminate()
    out, _ = asked.communicate(timeout=60)
    assert asked.returncode == 0
    assert json.loads(out)["stopped"]
    assert len(archived(folder)) < count
    last = run("archive", "kill/7", "--to", str(folder), "-a", broker.url)
    assert last["end"] == {"kill/7": count + 1}
    assert archived(folder) == expected("kill", 7, count)
