"""The command ``tmqp`` for operators, a client like any other.

``main`` is the console script.  Each command is in a module of its own; ``_run`` connects, and
turns every error into one sentence and an exit code.
"""

from __future__ import annotations

from typing import Any

import click

from tmqp import TmqpError, __version__
from tmqp_client.cli._run import address_option
from tmqp_client.cli.audit import audit
from tmqp_client.cli.bench import bench
from tmqp_client.cli.cells import cell
from tmqp_client.cli.completion import completion
from tmqp_client.cli.config import config
from tmqp_client.cli.doctor import doctor
from tmqp_client.cli.drain import drain
from tmqp_client.cli.feeds import feed
from tmqp_client.cli.look import clients
from tmqp_client.cli.manage import channel, queue
from tmqp_client.cli.nodes import nodes
from tmqp_client.cli.ping import ping
from tmqp_client.cli.pub import pub
from tmqp_client.cli.readers import cursor, offsets, peek, read
from tmqp_client.cli.routers import router
from tmqp_client.cli.server import server
from tmqp_client.cli.slow import slowlog, trace
from tmqp_client.cli.sub import sub
from tmqp_client.cli.take import cache, pull
from tmqp_client.cli.talk import events, reply, request
from tmqp_client.cli.top import top

__all__ = ["cli", "main"]


class _Commands(click.Group):
    """All commands; an argument that the library refuses to send is a usage error."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TmqpError as error:
            raise click.UsageError(str(error)) from error


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  tmqp ping
  tmqp queue create orders 1 --status push
  tmqp pub orders 1 'one pizza'
  tmqp sub orders --queue 1 --count 1

\b
Exit codes:
  0    done
  1    the server, a queue or its consumer refused the request
  2    usage error
  3    there was no connection, or it was lost
  4    no answer in time
  130  interrupted (Ctrl-C)
  141  standard output was closed by its reader
""",
)
@click.version_option(__version__, prog_name="tmqp")
@address_option
@click.option("--name", help="Client name to connect with.")
@click.option("--token", help="Client token.")
def cli(**_before: object) -> None:
    """Talk to a TMQP server: push and consume messages, manage channels and queues.

    --address or TMQP_ADDRESS names the server: tmq://host:port, tmqs://host:port for TLS, or
    unix:/path; so does a context (tmqp config).  The default is tmq://127.0.0.1:2622.
    """


_COMMANDS: tuple[click.Command, ...] = (
    *(ping, pub, sub, pull, cache, request, reply),
    *(peek, offsets, read, cursor),
    *(channel, queue, feed, cell, router, clients, nodes, server, events, top),
    *(drain, slowlog, trace, audit, doctor, bench, config, completion),
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line; ends the process with one of the documented exit codes."""
    cli.main(prog_name="tmqp")
