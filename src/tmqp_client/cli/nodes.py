"""``tmqp nodes``: who is in the cluster or the group with a server."""

from __future__ import annotations

from typing import Any, Final

import click

from tmqp.models import NodeInformation
from tmqp_client import Client
from tmqp_client.cli._output import show_rows, to_line
from tmqp_client.cli._run import connected, json_option, printable, run

__all__ = ["nodes"]


@click.command(
    "nodes",
    epilog="""\b
Example:
  tmqp nodes
""",
)
@json_option("Print one JSON object per line.")
@connected
def nodes(as_json: bool, **where: Any) -> None:
    """List the other nodes of the server's cluster, or all servers of its group.

    For a cluster, each line has the id, master or slave, host, and the seconds since it connected.
    For a group: name, role, epoch of the leader's claim, the last applied entry of the log, the
    number of entries it is behind, and the address.
    """

    async def work(client: Client) -> None:
        found = await client.nodes()
        if not as_json and any(node.role for node in found):
            show_rows(_COLUMNS, [_row(node) for node in found], as_json=False)
            return
        for node in found:
            click.echo(to_line(node) if as_json else printable(_line(node)))

    run(work, **where)


#: Of the table about a group.
_COLUMNS: Final = ("node", "role", "epoch", "applied", "behind", "address")


def _row(node: NodeInformation) -> dict[str, Any]:
    role = node.role or "-"
    return {
        "node": node.id,
        "role": role if node.connected else f"{role}, silent",
        "epoch": node.epoch,
        "applied": node.applied,
        "behind": node.behind,
        "address": node.host,
    }


def _line(node: NodeInformation) -> str:
    role = "slave" if node.slave else "master"
    since = f"connected {node.lifetime_ms / 1000:.1f} s" if node.connected else "not connected"
    return f"{node.id or '-'}  {role}  {node.host or '-'}  {since}"
