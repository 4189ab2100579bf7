"""The command ``tmqp-conformance``: certifies TMQP servers and clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import tmqp
from tmqp_conformance.commands.clients import client
from tmqp_conformance.commands.common import WRONG_USE
from tmqp_conformance.commands.fuzzing import fuzz, shrink
from tmqp_conformance.commands.listing import explain, list_cases
from tmqp_conformance.commands.replaying import replay
from tmqp_conformance.commands.reporting import compare, report
from tmqp_conformance.commands.selftest import self_test
from tmqp_conformance.commands.testing import server

__all__ = ["main"]


class _WrongUse(click.UsageError):
    exit_code = WRONG_USE


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Give usage errors their own exit status."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise _WrongUse(error.format_message(), error.ctx) from error


class _Group(click.Group):
    """A group of commands in which usage errors have their own exit status."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with _usage_errors():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _usage_errors():
            return super().invoke(ctx)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(tmqp.__version__, prog_name="tmqp-conformance")
def main() -> None:
    """Check whether a TMQP/2.0 server or client conforms to the protocol.

    Exit status: 0 it conforms, 1 it does not, 2 it could not be tested, 3 usage error.
    """


for _command in (
    server,
    client,
    list_cases,
    explain,
    replay,
    report,
    compare,
    self_test,
    fuzz,
    shrink,
):
    main.add_command(_command)

if __name__ == "__main__":
    main()
