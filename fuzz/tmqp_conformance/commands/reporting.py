"""``report`` and ``compare``: create reports from records, and compare two reports."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tmqp_conformance.commands.common import CONFORMS, DIFFERS
from tmqp_conformance.commands.testing import summarise
from tmqp_conformance.compare import Changes, compare_reports
from tmqp_conformance.records import RecordError, read_run
from tmqp_conformance.report import Report, read_report
from tmqp_conformance.session import FORMS, write_reports

__all__ = ["compare", "report"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=_FILE)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--report", "forms", multiple=True, type=click.Choice(list(FORMS)))
@click.option("--before", type=_FILE, help="An earlier report.json: show what has changed.")
def report(runs: tuple[Path, ...], out: Path, forms: tuple[str, ...], before: Path | None) -> None:
    """Create reports from RUNS (run.jsonl, complete or interrupted); several side by side."""
    try:
        reports = [Report.of(read_run(path)) for path in runs]
        changes = None
        if before is not None:
            changes = compare_reports(read_report(before), reports[0].as_json())
        for path in write_reports(reports, out, forms or tuple(FORMS), changes):
            click.echo(f"written: {path}", err=True)
    except (RecordError, KeyError, TypeError) as error:
        raise click.BadParameter(str(error), param_hint="RUNS") from error
    except OSError as error:
        raise click.BadParameter(str(error), param_hint="--out") from error
    for each in reports:
        summarise(each)


@click.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
def compare(before: Path, after: Path) -> None:
    """Compare two report.json: regressions (exit status 1), fixes and other changes."""
    try:
        changes = compare_reports(read_report(before), read_report(after))
    except (RecordError, KeyError, TypeError) as error:
        raise click.BadParameter(str(error), param_hint="BEFORE AFTER") from error
    _print(changes)
    sys.exit(DIFFERS if changes.regressions else CONFORMS)


def _print(changes: Changes) -> None:
    for title, rows in (
        ("regression", changes.regressions),
        ("fix", changes.fixes),
        ("change", changes.others),
    ):
        for name, old, new in rows:
            click.echo(f"{title:<10} {name}: {old} -> {new}")
    click.echo(
        f"{len(changes.regressions)} regressions, {len(changes.fixes)} fixes,"
        f" {len(changes.others)} other changes, {len(changes.added)} cases added,"
        f" {len(changes.removed)} no longer run"
    )
