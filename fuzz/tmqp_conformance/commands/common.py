"""Shared code of the commands: addresses, files, exit codes and progress."""

from __future__ import annotations

import secrets
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

import tmqp
from tmqp.address import Address, parse_address
from tmqp.testing.conformance import UnreachableError
from tmqp_conformance.sockets import connect_socket

__all__ = [
    "CONFORMS",
    "COULD_NOT_TEST",
    "DIFFERS",
    "WRONG_USE",
    "bar_option",
    "fail",
    "local_option",
    "progress",
    "read_target",
    "restart_option",
    "restarter",
    "run_name",
    "ticking",
    "tls_context",
    "wait_for",
]

CONFORMS: Final = 0
DIFFERS: Final = 1
COULD_NOT_TEST: Final = 2
WRONG_USE: Final = 3

#: How long a server may take to start.
_START_S: Final = 30.0
_TICK_S: Final = 0.2

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Item = TypeVar("_Item")


def fail(message: str) -> NoReturn:
    """Print why nothing could be tested, and exit."""
    click.echo(f"tmqp-conformance: {message}", err=True)
    sys.exit(COULD_NOT_TEST)


def local_option(command: _Command) -> _Command:
    """The option that lets the tool test a peer on another machine."""
    return click.option(
        "--i-own-this-target",
        "--allow-remote",
        "allow_remote",
        is_flag=True,
        help="Test a peer on another machine. Only test machines that belong to you.",
    )(command)


def read_target(text: str, *, allow_remote: bool, name: str = "ADDRESS") -> Address:
    """Read the address of a peer under test.

    :raises click.BadParameter: if it is invalid, or on another machine without the option that
        allows it.
    """
    try:
        target = parse_address(text)
    except tmqp.LocalProtocolError as error:
        raise click.BadParameter(str(error), param_hint=name) from error
    if not target.is_local and not allow_remote:
        raise click.BadParameter(
            f"{target} is on another machine; --i-own-this-target allows it", param_hint=name
        )
    return target


def tls_context(target: Address, ca: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context for this target.

    :param ca: certificates to trust; the system's if None.
    :raises click.BadParameter: if the file is not a certificate.
    """
    if not target.tls:
        return None
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError) as error:
        raise click.BadParameter(f"{ca}: {error}", param_hint="--ca") from error


def run_name() -> str:
    """Return a short name for a run, which is part of all names that the run creates."""
    return secrets.token_hex(4)


def bar_option(command: _Command) -> _Command:
    """The option that switches the progress bar off."""
    return click.option(
        "--no-bar", "--quiet", "no_bar", is_flag=True, help="Show no progress, even on a terminal."
    )(command)


def restart_option(command: _Command) -> _Command:
    """The option that starts a server again."""
    return click.option(
        "--restart-cmd", help="Kills the server and starts it again; returns at once."
    )(command)


def restarter(command: str, target: Address) -> Callable[[], None]:
    """Return a function that restarts the server at an address with a command of the user."""

    def restart() -> None:
        # It may need a shell.
        done = subprocess.run(command, shell=True, check=False, timeout=_START_S)  # noqa: S602
        if done.returncode != 0:
            raise UnreachableError(f"{command!r} ended with status {done.returncode}")
        wait_for(target)

    return restart


def wait_for(target: Address) -> None:
    """Wait until a server listens on an address.

    :raises UnreachableError: if none does.
    """
    plain = Address(target.host, target.port, socket_path=target.socket_path)
    deadline = time.monotonic() + _START_S
    while True:
        try:
            connect_socket(plain).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise UnreachableError(f"{target} does not answer: {error}") from error
            time.sleep(0.05)
        else:
            return


@contextmanager
def progress(
    title: str, total: int, *, quiet: bool
) -> Iterator[Callable[[Iterable[_Item]], Iterator[_Item]]]:
    """Show progress on a terminal, on stderr; nothing elsewhere, or if ``quiet``."""
    with _bar(title, total, quiet=quiet) as advance:

        def track(items: Iterable[_Item]) -> Iterator[_Item]:
            for item in items:
                yield item
                advance(1)

        yield track


@contextmanager
def ticking(title: str, seconds: float, *, quiet: bool) -> Iterator[Callable[[], bool]]:
    """Show the elapsed time as progress; yield a function that returns whether time is left."""
    began = time.monotonic()
    with _bar(title, seconds, quiet=quiet) as advance:
        shown = began

        def go_on() -> bool:
            nonlocal shown
            now = time.monotonic()
            if now - shown >= _TICK_S:
                advance(now - shown)
                shown = now
            return now < began + seconds

        yield go_on


@contextmanager
def _bar(title: str, total: float, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Show a progress bar; yield a function that advances it."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - it takes long to load
    from rich.progress import MofNCompleteColumn, Progress  # noqa: PLC0415

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)
