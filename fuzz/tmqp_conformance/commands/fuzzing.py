"""``fuzz wire``, ``fuzz model`` and ``fuzz diff``, and the replay and minimisation of findings."""

from __future__ import annotations

import json
import re
import secrets
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from tmqp.address import Address
from tmqp.testing.conformance import Patience, Stage, UnreachableError
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.commands.common import (
    CONFORMS,
    DIFFERS,
    bar_option,
    fail,
    local_option,
    read_target,
    restart_option,
    restarter,
    run_name,
    ticking,
    tls_context,
)
from tmqp_conformance.commands.packs import PackStage, at_option, pack_option, read_places
from tmqp_conformance.fuzzing.differ import Differ
from tmqp_conformance.fuzzing.findings import (
    Found,
    read_corpus,
    read_found,
    write_corpus,
    write_model,
    write_wire,
)
from tmqp_conformance.fuzzing.mutate import MUTATIONS
from tmqp_conformance.fuzzing.native import NativeSubject
from tmqp_conformance.fuzzing.packs import PackSubject
from tmqp_conformance.fuzzing.search import ModelFuzzer
from tmqp_conformance.fuzzing.session import play_acts
from tmqp_conformance.fuzzing.shrinking import smallest
from tmqp_conformance.fuzzing.wire import WireFuzzer
from tmqp_conformance.fuzzing.wire import shrink as shrink_finding
from tmqp_conformance.grammar import Coverage, Piece, Subject
from tmqp_conformance.keeper import PROBE
from tmqp_conformance.packs import PACKS
from tmqp_conformance.sockets import ServerStage

__all__ = ["fuzz", "play_found", "shrink", "stage_of", "subject_of"]

_BUDGET: Final = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0}
_CA: Final = click.Path(dir_okay=False, path_type=Path)
_MOST_FINDINGS: Final = 10
_REPLAYS: Final = 3


def _budget(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
    found = _BUDGET.fullmatch(text)
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(f"{text!r} is not a time: write 60s, 10m or 1h")
    return float(found[1]) * _SECONDS[found[2] or ""]


def _common(command: Any) -> Any:
    for option in (
        click.option("--budget", default="60s", show_default=True, callback=_budget),
        click.option(
            "--seed", type=int, help="Seed of the run; by default a random one, which is printed."
        ),
        click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path()),
        click.option("--ca", type=_CA, help="Certificates to trust (tmqs://)."),
        click.option("--timeout", type=click.FloatRange(0.05, 600), default=3.0, show_default=True),
        local_option,
        bar_option,
    ):
        command = option(command)
    return command


@click.group()
def fuzz() -> None:
    """Look for faults with generated traffic."""


@fuzz.command("wire")
@click.argument("address")
@pack_option
@at_option
@restart_option
@click.option(
    "--corpus",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the corpus, kept between runs.",
)
@_common
def fuzz_wire(
    address: str,
    pack: str | None,
    places: tuple[str, ...],
    restart_cmd: str | None,
    corpus: Path | None,
    budget: float,
    seed: int | None,
    out: Path,
    ca: Path | None,
    timeout: float,
    allow_remote: bool,
    no_bar: bool,
) -> None:
    """Send damaged and unusual traffic to the server at ADDRESS, which must keep working correctly.

    --pack selects another protocol; --at adds further addresses to fuzz.
    """
    about = PACKS.get(pack or "")
    target = read_target(address, allow_remote=allow_remote)
    where = read_places(about, target, places, allow_remote=allow_remote)
    restart = restarter(restart_cmd, target) if restart_cmd else None
    stage = PackStage(where, tls_context(target, ca), restart)
    number = _seed(seed)
    subject = subject_of(pack or "", tuple(where))
    patience = Patience(answer_s=timeout, quiet_s=0.02)
    fuzzer = WireFuzzer(stage, subject, number, patience, _corpus(corpus, subject))
    began = time.monotonic()
    with ticking("fuzzing", budget, quiet=no_bar) as go_on:
        found = _search(fuzzer, go_on, budget, out, number)
    if corpus is not None:
        try:
            learnt = write_corpus(corpus, subject.pack, fuzzer.learnt)
        except OSError as error:
            fail(str(error))
        click.echo(f"learnt {learnt} conversations, written to {corpus}")
    _print_coverage(fuzzer.coverage, subject)
    elapsed = time.monotonic() - began
    click.echo(
        f"{fuzzer.played} conversations in {elapsed:.1f} s"
        f" ({fuzzer.played / max(elapsed, 0.001):.0f}/s), {found} findings (seed {number})"
    )
    sys.exit(DIFFERS if found else CONFORMS)


def _corpus(directory: Path | None, subject: Subject) -> list[list[Piece]]:
    """Return the conversations that earlier runs have learnt.

    :raises click.BadParameter: if a file of the directory is invalid.
    """
    if directory is None:
        return []
    try:
        return read_corpus(directory, subject.pack, tuple(subject.grammars))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--corpus") from error


def _search(
    fuzzer: WireFuzzer, go_on: Callable[[], bool], budget: float, out: Path, number: int
) -> int:
    """Fuzz and save the findings; return their number."""
    found = 0
    try:
        for finding in fuzzer.run(go_on):
            found += 1
            click.echo(f"FOUND {finding.kind}: {finding.message}")
            smaller, again = finding, ""
            if not fuzzer.gone:
                smaller = shrink_finding(fuzzer, finding, _clock(budget / 2))
                again = f", again {fuzzer.again(smaller, _REPLAYS)} of {_REPLAYS} times"
            path = write_wire(out, smaller, number, found, pack=fuzzer.subject.pack)
            click.echo(f"    {len(smaller.conversation)} pieces{again}, written to {path}")
            if fuzzer.gone:
                click.echo(
                    "    the server has ended: restart it, and minimise this finding (shrink)"
                )
            if fuzzer.gone or found >= _MOST_FINDINGS:
                break
    except UnreachableError as error:
        if not fuzzer.coverage.signatures:
            fail(str(error))
        click.echo(f"FOUND crash: {error}")
        found += 1
    except OSError as error:
        fail(str(error))
    finally:
        fuzzer.close()
    return found


def _print_coverage(coverage: Coverage, subject: Subject) -> None:
    """Print what was tried, and what was not."""
    for place, grammar in subject.grammars.items():
        tally = coverage.at(place)
        about = f"{place} " if place else ""
        states = _counted(tally.states, grammar.states)
        click.echo(f"{about}states: {states}{_missing(tally.states, grammar.states)}")
        click.echo(f"{about}broken rules: {_counted(tally.rules, sorted(tally.rules)) or 'none'}")
        fields = _counted(tally.fields, grammar.fields)
        click.echo(f"{about}fields: {fields}")
        kinds = sum(bool(tally.kinds[kind]) for kind in grammar.kinds)
        values = sum(bool(tally.fields[name]) for name in grammar.fields)
        click.echo(
            f"{about}message types: {kinds} of {len(grammar.kinds)}"
            f"{_missing(tally.kinds, grammar.kinds) if subject.pack else ''};"
            f" values of fields: {values} of {len(grammar.fields)}"
            f"{_missing(tally.fields, grammar.fields)}"
        )
    click.echo(f"mutations: {_counted(coverage.mutations, tuple(MUTATIONS))}")
    click.echo(f"behaviours of the server: {len(coverage.signatures)}")


def _counted(counts: Counter[str], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {counts[name]}" for name in names)


def _missing(counts: Counter[str], names: Sequence[str]) -> str:
    missing = [name for name in names if not counts[name]]
    return f" (not {', '.join(missing)})" if missing else ""


@fuzz.command("model")
@click.argument("address")
@click.option("--steps", type=click.IntRange(1, 500), default=40, show_default=True)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Concurrent sessions.",
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
    no_bar: bool,
) -> None:
    """Act as several clients on queues of the server at ADDRESS, and compare it with a model."""
    stage = _stage(address, ca, allow_remote=allow_remote)
    try:
        stage.open("first", PROBE).close("end")
    except UnreachableError as error:
        fail(str(error))
    number = _seed(seed)
    patience = Patience(answer_s=timeout, quiet_s=0.05)
    fuzzer = ModelFuzzer(stage, run_name(), number, steps, patience, jobs=jobs)
    began = time.monotonic()
    with ticking("fuzzing", budget, quiet=no_bar) as go_on:
        finding = fuzzer.search(go_on)
    elapsed = time.monotonic() - began
    if finding is not None:
        click.echo(f"FOUND {finding.message}")
        for act in finding.acts:
            click.echo(f"    {act.line}: {act.what} {act.channel} {act.message}".rstrip())
        click.echo(f"    replayed: wrong {finding.again} of {finding.replays} times")
        click.echo(f"    written to {write_model(out, finding)}")
    actions = ", ".join(f"{name} {count}" for name, count in sorted(fuzzer.done.items()))
    click.echo(f"actions: {actions}")
    click.echo(
        f"{fuzzer.played} conversations in {elapsed:.1f} s"
        f" ({fuzzer.played / max(elapsed, 0.001):.0f}/s), {int(finding is not None)} findings"
        f" (seeds {number}..{number + fuzzer.played - 1})"
    )
    sys.exit(CONFORMS if finding is None else DIFFERS)


@fuzz.command("diff")
@click.argument("address")
@click.argument("other")
@click.argument("found", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_common
def fuzz_diff(
    address: str,
    other: str,
    found: tuple[Path, ...],
    budget: float,
    seed: int | None,
    out: Path,
    ca: Path | None,
    timeout: float,
    allow_remote: bool,
    no_bar: bool,
) -> None:
    """Send the same traffic to the servers at ADDRESS and OTHER, and report differing answers.

    With files of FOUND only these conversations are played.  Use servers without other clients.
    """
    stages = [_stage(each, ca, allow_remote=allow_remote) for each in (address, other)]
    number = _seed(seed)
    patience = Patience(answer_s=timeout, quiet_s=0.05)
    try:
        kept = [read_found(path).conversation for path in found]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="FOUND") from error
    differ = Differ((stages[0], stages[1]), NativeSubject(SERVER_CASES), number, patience)
    began = time.monotonic()
    try:
        if kept:
            again = [differ.play(conversation) for conversation in kept]
            for path, message in zip(found, again, strict=True):
                click.echo(f"{path}: {message or 'no difference'}")
            differences = sum(map(bool, again))
        else:
            with ticking("comparing", budget, quiet=no_bar) as go_on:
                differences = _differences(differ, go_on, out, number)
    except UnreachableError as error:
        fail(str(error))
    elapsed = time.monotonic() - began
    click.echo(
        f"{differ.played} conversations in {elapsed:.1f} s, {differences} differences,"
        f" {differ.unsteady} more that were not reproduced (seed {number})"
    )
    sys.exit(DIFFERS if differences else CONFORMS)


def _differences(differ: Differ, go_on: Callable[[], bool], out: Path, number: int) -> int:
    """Compare and save the differences; return their number."""
    differences = 0
    for difference in differ.run(go_on):
        differences += 1
        click.echo(f"DIFFERS {difference.message}")
        path = write_wire(out, difference, number, differences, "diff")
        click.echo(f"    again {difference.again} of 3 times, written to {path}")
        if differences >= _MOST_FINDINGS:
            break
    return differences


def _stage(address: str, ca: Path | None, *, allow_remote: bool) -> Stage:
    target = read_target(address, allow_remote=allow_remote)
    return ServerStage(target, tls_context(target, ca))


def _seed(given: int | None) -> int:
    return secrets.randbits(32) if given is None else given


def _clock(budget: float) -> Callable[[], bool]:
    until = time.monotonic() + budget
    return lambda: time.monotonic() < until


def subject_of(pack: str, places: tuple[str, ...]) -> Subject:
    """Return what a fuzzer knows about a server.

    :param pack: the pack of its protocol; empty for TMQP.
    :param places: the server's addresses.
    """
    return PackSubject(PACKS[pack], places) if pack else NativeSubject(SERVER_CASES)


def play_found(found: Found, stage: Stage, patience: Patience) -> str:
    """Replay a finding; return the fault, or an empty text.

    :raises UnreachableError: if no server listens.
    """
    if found.acts:
        return play_acts(stage, list(found.acts), run_name(), patience)
    subject = subject_of(found.pack, found.places)
    fuzzer = WireFuzzer(stage, subject, secrets.randbits(32), patience)
    try:
        finding = fuzzer.play(found.conversation)
    finally:
        fuzzer.close()
    return "" if finding is None else f"{finding.kind}: {finding.message}"


def stage_of(
    found: Found,
    target: Address,
    places: tuple[str, ...],
    tls: ssl.SSLContext | None,
    *,
    allow_remote: bool,
    restart: Callable[[], None] | None = None,
) -> PackStage:
    """Return the stage for a replay of a finding.

    :raises click.BadParameter: if a required address is missing.
    """
    where = read_places(PACKS.get(found.pack), target, places, allow_remote=allow_remote)
    missing = [place for place in found.places if place not in where]
    if missing:
        raise click.BadParameter(f"the finding needs --at {missing[0]}=...", param_hint="--at")
    return PackStage(where, tls, restart)


@click.command()
@click.argument("found", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("address")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@click.option("--ca", type=_CA, help="Certificates to trust (tmqs://).")
@click.option("--timeout", type=click.FloatRange(0.05, 600), default=3.0, show_default=True)
@at_option
@restart_option
@local_option
def shrink(
    found: Path,
    address: str,
    out: Path | None,
    ca: Path | None,
    timeout: float,
    places: tuple[str, ...],
    restart_cmd: str | None,
    allow_remote: bool,
) -> None:
    """Minimise the finding in FOUND while the server at ADDRESS fails in the same way."""
    target = read_target(address, allow_remote=allow_remote)
    try:
        kept = read_found(found)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="FOUND") from error
    restart = restarter(restart_cmd, target) if restart_cmd else None
    tls = tls_context(target, ca)
    stage = stage_of(kept, target, places, tls, allow_remote=allow_remote, restart=restart)
    patience = Patience(answer_s=timeout, quiet_s=0.05)
    path = out or found.with_suffix(".small.json")
    try:
        wrong = play_found(kept, stage, patience)
        if not wrong:
            click.echo("the server answers correctly: there is nothing to minimise")
            sys.exit(CONFORMS)
        smaller, last = _smaller(kept, wrong, stage, patience)
        path.write_text(json.dumps(smaller.as_json(last), indent=1) + "\n", encoding="utf-8")
    except (UnreachableError, OSError) as error:
        fail(str(error))
    click.echo(f"{kept.size} -> {smaller.size} parts, written to {path}: {last}")
    sys.exit(DIFFERS)


def _smaller(kept: Found, wrong: str, stage: Stage, patience: Patience) -> tuple[Found, str]:
    """Return the smallest finding of the same kind, and its fault."""
    last = wrong
    lives = True

    def is_wrong(found: Found) -> bool:
        nonlocal last, lives
        try:
            message = play_found(found, stage, patience)
        except UnreachableError:
            lives = False  # it has crashed and was not restarted
            return False
        same = bool(message) and _kind(message) == _kind(wrong)
        last = message if same else last
        return same

    return smallest(kept, Found.smaller, is_wrong, lambda: lives), last


def _kind(message: str) -> str:
    """Return the kind of a fault from its description, in which names differ each time."""
    return message.partition(":")[0].partition(" ")[0]
