"""``tmqp router``: routers and their bindings."""

from __future__ import annotations

from typing import Any

import click

from tmqp.constants import BindingInteraction, BindingType, RouteMethod
from tmqp.models import BindingInformation
from tmqp.models._kinds import INT32
from tmqp_client import Client
from tmqp_client.cli._names import QUEUE_ID, ROUTER
from tmqp_client.cli._output import plain, show_rows
from tmqp_client.cli._run import connected, json_option, report, run

__all__ = [
    "router",
    "router_bind",
    "router_create",
    "router_info",
    "router_list",
    "router_remove",
    "router_unbind",
]


def _words(kind: Any) -> list[str]:
    return [each.name.lower().replace("_", "-") for each in kind]


def _of(kind: Any, word: str) -> Any:
    return kind[word.upper().replace("-", "_")]


@click.group("router")
def router() -> None:
    """Create, remove and list routers and their bindings."""


@router.command("create", epilog="\b\nExample:\n  tmqp router create spread --method round-robin\n")
@click.argument("router_name", metavar="ROUTER", type=ROUTER)
@click.option("--method", type=click.Choice(_words(RouteMethod)), default="distribute")
@json_option()
@connected
def router_create(router_name: str, method: str, as_json: bool, **where: Any) -> None:
    """Create a router; an existing one is not changed."""

    async def work(client: Client) -> None:
        await client.create_router(router_name, _of(RouteMethod, method))
        sentence = f"router {router_name} is there"
        report(sentence, as_json=as_json, router=router_name)

    run(work, **where)


@router.command("rm", epilog="\b\nExample:\n  tmqp router rm spread\n")
@click.argument("router_name", metavar="ROUTER", type=ROUTER)
@json_option()
@connected
def router_remove(router_name: str, as_json: bool, **where: Any) -> None:
    """Remove a router with its bindings."""

    async def work(client: Client) -> None:
        await client.remove_router(router_name)
        sentence = f"router {router_name} removed"
        report(sentence, as_json=as_json, router=router_name, removed=True)

    run(work, **where)


@router.command("ls", epilog="\b\nExample:\n  tmqp router ls\n")
@json_option("Print one JSON object per line.")
@connected
def router_list(as_json: bool, **where: Any) -> None:
    """List the routers."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.routers()]
        for row in rows:
            if row["method"] in iter(RouteMethod):  # else one of the server's own
                row["method"] = plain(RouteMethod(row["method"]))
        show_rows(("name", "method", "is_enabled"), rows, as_json=as_json)

    run(work, **where)


@router.command("info", epilog="\b\nExample:\n  tmqp router info spread\n")
@click.argument("router_name", metavar="ROUTER", type=ROUTER)
@json_option("Print one JSON object per line.")
@connected
def router_info(router_name: str, as_json: bool, **where: Any) -> None:
    """List the bindings of a router, the highest priority first."""

    async def work(client: Client) -> None:
        rows = [plain(each) for each in await client.bindings(router_name)]
        columns = ("name", "binding_type", "target", "content_type", "priority", "interaction")
        show_rows(columns, rows, as_json=as_json)

    run(work, **where)


@router.command("bind", epilog="\b\nExample:\n  tmqp router bind spread a orders --queue 1\n")
@click.argument("router_name", metavar="ROUTER", type=ROUTER)
@click.argument("binding_name", metavar="BINDING")
@click.argument("target")
@click.option("--kind", type=click.Choice(_words(BindingType)), default="queue", show_default=True)
@click.option("-q", "--queue", "content_type", type=QUEUE_ID, help="Queue, or content type.")
@click.option("--priority", type=click.IntRange(*INT32), default=0, show_default=True)
@click.option("--interaction", type=click.Choice(_words(BindingInteraction)), default="none")
@json_option()
@connected
def router_bind(
    router_name: str,
    binding_name: str,
    target: str,
    kind: str,
    content_type: int | None,
    priority: int,
    interaction: str,
    as_json: bool,
    **where: Any,
) -> None:
    """Let a router send to TARGET: a channel, a client, or a tag."""
    binding = BindingInformation(
        name=binding_name,
        target=target,
        content_type=content_type,
        priority=priority,
        interaction=_of(BindingInteraction, interaction),
        binding_type=_of(BindingType, kind),
    )

    async def work(client: Client) -> None:
        await client.add_binding(router_name, binding)
        sentence = f"binding {binding_name} of {router_name} is there"
        report(sentence, as_json=as_json, router=router_name, binding=binding_name)

    run(work, **where)


@router.command("unbind", epilog="\b\nExample:\n  tmqp router unbind spread a\n")
@click.argument("router_name", metavar="ROUTER", type=ROUTER)
@click.argument("binding_name", metavar="BINDING")
@json_option()
@connected
def router_unbind(router_name: str, binding_name: str, as_json: bool, **where: Any) -> None:
    """Remove a binding."""

    async def work(client: Client) -> None:
        await client.remove_binding(router_name, binding_name)
        sentence = f"binding {binding_name} of {router_name} removed"
        report(sentence, as_json=as_json, router=router_name, binding=binding_name, removed=True)

    run(work, **where)
