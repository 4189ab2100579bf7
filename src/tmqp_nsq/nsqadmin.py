"""The program ``nsqadmin``: a web page over the HTTP interfaces of nsqlookupd and nsqd."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio

from tmqp_nsq.addresses import parse_address
from tmqp_nsq.admin.actions import Notifier, Permissions
from tmqp_nsq.admin.api import AdminSite
from tmqp_nsq.admin.graphite import Graphite
from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.listening import serve_web
from tmqp_nsq.nodes.cluster import Cluster
from tmqp_nsq.nodes.upstream import ClientSettings, Upstream, tls_context
from tmqp_nsq.starting import hostname, run_program, stop_signals
from tmqp_nsq.tool_flags import NSQADMIN
from tmqp_nsq.web import WebServer

__all__ = ["admin_site", "main", "run"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``nsqadmin``; ends the process with its exit status."""
    run_program(NSQADMIN, run, arguments)


def _nodes(values: FlagValues) -> tuple[list[str], list[str]]:
    """The lookupds and the nsqds of the flags; exactly one list has entries.

    :raises FlagError: if it is not one, or both.
    """
    lookupds = [
        str(parse_address(each, "lookupd-http-address"))
        for each in values.texts("lookupd-http-address")
    ]
    nsqds = [
        str(parse_address(each, "nsqd-http-address")) for each in values.texts("nsqd-http-address")
    ]
    if lookupds and nsqds:
        raise FlagError("use --nsqd-http-address or --lookupd-http-address, not both")
    if not lookupds and not nsqds:
        raise FlagError("--nsqd-http-address or --lookupd-http-address is required")
    return lookupds, nsqds


@asynccontextmanager
async def admin_site(values: FlagValues) -> AsyncIterator[AdminSite]:
    """Make what answers requests, with the tasks that it needs.

    :raises FlagError: if the flags do not fit together.
    """
    lookupds, nsqds = _nodes(values)
    permissions = Permissions(values)
    settings = ClientSettings(
        values.seconds("http-client-connect-timeout"),
        values.seconds("http-client-request-timeout"),
        tls_context(values),
    )
    async with Upstream.client(settings, "nsqadmin") as client:
        upstream = Upstream(client)
        graphite = Graphite(values, upstream)
        notifier = Notifier(values.text("notification-http-endpoint"), client, hostname())
        cluster = Cluster(upstream, lookupds, nsqds)
        site = AdminSite(cluster, permissions, graphite, notifier, values.text("base-path"))
        site.note_level(values.text("log-level"))
        async with anyio.create_task_group() as group:
            group.start_soon(notifier.run)
            yield site
            group.cancel_scope.cancel()


async def run(values: FlagValues) -> None:
    """Run until SIGTERM or SIGINT.

    :raises FlagError: if the flags do not fit together.
    """
    address = parse_address(values.text("http-address"), "http-address", listening=True)
    async with (
        admin_site(values) as site,
        anyio.create_task_group() as group,
        stop_signals() as signals,
    ):
        await serve_web(address, WebServer(site.handle).serve, group)
        async for _ in signals:
            group.cancel_scope.cancel()
