"""``fuzz wire`` and ``fuzz model``, and what shortens and plays again what they find."""

from __future__ import annotations

import json
import re
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from tmqp.testing.conformance import Patience, Stage, UnreachableError
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.commands.common import (
    CONFORMS,
    DIFFERS,
    fail,
    local_option,
    read_target,
    run_name,
    tls_context,
)
from tmqp_conformance.fuzzing.findings import Found, read_found, write_model, write_wire
from tmqp_conformance.fuzzing.mutate import MUTATIONS, seeds
from tmqp_conformance.fuzzing.search import ModelFuzzer
from tmqp_conformance.fuzzing.session import play_acts
from tmqp_conformance.fuzzing.shrinking import smallest
from tmqp_conformance.fuzzing.wire import Coverage, WireFuzzer
from tmqp_conformance.fuzzing.wire import shrink as shrink_finding
from tmqp_conformance.keeper import PROBE
from tmqp_conformance.sockets import ServerStage

__all__ = ["fuzz", "play_found", "shrink"]

_BUDGET: Final = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0}
_CA: Final = click.Path(dir_okay=False, path_type=Path)
_MOST_FINDINGS: Final = 10
_TYPES: Final = 64


def _budget(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
    found = _BUDGET.fullmatch(text)
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(f"{text!r} is not a time: write 60s, 10m or 1h")
    return float(found[1]) * _SECONDS[found[2] or ""]


def _common(command: Any) -> Any:
    for option in (
        click.option("--budget", default="60s", show_default=True, callback=_budget),
        click.option(
            "--seed", type=int, help="The same seed draws the same; printed if not given."
        ),
        click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path()),
        click.option("--ca", type=_CA, help="Certificates to trust (tmqs://)."),
        click.option("--timeout", type=click.FloatRange(0.05, 600), default=3.0, show_default=True),
        local_option,
    ):
        command = option(command)
    return command


@click.group()
def fuzz() -> None:
    """Look for faults with traffic that nobody has written down."""


@fuzz.command("wire")
@click.argument("address")
@_common
def fuzz_wire(
    address: str,
    budget: float,
    seed: int | None,
    out: Path,
    ca: Path | None,
    timeout: float,
    allow_remote: bool,
) -> None:
    """Send damaged and strange traffic to the server at ADDRESS: it must live and stay right."""
    stage = _stage(address, ca, allow_remote=allow_remote)
    number = _seed(seed)
    fuzzer = WireFuzzer(
        stage, seeds(SERVER_CASES), number, Patience(answer_s=timeout, quiet_s=0.02)
    )
    began = time.monotonic()
    go_on = _clock(budget)
    found = 0
    try:
        for finding in fuzzer.run(go_on):
            found += 1
            click.echo(f"FOUND {finding.kind}: {finding.message}")
            smaller = shrink_finding(fuzzer, finding, _clock(budget / 2))
            path = write_wire(out, smaller, number, found)
            click.echo(f"    {len(smaller.conversation)} pieces, written to {path}")
            if found >= _MOST_FINDINGS:
                break
    except UnreachableError as error:
        if not fuzzer.coverage.signatures:
            fail(str(error))
        click.echo(f"FOUND crash: {error}")
        found += 1
    finally:
        fuzzer.close()
    _tell_coverage(fuzzer.coverage)
    elapsed = time.monotonic() - began
    click.echo(
        f"{fuzzer.played} conversations in {elapsed:.1f} s"
        f" ({fuzzer.played / max(elapsed, 0.001):.0f}/s), {found} findings (seed {number})"
    )
    sys.exit(DIFFERS if found else CONFORMS)


def _tell_coverage(coverage: Coverage) -> None:
    """What was tried, and what was not."""
    states = ", ".join(f"{name} {count}" for name, count in sorted(coverage.states.items()))
    click.echo(f"states: {states}")
    rules = ", ".join(f"{name} {count}" for name, count in sorted(coverage.rules.items()))
    click.echo(f"broken rules: {rules or 'none'}")
    mutations = ", ".join(f"{name} {coverage.mutations[name]}" for name in MUTATIONS)
    click.echo(f"mutations: {mutations}")
    click.echo(
        f"message types: {len(coverage.types)} of {_TYPES}; behaviours of the server:"
        f" {len(coverage.signatures)}"
    )


@fuzz.command("model")
@click.argument("address")
@click.option("--steps", type=click.IntRange(1, 500), default=40, show_default=True)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Sessions that are played at once.",
)
@_common
def fuzz_model(
    address: str,
    steps: int,
    jobs: int,
    budget: float,
    seed: int | None,
    out: Path,
    ca: Path | None,
    timeout: float,
    allow_remote: bool,
) -> None:
    """Act as several clients on queues of the server at ADDRESS, and hold it against a model."""
    stage = _stage(address, ca, allow_remote=allow_remote)
    try:
        stage.open("first", PROBE).close("end")
    except UnreachableError as error:
        fail(str(error))
    number = _seed(seed)
    patience = Patience(answer_s=timeout, quiet_s=0.05)
    fuzzer = ModelFuzzer(stage, run_name(), number, steps, patience, jobs=jobs)
    began = time.monotonic()
    finding = fuzzer.search(_clock(budget))
    elapsed = time.monotonic() - began
    if finding is not None:
        click.echo(f"FOUND {finding.message}")
        for act in finding.acts:
            click.echo(f"    {act.line}: {act.what} {act.channel} {act.message}".rstrip())
        click.echo(f"    played again: wrong {finding.again} of {finding.replays} times")
        click.echo(f"    written to {write_model(out, finding)}")
    actions = ", ".join(f"{name} {count}" for name, count in sorted(fuzzer.done.items()))
    click.echo(f"actions: {actions}")
    click.echo(
        f"{fuzzer.played} conversations in {elapsed:.1f} s"
        f" ({fuzzer.played / max(elapsed, 0.001):.0f}/s), {int(finding is not None)} findings"
        f" (seeds {number}..{number + fuzzer.played - 1})"
    )
    sys.exit(CONFORMS if finding is None else DIFFERS)


def _stage(address: str, ca: Path | None, *, allow_remote: bool) -> Stage:
    target = read_target(address, allow_remote=allow_remote)
    return ServerStage(target, tls_context(target, ca))


def _seed(given: int | None) -> int:
    return secrets.randbits(32) if given is None else given


def _clock(budget: float) -> Callable[[], bool]:
    until = time.monotonic() + budget
    return lambda: time.monotonic() < until


def play_found(found: Found, stage: Stage, patience: Patience) -> str:
    """Play a finding again; returns what is wrong, or an empty text.

    :raises UnreachableError: when nobody listens.
    """
    if found.acts:
        return play_acts(stage, list(found.acts), run_name(), patience)
    fuzzer = WireFuzzer(stage, [list(found.conversation)], secrets.randbits(32), patience)
    try:
        finding = fuzzer.play(found.conversation)
    finally:
        fuzzer.close()
    return "" if finding is None else f"{finding.kind}: {finding.message}"


@click.command()
@click.argument("found", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("address")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where to write it.")
@click.option("--ca", type=_CA, help="Certificates to trust (tmqs://).")
@click.option("--timeout", type=click.FloatRange(0.05, 600), default=3.0, show_default=True)
@local_option
def shrink(
    found: Path,
    address: str,
    out: Path | None,
    ca: Path | None,
    timeout: float,
    allow_remote: bool,
) -> None:
    """Make the finding in FOUND smaller while the server at ADDRESS still goes wrong."""
    stage = _stage(address, ca, allow_remote=allow_remote)
    patience = Patience(answer_s=timeout, quiet_s=0.05)
    try:
        kept = read_found(found)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="FOUND") from error
    try:
        wrong = play_found(kept, stage, patience)
        if not wrong:
            click.echo("the server does nothing wrong: there is nothing to make smaller")
            sys.exit(CONFORMS)
        smaller = smallest(
            kept, Found.smaller, lambda found: bool(play_found(found, stage, patience))
        )
    except UnreachableError as error:
        fail(str(error))
    path = out or found.with_suffix(".small.json")
    path.write_text(json.dumps(smaller.as_json(wrong), indent=1) + "\n", encoding="utf-8")
    click.echo(f"{kept.size} -> {smaller.size} parts, written to {path}: {wrong}")
    sys.exit(DIFFERS)
