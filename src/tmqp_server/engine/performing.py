"""Owns the form of a service's table: which of its methods serves which command of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tmqp_server.engine.commands import Command
from tmqp_server.engine.sessions import Session

__all__ = ["Performers"]

Performers: TypeAlias = dict[type[Command], Callable[[Command, Session], None]]
