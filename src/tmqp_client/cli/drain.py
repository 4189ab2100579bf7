"""``tmqp drain``: have a server take no more, and finish what is in hand."""

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
  tmqp drain              # the server stays up, without clients
  tmqp drain --stop       # and ends, as by SIGTERM
  tmqp drain --no-wait    # do not wait for it
""",
)
@click.option("--stop", is_flag=True, help="End the server's process when it has drained.")
@click.option("--wait/--no-wait", default=True, help="Wait until it has drained.  [default: wait]")
@json_option("Print JSON, an object a line.")
@connected
def drain(stop: bool, wait: bool, as_json: bool, **where: Any) -> None:
    """Have a server take no more messages and clients, and finish what is in hand.

    Pushes are refused with 503, nothing more is delivered, and acknowledges are taken until nothing
    is unacknowledged, for drain_timeout_s at most.  Then clients hear that the server has gone.
    The right manage-server is needed.
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
