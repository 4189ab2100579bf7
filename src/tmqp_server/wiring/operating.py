"""What operators may do to a server from afar beside what clients do: log levels, TLS, backups."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from tmqp_server.admin.world import AdminWorld
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.io.tls import TlsContexts
from tmqp_server.wiring.backing_up import Backups
from tmqp_server.wiring.log_lines import LogLines, log_level, set_log_level

__all__ = ["Operated", "show_to_operators"]


class Operated(Protocol):
    """A server, as far as it is operated from afar.

    Attributes: ``config`` that it has now; ``tls``; ``log_lines``.
    """

    config: ServerConfig
    tls: TlsContexts
    log_lines: LogLines

    def start_soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something beside everything else, until the server ends."""


def show_to_operators(world: AdminWorld, server: Operated) -> None:
    """Let admin doors reach a server."""
    world.log = server.log_lines.last
    world.log_level = log_level
    world.set_log_level = set_log_level
    world.backups = Backups(server.config.data or "", server.start_soon)

    def tls() -> Mapping[str, Any] | None:
        settings = server.config.tls
        if not settings.certificate:
            return None
        return {
            "minimum_version": settings.minimum_version,
            "ciphers": settings.ciphers,
            "client_certificates": settings.client_policy,
        }

    def renew_tls() -> str:
        try:
            contexts = server.tls.renewed(server.config.tls)
        except (ConfigError, ValueError) as error:
            return str(error)
        server.tls.replace(server.config.tls, contexts)
        return ""

    world.tls = tls
    world.renew_tls = renew_tls
