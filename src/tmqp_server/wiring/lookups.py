"""Announces a server's topics to lookupds of NSQ, and lets NSQ's clients set the log level."""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Callable
from typing import Final

from tmqp.backoff import Backoff
from tmqp_server.doors.nsq_announce.asking import AskDoor
from tmqp_server.doors.nsq_announce.links import Announcer
from tmqp_server.doors.nsq_announce.session import AnnounceDoor
from tmqp_server.doors.nsq_world import NsqWorld
from tmqp_server.doors.port import Door, IdSource
from tmqp_server.io.announcing import Announcing
from tmqp_server.io.shell import Shell

__all__ = ["announcing"]

#: The pause after a failure of a lookupd: the first one, and the longest; seconds.
_LEAST_WAIT_S: Final = 1.0
_MOST_WAIT_S: Final = 15.0

#: NSQ's log levels, from most to least.
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}


def announcing(
    world: NsqWorld, shell: Shell, new_number: Callable[[], int], new_id: IdSource
) -> Announcing:
    """Make the connections that announce topics to the lookupds that the world names."""
    announcer = Announcer(Backoff(_LEAST_WAIT_S, _MOST_WAIT_S), random.random)
    door = AnnounceDoor(world, announcer, new_id)
    found = Announcing(
        announcer, door, functools.partial(_ask_door, world, new_id), shell, new_number
    )
    world.watch_lookups(found.set)
    world.set_log_level(_log_level())
    world.watch_log_level(_set_log_level)
    return found


def _ask_door(world: NsqWorld, new_id: IdSource, topic: bytes) -> Door | None:
    """The door that asks a lookupd for the channels of a new topic; None without NSQ doors."""
    return None if world.shapes is None else AskDoor(topic, world.shapes, new_id)


def _log_level() -> str:
    """The current log level, in NSQ's words."""
    level = logging.getLogger("tmqp_server").getEffectiveLevel()
    for word, number in _LEVELS.items():
        if level <= number:
            return word
    return "fatal"


def _set_log_level(level: str) -> None:
    """Set the log level, in NSQ's words."""
    logging.getLogger("tmqp_server").setLevel(_LEVELS[level])
