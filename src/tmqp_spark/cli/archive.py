"""The command ``tmqp-spark archive``."""

from __future__ import annotations

from pathlib import Path

import click

from tmqp_client.cli._kinds import Number
from tmqp_spark.cli._run import (
    EXIT_CODES,
    absolute,
    connected,
    connection_options,
    ends_well,
    example_text,
    make_reporter,
    on_spark,
    print_json,
    reported,
    source_options,
)
from tmqp_spark.pipelines.launch import spark_for
from tmqp_spark.pipelines.stopping import Stop

__all__ = ["archive"]

_EXAMPLES = example_text("""
tmqp-spark archive orders/7 --to archive
tmqp-spark archive orders payments/1 --to archive --follow --every 60
tmqp-spark archive --pattern 'shop-.*/1' --to archive --group archive
tmqp-spark archive orders/7 --to s3a://bucket/orders --engine spark
tmqp-spark archive orders/7 --to archive --json-logs 2>progress.jsonl >summary.json
""")


@click.command(epilog=f"{_EXAMPLES}\n\n{EXIT_CODES}")
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--pattern", help="Queues whose channel/queue matches this regular expression.")
@click.option("--to", "folder", required=True, metavar="FOLDER", help="The folder of the archive.")
@click.option(
    "--once/--follow",
    default=True,
    help="End after the existing messages [default], or continue with new ones.",
)
@click.option(
    "--engine",
    type=click.Choice(["arrow", "spark"]),
    default="arrow",
    show_default=True,
    help="arrow writes to a folder that all executors share, at a fraction of the cost; spark to"
    " any file system that Spark knows.",
)
@click.option(
    "--group",
    help="A named group that follows the archive, so that the broker keeps unarchived messages.",
)
@click.option(
    "--every",
    "every_s",
    type=Number(0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --follow: the minimum time between the starts of two batches.",
)
@click.option(
    "--batch-bytes",
    default="1g",
    show_default=True,
    metavar="SIZE",
    help="Maximum number of bytes in a batch; a batch is archived as a whole.",
)
@click.option(
    "--compression",
    type=click.Choice(["zstd", "snappy", "lz4", "gzip", "none"]),
    default="zstd",
    show_default=True,
    help="Compression of the Parquet files.",
)
@click.option(
    "--headers/--no-headers", default=True, help="Archive the messages' headers [default]."
)
@connected
@on_spark
@reported
@ends_well
def archive(
    queues: tuple[str, ...],
    pattern: str | None,
    folder: str,
    once: bool,
    engine: str,
    group: str | None,
    every_s: float,
    batch_bytes: str,
    compression: str,
    headers: bool,
    address: str,
    token: str | None,
    more: dict[str, str],
    master: str | None,
    conf: dict[str, str],
    json_logs: bool,
    quiet: bool,
) -> None:
    """Write the kept messages of queues to Parquet files, by day, channel and queue.

    When the command ends, every kept message is in the archive exactly once; after a failure, run
    it again.  Queues are named channel/queue; a channel alone means all of its queues, including
    later ones.

    The command prints a summary as JSON, and its progress on standard error.
    """
    reporter = make_reporter(json_logs, quiet)
    given = _given(batch_bytes, headers, group, more)
    connection = connection_options(address, token, more, follow=not once)
    source = source_options(queues, pattern, more, **given)
    by_arrow = engine == "arrow"
    with (
        spark_for("archive", master, conf, formats=not by_arrow) as spark,
        Stop(reporter) as stop,
    ):
        if by_arrow:
            from tmqp_spark.pipelines.archive import archive_with_arrow  # noqa: PLC0415 - Spark

            summary = archive_with_arrow(
                spark,
                connection,
                source,
                _local(folder),
                stop=stop,
                reporter=reporter,
                follow=not once,
                every_s=every_s,
                compression=compression,
            )
        else:
            from tmqp_spark.pipelines.archive_stream import archive_with_spark  # noqa: PLC0415

            chosen = {"subscribePattern": pattern} if pattern else {"subscribe": ",".join(queues)}
            secret = {"token": token} if token else {}
            summary = archive_with_spark(
                spark,
                {"url": address, **secret, **given, **chosen, **more},
                absolute(folder),
                stop=stop,
                reporter=reporter,
                headers=headers,
                follow=not once,
                every_s=every_s,
                compression=compression,
            )
    print_json(summary)


def _given(
    batch_bytes: str, headers: bool, group: str | None, more: dict[str, str]
) -> dict[str, str]:
    """The source options that the command sets, and those of ``more``, which take precedence."""
    given = {
        "maxBytesPerTrigger": batch_bytes,
        "includeHeaders": str(headers).lower(),
        "pollWaitMs": "1s",
    }
    if not any(name.lower().startswith("starting") for name in more):
        given["startingOffsets"] = "earliest"
    if group:
        given["group"] = group
    return given


def _local(folder: str) -> Path:
    if "://" in folder and not folder.startswith("file://"):
        raise click.UsageError(
            f"the engine arrow writes to folders, not to {folder.partition('://')[0]}://; use"
            " --engine spark"
        )
    return Path(folder.removeprefix("file://"))
