"""``tmqp feed``: queues whose messages are copied into other queues."""

from __future__ import annotations

from typing import Any

import click

from tmqp_client import Client
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._output import plain, show_rows
from tmqp_client.cli._run import connected, json_option, report, run

__all__ = ["feed", "feed_add", "feed_list", "feed_remove"]

_COLUMNS = (
    "channel",
    "queue",
    "target",
    "target_queue",
    "filter",
    "copied",
    "passed",
    "skipped",
    "waiting",
)


@click.group("feed")
def feed() -> None:
    """Manage feeds, which copy messages of queues into other queues."""


@feed.command(
    "add", epilog="\b\nExample:\n  tmqp feed add orders 1 billing 1 --filter 'kind=invoice'\n"
)
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@click.argument("target", metavar="TARGET", type=CHANNEL)
@click.argument("target_queue", metavar="TARGET-QUEUE", type=QUEUE_ID)
@click.option("--filter", "chosen", help="Copy only messages that this filter accepts.")
@click.option("--filter-language", help="Language of the filter; headers if none is given.")
@json_option()
@connected
def feed_add(
    channel_name: str,
    queue_id: int,
    target: str,
    target_queue: int,
    chosen: str | None,
    filter_language: str | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Copy new messages of QUEUE of CHANNEL into TARGET-QUEUE of TARGET.

    Both queues must exist.  Messages that wait in QUEUE without consumers are moved to its first
    feed.
    """

    async def work(client: Client) -> None:
        await client.add_feed(
            channel_name,
            queue_id,
            target,
            target_queue,
            filter=chosen,
            filter_language=filter_language,
        )
        report(
            f"queue {queue_id} of {channel_name} feeds queue {target_queue} of {target}",
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            target=target,
            target_queue=target_queue,
        )

    run(work, **where)


@feed.command("rm", epilog="\b\nExample:\n  tmqp feed rm orders 1 billing 1\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@click.argument("target", metavar="TARGET", type=CHANNEL)
@click.argument("target_queue", metavar="TARGET-QUEUE", type=QUEUE_ID)
@json_option()
@connected
def feed_remove(
    channel_name: str,
    queue_id: int,
    target: str,
    target_queue: int,
    as_json: bool,
    **where: Any,
) -> None:
    """Remove a feed; copied messages stay."""

    async def work(client: Client) -> None:
        await client.remove_feed(channel_name, queue_id, target, target_queue)
        report(
            f"queue {queue_id} of {channel_name} no longer feeds queue {target_queue} of {target}",
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            target=target,
            target_queue=target_queue,
            removed=True,
        )

    run(work, **where)


@feed.command("ls", epilog="\b\nExample:\n  tmqp feed ls orders\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="[QUEUE]", type=QUEUE_ID, required=False)
@json_option("Print one JSON object per line.")
@connected
def feed_list(channel_name: str, queue_id: int | None, as_json: bool, **where: Any) -> None:
    """List the feeds of a queue, or of all queues of a channel."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.feeds(channel_name, queue_id)]
        show_rows(_COLUMNS, rows, as_json=as_json)

    run(work, **where)
