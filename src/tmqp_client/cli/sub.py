"""``tmqp sub``: messages of a channel, to standard output or to a command."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar, final

import anyio.to_thread
import click

from tmqp_client import Client, Message, OperationFailed, OperationTimeout
from tmqp_client.cli._kinds import Number
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._programs import status_of
from tmqp_client.cli._run import (
    EXIT_REFUSED,
    KEEP_TRYING,
    CommandError,
    connected,
    printable,
    run,
)

__all__ = ["payload_fields", "sub", "to_json", "to_text", "write_line"]


_C = TypeVar("_C", bound=Callable[..., Any])
#: The acknowledgement timeout that is requested again while a command runs, in seconds.
_HOLD_S: Final = 30.0


def _terms_options(command: _C) -> _C:
    """The options about which messages the server may send, and what happens to unanswered ones."""
    options = (
        click.option(
            "--window",
            type=click.IntRange(1),
            metavar="NUMBER",
            help="At most this number of unacknowledged messages.  [default: 1 with COMMAND]",
        ),
        click.option(
            "--credit",
            type=click.IntRange(1),
            metavar="NUMBER",
            help="Receive this number of messages of the channel in total.",
        ),
        click.option(
            "--ack-timeout",
            "ack_timeout_s",
            type=Number(0, infinite=True),
            metavar="SECONDS",
            help="Time to acknowledge a message, instead of the queue's; inf for no limit while"
            " this command runs.  [default: 30 with COMMAND]",
        ),
        click.option(
            "--returns",
            type=click.Choice(("timeout", "front", "end")),
            help="What happens to messages that were sent to this command but not acknowledged when"
            " it ends: back at once to the front or the end of their queue, or only when their time"
            " is up.  [default: front with --count or COMMAND, else timeout]",
        ),
        click.option(
            "--priority",
            type=click.IntRange(0, 127),
            help="If messages go to one consumer each, consumers with the highest number are "
            "served first.",
        ),
    )
    wrapped: Any = command
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


@click.command(
    short_help="Print messages of a channel, or run a command for each.",
    epilog="""\b
Examples:
  tmqp sub orders
  tmqp sub orders --queue 1 --count 10
  tmqp sub orders --filter 'kind=order; region=eu*'
  tmqp sub orders --json | jq .payload
  tmqp sub orders --window 5 --returns front
  tmqp sub mails -- ./send-mail --retries 3
  tmqp sub mails --on-failure release --retry-delay 60 -- ./send-mail
""",
)
@click.argument("channel", type=CHANNEL)
@click.argument("command", nargs=-1)
@click.option(
    "-q", "--queue", type=QUEUE_ID, help="Only this queue, not all queues of the channel."
)
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this number of messages.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object for each message: channel, queue, message_id, source, headers, flags, and"
    " payload as text, or payload_base64 if it is not text.",
)
@click.option("--filter", "wanted", help="Only messages that this filter accepts.")
@click.option(
    "--filter-language",
    "language",
    help="headers (the default), prefix, sql92 or sql92-converting.",
)
@_terms_options
@click.option(
    "--on-failure",
    type=click.Choice(("release", "nack", "stop")),
    default="release",
    show_default=True,
    help="When COMMAND fails: give the message back to be sent again, acknowledge it negatively, or"
    " give it back and stop with exit code 1.",
)
@click.option(
    "--retry-delay",
    "retry_delay_s",
    type=Number(0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds until a released message is redelivered.",
)
@click.option("--keep", is_flag=True, help="Reconnect when the connection is lost.")
@connected
def sub(
    channel: str,
    command: tuple[str, ...],
    queue: int | None,
    count: int | None,
    as_json: bool,
    wanted: str | None,
    language: str | None,
    window: int | None,
    credit: int | None,
    ack_timeout_s: float | None,
    returns: Any,
    priority: int | None,
    on_failure: str,
    retry_delay_s: float,
    keep: bool,
    **where: Any,
) -> None:
    """Join CHANNEL and print each message on a line, until Ctrl-C.

    A message is acknowledged after it was written.

    With COMMAND, write two dashes before it: it is run for each message, one after the other, and
    gets the payload (with --json, the JSON object) on standard input, and TMQP_CHANNEL, TMQP_QUEUE,
    TMQP_MESSAGE_ID, TMQP_SOURCE and TMQP_REDELIVERED (0 or 1) in its environment.  The message is
    acknowledged if it ends with exit code 0.  While it runs, the acknowledgement timeout is
    extended; if the message is redelivered nevertheless, a line on standard error says so.
    """
    if returns is None and (command or count is not None):
        returns = "front"
    if command:
        window = 1 if window is None else window
        ack_timeout_s = _HOLD_S if ack_timeout_s is None else ack_timeout_s
    terms = {
        "window": window,
        "credit": credit,
        "ack_timeout_s": ack_timeout_s,
        "returns": returns,
        "priority": priority,
    }
    to_terminal = sys.stdout.isatty()
    worker = _Worker(command, ack_timeout_s, on_failure, retry_delay_s, as_json=as_json)

    async def work(client: Client) -> None:
        seen = 0
        async with client.consume(
            channel,
            queue,
            acknowledge="manual" if command else "auto",
            filter=wanted,
            filter_language=language,
            tells_lapsed=bool(command),
            **terms,
        ) as messages:
            async for message in messages:
                if command:
                    await worker.handle(message)
                else:
                    line = to_json(message) if as_json else to_text(message.payload, to_terminal)
                    # In a thread: a reader that pauses our output must not stop the pongs.
                    await anyio.to_thread.run_sync(write_line, line, abandon_on_cancel=True)
                seen += 1
                if seen == count:
                    return

    run(work, reconnect=KEEP_TRYING if keep else None, **where)


@final
class _Worker:
    """Runs a command for messages.

    :param hold_s: the requested acknowledgement timeout; None or 0 for the queue's.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        hold_s: float | None,
        on_failure: str,
        retry_delay_s: float,
        *,
        as_json: bool,
    ) -> None:
        self._command = command
        self._hold_s = hold_s or math.inf
        self._on_failure = on_failure
        self._retry_delay_s = retry_delay_s
        self._as_json = as_json

    async def handle(self, message: Message) -> None:
        """Run the command for a message, and answer according to its exit status.

        :raises CommandError: if it cannot be started, or if it failed and failures end the program.
        """
        status = 0
        problem: OSError | None = None
        async with anyio.create_task_group() as tasks:
            if math.isfinite(self._hold_s):
                tasks.start_soon(self._extend, message)
            try:
                status = await self._run(message)
            except OSError as error:
                problem = error
            tasks.cancel_scope.cancel()
        if problem is not None:
            await message.release(to="front", counted=False)
            raise CommandError(f"{self._command[0]}: {problem.strerror}", EXIT_REFUSED)
        if message.lapsed:
            sentence = f"message {message.message_id} was taken back ({message.lapsed})"
            sentence += f" before {self._command[0]} ended with {status}"
            click.echo(f"tmqp: {printable(sentence)}", err=True)
            return
        if status == 0:
            await message.ack()
            return
        sentence = f"{self._command[0]} ended with {status} for message {message.message_id}"
        click.echo(f"tmqp: {printable(sentence)}", err=True)
        if self._on_failure == "nack":
            await message.nack("error")
            return
        await message.release(delay_s=self._retry_delay_s)
        if self._on_failure == "stop":
            raise CommandError(sentence, EXIT_REFUSED)

    async def _run(self, message: Message) -> int:
        payload = to_json(message) if self._as_json else message.payload
        variables = {
            "TMQP_CHANNEL": message.channel,
            "TMQP_QUEUE": str(message.queue_id),
            "TMQP_MESSAGE_ID": message.message_id,
            "TMQP_SOURCE": message.source,
            "TMQP_REDELIVERED": str(int(message.redelivered)),
        }
        return await status_of(self._command, payload, variables)

    async def _extend(self, message: Message) -> None:
        """Extend the acknowledgement timeout as long as the command runs."""
        try:
            while True:
                await anyio.sleep(self._hold_s / 3)
                if not await message.extend(self._hold_s):
                    return
        except (OperationFailed, OperationTimeout):
            return  # the server has redelivered it, or does not know the operation


def to_text(payload: bytes, to_terminal: bool) -> bytes:
    """The payload unchanged; on a terminal, with its control characters escaped."""
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
    """A payload for JSON: as text, or as Base64 if it is not UTF-8."""
    try:
        return {"payload": payload.decode("utf-8")}
    except UnicodeDecodeError:
        return {"payload_base64": base64.b64encode(payload).decode("ascii")}


def write_line(line: bytes) -> None:
    """Write a line to standard output now."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
