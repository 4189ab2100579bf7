"""The benchmark: which cases there are, and the run through them.

Every case compares things that do the same work, in turn, on one machine, in one run, and comes to
ratios; see :mod:`tmqp_bench.spark_cases.aims`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from tmqp_bench.spark_cases.aims import Aim, Figure, Record
from tmqp_bench.spark_cases.files import archives, cold_archive, corpus
from tmqp_bench.spark_cases.nearer import local_reads, pruned_reads
from tmqp_bench.spark_cases.reads import counting, decoding, large_reads, parquet, rows, tasks
from tmqp_bench.spark_cases.stage import Plan, Stage
from tmqp_bench.spark_cases.streams import backlog, triggers
from tmqp_bench.spark_cases.writes import exactly_once, row_writer

__all__ = ["CASES", "Aim", "Figure", "Plan", "Record", "Stage", "run_cases"]

_Case: TypeAlias = Callable[[Stage, Record], None]

#: By name: the title, and what measures it, in the order in which they are run.
CASES: Final[dict[str, tuple[str, _Case]]] = {
    "rows": ("batch read of 100 bytes: Arrow batches beside rows", rows),
    "parquet": ("batch read of 100 bytes beside Parquet files", parquet),
    "decode": ("from bytes to Arrow, without Spark", decoding),
    "large": ("batch read of 1 KiB", large_reads),
    "local": ("batch read of 1 KiB on the broker's machine", local_reads),
    "pruned": ("batch read of values of 100 bytes, cut out by the broker", pruned_reads),
    "count": ("count() of one column beside all", counting),
    "tasks": ("what a task costs", tasks),
    "sink": ("batch write of 100 bytes beside rows", row_writer),
    "once": ("exactly once beside at least once", exactly_once),
    "trigger": ("a micro-batch beside rate-micro-batch", triggers),
    "backlog": ("a query that rests", backlog),
    "archive": ("archives by their engines", archives),
    "cold": ("an archive from a cold start", cold_archive),
    "corpus": ("small files beside binaryFile", corpus),
}


def run_cases(
    stage: Stage, names: Sequence[str], wanted: Callable[[], bool], done: Callable[[Record], None]
) -> list[Record]:
    """Measure some cases, one after the other.

    :param names: of :data:`CASES`.
    :param wanted: whether to continue; asked between two cases.
    :param done: is told each case's record.
    """
    stage.warn_of_missing_clock()
    found: list[Record] = []
    for name in names:
        if not wanted():
            break
        title, measure = CASES[name]
        stage.say(f"{name}: {title}", case=name)
        record = Record(name, title)
        measure(stage, record)
        found.append(record)
        done(record)
    return found
