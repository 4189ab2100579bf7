"""``tmqp request``, ``tmqp reply`` and ``tmqp events``."""

from __future__ import annotations

import sys
from typing import Any, Final

import anyio
import anyio.to_thread
import click

from tmqp.constants import EventName, ResultCode
from tmqp_client import Client, DirectMessage
from tmqp_client.cli._names import CHANNEL, QUEUE_ID
from tmqp_client.cli._output import plain, to_line
from tmqp_client.cli._programs import output_of
from tmqp_client.cli._run import (
    EXIT_REFUSED,
    KEEP_TRYING,
    CommandError,
    connected,
    header_option,
    json_option,
    printable,
    run,
)
from tmqp_client.cli.sub import payload_fields, to_text, write_line
from tmqp_client.errors import code_words

__all__ = ["events", "reply", "request"]

_MAX_AT_ONCE: Final = 16
_EVENTS: Final = tuple(each.value for each in EventName)


@click.command(
    epilog="""\b
Examples:
  tmqp request @name:calculator 16 --content-type 1
  tmqp request 0123456789abcdef 'are you there?' --timeout 2
"""
)
@click.argument("target")
@click.argument("text")
@click.option(
    "-c", "--content-type", type=QUEUE_ID, default=0, help="Any number that the programs agree on."
)
@header_option("Repeat for more.")
@json_option()
@connected
def request(
    target: str,
    text: str,
    content_type: int,
    headers: tuple[tuple[str, str], ...],
    as_json: bool,
    **where: Any,
) -> None:
    """Send a request to another client and print its response.

    TARGET is a client's id, @name:NAME or @type:TYPE.  The exit code is 1 for a response that
    reports a failure.
    """
    to_terminal = sys.stdout.isatty()

    async def work(client: Client) -> None:
        payload = text.encode("utf-8", "surrogateescape")
        answer = await client.request(target, payload, content_type=content_type, headers=headers)
        if as_json:
            fields = {"code": answer.code, "source": answer.source}
            click.echo(to_line({**fields, **payload_fields(answer.payload)}))
        elif answer.payload:
            write_line(to_text(answer.payload, to_terminal))
        if answer.code not in (ResultCode.OK, ResultCode.NO_CONTENT):
            raise CommandError(f"it answered {code_words(answer.code)}", EXIT_REFUSED)

    run(work, **where)


@click.command(
    epilog="""\b
Examples:
  tmqp reply 'always the same' --name oracle
  tmqp reply --name clock -- date +%T
  tmqp reply --name shouter -- tr a-z A-Z
""",
)
@click.argument("command", nargs=-1, required=True)
@click.option("-c", "--content-type", type=QUEUE_ID, help="Answer only these.")
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this number of messages.")
@json_option(
    "One JSON object for each request answered: message_id, source, content_type, its payload, and"
    " the code it was answered with; payload_base64 if it is not text."
)
@connected
def reply(
    command: tuple[str, ...],
    content_type: int | None,
    count: int | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Answer the requests of other clients, until Ctrl-C.

    One word is the answer itself.  Several are a command: it gets the request's payload on standard
    input, and its standard output is the answer; if it fails, the answer is 500.
    """

    async def tell(message: DirectMessage, code: int) -> None:
        if not as_json:
            return
        fields = {
            "message_id": message.message_id,
            "source": message.source,
            "content_type": message.content_type,
            **payload_fields(message.payload),
            "code": int(code),
        }
        line = to_line(fields).encode("ascii")
        await anyio.to_thread.run_sync(write_line, line, abandon_on_cancel=True)

    async def answer(message: DirectMessage) -> None:
        async with message:
            if len(command) == 1:
                await message.respond(0, command[0])
                await tell(message, ResultCode.OK)
                return
            try:
                status, output = await output_of(command, message.payload)
            except OSError as error:
                raise CommandError(f"{command[0]}: {error.strerror}", EXIT_REFUSED) from None
            code = ResultCode.OK if status == 0 else ResultCode.INTERNAL_SERVER_ERROR
            await message.respond(code, output)
            await tell(message, code)

    async def work(client: Client) -> None:
        seen = 0
        async with client.direct_messages() as messages, anyio.create_task_group() as tasks:
            room = anyio.Semaphore(_MAX_AT_ONCE)

            async def one(message: DirectMessage) -> None:
                async with room:
                    await answer(message)

            click.echo(f"answering as {client.client_id}", err=True)
            async for message in messages:
                if content_type is not None and message.content_type != content_type:
                    await message.respond(ResultCode.NOT_FOUND)
                    continue
                tasks.start_soon(one, message)
                seen += 1
                if seen == count:
                    break

    run(work, reconnect=KEEP_TRYING, **where)


@click.command(
    epilog="""\b
Examples:
  tmqp events ClientConnected
  tmqp events QueueCreated orders --json
  tmqp events MessageProduced orders 1 --count 10
"""
)
@click.argument(
    "event_name", metavar="EVENT", type=click.Choice([each.value for each in EventName])
)
@click.argument("channel", type=CHANNEL, required=False)
@click.argument("queue", type=QUEUE_ID, required=False)
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this number of messages.")
@json_option("Print one JSON object per line.")
@connected
def events(
    event_name: str,
    channel: str | None,
    queue: int | None,
    count: int | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Print events of the server as they happen, until Ctrl-C."""

    async def work(client: Client) -> None:
        seen = 0
        async with client.events(event_name, channel, queue) as found:
            click.echo(f"listening to {event_name}", err=True)
            async for event in found:
                fields: dict[str, Any] = plain(event)
                if as_json:
                    line = to_line({"event": event_name, **fields})
                else:
                    words = [f"{key}={value}" for key, value in fields.items() if value is not None]
                    line = printable(f"{event_name}  {'  '.join(words)}")
                await anyio.to_thread.run_sync(
                    write_line, line.encode("utf-8"), abandon_on_cancel=True
                )
                seen += 1
                if seen == count:
                    return

    run(work, reconnect=KEEP_TRYING, **where)
