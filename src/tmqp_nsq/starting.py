"""What the programs do first and last: help, version, configuration file, log, signals, errors.

Exit status: 0 after a clean stop, 2 for a command line or a configuration that cannot be used, 1
for everything else that ends a program.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from typing import Final, NoReturn

import anyio

import tmqp
from tmqp_nsq import NSQ_VERSION
from tmqp_nsq.flags import (
    Flag,
    FlagError,
    FlagTable,
    FlagValues,
    HelpRequestError,
    load_config,
    parse,
)

__all__ = [
    "ProgramError",
    "guarded",
    "help_text",
    "hostname",
    "run_program",
    "stop_signals",
    "version_text",
]

logger = logging.getLogger("tmqp_nsq")

_WIDTH: Final = 100
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}
_NAMES: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class ProgramError(Exception):
    """What ends a program with exit status 1; the text is for its user."""


def hostname() -> str:
    """The name of this machine."""
    return socket.gethostname()


def version_text(table: FlagTable) -> str:
    """What ``-version`` prints."""
    return f"{table.program} v{NSQ_VERSION} (tmqp {tmqp.__version__})"


def help_text(table: FlagTable) -> str:
    """What ``--help`` prints: what the program is for, examples, every flag with its default."""
    lines = [f"Usage: {table.program} [flags]", "", *textwrap.wrap(table.summary, _WIDTH)]
    lines += ["", "Examples:", *[f"  {example}" for example in table.examples], "", "Flags:"]
    for flag in table.flags:
        word = f" {flag.kind.word}" if flag.kind.word else ""
        repeated = " (may be repeated)" if flag.kind.many and "repeated" not in flag.help else ""
        shown = flag.kind.show(flag.default)
        default = f" (default {shown})" if shown and flag.default not in (False, -1) else ""
        lines.append(f"  --{flag.name}{word}")
        text = f"{flag.help}{repeated}{default}"
        if flag.ignored:
            text += f"; no effect: {flag.ignored}"
        lines += textwrap.wrap(
            text, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False
        )
    lines += [
        "",
        "One dash or two, '--flag value' or '--flag=value'; a duration is 1500ms, 30s, 2m30s.",
    ]
    if table.find("config") is not None:
        lines += textwrap.wrap(
            "Keys of the configuration file: the flags with '_' for '-', and "
            + ", ".join(each.config_key for each in table.flags if _has_own_key(each))
            + ".",
            _WIDTH,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _has_own_key(flag: Flag) -> bool:
    return bool(flag.key) and flag.key != flag.name.replace("-", "_")


class _Format(logging.Formatter):
    """Lines as the originals write them: prefix, date, time, level, text."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"{prefix.replace('%', '%%')}%(asctime)s %(levelname)s: %(message)s")
        self.default_time_format = "%Y/%m/%d %H:%M:%S"
        self.default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        named = copy(record)  # other handlers are given the same record
        named.levelname = _NAMES.get(record.levelname, record.levelname)
        return super().format(named)


def _set_log(values: FlagValues) -> None:
    table = values.table
    level = values.text("log-level") if table.find("log-level") is not None else "info"
    prefix = values.text("log-prefix") if table.find("log-prefix") is not None else ""
    handler = logging.StreamHandler()
    handler.setFormatter(_Format(prefix))
    logging.basicConfig(level=_LEVELS[level], handlers=[handler], force=True)
    for name in ("httpx", "httpcore"):  # they log whole URLs
        logging.getLogger(name).setLevel(logging.WARNING)


def run_program(
    table: FlagTable,
    run: Callable[[FlagValues], Awaitable[None]],
    arguments: Sequence[str] | None = None,
) -> None:
    """Read the command line and run a program; ends the process with its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        values = parse(table, given)
        if table.find("config") is not None and values.text("config"):
            values = parse(table, given, load_config(values.text("config")))
    except HelpRequestError:
        _say(help_text(table))
        return
    except FlagError as error:
        _fail(table, str(error), 2)
    if values.is_on("version"):
        _say(version_text(table))
        return
    _set_log(values)
    for line in values.ignored():
        logger.warning("%s", line)
    try:
        anyio.run(guarded, run, values)
    except FlagError as error:
        _fail(table, str(error), 2)
    except ProgramError as error:
        sys.exit(f"{table.program}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


async def guarded(run: Callable[[FlagValues], Awaitable[None]], values: FlagValues) -> None:
    """Run; of a group of errors, the first that is expected is raised alone."""
    try:
        await run(values)
    except BaseExceptionGroup as group:
        expected = group.subgroup((FlagError, ProgramError))
        if expected is None:
            raise
        raise _first(expected) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _say(text: str) -> None:
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # A pager was closed; what is left in the buffer would fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(table: FlagTable, text: str, status: int) -> NoReturn:
    sys.stderr.write(f"{table.program}: {text}\n")
    if status == 2:
        sys.stderr.write(f"{table.program}: '{table.program} --help' lists the flags\n")
    sys.exit(status)


@asynccontextmanager
async def stop_signals(*others: signal.Signals) -> AsyncIterator[AsyncIterator[signal.Signals]]:
    """Receive SIGTERM and SIGINT, and *others*, in the order in which they arrive."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, *others) as signals:
        yield signals
