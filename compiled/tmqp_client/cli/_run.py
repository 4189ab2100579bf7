"""Owns what all commands share: their options, connecting, and how they end.

Nobody sees a traceback: each error this project raises on purpose becomes one sentence on standard
error and one of the exit codes that ``tmqp --help`` lists.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar

import anyio
import click

from tmqp import Limits, TmqpError
from tmqp.address import DEFAULT_PORT, Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp_client import (
    Client,
    ClientClosed,
    ClientLimits,
    ConnectFailed,
    ConnectionLost,
    OperationTimeout,
    connect,
)

__all__ = [
    "EXIT_CONNECTION",
    "EXIT_INTERRUPTED",
    "EXIT_OUTPUT_CLOSED",
    "EXIT_REFUSED",
    "EXIT_TIMEOUT",
    "EXIT_USAGE",
    "QUEUE_ID",
    "CommandError",
    "connected",
    "exit_code",
    "header_option",
    "printable",
    "run",
    "to_headers",
]

EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_CONNECTION: Final = 3
EXIT_TIMEOUT: Final = 4
EXIT_INTERRUPTED: Final = 130
EXIT_OUTPUT_CLOSED: Final = 141


class CommandError(Exception):
    """A command has failed: what to say, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


_C = TypeVar("_C", bound=Callable[..., Any])


def _to_address(_context: click.Context, _option: click.Parameter, value: str) -> Address:
    try:
        return parse_address(value)
    except LocalProtocolError as error:
        raise click.BadParameter(str(error)) from None


def to_headers(
    _context: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Read each ``KEY:VALUE``; white space around both means nothing."""
    headers: list[tuple[str, str]] = []
    for value in values:
        key, colon, text = value.partition(":")
        if not colon or not key.strip():
            raise click.BadParameter(f"{value!r} is no header; write KEY:VALUE")
        headers.append((key.strip(), text.strip()))
    return tuple(headers)


QUEUE_ID: Final = click.IntRange(0, 65_535)


def header_option(help_text: str) -> Callable[[_C], _C]:
    """The option ``-H KEY:VALUE``, which may be repeated."""
    return click.option(
        "-H",
        "--header",
        "headers",
        callback=to_headers,
        metavar="KEY:VALUE",
        multiple=True,
        help=help_text,
    )


def connected(command: _C) -> _C:
    """Give a command the options that say where to connect, and as whom."""
    options = (
        click.option(
            "-a",
            "--address",
            callback=_to_address,
            metavar="ADDRESS",
            envvar="TMQP_ADDRESS",
            default=f"tmq://127.0.0.1:{DEFAULT_PORT}",
            show_default=True,
            show_envvar=True,
            help="Where the server is.",
        ),
        click.option("--name", default="", help="Client name to connect with."),
        click.option(
            "--token", default="", envvar="TMQP_TOKEN", show_envvar=True, help="Client token."
        ),
        click.option(
            "--timeout",
            "timeout_s",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            help="Wait this long for the connection and for each answer.  [default: 10 to connect,"
            " 15 for a push, 30 for anything else]",
        ),
    )
    wrapped: Any = command
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def run(
    work: Callable[[Client], Awaitable[None]],
    *,
    address: Address,
    name: str,
    token: str,
    timeout_s: float | None,
) -> None:
    """Connect, do the work, close; end the process with an exit code if anything goes wrong."""
    limits = ClientLimits()
    if timeout_s is not None:
        limits = ClientLimits(
            connect_timeout_s=timeout_s,
            response_timeout_s=timeout_s,
            acknowledge_timeout_s=timeout_s,
            protocol=Limits(handshake_timeout_s=timeout_s),
        )

    async def whole() -> None:
        async with connect(
            address, name=name, type="tmqp-cli", token=token, limits=limits
        ) as client:
            await work(client)

    try:
        anyio.run(whole)
    except CommandError as error:
        _end(error.sentence, error.code)
    except KeyboardInterrupt:
        click.echo("tmqp: interrupted", err=True)
        with suppress(OSError):
            sys.stdout.flush()
        # A thread may still be reading standard input; an ordinary exit would wait for it.
        os._exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone; what Python still holds of it must not complain either.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_OUTPUT_CLOSED)
    except TmqpError as error:
        _end(str(error), exit_code(error))
    except OSError as error:
        _end(error.strerror or str(error), EXIT_REFUSED)


def exit_code(error: TmqpError) -> int:
    """The exit code an error ends the command with."""
    if isinstance(error, LocalProtocolError):
        return EXIT_USAGE
    if isinstance(error, ConnectFailed | ConnectionLost | ClientClosed):
        return EXIT_CONNECTION
    if isinstance(error, OperationTimeout):
        return EXIT_TIMEOUT
    return EXIT_REFUSED


def _end(sentence: str, code: int) -> NoReturn:
    """Say what went wrong and end the process."""
    click.echo(f"tmqp: {printable(sentence)}", err=True)
    sys.exit(code)


def printable(text: str) -> str:
    """Text a stranger sent, safe for a terminal: control characters are written out."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\x{ord(character):02x}"
        for character in text
    )
