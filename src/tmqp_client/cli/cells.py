"""``tmqp cell``: counters and values that live for a time."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

import click

from tmqp_client import Client
from tmqp_client.cli._kinds import Number
from tmqp_client.cli._output import plain, show_fields, show_rows, to_line
from tmqp_client.cli._run import EXIT_REFUSED, CommandError, connected, json_option, report, run
from tmqp_client.cli.sub import payload_fields, to_text, write_line

__all__ = [
    "cell",
    "cell_add",
    "cell_get",
    "cell_info",
    "cell_list",
    "cell_make",
    "cell_put",
    "cell_remove",
    "cell_set",
    "cell_subtract",
    "cell_ttl",
]

_COLUMNS: Final = ("key", "kind", "count", "bytes", "timeout_ms")
_COUNT: Final = click.IntRange(0, 2**64 - 1)
_C = TypeVar("_C", bound=Callable[..., Any])


def _of_cell(command: _C) -> _C:
    """Give a command the arguments that name a cell."""
    return click.argument("space")(click.argument("key")(command))


def _ttl_option(help_text: str, *, required: bool) -> Callable[[_C], _C]:
    return click.option(
        "--ttl", "ttl_s", type=Number(0), metavar="SECONDS", help=help_text, required=required
    )


_LIVES: Final = _ttl_option("Its time to live.", required=True)


def _missing(space: str, key: str) -> CommandError:
    return CommandError(f"space {space} has no cell {key}", EXIT_REFUSED)


@click.group("cell")
def cell() -> None:
    """Create, change and read counters and values with a time to live.

    A SPACE, with a name like that of a channel, and a KEY identify a cell.  The server keeps it in
    memory.
    """


@cell.command("make", epilog="\b\nExample:\n  tmqp cell make calls ann 5 --ttl 60\n")
@_of_cell
@click.argument("count", type=_COUNT, default=0)
@_LIVES
@json_option()
@connected
def cell_make(space: str, key: str, count: int, ttl_s: float, as_json: bool, **where: Any) -> None:
    """Create a counter with COUNT (0).  Exit code 1 if KEY has a cell."""

    async def work(client: Client) -> None:
        if not await client.cells.make_counter(space, key, count, ttl_s=ttl_s):
            raise CommandError(f"space {space} has a cell {key}", EXIT_REFUSED)
        report(f"made {key} in {space}", as_json=as_json, space=space, key=key, count=count)

    run(work, **where)


@cell.command("put", epilog="\b\nExample:\n  tmqp cell put sessions ann 'since noon' --ttl 600\n")
@_of_cell
@click.argument("value")
@_LIVES
@json_option()
@connected
def cell_put(space: str, key: str, value: str, ttl_s: float, as_json: bool, **where: Any) -> None:
    """Set the value of KEY; - reads standard input."""
    data = sys.stdin.buffer.read() if value == "-" else value.encode("utf-8", "surrogateescape")

    async def work(client: Client) -> None:
        await client.cells.put(space, key, data, ttl_s=ttl_s)
        report(f"put {key} into {space}", as_json=as_json, space=space, key=key, bytes=len(data))

    run(work, **where)


@cell.command("get", epilog="\b\nExample:\n  tmqp cell get calls ann\n")
@_of_cell
@json_option(
    "One JSON object: space, key, ttl_s, and count, or payload as text, or payload_base64 where it"
    " is none."
)
@connected
def cell_get(space: str, key: str, as_json: bool, **where: Any) -> None:
    """Print the count of a counter, or a value.  Exit code 1 if there is no such cell."""
    to_terminal = sys.stdout.isatty()

    async def work(client: Client) -> None:
        found = await client.cells.read(space, key)
        if found is None:
            raise _missing(space, key)
        if as_json:
            held: dict[str, Any] = (
                {"count": found.count} if found.value is None else payload_fields(found.value)
            )
            click.echo(to_line({"space": space, "key": key, "ttl_s": found.ttl_s, **held}))
        elif found.value is None:
            click.echo(found.count)
        else:
            write_line(to_text(found.value, to_terminal))

    run(work, **where)


def _changing(
    change: Callable[[Client], Awaitable[int | None]], *, as_json: bool, **where: Any
) -> None:
    """Change a counter and print its new value."""

    async def work(client: Client) -> None:
        count = await change(client)
        if count is None:
            raise CommandError("the counter has less than that", EXIT_REFUSED)
        click.echo(to_line({"count": count}) if as_json else count)

    run(work, **where)


def _of_change(command: _C) -> _C:
    """Give a command the options and arguments of a change."""
    made: Any = json_option()(connected(command))
    made = _ttl_option("Time to live of the counter that --initial creates.", required=False)(made)
    made = click.option(
        "--initial", type=_COUNT, metavar="NUMBER",
        help="If there is no counter, create one with this number.",
    )(made)  # fmt: skip
    return cast("_C", _of_cell(click.argument("amount", type=_COUNT, default=1)(made)))


@cell.command("add", epilog="\b\nExample:\n  tmqp cell add visits home --initial 0 --ttl 86400\n")
@_of_change
def cell_add(
    space: str, key: str, amount: int, initial: int | None, ttl_s: float | None, as_json: bool,
    **where: Any,
) -> None:  # fmt: skip
    """Add AMOUNT (1) to a counter and print the sum."""
    _changing(
        lambda client: client.cells.add(space, key, amount, initial=initial, ttl_s=ttl_s),
        as_json=as_json,
        **where,
    )


@cell.command(
    "subtract", epilog="\b\nExample:\n  tmqp cell subtract calls ann --initial 5 --ttl 60\n"
)
@_of_change
def cell_subtract(
    space: str, key: str, amount: int, initial: int | None, ttl_s: float | None, as_json: bool,
    **where: Any,
) -> None:  # fmt: skip
    """Subtract AMOUNT (1) from a counter and print the rest.

    Exit code 1, without a change, if the counter is too small.
    """
    _changing(
        lambda client: client.cells.subtract(space, key, amount, initial=initial, ttl_s=ttl_s),
        as_json=as_json,
        **where,
    )


@cell.command("set", epilog="\b\nExample:\n  tmqp cell set calls ann 10\n")
@_of_cell
@click.argument("count", type=_COUNT)
@json_option()
@connected
def cell_set(space: str, key: str, count: int, as_json: bool, **where: Any) -> None:
    """Set an existing counter."""

    async def work(client: Client) -> None:
        await client.cells.set_count(space, key, count)
        report(f"{key} of {space} is {count}", as_json=as_json, space=space, key=key, count=count)

    run(work, **where)


@cell.command(
    "ttl",
    epilog="\b\nExamples:\n  tmqp cell ttl calls ann 60\n  tmqp cell ttl calls ann 30 --extend\n",
)
@_of_cell
@click.argument("seconds", type=Number(0))
@click.option("--extend", "how", flag_value="extend", help="Extend its time to live.")
@click.option("--shorten", "how", flag_value="shorten", help="Shorten its time to live.")
@json_option()
@connected
def cell_ttl(
    space: str, key: str, seconds: float, how: str | None, as_json: bool, **where: Any
) -> None:
    """Set the time to live of a cell to SECONDS."""

    async def work(client: Client) -> None:
        cells = client.cells
        change = {"extend": cells.extend, "shorten": cells.shorten}.get(how or "", cells.set_ttl)
        await change(space, key, seconds)
        report(f"changed {key} of {space}", as_json=as_json, space=space, key=key)

    run(work, **where)


@cell.command("info", epilog="\b\nExample:\n  tmqp cell info calls ann\n")
@_of_cell
@json_option()
@connected
def cell_info(space: str, key: str, as_json: bool, **where: Any) -> None:
    """Show a cell with its numbers of reads and writes.  Exit code 1 if it does not exist."""

    async def work(client: Client) -> None:
        found = await client.cells.describe(space, key)
        if found is None:
            raise _missing(space, key)
        show_fields(found, as_json=as_json)

    run(work, **where)


@cell.command("ls", epilog="\b\nExample:\n  tmqp cell ls calls\n")
@click.argument("space")
@json_option("Print one JSON object per line.")
@connected
def cell_list(space: str, as_json: bool, **where: Any) -> None:
    """List the cells of a space, in the order of their creation."""

    async def work(client: Client) -> None:
        rows = [plain(each) async for each in client.cells.listed(space)]
        show_rows(_COLUMNS, rows, as_json=as_json)

    run(work, **where)


@cell.command("rm", epilog="\b\nExample:\n  tmqp cell rm calls ann\n")
@_of_cell
@json_option()
@connected
def cell_remove(space: str, key: str, as_json: bool, **where: Any) -> None:
    """Remove a cell.  Exit code 1 if it does not exist."""

    async def work(client: Client) -> None:
        if not await client.cells.drop(space, key):
            raise _missing(space, key)
        report(f"removed {key} of {space}", as_json=as_json, space=space, key=key, removed=True)

    run(work, **where)
