"""``client``: test clients."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tmqp.address import Address
from tmqp.testing.conformance import CAPABILITIES, Patience, Result
from tmqp.testing.conformance.clients import CLIENT_CASES
from tmqp_conformance.clients import ClientStage, Listener
from tmqp_conformance.commands.common import (
    bar_option,
    fail,
    local_option,
    progress,
    read_target,
    run_name,
)
from tmqp_conformance.commands.testing import exit_status, summarise, with_settings
from tmqp_conformance.report import Report
from tmqp_conformance.runner import Plan, Runner
from tmqp_conformance.session import FORMS, Session, write_reports
from tmqp_conformance.suite import chosen

__all__ = ["client"]

_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="""\b
Examples:
  tmqp-conformance client --exec 'python driver.py {url} {task}' --out report
  tmqp-conformance client --listen 127.0.0.1:2700      (a driver asks for cases)"""
)
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="ADDRESS",
    help="HOST:PORT, tmqs://HOST:PORT or unix:PATH; port 0 for any.",
)
@click.option("--certificate", type=_PATH, help="The tool's own certificate (tmqs://).")
@click.option("--key", type=_PATH, help="Its key, if that is not in the same file.")
@click.option("--exec", "command", help="Starts a client for a case: {url}, {case}, {task}.")
@click.option("--name", default="", help="The client's name in reports.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only these cases.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Not these cases.")
@click.option("--level", type=click.Choice(["must", "should", "all"]), default="all")
@click.option("--strict", is_flag=True, help="The same as --fail-on should.")
@click.option("--fail-on", type=click.Choice(["must", "should", "crash"]), default="must")
@click.option("--config", type=_PATH, help="A TOML file of options and deviations.")
@click.option("--without", multiple=True, metavar="WORD", help="A capability the client lacks.")
@click.option("--reconnects", is_flag=True, help="The client reconnects automatically.")
@click.option(
    "--ready",
    type=click.FloatRange(0, 60),
    default=0.05,
    show_default=True,
    help="Seconds in which an accepted client must begin its task.",
)
@click.option("--slow", type=click.FloatRange(0.1, 100), default=1.0, show_default=True)
@click.option("--timeout", type=click.FloatRange(0.05, 600), default=3.0, show_default=True)
@click.option("--connect-timeout", type=click.FloatRange(0.1, 600), default=20.0, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--report", multiple=True, type=click.Choice(list(FORMS)))
@local_option
@bar_option
@click.pass_context
def client(context: click.Context, /, **_: Any) -> None:
    """Test clients: they connect to a port of this tool, one case after the other.

    The clients' tasks are: stay, join, push, consume, pull and echo; see the guide.
    """
    options = context.params
    settings = with_settings(context, options["config"])
    where = read_target(options["listen"], allow_remote=options["allow_remote"], name="--listen")
    cases = chosen(CLIENT_CASES, options["only"], options["skip"], options["level"])
    if not cases:
        raise click.UsageError("no case fits --only, --skip and --level")
    unknown = [word for word in options["without"] if word not in CAPABILITIES]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r} is not a capability", param_hint="--without")
    without = {*options["without"], *(() if options["reconnects"] else ("reconnect",))}
    tls = _server_tls(where, options["certificate"], options["key"])
    try:
        listener = Listener(where, tls)
    except OSError as error:
        fail(f"{where}: {error}")
    click.echo(f"clients connect to {listener.address}", err=True)
    plan = Plan(
        cases=cases,
        run_id=run_name(),
        capabilities=frozenset(CAPABILITIES) - without,
        deviations=settings.deviations,
        patience=Patience(
            answer_s=options["timeout"], ready_s=options["ready"], slow=options["slow"]
        ),
        probe=False,
    )
    try:
        report = _run(plan, listener, options)
    finally:
        listener.close()
    summarise(report)
    sys.exit(exit_status(report, "should" if options["strict"] else options["fail_on"]))


def _server_tls(
    where: Address, certificate: Path | None, key: Path | None
) -> ssl.SSLContext | None:
    """Return the TLS context for clients; None without TLS.

    :raises click.BadParameter: if the certificate is missing, or cannot be used.
    """
    if not where.tls:
        return None
    if certificate is None:
        raise click.UsageError("tmqs:// needs --certificate, and --key if it has no key in it")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise click.BadParameter(f"{certificate}: {error}", param_hint="--certificate") from error
    return context


def _run(plan: Plan, listener: Listener, options: dict[str, Any]) -> Report:
    done = 0
    stage = ClientStage(
        listener, options["command"], options["connect_timeout"], lambda: (len(plan.cases), done)
    )
    shown = {key: str(options[key]) for key in ("level", "slow", "timeout")}
    session = Session(
        str(listener.address),
        "client",
        plan.run_id,
        shown,
        plan.capabilities,
        options["name"],
        options["out"],
    )

    def results() -> Iterator[tuple[Result, str]]:
        nonlocal done
        for pair in Runner(plan, lambda: stage).results():
            stage.finish()
            done += 1
            yield pair

    try:
        session.begin()
        with progress("cases", len(plan.cases), quiet=options["no_bar"]) as track:
            for _ in track(session.follow(results())):
                pass
        stage.dismiss()
        report = session.finish()
        if options["out"] is not None:
            for path in write_reports([report], options["out"], options["report"] or tuple(FORMS)):
                click.echo(f"written: {path}", err=True)
    except OSError as error:
        fail(str(error))
    finally:
        stage.finish()
        session.close()
    return report
