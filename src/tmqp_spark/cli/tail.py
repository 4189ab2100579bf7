"""The command ``tmqp-spark tail``."""

from __future__ import annotations

from itertools import islice

import click

from tmqp_spark.cli._run import (
    EXIT_CODES,
    connected,
    connection_options,
    ends_well,
    example_text,
    make_reporter,
    source_options,
)
from tmqp_spark.pipelines.stopping import Stop

__all__ = ["tail"]

_EXAMPLES = example_text("""
tmqp-spark tail orders/7
tmqp-spark tail orders --last 20 --no-follow
tmqp-spark tail orders/7 -o startingTimestamp=1700000000000 --json | jq .value
""")


@click.command(epilog=f"{_EXAMPLES}\n\n{EXIT_CODES}")
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--pattern", help="Queues whose channel/queue matches this regular expression.")
@click.option(
    "-n",
    "--last",
    type=click.IntRange(0),
    default=0,
    help="Begin with about this number of each queue's latest messages.",
)
@click.option("--count", type=click.IntRange(1), help="End after this number of messages.")
@click.option("--follow/--no-follow", default=True, help="Continue with new messages [default].")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@connected
@ends_well
def tail(
    queues: tuple[str, ...],
    pattern: str | None,
    last: int,
    count: int | None,
    follow: bool,
    as_json: bool,
    address: str,
    token: str | None,
    more: dict[str, str],
) -> None:
    """Show messages as they arrive, one per line, without removing them.  It does not start Spark.

    It begins with new messages, or with --last, or as set by the options startingOffsets and
    startingTimestamp.
    """
    from tmqp_spark.pipelines import tail as pipeline  # noqa: PLC0415 - Arrow

    connection = connection_options(address, token, more, follow=follow)
    source = source_options(queues, pattern, more, pollWaitMs="500")
    form = pipeline.to_json if as_json else pipeline.to_text
    with Stop(make_reporter(False, True)) as stop:
        rows = pipeline.tail(connection, source, stop, last=last, follow=follow)
        for row in islice(rows, count):
            click.echo(form(row))
