"""The replay with a real Spark and a real broker: rows are pushed once, in order, whatever ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tmqp_spark.commands import kept, run
from tmqp_spark.pipelines.recordings import find_files, inspect_file, read_span
from tmqp_spark.pipelines.replay import ReplayPlan
from tmqp_spark.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_of(chunks: list[list[Any]]) -> list[list[int]]:
    return [
        [
            row
            for span in chunk
            for batch in read_span(span, ["value"], None)
            for row in map(int, batch.column("value").to_pylist())
        ]
        for chunk in chunks
    ]


def write(folder: Path, name: str, numbers: range, row_group: int = 7) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"value": [b"%d" % number for number in numbers]})
    pq.write_table(table, folder / name, row_group_size=row_group)


def test_chunks_are_the_same_rows_for_ever(tmp_path: Path) -> None:
    place = tmp_path / "rows"
    write(place, "a.parquet", range(25))
    write(place, "b.parquet", range(25, 40))
    write(place / "_tmqp", "staged.parquet", range(1_000))
    files = [inspect_file(file, place) for file in find_files(place)]
    plan = ReplayPlan(tmp_path / "plan.json")
    plan.extend(files, 10)
    first = rows_of(plan.chunks())
    assert first == [list(range(start, start + 10)) for start in range(0, 40, 10)]
    # A file that sorts before the others comes after them, and begins a chunk of its own.
    write(place, "0.parquet", range(40, 45))
    again = ReplayPlan(tmp_path / "plan.json")
    again.extend([inspect_file(file, place) for file in find_files(place)], 3)
    assert rows_of(again.chunks()) == [*first, [40, 41, 42], [43, 44]]


def test_an_archive_is_replayed_once_in_order(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.push("rep", 7, [b"%06d" % number for number in range(5_000)], headers={"kind": "a"})
    folder = tmp_path / "archive"
    run(
        "archive",
        "rep/7",
        "--to",
        str(folder),
        "-a",
        broker.url,
        "-o",
        "maxRecordsPerPartition=900",
    )
    command = ["replay", str(folder), "--to", "rep-copy/3", "--create-queue", "-a", broker.url]
    summary = run(*command, "--preserve-ids")
    assert (summary["messages"], summary["skipped"]) == (5_000, 0)
    before, after = kept(broker, "rep", 7), kept(broker, "rep-copy", 3)
    assert [message.payload for message in after] == [message.payload for message in before]
    assert [message.message_id for message in after] == [m.message_id for m in before]
    assert all(message.headers == after[0].headers for message in after)
    assert after[0].headers == before[0].headers
    # The same again is nothing; what the archive has since is replayed alone.
    summary = run(*command, "--preserve-ids")
    assert (summary["messages"], summary["skipped"]) == (0, 5_000)
    broker.push("rep", 7, [b"more"])
    run("archive", "rep/7", "--to", str(folder), "-a", broker.url)
    assert run(*command, "--preserve-ids")["messages"] == 1
    assert [message.payload for message in kept(broker, "rep-copy", 3)][4_999:] == [
        b"004999",
        b"more",
    ]
