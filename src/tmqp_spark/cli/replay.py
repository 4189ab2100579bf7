"""The command ``tmqp-spark replay``."""

from __future__ import annotations

from pathlib import Path

import click

from tmqp_client.cli._kinds import Number
from tmqp_spark.cli._run import (
    EXIT_CODES,
    connected,
    connection_options,
    ends_well,
    example_text,
    make_reporter,
    on_spark,
    print_json,
    reported,
    sink_options,
)
from tmqp_spark.pipelines.launch import spark_for
from tmqp_spark.pipelines.stopping import Stop

__all__ = ["replay"]

_EXAMPLES = example_text("""
tmqp-spark replay archive --to orders-copy/7 --create-queue
tmqp-spark replay archive/day=2026-11-21/channel=orders --to orders-copy/7 --preserve-ids
tmqp-spark replay archive --to same --name second-try --rate 5000
""")


@click.command(epilog=f"{_EXAMPLES}\n\n{EXIT_CODES}")
@click.argument("place", metavar="FOLDER", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--to",
    "target",
    required=True,
    metavar="QUEUE",
    help="Queue to push into, channel/queue; same for the original queue of each row.",
)
@click.option(
    "--name",
    "application",
    help="The name under which every row counts once; by default derived from FOLDER and"
    " --to, so that the same command replays nothing twice.  Another name replays everything"
    " again.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to record the rows of each chunk.  [default: in FOLDER, under _tmqp]",
)
@click.option(
    "--rate", type=Number(1), metavar="N", help="The maximum number of messages per second."
)
@click.option("--preserve-ids", is_flag=True, help="Messages keep their ids, instead of new ones.")
@click.option(
    "--create-queue", is_flag=True, help="Create the queue, durable, if it does not exist."
)
@connected
@on_spark
@reported
@ends_well
def replay(
    place: Path,
    target: str,
    application: str | None,
    plan_file: Path | None,
    rate: float | None,
    preserve_ids: bool,
    create_queue: bool,
    address: str,
    token: str | None,
    more: dict[str, str],
    master: str | None,
    conf: dict[str, str],
    json_logs: bool,
    quiet: bool,
) -> None:
    """Push the rows of Parquet files into a queue: each once, in order, each chunk completely or
    not at all.

    FOLDER is an archive, a part of one, or any Parquet files with a column value, and perhaps
    headers, high_priority, ttl, message_id, channel and queue.  After a failure, run the same
    command again: it continues where the broker stopped, including rows added to FOLDER since.

    The command prints a summary as JSON, and its progress on standard error.
    """
    from tmqp_spark.pipelines.replay import Target, replay_name  # noqa: PLC0415 - Arrow
    from tmqp_spark.pipelines.replay import replay as run  # noqa: PLC0415 - the same

    reporter = make_reporter(json_logs, quiet)
    where = Target(target)
    name = application or replay_name(place, where)
    connection = connection_options(address, token, more)
    sink = sink_options(more, createQueue=str(create_queue).lower())
    folder = place if place.is_dir() else place.parent
    with spark_for("replay", master, conf) as spark, Stop(reporter) as stop:
        summary = run(
            spark,
            connection,
            sink,
            place.absolute(),
            where,
            stop=stop,
            reporter=reporter,
            application=name,
            plan_file=plan_file or folder / "_tmqp" / "replay" / f"{name}.json",
            rate=rate,
            preserve_ids=preserve_ids,
        )
    print_json(summary)
