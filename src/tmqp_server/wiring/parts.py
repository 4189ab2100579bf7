"""Makes the parts of a server from its configuration."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmqp_server.access.auth import Access
from tmqp_server.access.channel_hooks import ChannelHooks
from tmqp_server.access.custom import MessageHook
from tmqp_server.cluster.link import MasterLink
from tmqp_server.config import OutboundLimits, ServerConfig
from tmqp_server.hub.hub import Hub
from tmqp_server.io.judge import Judge
from tmqp_server.shell.calls import CallSettings
from tmqp_server.shell.outbound import Marks
from tmqp_server.shell.rates import RateLimits
from tmqp_server.shell.turn import Turn
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.port import Store

if TYPE_CHECKING:
    from tmqp_server.io.http import HttpCaller

__all__ = ["caller_of", "judge_of", "limit_turn", "new_id", "open_store", "rates_of", "turn_of"]

logger = logging.getLogger("tmqp_server")


def _marks_of(limits: OutboundLimits) -> Marks:
    """The limits for peers that read slowly."""
    return Marks(
        limits.max_outbound_bytes,
        limits.high_water_bytes,
        limits.low_water_bytes,
        limits.stall_timeout_s,
        limits.flush_timeout_s,
    )


def _call_settings_of(config: ServerConfig, hooks: ChannelHooks) -> CallSettings:
    """The limits for calls to code outside."""
    return CallSettings(
        config.hook_timeout_s,
        config.http.timeout_s,
        config.http.max_concurrent,
        tuple(hooks.event_handlers),
    )


def caller_of(config: ServerConfig) -> HttpCaller | None:
    """The caller for HTTP bindings; None if no calls are allowed."""
    if not config.http.allow:
        return None
    from tmqp_server.io.http import HttpCaller  # noqa: PLC0415 - a third of the start, for few

    return HttpCaller(config.http)


def judge_of(
    config: ServerConfig,
    access: Access | None,
    custom_messages: MessageHook | None,
    hooks: ChannelHooks,
    identities: dict[int, tuple[str, str, int]],
) -> Judge:
    """The caller of the server's own code, with its time limit."""
    return Judge(
        access,
        custom_messages,
        config.hook_timeout_s,
        config.connection.max_payload_bytes,
        hooks.authenticators,
        identities,
    )


def new_id() -> str:
    """A new unique id, 32 hexadecimal characters."""
    return uuid.uuid4().hex


def turn_of(
    config: ServerConfig,
    hub: Hub,
    journal: Journal | None,
    hooks: ChannelHooks,
    links: Sequence[MasterLink],
) -> Turn:
    """The turn of a server, with all its limits."""
    turn = Turn(
        hub,
        _marks_of(config.outbound),
        journal,
        _call_settings_of(config, hooks),
        links,
        config.connection.handshake_timeout_s,
    )
    limit_turn(turn, config)
    return turn


def rates_of(config: ServerConfig) -> RateLimits:
    """The rate limits for clients and addresses."""
    rates = config.rates
    return RateLimits(
        float(rates.client_messages_per_s),
        float(rates.client_bytes_per_s),
        float(rates.address_messages_per_s),
        float(rates.address_bytes_per_s),
        float(rates.address_connections_per_s),
        float(rates.burst_s),
        rates.exempt,
    )


def limit_turn(turn: Turn, config: ServerConfig) -> None:
    """Apply the limits that a reload can change to a turn."""
    turn.marks = _marks_of(config.outbound)
    turn.draining.bound_s = config.drain_timeout_s
    turn.pulse.slow_s = config.slow_turn_ms / 1_000
    broker = turn.hub.broker
    if config.broker != broker.limits:
        broker.limit_to(config.broker)


def open_store(config: ServerConfig) -> Store | None:
    """Open the store of the configuration."""
    if config.data is None:
        return None
    from tmqp_server.storage.sqlite import SqliteStore, exposed  # noqa: PLC0415 - not for all

    directory = Path(config.data)
    store = SqliteStore(directory, floor_bytes=config.storage.floor_bytes)
    if warning := exposed(directory):
        logger.warning("%s", warning)
    return store
