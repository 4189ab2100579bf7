"""How much of the limits of the whole server is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tmqp_server.admin.world import AdminWorld

__all__ = ["limits_near"]

#: A limit is near when this share of it is used.
_NEAR: Final = 0.85
#: Limits on numbers of things, and the name of each number in ``Survey.levels``.
_OF_LEVELS: Final = (
    ("max_unsynced_bytes", "unsynced_bytes"),
    ("max_sessions", "sessions"),
    ("max_channels", "channels"),
    ("max_routers", "routers"),
    ("max_transactions", "transactions"),
    ("max_reads", "reads"),
    ("max_held_reads", "held_reads"),
    ("max_browses", "browses"),
    ("max_http_calls", "http_calls"),
    ("max_cell_spaces", "cell_spaces"),
)


def limits_near(world: AdminWorld, levels: Mapping[str, int]) -> list[dict[str, Any]]:
    """The limits of the whole server whose use is known."""
    limits = world.limits
    rows = [
        ("max_total_bytes", levels["message_bytes"] + levels["state_bytes"], limits.max_total_bytes)
    ]
    rows += [(name, levels[level], getattr(limits, name)) for name, level in _OF_LEVELS]
    rows.append(("max_connections", world.connections(), world.max_connections))
    return [
        {"name": name, "used": count, "limit": most, "near": most > 0 and count >= _NEAR * most}
        for name, count, most in rows
    ]
