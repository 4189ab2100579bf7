"""``tmqp ping``: whether the server is there, and how long its answer takes."""

from __future__ import annotations

from typing import Any

import anyio
import click

from tmqp_client import Client, ReconnectPolicy
from tmqp_client.cli._kinds import Number
from tmqp_client.cli._run import connected, json_option, report, run

__all__ = ["ping"]


@click.command(
    epilog="""\b
Examples:
  tmqp ping
  tmqp ping -a tmq://broker.example:2622 --count 5
  tmqp-server & tmqp ping --wait 10
"""
)
@click.option("-c", "--count", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "-i",
    "--interval",
    "interval_s",
    type=Number(0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two pings.",
)
@click.option(
    "-w",
    "--wait",
    "wait_s",
    type=Number(0, above=True),
    metavar="SECONDS",
    help="Retry connecting for this long, for a server that is starting.",
)
@json_option("Print one JSON object per line.")
@connected
def ping(count: int, interval_s: float, wait_s: float | None, as_json: bool, **where: Any) -> None:
    """Connect and measure the round-trip time of pings."""
    reconnect = None
    if wait_s is not None:
        reconnect = ReconnectPolicy(
            initial_delay_s=0.05, max_delay_s=0.5, max_outage_s=wait_s, retry_first=True
        )

    async def work(client: Client) -> None:
        times_ms: list[float] = []
        for number in range(count):
            if number:
                await anyio.sleep(interval_s)
            times_ms.append(await client.ping() * 1_000)
            sentence = f"pong from {where['address']}: {times_ms[-1]:.3f} ms"
            shown = {"address": str(where["address"]), "milliseconds": round(times_ms[-1], 3)}
            report(sentence, as_json=as_json, **shown)
        if count > 1 and not as_json:
            average_ms = sum(times_ms) / count
            click.echo(
                f"{count} pings, min {min(times_ms):.3f} ms, average {average_ms:.3f} ms,"
                f" max {max(times_ms):.3f} ms"
            )

    run(work, reconnect=reconnect, **where)
