"""Reloads the configuration of a running server: what can be changed, and what needs a restart.

Everything is read and checked before anything is changed, so an error in the configuration changes
nothing.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import anyio
import attrs

from tmqp_server.access.auth import Access, Identity, TableAccess
from tmqp_server.access.roles import TABLE, AccessConfig
from tmqp_server.admin.world import AdminWorld
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.limits import LASTING_LIMITS
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, QUEUE_OPTIONS
from tmqp_server.io.tls import TlsContexts
from tmqp_server.settings.options import DeclaredChannel, DeclaredQueue
from tmqp_server.wiring.auditing import Audit
from tmqp_server.wiring.logs import set_up_log

__all__ = ["Reloadable", "changes", "reload_config"]

logger = logging.getLogger("tmqp_server.config")

#: The settings that are changed while the server runs.
_LIVE: Final = (
    "access",
    "audit",
    "broker",
    "drain_timeout_s",
    "log",
    "max_connections",
    "max_connections_per_address",
    "outbound",
    "rates",
    "shutdown_timeout_s",
    "slow_turn_ms",
    "tls",
)


class Reloadable(Protocol):
    """The parts of a server that a reload can change.

    Attributes: ``broker``, whose limits may change; ``config``, the current configuration;
    ``access``, the access rules; ``tls``; ``audit``; ``world``, which counts reloads.
    """

    broker: Broker
    config: ServerConfig
    access: Access | None
    tls: TlsContexts
    audit: Audit
    world: AdminWorld

    def apply(self, config: ServerConfig) -> None:
        """Apply the limits of this configuration from now on."""

    def end_sessions(self, gone: Callable[[Identity], bool], reason: str) -> None:
        """Close the connections of some clients politely."""


def changes(old: ServerConfig, new: ServerConfig) -> tuple[list[str], list[str]]:
    """The differences, one line each: settings that can be changed now, and those that cannot.

    Of secrets, only the name is shown.
    """
    now: list[str] = []
    later: list[str] = []
    for field in attrs.fields(ServerConfig):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if _plain(before) == _plain(after):
            continue
        if field.name == "access":
            live = before.kind == after.kind == TABLE
            (now if live else later).append(_access_changes(before, after))
        elif field.name in _LIVE:
            for line in _field_changes(field.name, before, after):
                setting = line.partition(":")[0]
                lasts = setting in [f"broker.{each}" for each in LASTING_LIMITS]
                (later if lasts else now).append(setting if lasts else line)
        else:
            later.append(field.name)
    return now, later


def _plain(value: Any) -> Any:
    """A form of a value that can be compared: the engine's options cannot."""
    if isinstance(value, QueueChanges):
        return [getattr(value, option.name) for option in QUEUE_OPTIONS]
    if isinstance(value, ChannelChanges):
        own = [getattr(value, option.name) for option in CHANNEL_OPTIONS]
        return [own, _plain(value.queue)]
    if isinstance(value, (DeclaredChannel, DeclaredQueue)):
        return [_plain(getattr(value, each.name)) for each in attrs.fields(type(value))]
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value


def _field_changes(name: str, before: Any, after: Any) -> list[str]:
    if dataclasses.is_dataclass(after):
        fields: Sequence[Any] = dataclasses.fields(after)
    elif attrs.has(type(after)):
        fields = attrs.fields(type(after))
    else:
        return [f"{name}: {before} -> {after}"]
    found: list[str] = []
    for each in fields:
        old, new = getattr(before, each.name), getattr(after, each.name)
        if old != new:
            found.append(f"{name}.{each.name}: {old!r} -> {new!r}")
    return found


def _access_changes(before: AccessConfig, after: AccessConfig) -> str:
    if before.kind != after.kind:
        return f"access.kind: {before.kind} -> {after.kind}"
    old = {entry.name: entry for entry in (*before.tokens, *before.certificates)}
    new = {entry.name: entry for entry in (*after.tokens, *after.certificates)}
    parts = (
        ("added", [name for name in new if name not in old]),
        ("removed", [name for name in old if name not in new]),
        ("changed", [name for name in new if name in old and old[name] != new[name]]),
    )
    said = [f"{verb} {', '.join(names)}" for verb, names in parts if names]
    if before.anonymous != after.anonymous:
        said.append("changed anonymous")
    return f"access: {'; '.join(said) or 'changed'}"


def reload_config(
    server: Reloadable, read: Callable[[], ServerConfig], who: str = "SIGHUP"
) -> bool:
    """Read the configuration again and apply it; the differences are logged.

    :param read: reads and checks the configuration.
    :param who: who requests it, for the audit.
    :returns: whether it was applied; if not, nothing has changed, and one line in the log says why.
    """
    old = server.config
    try:
        new = read()
        lasting = {name: getattr(old.broker, name) for name in LASTING_LIMITS}
        limits = dataclasses.replace(new.broker, **lasting)
        server.broker.check_limits(limits)
        renewed = server.tls.renewed(new.tls)
        server.audit.use(new.audit)  # the last that can fail
    except (ConfigError, ValueError) as error:
        server.world.count_reload(ok=False)
        server.audit.own(who, "reload", 400, anyio.current_time())
        logger.error("the configuration was not reloaded, the old one stays in use: %s", error)
        return False
    now, later = changes(old, new)
    values: dict[str, Any] = {name: getattr(new, name) for name in _LIVE}
    values["broker"] = limits
    if isinstance(server.access, TableAccess) and new.access.kind == TABLE:
        gone = server.access.reload(new.access)
        server.end_sessions(gone, "its access was removed")
    else:
        values["access"] = old.access
    server.tls.replace(new.tls, renewed)
    server.apply(attrs.evolve(old, **values))
    set_up_log(new.log)
    for line in now:
        logger.info("changed %s", line)
    if later:
        logger.warning("needs a restart: %s", ", ".join(later))
    if not (now or later):
        logger.info("reloaded: nothing has changed in the configuration")
    server.world.count_reload(ok=True)
    server.audit.own(who, "reload", 200, anyio.current_time())
    return True
