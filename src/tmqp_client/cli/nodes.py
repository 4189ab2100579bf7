"""``tmqp nodes``: who is in the cluster with a server."""

from __future__ import annotations

from typing import Any

import click

from tmqp.models import NodeInformation
from tmqp_client import Client
from tmqp_client.cli._output import to_line
from tmqp_client.cli._run import connected, json_option, printable, run

__all__ = ["nodes"]


@click.command(
    "nodes",
    epilog="""\b
Example:
  tmqp nodes
""",
)
@json_option("Print one JSON object a line.")
@connected
def nodes(as_json: bool, **where: Any) -> None:
    """List the other nodes of the server's cluster: its masters, and its slaves.

    One line each: id, master or slave, host, and for how many seconds it has been connected.
    """

    async def work(client: Client) -> None:
        for node in await client.nodes():
            click.echo(to_line(node) if as_json else printable(_line(node)))

    run(work, **where)


def _line(node: NodeInformation) -> str:
    role = "slave" if node.slave else "master"
    since = f"connected {node.lifetime_ms / 1000:.1f} s" if node.connected else "not connected"
    return f"{node.id or '-'}  {role}  {node.host or '-'}  {since}"
