"""``tmqp-server backup``: a copy of a store, also while a server uses it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tmqp_server.commands.common import DIRECTORY, failing_politely, number_of, progress
from tmqp_server.storage.sqlite import back_up

__all__ = ["backup"]


@click.command(
    epilog="""\b
Examples:
  tmqp-server backup ./tmqp-data /backups/monday
  tmqp-server --data /backups/monday             a copy is a data directory like any other

Exit status: 0 the copy is complete and verified, 1 it is complete but contains damage
from the source, 2 there is no copy."""
)
@click.argument("directory", type=DIRECTORY)
@click.argument("target", type=DIRECTORY)
def backup(directory: Path, target: Path) -> None:
    """Copy the store in DIRECTORY to TARGET, as it is at this moment.

    A server may use DIRECTORY meanwhile.  TARGET is created; it must not have a store.
    The copy is verified before it gets its name.
    """
    with failing_politely(), progress("copying", 1) as bar:
        report = back_up(directory, target, bar.reach)
    for problem in report.problems:
        click.echo(f"damaged, and copied as it is: {problem}", err=True)
    click.echo(
        f"copied {directory} to {target}: {number_of(report.queues, 'queue')},"
        f" {number_of(report.messages, 'message')}"
    )
    if report.problems:
        sys.exit(1)
