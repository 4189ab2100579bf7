"""The commands ``tmqp-spark analyze`` and ``tmqp-spark corpus``."""

from __future__ import annotations

from typing import Any

import click

from tmqp_spark.cli._run import (
    EXIT_CODES,
    absolute,
    ends_well,
    example_text,
    on_spark,
    print_json,
    print_table,
)
from tmqp_spark.pipelines.launch import spark_for

__all__ = ["analyze", "corpus"]


def _plain(rows: list[Any]) -> list[dict[str, Any]]:
    return [row.asDict() for row in rows]


def _table(headings: list[str], rows: list[Any], names: list[str]) -> None:
    print_table(headings, [[row[name] for name in names] for row in rows])


@click.command(
    epilog=example_text("""
tmqp-spark analyze captures/
tmqp-spark analyze 'captures/real-*.json' --json
""")
    + "\n\n"
    + EXIT_CODES
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--top", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Faults shown."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@on_spark
@ends_well
def analyze(
    paths: tuple[str, ...], top: int, as_json: bool, master: str | None, conf: dict[str, str]
) -> None:
    """Analyse wire captures: kinds of frames, response times, invalid bytes.

    PATH is a recording (.json), a folder of them, or a pattern.
    """
    from tmqp_spark.pipelines import recorded_tables as pipeline  # noqa: PLC0415 - Spark

    with spark_for("analyze", master, conf) as spark:
        found = pipeline.frames(spark, [absolute(path) for path in paths], "auto").cache()
        kinds = pipeline.frame_kinds(found)
        times = pipeline.answer_times(found)
        faults = pipeline.faults(found, top)
        found.unpersist()
    if as_json:
        print_json({"kinds": _plain(kinds), "answers": _plain(times), "faults": _plain(faults)})
        return
    _table(["WAY", "TYPE", "FRAMES", "BYTES"], kinds, ["dir", "type", "frames", "bytes"])
    click.echo("\nAnswers, in ms")
    _table(
        ["TO", "ASKED", "ANSWERED", "P50", "P95", "MOST"],
        times,
        ["type", "asked", "answered", "p50", "p95", "most"],
    )
    _show_faults(faults)


@click.command(
    epilog=example_text("""
tmqp-spark corpus corpus/frames
tmqp-spark corpus corpus/door --skip-bytes 2 --top 50
""")
    + "\n\n"
    + EXIT_CODES
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--skip-bytes",
    type=click.IntRange(0, 65_536),
    default=0,
    show_default=True,
    help="Bytes at the start of each input that belong to the fuzzer.",
)
@click.option(
    "--top", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Faults shown."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@on_spark
@ends_well
def corpus(
    paths: tuple[str, ...],
    skip_bytes: int,
    top: int,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
) -> None:
    """Analyse a fuzzer's corpus: its kinds of frames, and the rules that it breaks.

    PATH is a file (raw bytes; .txt: lines of hexadecimal digits), a folder, or a pattern.
    """
    from tmqp_spark.pipelines import recorded_tables as pipeline  # noqa: PLC0415 - Spark

    with spark_for("corpus", master, conf) as spark:
        found = pipeline.frames(
            spark, [absolute(path) for path in paths], "corpus", skip_bytes
        ).cache()
        shape = pipeline.corpus_shape(found).asDict()
        kinds = pipeline.frame_kinds(found)
        faults = pipeline.faults(found, top)
        found.unpersist()
    if as_json:
        print_json({**shape, "by_kind": _plain(kinds), "faults": _plain(faults)})
        return
    click.echo(
        f"{shape['files']:,} files, {shape['frames']:,} frames of {shape['kinds']} kinds,"
        f" {shape['faulty']:,} inputs with a fault; the longest frame has {shape['longest']:,}"
        " bytes\n"
    )
    _table(["TYPE", "FRAMES", "BYTES"], kinds, ["type", "frames", "bytes"])
    _show_faults(faults)


def _show_faults(faults: list[Any]) -> None:
    click.echo("\nBytes that are not a frame")
    _table(["RULE", "COUNT", "FOR EXAMPLE", "IN"], faults, ["rule", "count", "example", "file"])
