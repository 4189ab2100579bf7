"""The command ``tmqp-spark deadletter``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tmqp_spark.cli._run import (
    EXIT_CODES,
    connected,
    ends_well,
    example_text,
    on_spark,
    print_json,
    print_table,
    source_options,
)
from tmqp_spark.pipelines.launch import spark_for

if TYPE_CHECKING:
    from tmqp_spark.pipelines.deadletter import Cause

__all__ = ["deadletter"]

_EXAMPLES = example_text("""
tmqp-spark deadletter dead/1
tmqp-spark deadletter dead --by Kind --top 5
tmqp-spark deadletter dead/1 --pushed-to orders/7 --list dead.jsonl
""")


@click.command(epilog=f"{_EXAMPLES}\n\n{EXIT_CODES}")
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--pattern", help="Queues whose channel/queue matches this regular expression.")
@click.option("--by", "header", metavar="NAME", help="Also group letters by this header.")
@click.option(
    "--top", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Kinds shown."
)
@click.option(
    "--pushed-to",
    multiple=True,
    metavar="QUEUE",
    help="A queue to which letters were pushed: shows their age, if it still keeps them.  Can be "
    "repeated.",
)
@click.option(
    "--list",
    "list_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write each letter and its original queue to a file, one JSON object per line.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@connected
@on_spark
@ends_well
def deadletter(
    queues: tuple[str, ...],
    pattern: str | None,
    header: str | None,
    top: int,
    pushed_to: tuple[str, ...],
    list_file: Path | None,
    as_json: bool,
    address: str,
    token: str | None,
    more: dict[str, str],
    master: str | None,
    conf: dict[str, str],
) -> None:
    """Analyse dead letters: their queues, producers and age.

    QUEUE is the dead letter queue; messages that a producer pushed there are ignored.
    """
    from tmqp_spark.pipelines import deadletter as pipeline  # noqa: PLC0415 - Spark

    source_options(queues, pattern, more)
    base = {"url": address, **({"token": token} if token else {}), **more}
    chosen = {"subscribePattern": pattern} if pattern else {"subscribe": ",".join(queues)}
    listed = 0
    with spark_for("deadletter", master, conf) as spark:
        letters = pipeline.dead_letters(spark, {**base, **chosen}, header)
        found = pipeline.causes(letters, top)
        count = letters.count()
        lives = []
        if pushed_to:
            lives = pipeline.times_to_death(
                letters, spark, {**base, "subscribe": ",".join(pushed_to)}
            )
        if list_file is not None:
            with list_file.open("w", encoding="utf-8") as stream:
                for letter in pipeline.to_drive_back(letters):
                    stream.write(json.dumps(letter) + "\n")
                    listed += 1
    if as_json:
        print_json(
            {
                "count": count,
                "listed": listed,
                "kinds": [asdict(each) for each in found],
                "lived_s": [row.asDict() for row in lives],
            }
        )
        return
    click.echo(f"{count:,} dead letters\n")
    _show_kinds(found, header)
    if pushed_to:
        click.echo(
            "\nSeconds from push to end, of letters that are still kept where they were pushed"
        )
        print_table(
            ["PUSHED TO", "COUNT", "P50", "P95", "MOST"],
            [[row["pushed"], row["count"], row["p50"], row["p95"], row["most"]] for row in lives],
        )
    if list_file is not None:
        click.echo(f"\n{listed:,} letters listed in {list_file}")


def _show_kinds(found: list[Cause], header: str | None) -> None:
    print_table(
        ["PUSHED TO", "BY", header or "-", "DELIVERIES", "PUT BACK", "COUNT", "FIRST", "LAST"],
        [
            [
                each.pushed,
                each.source,
                each.by,
                each.deliveries,
                each.put_backs,
                each.count,
                each.first,
                each.last,
            ]
            for each in found
        ],
    )
