"""``tmqp drain``: make a server stop accepting messages, and finish those in flight."""

from __future__ import annotations

from typing import Any

import click

from tmqp_client import Client
from tmqp_client.cli._run import connected, json_option, report, run

__all__ = ["drain"]


@click.command(
    "drain",
    epilog="""\b
Examples:
  tmqp drain              # the server keeps running, without clients
  tmqp drain --stop       # drain and stop, like SIGTERM
  tmqp drain --no-wait    # do not wait for it
""",
)
@click.option("--stop", is_flag=True, help="End the server's process when it has drained.")
@click.option("--wait/--no-wait", default=True, help="Wait until it has drained.  [default: wait]")
@json_option("Print one JSON object per line.")
@connected
def drain(stop: bool, wait: bool, as_json: bool, **where: Any) -> None:
    """Make a server stop accepting messages and clients, and finish messages in flight.

    The server refuses pushes with 503, stops deliveries, and accepts acknowledgements until nothing
    is unacknowledged, for drain_timeout_s at most.  Then it disconnects its clients.  This needs
    the right manage-server.
    """

    async def work(client: Client) -> None:
        async with client.connection_events() as changes:
            await client.drain(stop=stop)
            report("draining", as_json=as_json, state="draining")
            if wait:
                async for _ in changes:  # the connection is lost: that is the end
                    break
                report("drained", as_json=as_json, state="drained")

    run(work, **where)
