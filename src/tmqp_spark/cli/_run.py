"""What the commands share: options, output, exit codes, errors as one sentence."""

from __future__ import annotations

import functools
import json
import os
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, cast

import click

from tmqp.address import parse_addresses
from tmqp.errors import LocalProtocolError, TmqpError
from tmqp_client import sync
from tmqp_client.errors import ConnectFailed, ConnectionLost
from tmqp_client.sync import Client
from tmqp_spark.options import (
    ConnectionOptions,
    SinkOptions,
    SourceOptions,
    check_names,
    read_options,
    read_stream_connection,
)
from tmqp_spark.pipelines.reporting import Reporter, explain
from tmqp_spark.transport import read_token

__all__ = [
    "EXIT_CODES",
    "absolute",
    "blocking_client",
    "connected",
    "connection_options",
    "ends_well",
    "example_text",
    "make_reporter",
    "on_spark",
    "print_json",
    "print_table",
    "read_pairs",
    "reported",
    "sink_options",
    "source_options",
]

_C = TypeVar("_C", bound=Callable[..., Any])
_DEFAULT_ADDRESS: Final = "tmq://127.0.0.1:2622"
_EXIT_FAILED: Final = 1
_EXIT_USAGE: Final = 2
_EXIT_CONNECTION: Final = 3
_EXIT_LOST: Final = 4
_EXIT_INTERRUPTED: Final = 130
_EXIT_OUTPUT_CLOSED: Final = 141
_CODES: Final = {
    "InvalidOption": _EXIT_USAGE,
    "InvalidSchema": _EXIT_USAGE,
    "BrokerUnreachable": _EXIT_CONNECTION,
    "ConnectionBroken": _EXIT_CONNECTION,
    "DataLost": _EXIT_LOST,
}
#: For the help of every command that can fail.
EXIT_CODES: Final = """\b
Exit codes:
  0    done, also if the current work was finished after SIGTERM or Ctrl-C
  1    the broker, Spark or the file system reported an error
  2    usage error
  3    no connection to the broker, or it was lost for too long
  4    messages to be read are no longer kept
  130  ended at once by a second SIGTERM or Ctrl-C
  141  standard output was closed by its reader
"""


def example_text(examples: str) -> str:
    """The end of a command's help: examples, one per line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines())


def _to_address(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        parse_addresses(value)
    except LocalProtocolError as error:
        raise click.BadParameter(str(error)) from None
    return value


def _pair(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> Any:
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        found[name] = rest
    return found


def read_pairs(*names: str, help: str, variable: str) -> Callable[[_C], _C]:
    """Read a repeatable option of the form NAME=VALUE as a dictionary."""
    return click.option(
        *names, variable, multiple=True, metavar="NAME=VALUE", callback=_pair, help=help
    )


def _applied(command: _C, *options: Callable[[Any], Any]) -> _C:
    wrapped: Any = command
    for option in reversed(options):
        wrapped = option(wrapped)
    return cast("_C", wrapped)


def connected(command: _C) -> _C:
    """Give a command the options about the broker."""
    return _applied(
        command,
        click.option(
            "-a",
            "--address",
            default=_DEFAULT_ADDRESS,
            show_default=True,
            envvar="TMQP_ADDRESS",
            show_envvar=True,
            callback=_to_address,
            metavar="ADDRESS",
            help="The broker's address.",
        ),
        click.option("--token", envvar="TMQP_TOKEN", show_envvar=True, help="Client token."),
        read_pairs(
            "-o",
            "--option",
            help="Any other option of the Spark source or sink (docs/spark.md).",
            variable="more",
        ),
    )


def on_spark(command: _C) -> _C:
    """Give a command the options about Spark."""
    return _applied(
        command,
        click.option(
            "--master",
            metavar="MASTER",
            help="Spark's master, such as local[4] or spark://host:7077.  [default: what Spark is"
            " configured for, else all processors of this machine]",
        ),
        read_pairs("--conf", help="A setting of Spark.", variable="conf"),
    )


def reported(command: _C) -> _C:
    """Give a command the options about its progress messages."""
    return _applied(
        command,
        click.option("--json-logs", is_flag=True, help="Progress as JSON, one object per line."),
        click.option("-q", "--quiet", is_flag=True, help="No progress, only warnings."),
    )


def absolute(place: str) -> str:
    """Make a path absolute for Spark, because the JVM may run in another folder; URLs such as
    ``s3a://bucket`` stay unchanged."""
    return place if "://" in place else str(Path(place).absolute())


# --- Options about the broker -------------------------------------------------------------------


def connection_options(
    address: str, token: str | None, more: Mapping[str, str], *, follow: bool = False
) -> ConnectionOptions:
    """The connection options of a command.

    :param follow: the command runs until it is stopped, and retries as long as a streaming query.
    """
    given = {"url": address, **more}
    if token:
        given["token"] = token
    return read_stream_connection(given) if follow else read_options(ConnectionOptions, given)


def source_options(
    queues: tuple[str, ...], pattern: str | None, more: Mapping[str, str], **given: str
) -> SourceOptions:
    """The source options of a command.

    :param queues: as typed: ``orders/7``, or ``orders`` for all of a channel.
    :param given: further options of the source, which ``more`` overrides.
    :raises InvalidOption: for options that are unknown or invalid.
    """
    if bool(queues) == bool(pattern):
        raise click.UsageError("name queues (orders/7, or orders for a channel), or --pattern")
    chosen = {"subscribePattern": pattern} if pattern else {"subscribe": ",".join(queues)}
    whole = {**given, **chosen, **more}
    check_names(whole, "source", ConnectionOptions, SourceOptions)
    return read_options(SourceOptions, whole)


def sink_options(more: Mapping[str, str], **given: str) -> SinkOptions:
    """The sink options of a command, as :func:`source_options`.

    :raises InvalidOption: for options that are unknown or invalid.
    """
    whole = {**given, **more}
    check_names(whole, "sink", ConnectionOptions, SinkOptions)
    return read_options(SinkOptions, whole)


def blocking_client(connection: ConnectionOptions) -> Client:
    """A client for requests that no source makes.

    :raises BrokerUnreachable: if the file with the token cannot be read.
    """
    context = None
    if connection.tls or connection.tls_ca or connection.tls_cert:
        context = ssl.create_default_context(cafile=connection.tls_ca or None)
        if connection.tls_cert:
            context.load_cert_chain(connection.tls_cert, connection.tls_key or None)
    return sync.connect(
        connection.url,
        name=connection.client_name,
        type=connection.client_type,
        token=read_token(connection),
        ssl_context=context,
    )


# --- Output and the end -------------------------------------------------------------------------


def print_json(data: Any) -> None:
    """Print the summary of a command as one JSON object on a line of standard output."""
    plain = asdict(data) if is_dataclass(data) and not isinstance(data, type) else data
    click.echo(json.dumps(plain, sort_keys=True, default=str))


def print_table(headings: list[str], rows: list[list[Any]]) -> None:
    """Print a table for people: numbers aligned right, text aligned left."""
    texts = [[_cell(value) for value in row] for row in rows]
    widths = [
        max([len(heading), *(len(row[place]) for row in texts)])
        for place, heading in enumerate(headings)
    ]
    right = [
        bool(rows) and all(isinstance(row[place], int | float | None) for row in rows)
        for place in range(len(headings))
    ]
    for line in [headings, *texts]:
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(value)
    )


def ends_well(command: _C) -> _C:
    """Turn every error of a command into one sentence and an exit code."""

    @functools.wraps(command)
    def guarded(*arguments: Any, **options: Any) -> Any:
        with _guard():
            return command(*arguments, **options)

    return cast("_C", guarded)


@contextmanager
def _guard() -> Iterator[None]:
    try:
        yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except KeyboardInterrupt:
        click.echo("tmqp-spark: interrupted", err=True)
        sys.exit(_EXIT_INTERRUPTED)
    except BrokenPipeError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_EXIT_OUTPUT_CLOSED)
    except (ConnectFailed, ConnectionLost) as error:
        _end(str(error), _EXIT_CONNECTION)
    except (TmqpError, OSError) as error:
        kind, text = explain(error)
        _end(text, _CODES.get(kind, _EXIT_FAILED))
    except Exception as error:
        if not _is_sparks(error):
            raise
        kind, text = explain(error)
        _end(text, _CODES.get(kind, _EXIT_FAILED))


def _is_sparks(error: Exception) -> bool:
    """Whether an error comes from Spark or its bridge, and not from this package."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(f"tmqp-spark: {sentence}", err=True)
    sys.exit(code)


def make_reporter(json_logs: bool, quiet: bool) -> Reporter:
    """Make the reporter of a command's progress."""
    return Reporter(as_json=json_logs, quiet=quiet)
