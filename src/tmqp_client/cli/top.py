"""``tmqp top``: the queues of a server in a table that is updated continuously."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import anyio
import click

from tmqp_client import Client
from tmqp_client.cli._keys import next_key, single_keys
from tmqp_client.cli._kinds import Number
from tmqp_client.cli._output import plain, show_rows, table
from tmqp_client.cli._run import KEEP_TRYING, connected, json_option, run

__all__ = ["COLUMNS", "SORTS", "rates", "sort_rows", "top"]

COLUMNS = (
    *("channel", "queue", "status", "depth", "in_flight", "in_per_s", "out_per_s", "acks_per_s"),
    *("consumers", "timeouts", "refused", "skipped"),
)
#: What the rows are sorted by, by the key that chooses it.
SORTS: Final[dict[str, tuple[str, Callable[[dict[str, Any]], tuple[float, ...]]]]] = {
    "b": ("busy", lambda row: (-row["in_per_s"] - row["out_per_s"], -row["depth"])),
    "d": ("depth", lambda row: (-row["depth"],)),
    "f": ("in flight", lambda row: (-row["in_flight"],)),
    "i": ("in", lambda row: (-row["in_per_s"],)),
    "o": ("out", lambda row: (-row["out_per_s"],)),
    "n": ("name", lambda _row: ()),
}
_HINT: Final = "q quit   sort: " + "  ".join(f"{key} {word}" for key, (word, _) in SORTS.items())
_Rows = list[dict[str, Any]]
_Counts = dict[tuple[str, int], tuple[int, int, int]]


@click.command(
    epilog="\b\nExamples:\n  tmqp top\n  tmqp top --interval 5 'ord*'\n  tmqp top --once --json\n"
)
@click.argument("filter", required=False, default="")
@click.option(
    "-i",
    "--interval",
    "interval_s",
    type=Number(0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
)
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this number of updates.")
@click.option(
    "--once", is_flag=True, help="Measure twice, an interval apart, and print the second result."
)
@json_option("Print one JSON object for each queue and look.")
@connected
def top(
    filter: str, interval_s: float, count: int | None, once: bool, as_json: bool, **where: Any
) -> None:
    """Watch waiting messages, messages in flight and messages per second; q or Ctrl-C ends.

    FILTER selects channels: x*, *x, *x* or x*y.  On a terminal, keys select the sort order.
    """

    async def work(client: Client) -> None:
        if sys.stdout.isatty() and not as_json and not once:
            await _live(client, filter, interval_s, count)
            return
        rows, before = await _look(client, filter, {}, 0.0)
        looks = 0
        while True:
            await anyio.sleep(interval_s)
            rows, before = await _look(client, filter, before, interval_s)
            show_rows(COLUMNS, rows, as_json=as_json)
            looks += 1
            if once or looks == count:
                return

    run(work, reconnect=None if once else KEEP_TRYING, **where)


async def _live(client: Client, filter: str, interval_s: float, count: int | None) -> None:
    from rich.console import Console, Group  # noqa: PLC0415 - it takes long to load
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    rows, before = await _look(client, filter, {}, 0.0)
    order = "b"

    def view() -> Group:
        title = f"{client.address}, sorted by {SORTS[order][0]}"
        return Group(table(COLUMNS, sort_rows(rows, order), title), Text(_HINT, style="dim"))

    async def obey(live: Live) -> None:
        nonlocal order
        while key := await next_key():
            if key == "q":
                tasks.cancel_scope.cancel()
            elif key in SORTS:
                order = key
                live.update(view(), refresh=True)

    with (
        single_keys() as has_keys,
        Live(view(), console=Console(), auto_refresh=False, screen=True) as live,
    ):
        async with anyio.create_task_group() as tasks:
            if has_keys:
                tasks.start_soon(obey, live)
            looks = 0
            while looks != count:
                live.update(view(), refresh=True)
                await anyio.sleep(interval_s)
                rows, before = await _look(client, filter, before, interval_s)
                looks += 1
            tasks.cancel_scope.cancel()


def sort_rows(rows: _Rows, key: str) -> _Rows:
    """Sort the rows by the order that a key selects, and then by channel and queue."""
    _, order = SORTS[key]
    return sorted(rows, key=lambda row: (*order(row), row["channel"], row["queue"]))


async def _look(
    client: Client, filter: str, before: _Counts, seconds: float
) -> tuple[_Rows, _Counts]:
    """Return the current rows, the busiest first, and the counts for the next comparison."""
    rows: _Rows = []
    counts: _Counts = {}
    for channel in await client.channels(filter):
        for queue in await client.queues(channel.name):
            key = (channel.name, queue.id)
            counts[key] = (queue.received_messages, queue.deliveries, queue.acks)
            speeds = rates(before.get(key), counts[key], seconds)
            answered = queue.acks + queue.negative_acks
            rows.append(
                {
                    "channel": channel.name,
                    "queue": queue.id,
                    "status": plain(queue.status),
                    "depth": queue.messages + queue.priority_messages,
                    "in_flight": (
                        max(queue.deliveries - answered, 0) if queue.request_acknowledge else 0
                    ),
                    "in_per_s": speeds[0],
                    "out_per_s": speeds[1],
                    "acks_per_s": speeds[2],
                    "consumers": channel.active_clients,
                    "timeouts": queue.timeout_messages,
                    "refused": queue.refused_messages or 0,
                    "skipped": queue.skipped_deliveries or 0,
                }
            )
    return sort_rows(rows, "b"), counts


def rates(
    before: tuple[int, int, int] | None, now: tuple[int, int, int], seconds: float
) -> list[float]:
    """Return each count per second; 0 for a new queue, or one whose counts began again."""
    if before is None or seconds <= 0:
        return [0.0, 0.0, 0.0]
    return [round(max(b - a, 0) / seconds, 1) for a, b in zip(before, now, strict=True)]
