"""The command ``tmqp-spark``: pipelines over the messages that a broker keeps.

``main`` is the console script.  Each command is in a module of its own and does its work
through :mod:`tmqp_spark.pipelines`; ``_run`` has what they share.
"""

from __future__ import annotations

import click

import tmqp
from tmqp_spark.cli.archive import archive
from tmqp_spark.cli.deadletter import deadletter
from tmqp_spark.cli.doctor import doctor
from tmqp_spark.cli.groups import groups
from tmqp_spark.cli.metrics import metrics
from tmqp_spark.cli.recorded import analyze, corpus
from tmqp_spark.cli.replay import replay
from tmqp_spark.cli.tail import tail

__all__ = ["cli", "main"]


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  tmqp-spark doctor --address tmq://127.0.0.1:2622
  tmqp-spark archive orders/7 --to archive
  tmqp-spark replay archive --to orders-copy/7 --create-queue
  tmqp-spark metrics orders --plot orders.svg
""",
)
@click.version_option(tmqp.__version__, prog_name="tmqp-spark")
def cli() -> None:
    """Archive, replay and measure TMQP queues with Spark.

    --address or TMQP_ADDRESS names the broker; the default is tmq://127.0.0.1:2622.  It needs a
    data directory, and queues that retain the messages to read.
    """


_COMMANDS: tuple[click.Command, ...] = (
    *(archive, replay, tail),
    *(metrics, deadletter, groups),
    *(analyze, corpus, doctor),
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command line; ends the process with one of the documented exit codes."""
    cli.main(prog_name="tmqp-spark")
