"""``self-test``: run the suite against peers with known faults."""

from __future__ import annotations

import sys

import click

from tmqp_conformance.commands.common import CONFORMS, COULD_NOT_TEST, bar_option, progress
from tmqp_conformance.zoo.check import WHOLE, animals, check

__all__ = ["self_test"]


@click.command("self-test")
@click.option("--verbose", "-v", is_flag=True, help="Show what is found about each peer.")
@bar_option
def self_test(verbose: bool, no_bar: bool) -> None:
    """Test the suite itself: peers that are broken on purpose must get their verdicts."""
    caught, faulty, wrong = 0, 0, []
    with progress("peers", len(animals()), quiet=no_bar) as track:
        for finding in track(check()):
            animal = finding.animal
            detected = bool(finding.found) or animal.name == WHOLE
            if animal.name != WHOLE:
                faulty += 1
                caught += finding.right and detected
            if not finding.right or not detected:
                wrong.append(finding)
            if verbose:
                verdicts = ", ".join(sorted(set(finding.found.values()))) or "pass"
                click.echo(f"{animal.role} {animal.name} ({animal.fault}): {verdicts}")
    for finding in wrong:
        click.echo(f"WRONG {finding.animal.role} {finding.animal.name}: {finding.animal.fault}")
        for difference in finding.differences or ["nothing was found"]:
            click.echo(f"    {difference}")
    click.echo(f"{caught} of {faulty} broken peers got exactly their verdicts")
    sys.exit(COULD_NOT_TEST if wrong else CONFORMS)
