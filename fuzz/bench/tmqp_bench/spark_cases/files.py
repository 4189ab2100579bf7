"""The measurements of files: archives by their two engines, a cold archive, small files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from tmqp_bench.spark_cases.aims import Record, ratios
from tmqp_bench.spark_cases.stage import Stage, write_nowhere
from tmqp_spark.errors import SparkError
from tmqp_spark.options import SourceOptions, read_options
from tmqp_spark.pipelines.archive import archive_with_arrow
from tmqp_spark.pipelines.parquet import archive_columns
from tmqp_spark.pipelines.reporting import Reporter
from tmqp_spark.pipelines.stopping import Stop
from tmqp_spark.schema import to_ddl

__all__ = ["archives", "cold_archive", "corpus"]

_COMPRESSION: Final = "zstd"
_SMALL_FILES: Final = 20_000
_FILES_A_FOLDER: Final = 1_000
_PATIENCE_S: Final = 600


def archives(stage: Stage, record: Record) -> None:
    """Processor time of an archive by the engine arrow, beside Spark's own writer of Parquet."""
    for payload, bound in ((100, 3), (1_024, 2)):
        queue, count = stage.queue(payload)
        frame = stage.read(queue, to_ddl(archive_columns(False)))
        target = stage.folder / f"archived-{payload}"

        def by_arrow(queue: str = queue, target: Path = target) -> None:
            options = {"subscribe": queue, "startingOffsets": "earliest"}
            quiet = Reporter(quiet=True)
            archive_with_arrow(
                stage.spark,
                stage.connection,
                read_options(SourceOptions, options),
                target,
                stop=Stop(quiet),
                reporter=quiet,
                compression=_COMPRESSION,
            )

        def by_spark(target: Path = target, frame: object = frame) -> None:
            frame.write.parquet(str(target), compression=_COMPRESSION)  # type: ignore[attr-defined]

        spent = stage.contest(
            record,
            {f"arrow, {payload} bytes": by_arrow, f"Spark, {payload} bytes": by_spark},
            warm_up=2,
            after=_remover(target),
        )
        for name, each in spent.items():
            record.figure(name, count, count * payload, each)
        record.at_least(
            f"processor time of Spark's Parquet writer by the engine arrow's, {payload} bytes",
            bound,
            ratios(spent[f"Spark, {payload} bytes"], spent[f"arrow, {payload} bytes"], "spark_s"),
        )


def cold_archive(stage: Stage, record: Record) -> None:
    """The command, from its start to its end: Java, Spark, reading and writing."""
    queue, count = stage.queue(100)
    target = stage.folder / "cold"
    command = [sys.executable, "-m", "tmqp_spark.cli", "archive", queue, "--to", str(target)]
    command += ["--address", stage.broker.url, "--quiet"]
    places = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": places}

    def run() -> None:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            env=environment,
        )
        if done.returncode:
            raise SparkError(f"the archive ended with status {done.returncode}: {done.stderr}")
        archived = json.loads(done.stdout)["messages"]
        if archived != count:
            raise SparkError(f"the archive has {archived} messages of {count}")

    spent = stage.contest(record, {"archive": run}, warm_up=1, after=_remover(target))
    record.figure("archive", count, count * 100, spent["archive"])
    record.at_most(
        f"tmqp-spark archive of {count:,} messages of 100 bytes, from a cold start",
        8,
        [each.wall_s for each in spent["archive"]],
        "s",
    )


def corpus(stage: Stage, record: Record) -> None:
    """Small files, parsed by our source, beside Spark's own binaryFile, which parses nothing."""
    count = min(_SMALL_FILES, stage.plan.messages)
    folder = stage.folder / "corpus"
    _write_corpus(folder, count)
    ours = stage.spark.read.format("tmqp_capture").option("layout", "corpus").load(str(folder))
    theirs = (
        stage.spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .load(str(folder))
        .select("path", "content")
    )
    spent = stage.contest(
        record,
        {"tmqp_capture": lambda: write_nowhere(ours), "binaryFile": lambda: write_nowhere(theirs)},
        warm_up=1,
    )
    for name, each in spent.items():
        record.figure(name, count, 0, each)
    record.at_least(
        "small files/s, by binaryFile", 10, ratios(spent["binaryFile"], spent["tmqp_capture"])
    )


def _write_corpus(folder: Path, count: int) -> None:
    """Files of 8 to 400 bytes, as a fuzzer leaves them."""
    random = Random(count)
    for number in range(count):
        place = folder / f"{number // _FILES_A_FOLDER:04d}"
        if number % _FILES_A_FOLDER == 0:
            place.mkdir(parents=True)
        (place / f"{number:06d}").write_bytes(random.randbytes(random.randint(8, 400)))


def _remover(folder: Path) -> Callable[[], None]:
    return lambda: shutil.rmtree(folder, ignore_errors=True)
