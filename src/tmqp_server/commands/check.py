"""Owns ``tmqp-server check``: reads all of a store and says what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tmqp_server.commands.common import DIRECTORY, existing_store, failing_politely, number_of
from tmqp_server.storage.sqlite import exposed

__all__ = ["check"]


@click.command(
    epilog="""\b
Examples:
  tmqp-server check ./tmqp-data
  tmqp-server backup ./tmqp-data /tmp/copy && tmqp-server check /tmp/copy    while a server runs

Exit status: 0 all is well, 1 something is damaged, 2 it could not be read."""
)
@click.argument("directory", type=DIRECTORY)
def check(directory: Path) -> None:
    """Verify every record in DIRECTORY and say what is damaged.

    Each block of messages, and each record about channels, queues and routers has a checksum; all
    of them are read and compared.  Nothing is changed.
    """
    with failing_politely(), existing_store(directory) as store:
        report = store.check()
    if warning := exposed(directory):
        click.echo(f"warning: {warning}", err=True)
    for problem in report.problems:
        click.echo(f"{click.style('damaged', fg='red')}: {problem}")
    found = (
        f"{number_of(report.channels, 'channel')}, {number_of(report.queues, 'queue')},"
        f" {number_of(report.messages, 'message')} owed, {report.bytes:,} bytes of bodies"
    )
    if report.problems:
        click.echo(f"{number_of(len(report.problems), 'problem')}; readable: {found}")
        sys.exit(1)
    click.echo(f"{click.style('all is well', fg='green')}: {found}")
