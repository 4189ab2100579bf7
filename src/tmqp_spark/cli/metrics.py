"""The command ``tmqp-spark metrics``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tmqp_spark.cli._run import (
    EXIT_CODES,
    absolute,
    blocking_client,
    connected,
    connection_options,
    ends_well,
    example_text,
    on_spark,
    print_json,
    print_table,
    source_options,
)
from tmqp_spark.pipelines.launch import spark_for

if TYPE_CHECKING:
    from tmqp_spark.pipelines.metrics import Bucket, Depth

__all__ = ["metrics"]

_EXAMPLES = example_text("""
tmqp-spark metrics orders
tmqp-spark metrics orders/7 --bucket 10s --sent-header Sent --plot orders.svg
tmqp-spark metrics --archive archive --bucket 1h --json
""")


@click.command(epilog=f"{_EXAMPLES}\n\n{EXIT_CODES}")
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--pattern", help="Queues whose channel/queue matches this regular expression.")
@click.option(
    "--archive", metavar="FOLDER", help="Measure an archive, instead of a broker's queues."
)
@click.option("--bucket", default="1m", show_default=True, help="The time that a row covers.")
@click.option(
    "--sent-header",
    metavar="NAME",
    help="Header with the time of sending, in ms since 1970; adds latencies.",
)
@click.option(
    "--rows", type=click.IntRange(1), default=60, show_default=True, help="Newest rows shown."
)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Also draw it, as SVG."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, all rows.")
@connected
@on_spark
@ends_well
def metrics(
    queues: tuple[str, ...],
    pattern: str | None,
    archive: str | None,
    bucket: str,
    sent_header: str | None,
    rows: int,
    plot: Path | None,
    as_json: bool,
    address: str,
    token: str | None,
    more: dict[str, str],
    master: str | None,
    conf: dict[str, str],
) -> None:
    """Measure queues: messages per second, bytes and latencies by minute, and their current depth.

    Times are UTC.  Rows without messages are omitted.
    """
    from tmqp_spark.pipelines import metrics as pipeline  # noqa: PLC0415 - Spark

    connection = connection_options(address, token, more)
    chosen: dict[str, str] = {}
    if archive is None:
        source_options(queues, pattern, more)
        chosen = {"subscribePattern": pattern} if pattern else {"subscribe": ",".join(queues)}
        chosen.update({"url": address, **({"token": token} if token else {}), **more})
    elif queues or pattern:
        raise click.UsageError("--archive measures all of the archive; name no queues")
    with spark_for("metrics", master, conf) as spark:
        messages = pipeline.messages_of(
            spark, chosen, None if archive is None else absolute(archive), sent_header
        )
        buckets = pipeline.measure(messages, bucket, sent_header)
    now: list[Depth] = []
    if archive is None:
        with blocking_client(connection) as client:
            seen = {(each.channel, each.queue) for each in buckets}
            now = [each for each in pipeline.depths(client) if (each.channel, each.queue) in seen]
    if plot is not None:
        plot.write_text(pipeline.metrics_svg(buckets), encoding="utf-8")
    if as_json:
        for each in buckets:
            print_json(each)
        return
    _show(buckets, now, rows)
    if plot is not None:
        click.echo(f"\nplot: {plot}")


def _show(buckets: list[Bucket], now: list[Depth], rows: int) -> None:
    from tmqp_spark.pipelines import metrics as pipeline  # noqa: PLC0415 - Spark

    late = any(each.p50_ms is not None for each in buckets)
    headings = ["TIME", "QUEUE", "MESSAGES", "A SECOND", "BYTES"]
    table: list[list[Any]] = []
    for each in buckets[-rows:]:
        when = datetime.fromtimestamp(each.at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
        row: list[Any] = [
            when,
            f"{each.channel}/{each.queue}",
            each.messages,
            each.rate,
            each.bytes,
        ]
        table.append([*row, each.p50_ms, each.p95_ms, each.p99_ms] if late else row)
    print_table([*headings, "P50 MS", "P95 MS", "P99 MS"] if late else headings, table)
    if len(buckets) > rows:
        click.echo(f"({len(buckets) - rows} older rows are not shown: --rows)")
    depth = {(each.channel, each.queue): each for each in now}
    click.echo()
    summary: list[list[Any]] = []
    for total in pipeline.totals(buckets):
        found = depth.get((total.channel, total.queue))
        groups = (
            ""
            if found is None
            else ", ".join(f"{name} {behind:,}" for name, behind in sorted(found.groups.items()))
        )
        summary.append(
            [
                f"{total.channel}/{total.queue}",
                total.messages,
                total.peak_rate,
                total.bytes,
                None if found is None else found.waiting,
                groups or None,
            ]
        )
    print_table(
        ["QUEUE", "MESSAGES", "PEAK A SECOND", "BYTES", "WAITING", "GROUPS BEHIND"], summary
    )
