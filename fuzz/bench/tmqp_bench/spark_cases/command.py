"""The command ``spark``: its options, its tables."""

from __future__ import annotations

import importlib.metadata
import platform
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tmqp_bench.report import machine
from tmqp_spark.cli._run import (
    EXIT_CODES,
    ends_well,
    example_text,
    make_reporter,
    print_json,
    print_table,
    reported,
)
from tmqp_spark.pipelines.launch import spark_for
from tmqp_spark.pipelines.stopping import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tmqp_bench.spark_cases import Record

__all__ = ["spark"]

#: Measured is what a session of a user's is like: both compilers, the usual collector.
_SETTINGS: Final = {
    "spark.driver.extraJavaOptions": "",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
}
_EXAMPLES: Final = example_text("""
PYTHONPATH=fuzz/bench python -m tmqp_bench spark
PYTHONPATH=fuzz/bench python -m tmqp_bench spark --only rows --only parquet --rounds 5
PYTHONPATH=fuzz/bench python -m tmqp_bench spark --messages 100000 --rounds 1 --json
""")
_CASES: Final = """\b
Cases (--only):
  rows     a batch read, 100 bytes: beside sources that yield a tuple, or a Row, for each message
  parquet  the same: processor time beside a scan of the same columns in Parquet files
  decode   from bytes to Arrow batches: processor time a message, without Spark
  large    a batch read, 1 KiB: beside a connection that only takes what comes
  local    the same out of the broker's database, on its machine: all processor time
  pruned   a batch read of values, 100 bytes, which the broker cuts out: bytes received
  count    count() of one column beside all
  tasks    what a task costs in its Python worker
  sink     a batch write, 100 bytes: beside a writer that is handed Rows
  once     exactly once beside at least once
  trigger  a micro-batch of few messages beside Spark's rate-micro-batch
  backlog  what is unread a second after a query has read everything
  archive  processor time of tmqp-spark archive: its engine arrow beside Spark's Parquet writer
  cold     tmqp-spark archive from its start to its end
  corpus   20,000 small files beside Spark's binaryFile
"""


def _known(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> Any:
    from tmqp_bench.spark_cases import CASES  # noqa: PLC0415 - needs pyspark

    for name in names:
        if name not in CASES:
            raise click.BadParameter(f"there is no case {name!r}; there are {', '.join(CASES)}")
    return tuple(dict.fromkeys(names)) or tuple(CASES)


@click.command(epilog=_CASES + "\n\n" + _EXAMPLES + "\n\n" + EXIT_CODES)
@click.option(
    "--only",
    multiple=True,
    metavar="CASE",
    callback=_known,
    help="Measure this case; may be given again.  [default: all]",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Turns of each of those compared; their median counts.",
)
@click.option(
    "--messages",
    type=click.IntRange(1_000, 20_000_000),
    default=1_000_000,
    show_default=True,
    help="Messages of 100 bytes; of 1 KiB a quarter.  Some cases read 2 or 4 times as many.",
)
@click.option(
    "--cores",
    type=click.IntRange(1, 256),
    default=2,
    show_default=True,
    help="Of this machine, for Spark.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Where to write what is needed meanwhile.  [default: where temporary files go]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@reported
@ends_well
def spark(
    only: tuple[str, ...],
    rounds: int,
    messages: int,
    cores: int,
    folder: Path | None,
    as_json: bool,
    json_logs: bool,
    quiet: bool,
) -> None:
    """Measure reading and writing with Spark, beside what one would compare it with.

    Starts a broker of its own on a free port, fills it, and has those
    compared do the same work in turn, so that a ratio holds for a busy machine too.  Processor time
    is that of Spark's JVM and its Python workers; the broker's stands beside it.  With all cases it
    takes some minutes, 3 GB of memory and 3 GB of disk, and leaves nothing behind.  The exit status
    says that it was measured, not that aims are reached.
    """
    from tmqp_bench.spark_cases import Plan, Stage, run_cases  # noqa: PLC0415 - Spark

    reporter = make_reporter(json_logs, quiet)
    with ExitStack() as stack:

        def session() -> SparkSession:
            return stack.enter_context(spark_for("bench", f"local[{cores}]", _SETTINGS))

        plan = Plan(messages, rounds, cores)
        stop = stack.enter_context(Stop(reporter))
        stage = stack.enter_context(Stage(plan, reporter, session, folder))

        def show(record: Record) -> None:
            if not as_json:
                _show_figures(record)

        records = run_cases(stage, only, lambda: not stop.wanted, show)
    if as_json:
        print_json(
            {
                "machine": _machine(),
                "messages": messages,
                "rounds": rounds,
                "cores": cores,
                "cases": [record.to_json() for record in records],
            }
        )
    else:
        _show_aims(records)
        click.echo(
            f"\n{_machine()}\n{messages:,} messages, local[{cores}]; medians of {rounds} rounds."
        )


def _show_figures(record: Record) -> None:
    if not record.figures:
        return
    click.echo(f"{record.title} ({record.case})\n")
    print_table(
        [
            "",
            "COUNT",
            "A SECOND",
            "MB/S",
            "JVM NS",
            "PYTHON NS",
            "BROKER NS",
            "SPREAD",
        ],
        [
            [
                each["variant"],
                each["count"],
                each["per_s"],
                each["mb_per_s"],
                each["jvm_ns"],
                each["python_ns"],
                each["broker_ns"],
                each["spread"],
            ]
            for each in (figure.to_json() for figure in record.figures)
        ],
    )
    for note in record.notes:
        click.echo(f"({note})")
    click.echo("")


def _show_aims(records: list[Record]) -> None:
    print_table(
        ["CASE", "AIM", "WANTED", "MEASURED", "VERDICT"],
        [
            [aim.case, aim.text, aim.wanted, aim.got, aim.verdict]
            for record in records
            for aim in record.aims
        ],
    )


def _machine() -> str:
    """The processor and the versions."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("pyspark", "pyarrow", "numpy")
    )
    return f"{machine()}; Python {platform.python_version()}, {versions}"
