"""``tmqp channel`` and ``tmqp queue``: making and removing them."""

from __future__ import annotations

from typing import Any

import click

from tmqp import ResultCode
from tmqp.extensions import LIFETIME_OWNER
from tmqp.models import ChannelOptions, QueueOptions
from tmqp_client import Client, OperationFailed
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._options import model_options, split
from tmqp_client.cli._run import (
    EXIT_REFUSED,
    CommandError,
    connected,
    header_option,
    json_option,
    report,
    run,
)

__all__ = [
    "channel",
    "channel_create",
    "channel_remove",
    "channel_update",
    "queue",
    "queue_create",
    "queue_remove",
]

_new_only = click.option("--new", "new_only", is_flag=True, help="Fail (exit code 1) if it exists.")


@click.group("channel")
def channel() -> None:
    """Create, change and remove channels."""


@channel.command(
    "create",
    epilog="""\b
Examples:
  tmqp channel create orders
  tmqp channel create orders --client-limit 10 --new
""",
)
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@model_options(ChannelOptions)
@_new_only
@json_option()
@connected
def channel_create(channel_name: str, new_only: bool, as_json: bool, **given: Any) -> None:
    """Create a channel; options of queues are the defaults of its queues."""
    options, where = split(ChannelOptions, given)
    if options is not None and (options.lifetime == LIFETIME_OWNER or options.owner_only):
        raise click.UsageError(
            "such a channel would end with the connection of this command; create it in a program"
        )

    async def work(client: Client) -> None:
        created = await client.create_channel(channel_name, options, exist_ok=not new_only)
        what = f"channel {channel_name}"
        report(_said(what, created), as_json=as_json, channel=channel_name, created=created)

    run(work, **where)


@channel.command(
    "update",
    epilog="""\b
Examples:
  tmqp channel update orders --client-limit 10
  tmqp channel update orders --no-destroy-when-empty
""",
)
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@model_options(ChannelOptions)
@json_option()
@connected
def channel_update(channel_name: str, as_json: bool, **given: Any) -> None:
    """Change a channel; options that are not given stay unchanged, and existing queues keep their
    options.

    An empty authenticator or event handler removes the channel's.
    """
    options, where = split(ChannelOptions, given)
    if options is None:
        raise click.UsageError("name at least one option to change")

    async def work(client: Client) -> None:
        await client.update_channel(channel_name, options)
        sentence = f"channel {channel_name} updated"
        report(sentence, as_json=as_json, channel=channel_name, updated=True)

    run(work, **where)


@channel.command("rm", epilog="\b\nExample:\n  tmqp channel rm orders\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
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
    """Create and remove queues."""


@queue.command(
    "create",
    epilog="""\b
Examples:
  tmqp queue create orders 1
  tmqp queue create orders 1 --status round-robin --acknowledge-timeout 60
  tmqp queue create orders 2 --handler ack-consumer --wait-for-acknowledge
  tmqp queue create orders 3 --durable --retain-time 86400
""",
)
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@click.option("--tag", help="A tag for routers to find it by.")
@model_options(QueueOptions)
@header_option("For the handler.")
@_new_only
@json_option()
@connected
def queue_create(
    channel_name: str,
    queue_id: int,
    tag: str | None,
    headers: tuple[tuple[str, str], ...],
    new_only: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Create a queue, and its channel if that is missing."""
    # Every server applies these where the queue is made, the original's too.
    status = given.pop("status")
    handler = given.pop("message_delivery_handler")
    waits = given.pop("wait_for_acknowledge")
    options, where = split(QueueOptions, given)

    async def work(client: Client) -> None:
        try:
            created = await client.create_queue(
                channel_name,
                queue_id,
                options,
                status=status,
                tag=tag,
                delivery_handler=handler,
                wait_for_acknowledge=waits,
                headers=headers,
                exist_ok=not new_only,
            )
        except OperationFailed as error:
            on_disk = options is not None and (options.durable or options.overflow)
            if error.code == ResultCode.UNACCEPTABLE and on_disk and handler is None:
                sentence = "queues on disk need a data directory: start the server with --data DIR"
                raise CommandError(f"{error.asked}: {sentence}", EXIT_REFUSED) from None
            raise
        report(
            _said(f"queue {queue_id} of {channel_name}", created),
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            created=created,
        )

    run(work, **where)


@queue.command("rm", epilog="\b\nExample:\n  tmqp queue rm orders 1\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
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
    return f"{what} created" if created else f"{what} already exists"
