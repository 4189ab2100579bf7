"""The commands that show channels, queues and clients, and those that change a queue."""

from __future__ import annotations

from typing import Any

import click

from tmqp.models import QueueOptions
from tmqp_client import Client
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._options import model_options, split
from tmqp_client.cli._output import plain, show_fields, show_rows
from tmqp_client.cli._run import (
    EXIT_REFUSED,
    CommandError,
    connected,
    json_option,
    report,
    run,
)
from tmqp_client.cli.manage import channel, queue

__all__ = [
    "CHANNEL_COLUMNS",
    "CLIENT_COLUMNS",
    "QUEUE_COLUMNS",
    "channel_consumers",
    "channel_info",
    "channel_list",
    "clients",
    "queue_cancel",
    "queue_clear",
    "queue_info",
    "queue_list",
    "queue_remove_message",
    "queue_update",
]

CHANNEL_COLUMNS = ("name", "queues", "active_clients", "client_limit", "queue_limit")
QUEUE_COLUMNS = (
    *("id", "status", "messages", "priority_messages", "received_messages", "deliveries"),
    *("acks", "negative_acks", "timeout_messages"),
)
CLIENT_COLUMNS = ("id", "name", "type", "online_ms", "is_authenticated")


@channel.command("ls", epilog="\b\nExamples:\n  tmqp channel ls\n  tmqp channel ls 'ord*'\n")
@click.argument("filter", required=False, default="")
@json_option("Print one JSON object per line.")
@connected
def channel_list(filter: str, as_json: bool, **where: Any) -> None:
    """List the channels: all, or those that match x*, *x, *x* or x*y."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.channels(filter)]
        show_rows(CHANNEL_COLUMNS, rows, as_json=as_json)

    run(work, **where)


@channel.command("info", epilog="\b\nExample:\n  tmqp channel info orders\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@json_option()
@connected
def channel_info(channel_name: str, as_json: bool, **where: Any) -> None:
    """Show everything about a channel."""

    async def work(client: Client) -> None:
        show_fields(await client.channel_information(channel_name), as_json=as_json)

    run(work, **where)


@channel.command("consumers", epilog="\b\nExample:\n  tmqp channel consumers orders\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@json_option("Print one JSON object per line.")
@connected
def channel_consumers(channel_name: str, as_json: bool, **where: Any) -> None:
    """List the clients that have joined a channel, and since when."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.channel_consumers(channel_name)]
        show_rows(CLIENT_COLUMNS, rows, as_json=as_json)

    run(work, **where)


@queue.command("ls", epilog="\b\nExample:\n  tmqp queue ls orders\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@json_option("Print one JSON object per line.")
@connected
def queue_list(channel_name: str, as_json: bool, **where: Any) -> None:
    """List the queues of a channel."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.queues(channel_name)]
        show_rows(QUEUE_COLUMNS, rows, as_json=as_json)

    run(work, **where)


@queue.command("info", epilog="\b\nExample:\n  tmqp queue info orders 1 --json\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@json_option()
@connected
def queue_info(channel_name: str, queue_id: int, as_json: bool, **where: Any) -> None:
    """Show everything about a queue."""

    async def work(client: Client) -> None:
        show_fields(await client.queue_information(channel_name, queue_id), as_json=as_json)

    run(work, **where)


@queue.command("update", epilog="\b\nExample:\n  tmqp queue update orders 1 --status paused\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@model_options(QueueOptions)
@json_option()
@connected
def queue_update(channel_name: str, queue_id: int, as_json: bool, **given: Any) -> None:
    """Change a queue; options that are not given stay unchanged."""
    options, where = split(QueueOptions, given)
    if options is None:
        raise click.UsageError("say what to change, for example --status paused")

    async def work(client: Client) -> None:
        await client.update_queue(channel_name, queue_id, options)
        report(
            f"queue {queue_id} of {channel_name} updated",
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            updated=True,
        )

    run(work, **where)


@queue.command("clear", epilog="\b\nExample:\n  tmqp queue clear orders 1\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@click.option(
    "--only", type=click.Choice(("high", "ordinary")), help="Messages of this priority only."
)
@json_option()
@connected
def queue_clear(
    channel_name: str, queue_id: int, only: str | None, as_json: bool, **where: Any
) -> None:
    """Remove the waiting messages of a queue."""

    async def work(client: Client) -> None:
        await client.clear_queue(
            channel_name, queue_id, high_priority=only != "ordinary", messages=only != "high"
        )
        report(
            f"queue {queue_id} of {channel_name} cleared",
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            cleared=True,
        )

    run(work, **where)


@queue.command("cancel", epilog="\b\nExample:\n  tmqp queue cancel orders 1 6d9f0c\n")
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@click.argument("message_id", metavar="ID")
@json_option()
@connected
def queue_cancel(
    channel_name: str, queue_id: int, message_id: str, as_json: bool, **where: Any
) -> None:
    """Remove a deferred message that is not due yet; fail (exit code 1) if it does not exist."""

    async def work(client: Client) -> None:
        if not await client.cancel_message(channel_name, queue_id, message_id):
            raise CommandError(
                f"no deferred message {message_id} in queue {queue_id} of {channel_name}",
                EXIT_REFUSED,
            )
        report(
            f"message {message_id} cancelled",
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            id=message_id,
            cancelled=True,
        )

    run(work, **where)


@queue.command(
    "remove-message", epilog="\b\nExample:\n  tmqp queue remove-message orders 1 6d9f0c\n"
)
@click.argument("channel_name", metavar="CHANNEL", type=CHANNEL)
@click.argument("queue_id", metavar="QUEUE", type=QUEUE_ID)
@click.argument("message_id", metavar="ID")
@json_option()
@connected
def queue_remove_message(
    channel_name: str, queue_id: int, message_id: str, as_json: bool, **where: Any
) -> None:
    """Remove a waiting message; fail (exit code 1) if none has this id."""

    async def work(client: Client) -> None:
        if not await client.remove_message(channel_name, queue_id, message_id):
            raise CommandError(
                f"no message {message_id} waits in queue {queue_id} of {channel_name}",
                EXIT_REFUSED,
            )
        report(
            f"message {message_id} removed",
            as_json=as_json,
            channel=channel_name,
            queue=queue_id,
            id=message_id,
            removed=True,
        )

    run(work, **where)


@click.command(epilog="\b\nExamples:\n  tmqp clients\n  tmqp clients --type worker --json\n")
@click.option("--type", "client_type", default="", help="Clients of this type only.")
@json_option("Print one JSON object per line.")
@connected
def clients(client_type: str, as_json: bool, **where: Any) -> None:
    """List the clients of the server, and since when each is connected."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.clients(client_type)]
        show_rows(CLIENT_COLUMNS, rows, as_json=as_json)

    run(work, **where)
