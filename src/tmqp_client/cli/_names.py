"""Completes names in the shell, by asking the server that the command would use.

The shell waits for the answer while the user types, so the server has one second, and any error
completes nothing, without a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import click
from click.shell_completion import CompletionItem

from tmqp import TmqpError
from tmqp_client.cli import contexts
from tmqp_client.config import ClientLimits
from tmqp_client.sync import Client, connect

__all__ = ["CHANNEL", "QUEUE_ID", "ROUTER"]

_PATIENCE_S: Final = 1.0
_DEFAULT_ADDRESS: Final = "tmq://127.0.0.1"


def _asked(context: click.Context, question: Callable[[Client], Iterable[str]]) -> list[str]:
    """Return the server's answer; empty if there is none."""
    given = dict(context.find_root().params)
    given.update({name: value for name, value in context.params.items() if value is not None})
    limits = ClientLimits(connect_timeout_s=_PATIENCE_S, response_timeout_s=_PATIENCE_S)
    try:
        chosen = contexts.load().chosen(given.get("context_name"))
        address = given.get("address") or chosen.address or _DEFAULT_ADDRESS
        with connect(
            address,
            name=given.get("name") or chosen.name,
            type="tmqp-cli",
            token=given.get("token") or chosen.token,
            limits=limits,
            reconnect=None,
        ) as client:
            return list(question(client))
    except (TmqpError, OSError, contexts.ContextError):
        return []


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


class _Channel(click.types.StringParamType):
    """A channel's name."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the existing channels."""
        return _items(_asked(ctx, lambda client: (x.name for x in client.channels())), incomplete)


class _Router(click.types.StringParamType):
    """A router's name."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the existing routers."""
        return _items(_asked(ctx, lambda client: (x.name for x in client.routers())), incomplete)


class _QueueId(click.IntRange):
    """A queue id."""

    name = "queue id"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the queues of the channel that was typed before."""
        channel = ctx.params.get("channel_name") or ctx.params.get("channel")
        if not channel:
            return []
        return _items(
            _asked(ctx, lambda client: (str(x.id) for x in client.queues(channel))), incomplete
        )


CHANNEL: Final = _Channel()
ROUTER: Final = _Router()
QUEUE_ID: Final = _QueueId(0, 65_535)
