"""How the commands about the server itself reach it: over TMQP, and its admin door over HTTP."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click

from tmqp.address import Address
from tmqp_client import Client
from tmqp_client.cli._admin import Admin, AdminError, default_url
from tmqp_client.cli._run import EXIT_CONNECTION, CommandError, connected, work_with

__all__ = ["Where", "asking", "needing_admin"]

_C = TypeVar("_C", bound=Callable[..., Any])
_T = TypeVar("_T")
#: Seconds that all of a check, or each step of an examination, may take.
_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Where:
    """A server, and as whom to ask it.

    ``http`` is the URL of its admin door; ``http_given`` whether somebody has named it.
    """

    address: Address
    name: str
    token: str
    timeout_s: float
    http: str
    http_given: bool

    @property
    def admin(self) -> Admin:
        """Its admin door."""
        return Admin(self.http, self.token, self.timeout_s)

    async def ask(self, work: Callable[[Client], Awaitable[_T]]) -> _T:
        """Connect, do the work, close.

        :raises TmqpError: when there is no connection, or what the work raises.
        """
        return await work_with(
            work,
            address=self.address,
            name=self.name,
            token=self.token,
            timeout_s=self.timeout_s,
        )


@contextmanager
def needing_admin() -> Iterator[None]:
    """End a command that cannot do without the admin door, if that does not answer.

    :raises CommandError: with what was wrong.
    """
    try:
        yield
    except AdminError as error:
        raise CommandError(str(error), EXIT_CONNECTION) from error


def asking(command: _C) -> _C:
    """Give a command the options that say which server, and the argument ``where``."""

    @functools.wraps(command)
    def filled(*arguments: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in ("address", "name", "token")}
        timeout_s = options.pop("timeout_s")
        http = options.pop("http")
        where = Where(
            **given,
            timeout_s=_PATIENCE_S if timeout_s is None else timeout_s,
            http=http or default_url(given["address"]),
            http_given=http is not None,
        )
        try:
            _ = where.admin
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        return command(*arguments, where=where, **options)

    option = click.option(
        "--http",
        envvar="TMQP_HTTP",
        show_envvar=True,
        metavar="URL",
        help="Address of the admin door: http://HOST:PORT, https://HOST:PORT or unix:PATH."
        "  [default: port 2680 of the same host]",
    )
    return cast("_C", option(connected(filled)))
