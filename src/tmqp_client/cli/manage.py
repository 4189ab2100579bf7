"""Owns ``tmqp channel`` and ``tmqp queue``: making and removing them."""

from __future__ import annotations

from typing import Any

import click

from tmqp import QueueStatus
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client import Client
from tmqp_client.cli._run import (
    QUEUE_ID,
    connected,
    header_option,
    json_option,
    report,
    run,
)

__all__ = [
    "STATUS_WORDS",
    "channel",
    "channel_create",
    "channel_remove",
    "milliseconds",
    "queue",
    "queue_create",
    "queue_remove",
]

STATUS_WORDS = tuple(status.name.lower().replace("_", "-") for status in QueueStatus)

_new_only = click.option(
    "--new", "new_only", is_flag=True, help="Fail (exit code 1) if it is there already."
)


@click.group("channel")
def channel() -> None:
    """Make and remove channels."""


@channel.command(
    "create",
    epilog="""\b
Examples:
  tmqp channel create orders
  tmqp channel create orders --client-limit 10 --new
""",
)
@click.argument("channel_name", metavar="CHANNEL")
@click.option("--client-limit", type=click.IntRange(0), help="How many clients may join; 0: any.")
@click.option("--queue-limit", type=click.IntRange(0), help="How many queues; 0: any.")
@_new_only
@json_option()
@connected
def channel_create(
    channel_name: str,
    client_limit: int | None,
    queue_limit: int | None,
    new_only: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Make a channel."""
    options = None
    if client_limit is not None or queue_limit is not None:
        options = ChannelOptions(client_limit=client_limit, queue_limit=queue_limit)

    async def work(client: Client) -> None:
        created = await client.create_channel(channel_name, options, exist_ok=not new_only)
        what = f"channel {channel_name}"
        report(_said(what, created), as_json=as_json, channel=channel_name, created=created)

    run(work, **where)


@channel.command("rm", epilog="\b\nExample:\n  tmqp channel rm orders\n")
@click.argument("channel_name", metavar="CHANNEL")
@json_option()
@connected
def channel_remove(channel_name: str, as_json: bool, **where: Any) -> None:
    """Remove a channel with its queues and their messages."""

    async def work(client: Client) -> None:
        await client.remove_channel(channel_name)
        sentence = f"channel {channel_name} removed"
        report(sentence, as_json=as_json, channel=channel_name, removed=True)

    run(work, **where)


@click.group("queue")
def queue() -> None:
    """Make and remove queues."""


@queue.command(
    "create",
    epilog="""\b
Examples:
  tmqp queue create orders 1
  tmqp queue create orders 1 --status round-robin --acknowledge-timeout 60
  tmqp queue create orders 2 --handler ack-consumer --wait-for-acknowledge
""",
)
@click.argument("channel_name", metavar="CHANNEL")
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@click.option("--status", type=click.Choice(STATUS_WORDS), help="What the queue does.")
@click.option("--tag", help="A tag for routers to find it by.")
@click.option("--handler", help="Name of the delivery handler.")
@click.option(
    "--request-acknowledge/--no-request-acknowledge",
    default=None,
    help="Whether consumers must acknowledge.",
)
@click.option(
    "--wait-for-acknowledge/--no-wait-for-acknowledge",
    default=None,
    help="Whether each message waits until the one before was acknowledged.",
)
@click.option(
    "--acknowledge-timeout",
    "acknowledge_timeout_s",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="How long a consumer may take.",
)
@click.option(
    "--message-timeout",
    "message_timeout_s",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="How long a message may wait; 0: for ever.",
)
@click.option("--message-limit", type=click.IntRange(0), help="How many may wait; 0: any.")
@header_option("For the handler.")
@_new_only
@json_option()
@connected
def queue_create(
    channel_name: str,
    queue_id: int,
    status: str | None,
    tag: str | None,
    handler: str | None,
    request_acknowledge: bool | None,
    wait_for_acknowledge: bool | None,
    acknowledge_timeout_s: float | None,
    message_timeout_s: float | None,
    message_limit: int | None,
    headers: tuple[tuple[str, str], ...],
    new_only: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Make a queue, and its channel if that is missing."""
    options = QueueOptions(
        request_acknowledge=request_acknowledge,
        acknowledge_timeout_ms=milliseconds(acknowledge_timeout_s),
        message_timeout_ms=milliseconds(message_timeout_s),
        message_limit=message_limit,
    )

    async def work(client: Client) -> None:
        created = await client.create_queue(
            channel_name,
            queue_id,
            None if options == QueueOptions() else options,
            status=status,
            tag=tag,
            delivery_handler=handler,
            wait_for_acknowledge=wait_for_acknowledge,
            headers=headers,
            exist_ok=not new_only,
        )
        report(
            _said(f"queue {queue_id} of {channel_name}", created),
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            created=created,
        )

    run(work, **where)


@queue.command("rm", epilog="\b\nExample:\n  tmqp queue rm orders 1\n")
@click.argument("channel_name", metavar="CHANNEL")
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@json_option()
@connected
def queue_remove(channel_name: str, queue_id: int, as_json: bool, **where: Any) -> None:
    """Remove a queue with its messages."""

    async def work(client: Client) -> None:
        await client.remove_queue(channel_name, queue_id)
        report(
            f"queue {queue_id} of {channel_name} removed",
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            removed=True,
        )

    run(work, **where)


def _said(what: str, created: bool) -> str:
    return f"{what} created" if created else f"{what} is there already"


def milliseconds(seconds: float | None) -> int | None:
    """Seconds as typed, in what the models count in."""
    return None if seconds is None else round(seconds * 1_000)
