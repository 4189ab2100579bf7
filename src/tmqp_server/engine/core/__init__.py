"""The state that the broker's parts share during a step, and the subscribers of each event."""

from __future__ import annotations

from tmqp_server.engine.core.core import Core, Master, Performers
from tmqp_server.engine.core.notices import NO_QUEUE, Place
from tmqp_server.engine.core.pending import (
    PendingChange,
    PendingFetch,
    PendingRead,
    PendingRun,
    PendingSave,
    PendingWrite,
)

__all__ = [
    "NO_QUEUE",
    "Core",
    "Master",
    "PendingChange",
    "PendingFetch",
    "PendingRead",
    "PendingRun",
    "PendingSave",
    "PendingWrite",
    "Performers",
    "Place",
]
