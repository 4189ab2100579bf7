"""``tmqp slowlog`` and ``tmqp trace``: what takes long in a server, and what one client does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import anyio
import click

from tmqp_client.cli._asking import Where, asking, needing_admin
from tmqp_client.cli._run import json_option, printable, run_alone

__all__ = ["slowlog", "trace"]

#: Seconds between two requests for the lines of a trace.
_LOOK_S: Final = 1.0


@click.command(
    "slowlog",
    epilog="""\b
Examples:
  tmqp slowlog
  tmqp slowlog --json | jq '.consumers[].peer'
""",
)
@json_option("Print the answer of the server's API.")
@asking
def slowlog(as_json: bool, where: Where) -> None:
    """Print the last slow turns of a server's event loop, and slow consumers.

    A turn is slow if it takes longer than slow_turn_ms; the line names the connection that took
    most of it.  A consumer is slow when its deliveries have been paused for a second because it
    does not read them.  The command uses the admin door (--http).
    """

    async def work() -> None:
        with needing_admin():
            found = await where.admin.ask("GET", "/server/slow")
        if as_json:
            click.echo(json.dumps(found))
            return
        click.echo(f"{found['count']} turns took more than {found['slow_turn_ms']:g} ms")
        for each in found["turns"]:
            who = f", {each['session_ms']:g} ms with {each['peer'] or each['session']}"
            text = f"{_moment(each['at_ms'])}  {each['took_ms']:g} ms"
            click.echo(printable(text + (who if each["session"] else "")))
        for each in found["consumers"]:
            click.echo(
                printable(
                    f"{each['peer']} reads slowly: {each['waiting_bytes']} bytes wait, its"
                    f" deliveries are held back for {each['blocked_s']:.1f} s"
                )
            )

    run_alone(work)


@click.command(
    "trace",
    epilog="""\b
Examples:
  tmqp trace clerk                # for five minutes, or until Ctrl-C
  tmqp trace clerk --seconds 10 --json
""",
)
@click.argument("client")
@click.option(
    "--seconds",
    type=click.IntRange(1, 300),
    default=300,
    show_default=True,
    help="How long to trace it.",
)
@json_option("Print each line as a JSON object.")
@asking
def trace(client: str, seconds: int, as_json: bool, where: Where) -> None:
    """Print the requests of one client and their answers as they happen.

    Each line has the command or answer and the message's id, never the contents of messages.  The
    command uses the admin door (--http) and needs the right manage-clients.
    """
    path = f"/clients/{quote(client, safe='')}/trace"

    async def work() -> None:
        with needing_admin():
            await where.admin.ask("POST", path, {"seconds": seconds})
            try:
                await _follow(where, path, as_json)
            finally:
                with anyio.CancelScope(shield=True):
                    await where.admin.ask("DELETE", path)

    run_alone(work)


async def _follow(where: Where, path: str, as_json: bool) -> None:
    """Print lines until the trace has ended."""
    last = 0
    while True:
        found = await where.admin.ask("GET", f"{path}?after={last}")
        lines = found["lines"]
        if lines and lines[0]["number"] > last + 1:
            click.echo(f"{lines[0]['number'] - last - 1} lines were missed", err=True)
        for line in lines:
            last = line["number"]
            click.echo(json.dumps(line) if as_json else printable(_shown(line)))
        if not found["running"]:
            return
        await anyio.sleep(_LOOK_S)


def _shown(line: Mapping[str, Any]) -> str:
    arrow = {"in": ">", "out": "<"}.get(line["way"], "-")
    head = " ".join(f"{key}={value}" for key, value in line["head"].items())
    return f"{_moment(line['at_ms'])} {arrow} {line['what']} {head}".rstrip()


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds")
