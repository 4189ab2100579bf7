"""``tmqp config``: names for servers."""

from __future__ import annotations

import click

from tmqp.address import parse_addresses
from tmqp.errors import LocalProtocolError
from tmqp_client.cli import contexts
from tmqp_client.cli._output import show_rows
from tmqp_client.cli._run import json_option, report

__all__ = ["config", "config_list", "config_remove", "config_set", "config_use"]


@click.group("config")
def config() -> None:
    """Keep names for servers: --context NAME, TMQP_CONTEXT, or the one in use."""


def _load() -> contexts.Contexts:
    try:
        return contexts.load()
    except contexts.ContextError as error:
        raise click.ClickException(str(error)) from None


def _known(name: str) -> contexts.Contexts:
    known = _load()
    if name not in known.known:
        raise click.ClickException(f"there is no context {name!r}; tmqp config ls shows them")
    return known


@config.command(
    "set",
    epilog="\b\nExample:\n  tmqp config set home --address tmq://broker.example:2622 --use\n",
)
@click.argument("name")
@click.option("-a", "--address", help="The server's address.")
@click.option("--name", "client_name", help="Client name to connect with.")
@click.option("--token", help="Client token.  Only the file's owner can read it.")
@click.option("--use", is_flag=True, help="Use it from now on.")
@json_option()
def config_set(
    name: str,
    address: str | None,
    client_name: str | None,
    token: str | None,
    use: bool,
    as_json: bool,
) -> None:
    """Create or change the context NAME; options that are not given stay unchanged."""
    known = _load()
    context = known.known.setdefault(name, contexts.Context())
    if address is not None:
        try:
            parse_addresses(address)
        except LocalProtocolError as error:
            raise click.BadParameter(str(error), param_hint="--address") from None
        context.address = address
    if client_name is not None:
        context.name = client_name
    if token is not None:
        context.token = token
    if use:
        known.current = name
    known.save()
    report(f"context {name} saved", as_json=as_json, context=name, saved=True)


@config.command("use", epilog="\b\nExample:\n  tmqp config use home\n")
@click.argument("name")
@json_option()
def config_use(name: str, as_json: bool) -> None:
    """Use the context NAME by default."""
    known = _known(name)
    known.current = name
    known.save()
    report(f"context {name} is in use", as_json=as_json, context=name, in_use=True)


@config.command("rm", epilog="\b\nExample:\n  tmqp config rm home\n")
@click.argument("name")
@json_option()
def config_remove(name: str, as_json: bool) -> None:
    """Remove the context NAME."""
    known = _known(name)
    del known.known[name]
    if known.current == name:
        known.current = ""
    known.save()
    report(f"context {name} removed", as_json=as_json, context=name, removed=True)


@config.command("ls", epilog="\b\nExample:\n  tmqp config ls\n")
@json_option()
def config_list(as_json: bool) -> None:
    """List the contexts; tokens are not shown."""
    known = _load()
    rows = [
        {
            "name": name,
            "address": each.address,
            "client_name": each.name,
            "token": bool(each.token),
            "in_use": name == known.current,
        }
        for name, each in known.known.items()
    ]
    columns = ("name", "address", "client_name", "token", "in_use")
    show_rows(columns, rows, as_json=as_json)
