"""Options about packs: ``--pack``, and the further addresses of a server."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from tmqp.address import Address
from tmqp.testing.conformance import Case
from tmqp_conformance.commands.common import read_target
from tmqp_conformance.packs import PACKS
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.sockets import ServerStage, SocketWire

__all__ = ["PackStage", "at_option", "pack_option", "read_places"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_AT: Final = "--at"


def pack_option(command: _Command) -> _Command:
    """The option that chooses the cases about another protocol."""
    return click.option(
        "--pack", type=click.Choice(list(PACKS)), help="The cases for another protocol."
    )(command)


def at_option(command: _Command) -> _Command:
    """The option for a server's further addresses."""
    return click.option(
        _AT,
        "places",
        multiple=True,
        metavar="WHAT=HOST:PORT",
        help="A further address for a pack: http, lookup, lookup-http, dialect-7.3.",
    )(command)


def read_places(
    pack: Pack | None, target: Address, texts: Sequence[str], *, allow_remote: bool
) -> dict[str, Address]:
    """Return the addresses of a server, by their names in the pack.

    :raises click.BadParameter: if one is invalid, or the pack has no address of this name.
    """
    found = {"": target}
    known = [] if pack is None else pack.places
    for text in texts:
        name, sign, address = text.partition("=")
        if not sign or name not in known:
            names = ", ".join(known) or "none without --pack nsq"
            raise click.BadParameter(f"{text!r}: WHAT is one of {names}", param_hint=_AT)
        found[name] = read_target(address, allow_remote=allow_remote, name=_AT)
    return found


class PackStage(ServerStage):
    """Plays cases of packs against the server at these addresses."""

    def __init__(
        self,
        addresses: Mapping[str, Address],
        tls: ssl.SSLContext | None = None,
        restart: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(addresses[""], tls, restart)
        self._stages = {name: ServerStage(each, tls) for name, each in addresses.items()}

    def has(self, place: str) -> bool:
        """Return whether there is an address of this name."""
        return place in self._stages

    def open(self, line: str, case: Case) -> SocketWire:
        """See :class:`tmqp_conformance.sockets.ServerStage`."""
        return self._stages[case.place(line)].open(line, case)
