"""What remote operators can do to a server besides what clients can do: log level, TLS, backups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from tmqp_server.admin.world import AdminWorld
from tmqp_server.wiring.backing_up import Backups
from tmqp_server.wiring.certificates import Certified, renew
from tmqp_server.wiring.copying import Copies
from tmqp_server.wiring.log_lines import LogLines, log_level, set_log_level

__all__ = ["Operated", "show_to_operators"]


class Operated(Certified, Protocol):
    """The parts of a server that remote operators can use.

    Attributes: ``log_lines``.
    """

    log_lines: LogLines

    def start_soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine in the background, until the server ends."""


def show_to_operators(world: AdminWorld, server: Operated) -> None:
    """Connect admin doors with a server."""
    world.log = server.log_lines.last
    world.log_level = log_level
    world.set_log_level = set_log_level
    world.backups = Backups(server.config.data or "", server.start_soon)
    replication = server.config.replication
    if replication is not None:
        assert server.config.data is not None, "it was checked"
        world.copies = Copies(server.config.data, replication.group, server.start_soon)

    def tls() -> Mapping[str, Any] | None:
        settings = server.config.tls
        if not settings.certificate:
            return None
        return {
            "minimum_version": settings.minimum_version,
            "ciphers": settings.ciphers,
            "client_certificates": settings.client_policy,
        }

    world.tls = tls
    world.renew_tls = functools.partial(renew, server)
    world.certificate_expires_s = lambda: server.tls.expires_s
    world.audit_fails = lambda: bool(server.audit.file.failing)
