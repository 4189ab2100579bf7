"""The commands of readers, which read the kept messages of queues without removing them."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio.to_thread
import click

from tmqp.extensions import (
    START_EARLIEST,
    START_LATEST,
    STATE_DEFERRED,
    STATE_IN_FLIGHT,
    STATE_WAITING,
)
from tmqp_client import Client, KeptMessage, PeekedMessage
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._output import plain, show_fields, show_rows
from tmqp_client.cli._run import KEEP_TRYING, connected, json_option, report, run
from tmqp_client.cli.sub import payload_fields, to_text, write_line

__all__ = [
    "CURSOR_COLUMNS",
    "OFFSET_COLUMNS",
    "cursor",
    "cursor_commit",
    "cursor_list",
    "cursor_open",
    "cursor_remove",
    "offsets",
    "peek",
    "read",
    "to_json",
]

OFFSET_COLUMNS = ("channel", "queue", "earliest", "latest", "count", "bytes", "oldest_ms")
CURSOR_COLUMNS = ("name", "sequence", "incarnation")
_SEQUENCE = click.IntRange(0, 2**63 - 1)

_start = click.option(
    "--start",
    type=click.Choice((START_EARLIEST, START_LATEST)),
    default=START_EARLIEST,
    show_default=True,
    help="Where a new cursor begins: at the earliest message kept, or after the latest.",
)


@click.command(epilog="\b\nExamples:\n  tmqp offsets\n  tmqp offsets 'ord*' --queue 1 --json\n")
@click.argument("filter", required=False, default="*")
@click.option("-q", "--queue", "queue_id", type=QUEUE_ID, help="Only queues with this number.")
@json_option("Print one JSON object per line.")
@connected
def offsets(filter: str, queue_id: int | None, as_json: bool, **where: Any) -> None:
    """List the readable sequences of the queues of all channels, or of those that match x*, *x, *x*
    or x*y.

    The server must have a data directory.
    """

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.offsets(filter, queue_id)]
        show_rows(OFFSET_COLUMNS, rows, as_json=as_json)

    run(work, **where)


@click.command(
    epilog="""\b
Examples:
  tmqp read orders 1
  tmqp read orders 1 --first 1000 --last 1999 --json
  tmqp read orders 1 --cursor audit --follow
"""
)
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@click.option("--first", type=_SEQUENCE, help="From this sequence on.  [default: the earliest]")
@click.option("--last", type=_SEQUENCE, help="Up to this sequence.  [default: the latest]")
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this number of messages.")
@click.option("--cursor", "cursor_name", help="Continue at the cursor with this name, and move it.")
@_start
@click.option("--follow", is_flag=True, help="With --cursor: wait for more, until Ctrl-C.")
@json_option(
    "One JSON object for each message: sequence, timestamp_us, message_id, source, headers, flags,"
    " and payload as text, or payload_base64 if it is not text."
)
@connected
def read(
    channel: str,
    queue: int,
    first: int | None,
    last: int | None,
    count: int | None,
    cursor_name: str | None,
    start: str,
    follow: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Print the kept messages of a queue, consumed or not, without removing them.

    The cursor moves past a message after it was written.
    """
    if cursor_name is not None and (first is not None or last is not None):
        raise click.UsageError("--cursor determines the start: leave out --first and --last")
    if follow and cursor_name is None:
        raise click.UsageError("--follow needs a --cursor")
    to_terminal = sys.stdout.isatty()

    async def write(message: KeptMessage) -> None:
        line = to_json(message) if as_json else to_text(message.payload, to_terminal)
        await anyio.to_thread.run_sync(write_line, line, abandon_on_cancel=True)

    async def by_cursor(client: Client, cursor: str) -> None:
        place = await client.open_cursor(channel, queue, cursor, start)
        written = place.sequence
        seen = 0
        try:
            async for message in client.read_from(
                channel, queue, cursor, start=start, follow=follow
            ):
                await write(message)
                written = message.sequence
                seen += 1
                if seen == count:
                    break
        finally:
            if written > place.sequence:
                with anyio.move_on_after(2, shield=True):  # Ctrl-C too leaves it where it is
                    await client.commit_cursor(
                        channel, queue, cursor, written, incarnation=place.incarnation
                    )

    async def by_range(client: Client) -> None:
        begin = first
        left = count
        while left is None or left > 0:
            portion = await client.read_range(channel, queue, begin, last, left)
            if not portion:
                return
            for message in portion:
                await write(message)
            begin = portion[-1].sequence + 1
            left = None if left is None else left - len(portion)
            if last is not None and begin > last:
                return

    async def work(client: Client) -> None:
        await (by_range(client) if cursor_name is None else by_cursor(client, cursor_name))

    run(work, reconnect=KEEP_TRYING if follow else None, **where)


def to_json(message: KeptMessage) -> bytes:
    """Everything about a message as one line of JSON."""
    fields: dict[str, object] = {
        "sequence": message.sequence,
        "timestamp_us": message.timestamp_us,
        "message_id": message.message_id,
        "source": message.source,
        "headers": message.headers,
        "high_priority": message.high_priority,
        **payload_fields(message.payload),
    }
    return json.dumps(fields, ensure_ascii=True).encode("ascii")


@click.command(
    epilog="""\b
Examples:
  tmqp peek orders 1
  tmqp peek orders 1 --state in-flight --json
  tmqp peek orders 1 --id 6d9f0c
  tmqp peek orders 1 --filter 'kind=order; region=eu*'
"""
)
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@click.option(
    "--state",
    "states",
    type=click.Choice((STATE_WAITING, STATE_DEFERRED, STATE_IN_FLIGHT)),
    multiple=True,
    help="Only messages in this state; repeat for more.",
)
@click.option("--id", "message_id", default="", help="Only messages with this id.")
@click.option("--filter", "wanted", help="Only messages that this filter accepts.")
@click.option(
    "--filter-language",
    "language",
    help="headers (the default), prefix, sql92 or sql92-converting.",
)
@click.option("--first", type=_SEQUENCE, default=0, help="From this sequence on.")
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this number of messages.")
@json_option("Print one JSON object per line.")
@connected
def peek(
    channel: str,
    queue: int,
    states: tuple[str, ...],
    message_id: str,
    wanted: str | None,
    language: str | None,
    first: int,
    count: int | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Print the messages in a queue without removing them."""
    to_terminal = sys.stdout.isatty()

    async def work(client: Client) -> None:
        seen = 0
        async for message in client.peek(
            channel,
            queue,
            states=states,
            message_id=message_id,
            filter=wanted,
            filter_language=language,
            first=first,
        ):
            line = _peeked(message) if as_json else to_text(message.payload, to_terminal)
            await anyio.to_thread.run_sync(write_line, line, abandon_on_cancel=True)
            seen += 1
            if seen == count:
                return

    run(work, **where)


def _peeked(message: PeekedMessage) -> bytes:
    """Everything about a message in a queue as one line of JSON."""
    fields: dict[str, object] = {
        "sequence": message.sequence,
        "state": message.state,
        "message_id": message.message_id,
        "source": message.source,
        "headers": message.headers,
        "high_priority": message.high_priority,
        "attempts": message.attempts,
        "due_at": None if message.due_at is None else message.due_at.isoformat(),
        "expires_at": None if message.expires_at is None else message.expires_at.isoformat(),
        "kept": message.kept,
        **payload_fields(message.payload),
    }
    return json.dumps(fields, ensure_ascii=True).encode("ascii")


# --- Cursors -------------------------------------------------------------------------------------


@click.group("cursor")
def cursor() -> None:
    """Manage the named readers of a queue.

    A cursor is the last sequence that its reader has processed.
    """


@cursor.command("ls", epilog="\b\nExample:\n  tmqp cursor ls orders 1\n")
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@json_option("Print one JSON object per line.")
@connected
def cursor_list(channel: str, queue: int, as_json: bool, **where: Any) -> None:
    """List the cursors of a queue."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.cursors(channel, queue)]
        show_rows(CURSOR_COLUMNS, rows, as_json=as_json)

    run(work, **where)


@cursor.command("open", epilog="\b\nExample:\n  tmqp cursor open orders 1 audit --start latest\n")
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@click.argument("cursor_name", metavar="NAME")
@_start
@json_option()
@connected
def cursor_open(
    channel: str, queue: int, cursor_name: str, start: str, as_json: bool, **where: Any
) -> None:
    """Create a reader, and print its position; an existing one keeps its position."""

    async def work(client: Client) -> None:
        show_fields(await client.open_cursor(channel, queue, cursor_name, start), as_json=as_json)

    run(work, **where)


@cursor.command("commit", epilog="\b\nExample:\n  tmqp cursor commit orders 1 audit 1999\n")
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@click.argument("cursor_name", metavar="NAME")
@click.argument("sequence", type=_SEQUENCE)
@json_option()
@connected
def cursor_commit(
    channel: str, queue: int, cursor_name: str, sequence: int, as_json: bool, **where: Any
) -> None:
    """Commit a reader's position after SEQUENCE; it never moves back."""

    async def work(client: Client) -> None:
        show_fields(
            await client.commit_cursor(channel, queue, cursor_name, sequence), as_json=as_json
        )

    run(work, **where)


@cursor.command("rm", epilog="\b\nExample:\n  tmqp cursor rm orders 1 audit\n")
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@click.argument("cursor_name", metavar="NAME")
@json_option()
@connected
def cursor_remove(channel: str, queue: int, cursor_name: str, as_json: bool, **where: Any) -> None:
    """Remove a reader, and release messages that are kept only for it."""

    async def work(client: Client) -> None:
        await client.drop_cursor(channel, queue, cursor_name)
        report(
            f"cursor {cursor_name} of queue {queue} of {channel} removed",
            as_json=as_json,
            channel=channel,
            queue=queue,
            name=cursor_name,
            removed=True,
        )

    run(work, **where)
