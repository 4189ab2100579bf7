"""``tmqp sub``: messages of a channel, to standard output."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import anyio.to_thread
import click

from tmqp_client import Client, Message
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._run import KEEP_TRYING, connected, printable, run

__all__ = ["payload_fields", "sub", "to_json", "to_text", "write_line"]


@click.command(
    short_help="Print messages of a channel.",
    epilog="""\b
Examples:
  tmqp sub orders
  tmqp sub orders --queue 1 --count 10
  tmqp sub orders --filter 'kind=order; region=eu*'
  tmqp sub orders --json | jq .payload
""",
)
@click.argument("channel", type=CHANNEL)
@click.option("-q", "--queue", type=QUEUE_ID, help="This queue only, not all of the channel.")
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object for each message: channel, queue, message_id, source, headers, flags, and"
    " payload as text, or payload_base64 where it is none.",
)
@click.option("--filter", "wanted", help="Only messages that pass this filter.")
@click.option("--filter-language", "language", help="headers (the default) or prefix.")
@click.option("--keep", is_flag=True, help="Reconnect when the connection is lost.")
@connected
def sub(
    channel: str,
    queue: int | None,
    count: int | None,
    as_json: bool,
    wanted: str | None,
    language: str | None,
    keep: bool,
    **where: Any,
) -> None:
    """Join CHANNEL and print each message on a line of its own, until Ctrl-C.

    A message is acknowledged once it was written.
    """
    to_terminal = sys.stdout.isatty()

    async def work(client: Client) -> None:
        seen = 0
        consuming = client.consume(channel, queue, filter=wanted, filter_language=language)
        async with consuming as messages:
            async for message in messages:
                line = to_json(message) if as_json else to_text(message.payload, to_terminal)
                # In a thread: a reader that pauses our output must not stop the pongs.
                await anyio.to_thread.run_sync(write_line, line, abandon_on_cancel=True)
                seen += 1
                if seen == count:
                    return

    run(work, reconnect=KEEP_TRYING if keep else None, **where)


def to_text(payload: bytes, to_terminal: bool) -> bytes:
    """The payload as it is; on a terminal, without anything that could command it."""
    if not to_terminal:
        return payload
    return printable(payload.decode("utf-8", "backslashreplace")).encode("utf-8")


def to_json(message: Message) -> bytes:
    """Everything about a message as one line of JSON."""
    fields: dict[str, object] = {
        "channel": message.channel,
        "queue": message.queue_id,
        "message_id": message.message_id,
        "source": message.source,
        "headers": message.headers,
        "high_priority": message.high_priority,
        "redelivered": message.redelivered,
        **payload_fields(message.payload),
    }
    return json.dumps(fields, ensure_ascii=True).encode("ascii")


def payload_fields(payload: bytes) -> dict[str, str]:
    """A payload as JSON has it: text, or Base64 where it is none."""
    try:
        return {"payload": payload.decode("utf-8")}
    except UnicodeDecodeError:
        return {"payload_base64": base64.b64encode(payload).decode("ascii")}


def write_line(line: bytes) -> None:
    """Write a line to standard output now."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
