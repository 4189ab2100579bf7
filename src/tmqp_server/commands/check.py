"""``tmqp-server check``: read all of a store, say what is wrong, and repair it on request."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tmqp_server.commands.common import DIRECTORY, existing_store, failing_politely, number_of
from tmqp_server.storage.port import CheckReport, DamageError
from tmqp_server.storage.sqlite import exposed, repair

__all__ = ["check"]


@click.command(
    epilog="""\b
Examples:
  tmqp-server check ./tmqp-data
  tmqp-server backup ./tmqp-data /tmp/copy && tmqp-server check /tmp/copy    while a server runs
  tmqp-server check ./tmqp-data --repair         keep readable data, drop the rest

Exit status: 0 all is well or repaired, 1 something is damaged, 2 it could not be read."""
)
@click.argument("directory", type=DIRECTORY)
@click.option(
    "--repair",
    "wants_repair",
    is_flag=True,
    help="If something is damaged, create a new store from all readable data.",
)
@click.option("--yes", is_flag=True, help="Repair without asking.")
def check(directory: Path, wants_repair: bool, yes: bool) -> None:
    """Verify every record in DIRECTORY and report damaged or missing ones.

    Each block of messages, and each record about channels, queues and routers has a checksum; all
    of them are read, compared and counted.  Without --repair nothing is changed.

    A repair drops unreadable data, and lists it.  Messages that may or may not have been settled
    are kept, and may be delivered twice.  The old files are kept in a
    directory next to the new ones.
    """
    with failing_politely():
        report = _checked(directory, wants_repair)
    if warning := exposed(directory):
        click.echo(f"warning: {warning}", err=True)
    for problem in report.problems:
        click.echo(f"{click.style('damaged', fg='red')}: {problem}")
    found = (
        f"{number_of(report.channels, 'channel')}, {number_of(report.queues, 'queue')},"
        f" {number_of(report.messages, 'message')} owed, {report.bytes:,} bytes of bodies"
    )
    if not report.problems:
        click.echo(f"{click.style('all is well', fg='green')}: {found}")
        return
    click.echo(f"{number_of(len(report.problems), 'problem')}; readable: {found}")
    if not wants_repair:
        click.echo(
            f"tmqp-server check {directory} --repair keeps the readable data; a backup may have "
            f"more",
            err=True,
        )
        sys.exit(1)
    if not yes:
        click.confirm("Drop the data that cannot be read?", abort=True, err=True)
    with failing_politely():
        _repair(directory)


def _checked(directory: Path, wants_repair: bool) -> CheckReport:
    """Verify a store; with *wants_repair*, also one that cannot be opened."""
    try:
        with existing_store(directory) as store:
            return store.check()
    except DamageError as error:
        if not wants_repair:
            raise
        return CheckReport(0, 0, 0, 0, [str(error)])


def _repair(directory: Path) -> None:
    report = repair(directory)
    for each in report.given_up:
        click.echo(f"{click.style('given up', fg='red')}: {each}")
    click.echo(
        f"{click.style('repaired', fg='green')}: {number_of(report.queues, 'queue')},"
        f" {number_of(report.messages, 'message')} owed; the old files are in {report.old_files}"
    )
