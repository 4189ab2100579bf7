"""What the commands have in common: addresses, files, exit codes and progress."""

from __future__ import annotations

import secrets
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

import tmqp
from tmqp.address import Address, parse_address

__all__ = [
    "CONFORMS",
    "COULD_NOT_TEST",
    "DIFFERS",
    "WRONG_USE",
    "fail",
    "local_option",
    "progress",
    "read_target",
    "run_name",
    "tls_context",
]

CONFORMS: Final = 0
DIFFERS: Final = 1
COULD_NOT_TEST: Final = 2
WRONG_USE: Final = 3

_Command = TypeVar("_Command", bound=Callable[..., Any])


def fail(message: str) -> NoReturn:
    """Say why nothing could be tested, and exit."""
    click.echo(f"tmqp-conformance: {message}", err=True)
    sys.exit(COULD_NOT_TEST)


def local_option(command: _Command) -> _Command:
    """The option that lets the tool test a peer on another machine."""
    return click.option(
        "--i-own-this-target",
        "--allow-remote",
        "allow_remote",
        is_flag=True,
        help="Test a peer on another machine. Only test what is yours.",
    )(command)


def read_target(text: str, *, allow_remote: bool, name: str = "ADDRESS") -> Address:
    """Read the address of a peer under test.

    :raises click.BadParameter: when it is none, or on another machine without leave.
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
    """How TLS is spoken with this target.

    :param ca: certificates to trust; the system's if None.
    :raises click.BadParameter: when the file is no certificate.
    """
    if not target.tls:
        return None
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError) as error:
        raise click.BadParameter(f"{ca}: {error}", param_hint="--ca") from error


def run_name() -> str:
    """A short name for a run, which is in the names of all that it creates."""
    return secrets.token_hex(4)


_Item = TypeVar("_Item")


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[Iterable[_Item]], Iterator[_Item]]]:
    """Show progress on a terminal, on stderr; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield iter
        return
    from rich.console import Console  # noqa: PLC0415 - it takes long to load
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)

        def track(items: Iterable[_Item]) -> Iterator[_Item]:
            for item in items:
                yield item
                bar.advance(task)

        yield track
