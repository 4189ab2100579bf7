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
#: The most seconds for a whole check, or for each step of an examination.
_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Where:
    """The addresses of a server, and the name and token to use.

    ``http`` is the URL of its admin door; ``http_given`` whether the user has named it.
    """

    address: Address
    name: str
    token: str
    timeout_s: float
    http: str
    http_given: bool

    @property
    def admin(self) -> Admin:
        """The admin door of the server."""
        return Admin(self.http, self.token, self.timeout_s)

    async def ask(self, work: Callable[[Client], Awaitable[_T]]) -> _T:
        """Connect, do the work and close; return the result of the work.

        :raises TmqpError: if there is no connection, or if the work raises it.
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
    """End a command that needs the admin door, if the admin door does not answer.

    :raises CommandError: in place of any :class:`AdminError`.
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
