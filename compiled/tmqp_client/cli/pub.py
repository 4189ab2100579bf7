"""Owns ``tmqp pub``: messages from an argument, from standard input, or line by line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, BinaryIO, Final

import anyio.to_thread
import click

from tmqp.events import AcknowledgeReceived, ResponseReceived
from tmqp_client import BatchFailed, BatchReport, Client
from tmqp_client.cli._run import (
    EXIT_REFUSED,
    QUEUE_ID,
    CommandError,
    connected,
    exit_code,
    header_option,
    printable,
    run,
)
from tmqp_client.errors import code_words

__all__ = ["pub"]

#: Lines are read in pieces of about this size, so that a file of any size streams through.
_READ_BYTES: Final = 65_536
_SHOWN_FAILURES: Final = 5


@click.command(
    epilog="""\b
Examples:
  tmqp pub orders 1 'one pizza'
  tmqp pub orders 1 'one pizza' --count 100 --no-wait
  tmqp pub orders 1 - < order.json
  tmqp pub orders 1 --lines orders.jsonl -H Content-Type:application/json
  generate | tmqp pub orders 1 --lines -
"""
)
@click.argument("channel")
@click.argument("queue", type=QUEUE_ID)
@click.argument("text", required=False)
@click.option(
    "--lines",
    type=click.File("rb"),
    help="One message for each line of a file; - is standard input.  Line ends are not sent.",
)
@click.option("-n", "--count", type=click.IntRange(1), help="Push the message so many times.")
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait until each message is acknowledged.",
)
@header_option("Repeat for more.")
@click.option("-p", "--high-priority", is_flag=True, help="Push in front of ordinary messages.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Report nothing but errors.")
@connected
def pub(
    channel: str,
    queue: int,
    text: str | None,
    lines: BinaryIO | None,
    count: int | None,
    wait: bool,
    headers: tuple[tuple[str, str], ...],
    high_priority: bool,
    as_json: bool,
    quiet: bool,
    **where: Any,
) -> None:
    """Push messages into a queue of CHANNEL.

    TEXT is the message; - reads one message from standard input.  The queue decides when it
    acknowledges: with a delivery handler that never does, use --no-wait.
    """
    if (text is None) == (lines is None):
        raise click.UsageError("give one of TEXT, - (standard input) or --lines FILE")
    if lines is not None and count is not None:
        raise click.UsageError("--count repeats one message; it does not go with --lines")

    async def work(client: Client) -> None:
        began = time.monotonic()
        failure: BatchFailed | None = None
        try:
            async with aclosing(_payloads(text, lines, count or 1)) as payloads:
                report = await client.push_many(
                    channel,
                    queue,
                    payloads,
                    headers=headers,
                    high_priority=high_priority,
                    wait=wait,
                )
        except BatchFailed as error:
            failure, report = error, error.report
        else:
            if not wait:
                await _show_refusals(client)
        if not quiet:
            _show(report, time.monotonic() - began, wait=wait, as_json=as_json)
        if failure is not None:
            _end(failure)

    run(work, **where)


async def _payloads(
    text: str | None, lines: BinaryIO | None, count: int
) -> AsyncGenerator[bytes, None]:
    """The messages to push.  Reading happens in a thread: a slow pipe must not stop the pongs."""
    if lines is None:
        assert text is not None, "one of them is given"
        if text == "-":
            payload = await anyio.to_thread.run_sync(sys.stdin.buffer.read, abandon_on_cancel=True)
        else:
            payload = text.encode("utf-8", "surrogateescape")  # as it was typed
        for _ in range(count):
            yield payload
        return
    while True:
        piece = await anyio.to_thread.run_sync(lines.readlines, _READ_BYTES, abandon_on_cancel=True)
        if not piece:
            return
        for line in piece:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


async def _show_refusals(client: Client) -> None:
    """Without waiting, refusals are all that comes back; behind a pong, all of them have come."""
    await client.ping()
    refused = 0
    unclaimed = client.unclaimed()
    for _ in range(client.statistics().unclaimed):
        event = await anext(unclaimed)
        if isinstance(event, ResponseReceived):
            words = f"the server answered {code_words(event.code)}"
        elif isinstance(event, AcknowledgeReceived):
            words = f"negative acknowledge, reason {event.reason!r}"
        else:
            continue
        refused += 1
        if refused <= _SHOWN_FAILURES:
            sentence = f"message {event.frame.message_id}: {words}"
            click.echo(f"tmqp: {printable(sentence)}", err=True)
    if refused:
        raise CommandError(f"{refused} of {client.statistics().pushed} were refused", EXIT_REFUSED)


def _show(report: BatchReport, seconds: float, *, wait: bool, as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps(
                {
                    "sent": report.sent,
                    "confirmed": report.confirmed if wait else None,
                    "failed": report.failed,
                    "seconds": round(seconds, 6),
                }
            )
        )
        return
    words = f"{report.confirmed} confirmed" if wait else "not confirmed"
    rate = report.sent / seconds if seconds > 0 else 0.0
    click.echo(f"{report.sent} pushed, {words}, {seconds:.3f} s, {rate:,.0f}/s", err=True)


def _end(failure: BatchFailed) -> None:
    """Show some of what failed, and end with the exit code of the first."""
    report = failure.report
    for item in report.failures[:_SHOWN_FAILURES]:
        click.echo(f"tmqp: message {item.index + 1}: {printable(str(item.error))}", err=True)
    raise CommandError(
        f"{report.failed} of {report.sent} were not confirmed",
        exit_code(report.failures[0].error),
    )
