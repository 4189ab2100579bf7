"""``tmqp pub``: messages from an argument, standard input, line by line, or from files."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import uuid4

import anyio.to_thread
import click

from tmqp.events import AcknowledgeReceived, ResponseReceived
from tmqp_client import BatchFailed, BatchReport, Client, ClientLimits, OperationFailed
from tmqp_client.cli._kinds import Number
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._options import MOMENT
from tmqp_client.cli._run import (
    EXIT_REFUSED,
    EXIT_USAGE,
    CommandError,
    connected,
    exit_code,
    header_option,
    printable,
    run,
)
from tmqp_client.errors import code_words

__all__ = ["filled", "pub"]

#: Lines are read in pieces of about this size, so that a file of any size streams through.
_READ_BYTES: Final = 65_536
_SHOWN_FAILURES: Final = 5
#: Options of messages that cannot be counted.
_NOT_COUNTED: Final = ("delay_s", "deliver_at", "expires_s", "key", "room_s")


@click.command(
    epilog="""\b
Examples:
  tmqp pub orders 1 'one pizza'
  tmqp pub orders 1 'one pizza' --count 100 --no-wait
  tmqp pub orders 1 'order {n} at {time}' --template --count 100 --rate 10
  tmqp pub pictures 1 --file a.png --file b.png
  tmqp pub orders 1 - < order.json
  tmqp pub orders 1 --lines orders.jsonl -H Content-Type:application/json
  tmqp pub orders 1 'remind me' --delay 3600
  tmqp pub orders 1 'happy new year' --deliver-at 2027-01-01T00:00:00Z
  generate | tmqp pub orders 1 --lines -
  tmqp pub orders 1 --lines orders.jsonl --batch
  tmqp pub news 1 'it rains' --receivers
"""
)
@click.argument("channel", type=CHANNEL)
@click.argument("queue", type=QUEUE_ID)
@click.argument("text", required=False)
@click.option(
    "--lines",
    type=click.File("rb"),
    help="One message for each line of a file; - is standard input.  Line ends are not sent.",
)
@click.option(
    "--file",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="One message for each file, its contents; repeat for more.",
)
@click.option(
    "--template",
    is_flag=True,
    help="Write {n} (the message's number from 1), {time} (UTC) and {uuid} into each message.",
)
@click.option(
    "--rate",
    type=Number(0, above=True),
    metavar="NUMBER",
    help="The maximum number of messages per second.",
)
@click.option(
    "-n", "--count", type=click.IntRange(1), help="Push the message this number of times."
)
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait until each message is acknowledged.",
)
@click.option(
    "--batch",
    is_flag=True,
    help="Push all of the messages or none: nothing is sent before the last one was read.",
)
@click.option(
    "--receivers",
    "counts",
    is_flag=True,
    help="Push one after the other, and report how many consumers got them at once.",
)
@header_option("Repeat for more.")
@click.option("-p", "--high-priority", is_flag=True, help="Push in front of ordinary messages.")
@click.option(
    "--delay",
    "delay_s",
    type=Number(0),
    metavar="SECONDS",
    help="Do not deliver for this number of seconds.",
)
@click.option(
    "--deliver-at",
    type=MOMENT,
    help="Deliver no sooner than at this time, such as 2027-01-01T08:00:00Z.",
)
@click.option(
    "--expires",
    "expires_s",
    type=Number(0, above=True),
    metavar="SECONDS",
    help="Drop a message that still waits after this number of seconds.",
)
@click.option(
    "--key",
    metavar="TEXT",
    help="The key of the messages, for queues with the option group-keys.",
)
@click.option(
    "--room",
    "room_s",
    type=Number(0),
    metavar="SECONDS",
    help="Let each message wait this long for room in a full queue, instead of being refused.",
)
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Report nothing but errors.")
@connected
def pub(
    channel: str,
    queue: int,
    text: str | None,
    lines: BinaryIO | None,
    files: tuple[Path, ...],
    template: bool,
    rate: float | None,
    count: int | None,
    wait: bool,
    batch: bool,
    counts: bool,
    headers: tuple[tuple[str, str], ...],
    high_priority: bool,
    delay_s: float | None,
    deliver_at: datetime | None,
    expires_s: float | None,
    key: str | None,
    room_s: float | None,
    as_json: bool,
    quiet: bool,
    **where: Any,
) -> None:
    """Push messages into a queue of CHANNEL.

    TEXT is the message; - reads one message from standard input.  The queue's delivery handler
    decides when it acknowledges; if it never does, use --no-wait.

    With --batch the server accepts all messages, which must fit into one request, or none of them,
    whether a line is invalid, a queue is full or the server crashes.
    """
    if (text is not None) + (lines is not None) + bool(files) != 1:
        raise click.UsageError("give one of TEXT, - (standard input), --lines FILE or --file FILE")
    if text is None and count is not None:
        raise click.UsageError("--count repeats one message; it excludes --lines and --file")
    source = _Source(text, lines, files, count or 1)
    how: dict[str, Any] = {
        "headers": headers,
        "high_priority": high_priority,
        "delay_s": delay_s,
        "deliver_at": deliver_at,
        "expires_s": expires_s,
        "key": key,
        "room_s": room_s,
    }
    _check(how, batch=batch, counts=counts, wait=wait, rate=rate)

    async def work(client: Client) -> None:
        began = time.monotonic()
        failure: BatchFailed | None = None
        receivers: int | None = None
        try:
            async with aclosing(_paced(source, template, rate)) as payloads:
                if batch:
                    report = await _push_batch(client, channel, queue, payloads, how)
                elif counts:
                    report, receivers = await _push_counted(client, channel, queue, payloads, how)
                else:
                    report = await client.push_many(channel, queue, payloads, wait=wait, **how)
        except BatchFailed as error:
            failure, report = error, error.report
        if failure is None and not wait:
            await _show_refusals(client)
        if not quiet:
            seconds = time.monotonic() - began
            _show(report, seconds, receivers, wait=wait, as_json=as_json)
        if failure is not None:
            _end(failure)

    run(work, **where)


def _check(how: Any, *, batch: bool, counts: bool, wait: bool, rate: float | None) -> None:
    """Refuse options that do not go together."""
    if how["delay_s"] is not None and how["deliver_at"] is not None:
        raise click.UsageError("give --delay or --deliver-at, not both")
    if batch and not wait:
        raise click.UsageError("--batch waits for its result; do not combine it with --no-wait")
    if batch and rate is not None:
        raise click.UsageError("--batch sends everything together; it cannot be used with --rate")
    if batch and how.pop("room_s") is not None:
        raise click.UsageError("--batch is refused as a whole; it cannot be used with --room")
    if counts and (batch or not wait):
        raise click.UsageError("--receivers cannot be used with --batch or --no-wait")
    if counts and any(how[each] is not None for each in _NOT_COUNTED):
        raise click.UsageError(
            "--receivers cannot be used with --delay, --deliver-at, --expires, --key or --room"
        )


async def _push_batch(
    client: Client, channel: str, queue: int, payloads: AsyncGenerator[bytes, None], how: Any
) -> BatchReport:
    """Push all messages together, or none.

    :raises CommandError: when the server refuses them.
    """
    left = ClientLimits().protocol.max_payload_bytes
    batch = client.batch()
    try:
        async with batch:
            async for payload in payloads:
                left -= len(payload)
                if left < 0:
                    most = ClientLimits().protocol.max_payload_bytes
                    raise CommandError(
                        f"the messages have more than {most} bytes together, which is more than"
                        " one batch may have; nothing was pushed",
                        EXIT_USAGE,
                    )
                batch.push(channel, queue, payload, **how)
    except OperationFailed as error:
        sentence = f"none of the {batch.count} messages was pushed: {error}"
        raise CommandError(sentence, exit_code(error)) from None
    return BatchReport(batch.count, batch.count, 0, ())


async def _push_counted(
    client: Client, channel: str, queue: int, payloads: AsyncGenerator[bytes, None], how: Any
) -> tuple[BatchReport, int]:
    """Push message by message; also return to how many consumers they were sent immediately.

    :raises CommandError: if the server does not report that.
    """
    pushed = receivers = 0
    headers, high_priority = how["headers"], how["high_priority"]
    async for payload in payloads:
        sent = await client.push_counted(
            channel, queue, payload, headers=headers, high_priority=high_priority
        )
        pushed += 1
        if sent.receivers is None:
            raise CommandError(f"{pushed} pushed, but the server does not count", EXIT_REFUSED)
        receivers += sent.receivers
    return BatchReport(pushed, pushed, 0, ()), receivers


class _Source:
    """The source of the messages."""

    def __init__(
        self, text: str | None, lines: BinaryIO | None, files: tuple[Path, ...], count: int
    ) -> None:
        self._text = text
        self._lines = lines
        self._files = files
        self._count = count

    async def payloads(self) -> AsyncGenerator[bytes, None]:
        """Yield the messages; read in a thread, because a slow pipe must not stop the pongs."""
        for path in self._files:
            yield await anyio.to_thread.run_sync(path.read_bytes, abandon_on_cancel=True)
        if self._text is not None:
            payload = self._text.encode("utf-8", "surrogateescape")  # as it was typed
            if self._text == "-":
                payload = await anyio.to_thread.run_sync(
                    sys.stdin.buffer.read, abandon_on_cancel=True
                )
            for _ in range(self._count):
                yield payload
        if self._lines is not None:
            async for line in self._split(self._lines):
                yield line.removesuffix(b"\r")

    async def _split(self, lines: BinaryIO) -> AsyncGenerator[bytes, None]:
        """Yield each line as soon as it has arrived, because its writer may be slow."""
        # read1 returns what is available; click's files pass it on from what they opened.
        read = getattr(lines, "read1", lines.read)
        begun: list[bytes] = []
        while piece := await anyio.to_thread.run_sync(read, _READ_BYTES, abandon_on_cancel=True):
            *whole, rest = piece.split(b"\n")
            for line in whole:
                yield b"".join([*begun, line])
                begun.clear()
            if rest:
                begun.append(rest)
        if begun:
            yield b"".join(begun)


async def _paced(
    source: _Source, template: bool, rate: float | None
) -> AsyncGenerator[bytes, None]:
    """Yield the messages, with their templates filled in, at the requested rate."""
    began = anyio.current_time()
    number = 0
    async with aclosing(source.payloads()) as payloads:
        async for payload in payloads:
            number += 1
            if rate is not None:
                await anyio.sleep_until(began + (number - 1) / rate)
            yield filled(payload, number) if template else payload


def filled(payload: bytes, number: int) -> bytes:
    """Fill in the placeholders of a template; everything else stays unchanged, including braces."""
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    payload = payload.replace(b"{n}", b"%d" % number)
    return payload.replace(b"{time}", moment.encode()).replace(b"{uuid}", uuid4().hex.encode())


async def _show_refusals(client: Client) -> None:
    """Show the refusals of messages that were pushed without waiting; after a pong, all have
    arrived."""
    await client.ping()
    refused = 0
    unclaimed = client.unclaimed()
    for _ in range(client.statistics().unclaimed):
        event = await anext(unclaimed)
        if isinstance(event, ResponseReceived):
            words = f"the server answered {code_words(event.code)}"
        elif isinstance(event, AcknowledgeReceived):
            words = f"negative acknowledgement, reason {event.reason!r}"
        else:
            continue
        refused += 1
        if refused <= _SHOWN_FAILURES:
            sentence = f"message {event.frame.message_id}: {words}"
            click.echo(f"tmqp: {printable(sentence)}", err=True)
    if refused:
        raise CommandError(f"{refused} of {client.statistics().pushed} were refused", EXIT_REFUSED)


def _show(
    report: BatchReport, seconds: float, receivers: int | None, *, wait: bool, as_json: bool
) -> None:
    if as_json:
        shown: dict[str, object] = {
            "sent": report.sent,
            "confirmed": report.confirmed if wait else None,
            "failed": report.failed,
            "seconds": round(seconds, 6),
        }
        if receivers is not None:
            shown["receivers"] = receivers
        click.echo(json.dumps(shown))
        return
    words = f"{report.confirmed} confirmed" if wait else "not confirmed"
    if receivers is not None:
        words += f", to {receivers} consumers at once"
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
