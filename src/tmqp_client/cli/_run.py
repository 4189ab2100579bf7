"""What all commands share: their options, connecting, and how they end.

Each error that this project raises on purpose becomes one sentence on standard error, without a
traceback, and one of the exit codes that ``tmqp --help`` lists.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar, cast

import anyio
import click

from tmqp import Limits, TmqpError
from tmqp.address import DEFAULT_PORT, Address, parse_addresses
from tmqp.errors import LocalProtocolError
from tmqp_client import (
    Client,
    ClientClosed,
    ClientLimits,
    ConnectFailed,
    ConnectionLost,
    OperationTimeout,
    ReconnectPolicy,
    connect,
)
from tmqp_client.cli import contexts
from tmqp_client.cli._kinds import Number

__all__ = [
    "EXIT_CONNECTION",
    "EXIT_INTERRUPTED",
    "EXIT_OUTPUT_CLOSED",
    "EXIT_REFUSED",
    "EXIT_TIMEOUT",
    "EXIT_USAGE",
    "KEEP_TRYING",
    "CommandError",
    "GroupAddress",
    "address_option",
    "connected",
    "exit_code",
    "header_option",
    "json_option",
    "places_of",
    "printable",
    "report",
    "run",
    "run_alone",
    "to_headers",
    "work_with",
]

EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_CONNECTION: Final = 3
EXIT_TIMEOUT: Final = 4
EXIT_INTERRUPTED: Final = 130
EXIT_OUTPUT_CLOSED: Final = 141


class CommandError(Exception):
    """A command has failed: the message, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


#: For commands that continue until they are stopped.
KEEP_TRYING: Final = ReconnectPolicy(max_outage_s=300.0)
_DEFAULT_ADDRESS: Final = f"tmq://127.0.0.1:{DEFAULT_PORT}"
_C = TypeVar("_C", bound=Callable[..., Any])
_T = TypeVar("_T")


def _to_address(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> Address | None:
    if value is None:
        return None
    try:
        return GroupAddress.of(value)
    except LocalProtocolError as error:
        raise click.BadParameter(str(error)) from None


class GroupAddress(Address):
    """The address of a server, or of the first of a group; ``everywhere`` has all of them."""

    __slots__ = ("everywhere",)

    def __init__(self, everywhere: tuple[Address, ...]) -> None:
        first = everywhere[0]
        super().__init__(
            first.host,
            first.port,
            socket_path=first.socket_path,
            tls=first.tls,
            path=first.path,
        )
        self.everywhere = everywhere

    @classmethod
    def of(cls, text: str) -> Address:
        """Read one address, or several separated by commas.

        :raises LocalProtocolError: if one is invalid.
        """
        addresses = parse_addresses(text)
        return addresses[0] if len(addresses) == 1 else cls(addresses)


def places_of(address: Address) -> list[Address]:
    """Return the addresses to try; the first that accepts the client is used."""
    return [*address.everywhere] if isinstance(address, GroupAddress) else [address]


def to_headers(
    _context: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Read each ``KEY:VALUE``; white space around both is removed."""
    headers: list[tuple[str, str]] = []
    for value in values:
        key, colon, text = value.partition(":")
        if not colon or not key.strip():
            raise click.BadParameter(f"{value!r} is not a header; write KEY:VALUE")
        headers.append((key.strip(), text.strip()))
    return tuple(headers)


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


def _with_context(command: _C) -> _C:
    """Fill in options that were not given, from the context."""

    @functools.wraps(command)
    def filled(*arguments: Any, **options: Any) -> Any:
        try:
            context = contexts.load().chosen(options.pop("context_name"))
        except contexts.ContextError as error:
            raise click.UsageError(str(error)) from None
        before = click.get_current_context().find_root().params
        for name in ("address", "name", "token"):
            # An option after the command takes precedence over one before it.
            if options[name] is None or not _was_typed(name):
                options[name] = before.get(name) or options[name]
        if options["address"] is None:
            options["address"] = GroupAddress.of(context.address or _DEFAULT_ADDRESS)
        for name in ("name", "token"):
            if options[name] is None:
                options[name] = getattr(context, name)
        return command(*arguments, **options)

    return cast("_C", filled)


def _was_typed(name: str) -> bool:
    """Whether an option was typed after the command, instead of coming from the environment."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def address_option(command: _C, **more: Any) -> _C:
    """The option ``-a ADDRESS``."""
    return click.option(
        "-a",
        "--address",
        callback=_to_address,
        metavar="ADDRESS",
        help="The server's address; for a group, its addresses separated by commas."
        f"  [default: {_DEFAULT_ADDRESS}]",
        **more,
    )(command)


def json_option(help_text: str = "Print JSON.") -> Callable[[_C], _C]:
    """The flag ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help=help_text)


def connected(command: _C) -> _C:
    """Give a command the options for the address, the client's name and its token."""
    options = (
        functools.partial(address_option, envvar="TMQP_ADDRESS", show_envvar=True),
        click.option("--name", help="Client name to connect with."),
        click.option("--token", envvar="TMQP_TOKEN", show_envvar=True, help="Client token."),
        click.option(
            "--context",
            "context_name",
            envvar="TMQP_CONTEXT",
            show_envvar=True,
            metavar="NAME",
            help="Take missing options from this context (tmqp config).",
        ),
        click.option(
            "--timeout",
            "timeout_s",
            type=Number(0, above=True),
            metavar="SECONDS",
            help="Wait this long for the connection and for each answer.  [default: 10 to connect,"
            " 15 for a push, 30 for anything else]",
        ),
    )
    wrapped: Any = _with_context(command)
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


async def work_with(
    work: Callable[[Client], Awaitable[_T]],
    *,
    address: Address,
    name: str,
    token: str,
    timeout_s: float | None,
    reconnect: ReconnectPolicy | None = None,
) -> _T:
    """Connect, do the work and close; return the result of the work.

    :param timeout_s: for the connection, and for each answer; None for the client's defaults.
    :raises TmqpError: if there is no connection, or if the work raises it.
    """
    limits = ClientLimits()
    if timeout_s is not None:
        limits = ClientLimits(
            connect_timeout_s=timeout_s,
            response_timeout_s=timeout_s,
            acknowledge_timeout_s=timeout_s,
            protocol=Limits(handshake_timeout_s=timeout_s),
        )
    async with connect(
        places_of(address),
        name=name,
        type="tmqp-cli",
        token=token,
        limits=limits,
        reconnect=reconnect,
    ) as client:
        try:
            return await work(client)
        except BaseExceptionGroup as group:
            raise _first_of(group) from group
    raise ClientClosed("the connection ended before the work was done")


def run(work: Callable[[Client], Awaitable[None]], **where: Any) -> None:
    """Connect, do the work, close; end the process with an exit code if anything goes wrong.

    :param where: as :func:`work_with` takes it.
    """
    run_alone(functools.partial(work_with, work, **where))


def run_alone(work: Callable[[], Awaitable[None]]) -> None:
    """Do the work; end the process with an exit code if anything goes wrong."""
    try:
        anyio.run(work)
    except CommandError as error:
        _end(error.sentence, error.code)
    except KeyboardInterrupt:
        click.echo("tmqp: interrupted", err=True)
        with suppress(OSError):
            sys.stdout.flush()
        # A thread may still be reading standard input; an ordinary exit would wait for it.
        os._exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone; Python must not report its unflushed rest either.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_OUTPUT_CLOSED)
    except TmqpError as error:
        _end(str(error), exit_code(error))
    except OSError as error:
        _end(error.strerror or str(error), EXIT_REFUSED)


def report(sentence: str, *, as_json: bool, **fields: object) -> None:
    """Print what was done: the sentence, or the fields as one JSON object."""
    click.echo(json.dumps(fields) if as_json else printable(sentence))


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that ended a command with several tasks."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def exit_code(error: TmqpError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, LocalProtocolError):
        return EXIT_USAGE
    if isinstance(error, ConnectFailed | ConnectionLost | ClientClosed):
        return EXIT_CONNECTION
    if isinstance(error, OperationTimeout):
        return EXIT_TIMEOUT
    return EXIT_REFUSED


def _end(sentence: str, code: int) -> NoReturn:
    """Print the error and end the process."""
    click.echo(f"tmqp: {printable(sentence)}", err=True)
    sys.exit(code)


def printable(text: str) -> str:
    """Make text from others safe for a terminal.

    Control characters, and marks that change the direction of text, become escape sequences.
    """
    return "".join(
        character if character.isprintable() or character in "\n\t" else _written_out(character)
        for character in text
    )


def _written_out(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
