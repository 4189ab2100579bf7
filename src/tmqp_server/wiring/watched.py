"""Lets operators watch a server: fills in what the admin door sees, and runs the timer of the
beats.
"""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import anyio

import tmqp
from tmqp_server.admin.kind import AdminKind
from tmqp_server.admin.world import AdminWorld
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.doors.kinds import DoorKind
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.io.event_loop import backend_name
from tmqp_server.io.process import process_facts
from tmqp_server.settings.sources import effective
from tmqp_server.shell.turn import Turn

__all__ = ["beat", "make_registry", "show_limits", "watch"]

#: How often the event loop's timer fires, by which its lag is measured; seconds.
_BEAT_S: Final = 0.25


def make_registry(world: AdminWorld, doors: Iterable[DoorKind] = ()) -> DoorRegistry:
    """The registry of the protocols of this package and the given ones.

    :raises ConfigError: when two have the same name or the same number.
    """
    try:
        return DoorRegistry([AdminKind(world), *doors])
    except ValueError as error:
        raise ConfigError(f"doors: {error}") from error


def watch(
    world: AdminWorld, config: ServerConfig, turn: Turn, connections: Callable[[], int]
) -> None:
    """Show a server to its admin doors."""
    world.turn = turn
    world.facts = partial(process_facts, config.data)
    world.build = {
        "version": tmqp.__version__,
        "python": platform.python_version(),
        "build": "compiled" if tmqp.compiled else "interpreted",
        "backend": backend_name(),
    }
    world.started_s = time.time()
    world.random = secrets.token_bytes
    world.clock = time.perf_counter
    world.connections = connections
    show_limits(world, config)
    world.floor_bytes = config.storage.floor_bytes if turn.saving is not None else 0


def show_limits(world: AdminWorld, config: ServerConfig) -> None:
    """Show the limits that a reload may have changed."""
    world.limits = config.broker
    world.settings = partial(effective, config)
    world.max_connections = config.max_connections


async def beat(world: AdminWorld) -> None:
    """Measure how late a timer fires, and call the beats, for ever."""
    turn = world.turn
    assert turn is not None, "it is watched"
    due = anyio.current_time()
    while True:
        due += _BEAT_S
        await anyio.sleep_until(due)
        now = anyio.current_time()
        world.beat_s = now
        turn.tally.lag.observe(now - due)
        for each in world.beats:
            each(now)
        if world.beats:
            world.attend()
        due = max(due, now - _BEAT_S)  # what was missed is not made up for
