"""``server``: test a server."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tmqp.address import Address
from tmqp.testing.conformance import (
    CAPABILITIES,
    FAILURES,
    Level,
    Patience,
    UnreachableError,
    Verdict,
)
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.commands.common import (
    CONFORMS,
    COULD_NOT_TEST,
    DIFFERS,
    bar_option,
    fail,
    local_option,
    progress,
    read_target,
    restart_option,
    restarter,
    run_name,
    tls_context,
    wait_for,
)
from tmqp_conformance.commands.packs import PackStage, at_option, pack_option, read_places
from tmqp_conformance.junit import badge
from tmqp_conformance.packs import PACKS
from tmqp_conformance.report import LETTERS, Report
from tmqp_conformance.runner import Plan, Runner, detect
from tmqp_conformance.session import FORMS, Session, write_reports
from tmqp_conformance.settings import Settings, SettingsError, read_settings
from tmqp_conformance.sockets import ServerStage
from tmqp_conformance.suite import chosen

__all__ = ["exit_status", "server", "summarise", "with_settings"]


def with_settings(context: click.Context, path: Path | None) -> Settings:
    """Read the settings from a file; its options apply where the command line has none.

    :raises click.BadParameter: if the file is invalid.
    """
    if path is None:
        return Settings()
    try:
        settings = read_settings(path)
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint="--config") from error
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in settings.options and context.get_parameter_source(name) in (
            ParameterSource.DEFAULT,
            ParameterSource.DEFAULT_MAP,
        ):
            value = settings.options[name]
            given = tuple(value) if isinstance(value, list) else value
            context.params[name] = parameter.type_cast_value(context, given)
    return settings


@click.command(
    epilog="""\b
Examples:
  tmqp-conformance server 127.0.0.1:2622 --out report
  tmqp-conformance server unix:/run/tmqp.sock --only 'server.frame.*' --level must
  tmqp-conformance server 127.0.0.1:4150 --pack nsq --at http=127.0.0.1:4151"""
)
@click.argument("address", required=False)
@click.option("--name", default="", help="The server's name in reports.")
@click.option(
    "--ca", type=click.Path(dir_okay=False, path_type=Path), help="Certificates to trust (tmqs://)."
)
@click.option("--token-file", type=click.File(), help="A file with the token that clients show.")
@click.option(
    "--admin-token-file", type=click.File(), help="The token of the client that cleans up."
)
@click.option(
    "--only", multiple=True, metavar="PATTERN", help="Only these cases (globs of ids, or a group)."
)
@click.option("--skip", multiple=True, metavar="PATTERN", help="Not these cases.")
@click.option(
    "--level", type=click.Choice(["must", "should", "all"]), default="all", show_default=True
)
@click.option("--strict", is_flag=True, help="The same as --fail-on should.")
@click.option(
    "--fail-on", type=click.Choice(["must", "should", "crash"]), default="must", show_default=True
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A TOML file of options and deviations.",
)
@click.option(
    "--deviations",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A TOML file of explained deviations.",
)
@click.option(
    "--capabilities",
    multiple=True,
    metavar="WORD",
    help="The server's capabilities; detected by default.",
)
@click.option("--keep-alive", is_flag=True, help="Also wait for pings and timeouts: takes minutes.")
@restart_option
@click.option("--start-cmd", help="Command that starts the server for the run.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Concurrent cases.",
)
@click.option(
    "--slow",
    type=click.FloatRange(0.1, 100),
    default=1.0,
    show_default=True,
    help="Factor for all waiting times.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.05, 600),
    default=3.0,
    show_default=True,
    help="Seconds for an answer.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="The directory for reports."
)
@click.option(
    "--report", multiple=True, type=click.Choice(list(FORMS)), help="Only reports of these formats."
)
@pack_option
@at_option
@local_option
@bar_option
@click.pass_context
def server(context: click.Context, /, **_: Any) -> None:
    """Test the server at ADDRESS: tmq://HOST:PORT, tmqs://HOST:PORT or unix:PATH.

    The file of --config may name it, too, as its target.
    """
    options = context.params
    settings = with_settings(context, options["config"])
    options["address"] = options["address"] or settings.options.get("target")
    if options["address"] is None:
        raise click.UsageError("Missing argument 'ADDRESS', and --config names no target.")
    deviations = [*settings.deviations]
    if options["deviations"] is not None:
        deviations += with_settings(context, options["deviations"]).deviations
    target = read_target(options["address"], allow_remote=options["allow_remote"])
    pack = PACKS.get(options["pack"] or "")
    places = read_places(pack, target, options["places"], allow_remote=options["allow_remote"])
    if pack is not None:
        _refuse_options_of_tmqp(options)
    tls = tls_context(target, options["ca"])
    patience = Patience(answer_s=options["timeout"], slow=options["slow"])
    every = SERVER_CASES if pack is None else pack.cases
    cases = chosen(every, options["only"], options["skip"], options["level"])
    if not cases:
        raise click.UsageError("no case fits --only, --skip and --level")
    restart = None
    if options["restart_cmd"]:
        restart = restarter(options["restart_cmd"], target)
    run = run_name()
    tokens = [_token(options["token_file"]), _token(options["admin_token_file"])]
    with _started(options["start_cmd"], target):
        stage = ServerStage(target, tls, restart) if pack is None else PackStage(places, tls)
        try:
            if pack is None:
                found = detect(stage, run, patience, tokens[1] or tokens[0])
            else:
                found = frozenset(name for name in places if name)
                stage.open("detect", pack.probe).close("end")
        except UnreachableError as error:
            fail(f"{target}: {error}")
        plan = Plan(
            cases=cases,
            run_id=run,
            capabilities=found if pack is not None else _capabilities(options, found),
            deviations=deviations,
            patience=patience,
            jobs=options["jobs"],
            token=tokens[0],
            admin_token=tokens[1] or tokens[0],
            pack=pack,
        )
        report = _run(plan, stage, target, options)
    sys.exit(exit_status(report, "should" if options["strict"] else options["fail_on"]))


def _run(plan: Plan, stage: ServerStage, target: Address, options: dict[str, Any]) -> Report:
    shown = {key: str(options[key]) for key in ("level", "jobs", "slow", "timeout")}
    session = Session(
        str(target),
        "server",
        plan.run_id,
        shown,
        plan.capabilities,
        options["name"],
        options["out"],
        plan.pack,
    )
    try:
        session.begin()
        runner = Runner(plan, lambda: stage)
        with progress("cases", len(plan.cases), quiet=options["no_bar"]) as track:
            for _ in track(session.follow(runner.results())):
                pass
        report = session.finish()
        if options["out"] is not None:
            forms = options["report"] or tuple(FORMS)
            for path in write_reports([report], options["out"], forms):
                click.echo(f"written: {path}", err=True)
    except OSError as error:
        fail(str(error))
    finally:
        session.close()
    summarise(report)
    return report


def _refuse_options_of_tmqp(options: dict[str, Any]) -> None:
    """Refuse options that a pack would ignore.

    :raises click.UsageError: if one of these options is given.
    """
    for name in ("capabilities", "keep_alive", "restart_cmd", "token_file", "admin_token_file"):
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} cannot be used with --pack")


def _capabilities(options: dict[str, Any], found: frozenset[str]) -> frozenset[str]:
    given = options["capabilities"]
    unknown = [word for word in given if word not in CAPABILITIES]
    if unknown:
        known = ", ".join(CAPABILITIES)
        raise click.BadParameter(
            f"{unknown[0]!r} is not one of {known}", param_hint="--capabilities"
        )
    words = {*(given or found)}
    if options["keep_alive"]:
        words.add("keep-alive")
    if options["restart_cmd"]:
        words.add("restart-hook")
    return frozenset(words)


def _token(file: Any) -> str:
    return "" if file is None else str(file.read()).strip()


@contextmanager
def _started(command: str | None, target: Address) -> Iterator[None]:
    """Run the server that a command starts; do nothing without a command."""
    if not command:
        yield
        return
    with subprocess.Popen(shlex.split(command)) as process:
        try:
            wait_for(target)
            yield
        finally:
            process.terminate()


def summarise(report: Report) -> None:
    """Print the results of a run: the failures, then a line with the numbers."""
    for record in report.cases:
        verdict = Verdict(record["verdict"])
        if verdict in FAILURES or verdict in (Verdict.ERROR, Verdict.NON_STRICT):
            letter = LETTERS[verdict]
            message = record["message"].encode("unicode_escape").decode()
            click.echo(f"{letter} {verdict:<11} {record['level']:<7} {record['id']}: {message}")
    counts = ", ".join(f"{count} {name}" for name, count in report.verdict_counts.items())
    click.echo(f"{badge(report)} ({counts})")
    coverage = report.coverage()
    click.echo(f"{coverage['tried']} of {coverage['rules']} rules were tried")


def exit_status(report: Report, fail_on: str) -> int:
    """Return the exit status for a report."""
    verdicts = {record["verdict"] for record in report.cases}
    if Verdict.CRASH in verdicts:
        return DIFFERS
    if Verdict.ERROR in verdicts:
        return COULD_NOT_TEST
    if fail_on == "crash":
        return CONFORMS
    levels = (Level.MUST, Level.SHOULD) if fail_on == "should" else (Level.MUST,)
    obstacles = any(report.is_obstacle(record, levels) for record in report.cases)
    return DIFFERS if obstacles else CONFORMS
