"""``tmqp pull`` and ``tmqp cache``: messages of queues that deliver only on request."""

from __future__ import annotations

import sys
from typing import Any

import anyio.to_thread
import click

from tmqp.constants import PullClear
from tmqp_client import Client
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._output import to_line
from tmqp_client.cli._run import EXIT_REFUSED, CommandError, connected, json_option, run
from tmqp_client.cli.sub import payload_fields, to_json, to_text, write_line

__all__ = ["cache", "pull"]


@click.command(
    epilog="\b\nExamples:\n  tmqp pull jobs 1\n  tmqp pull jobs 1 --count 10 --order lifo --json\n"
)
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@click.option("-n", "--count", type=click.IntRange(1), default=1, show_default=True)
@click.option("--order", type=click.Choice(("fifo", "lifo")), default="fifo", show_default=True)
@click.option(
    "--clear",
    type=click.Choice([each.value.lower() for each in PullClear]),
    default="none",
    help="Which waiting messages to remove afterwards.",
)
@json_option("One JSON object for each message, as sub prints them.")
@connected
def pull(
    channel: str, queue: int, count: int, order: str, clear: str, as_json: bool, **where: Any
) -> None:
    """Pull messages from a pull queue and print each on a line.

    Each is acknowledged after it was written.  An empty queue is not an error.
    """
    to_terminal = sys.stdout.isatty()

    async def work(client: Client) -> None:
        await client.join(channel)
        pulled = client.pull(channel, queue, count, order=order, clear=clear)
        async for message in pulled:
            async with message:
                line = to_json(message) if as_json else to_text(message.payload, to_terminal)
                await anyio.to_thread.run_sync(write_line, line, abandon_on_cancel=True)

    run(work, **where)


@click.command(
    epilog="\b\nExamples:\n  tmqp cache weather 1\n  tmqp cache weather 1 --json | jq -r .payload\n"
)
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@json_option(
    "One JSON object: channel, queue, and payload as text, or payload_base64 if it is not text."
)
@connected
def cache(channel: str, queue: int, as_json: bool, **where: Any) -> None:
    """Print the message of a cache queue.  Exit code 1 if it is empty."""
    to_terminal = sys.stdout.isatty()

    async def work(client: Client) -> None:
        await client.join(channel)
        payload = await client.read_cache(channel, queue)
        if payload is None:
            raise CommandError(f"queue {queue} of {channel} holds no message", EXIT_REFUSED)
        if as_json:
            click.echo(to_line({"channel": channel, "queue": queue, **payload_fields(payload)}))
        else:
            write_line(to_text(payload, to_terminal))

    run(work, **where)
