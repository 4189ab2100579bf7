"""The store on disk, which survives a power cut: blocks of messages in a SQLite database."""

from __future__ import annotations

from tmqp.references import DATABASE_NAME
from tmqp_server.storage.sqlite.backup import back_up
from tmqp_server.storage.sqlite.front import SqliteStore
from tmqp_server.storage.sqlite.repair import RepairReport, repair
from tmqp_server.storage.sqlite.schema import (
    FILES_BESIDE,
    exposed,
)
from tmqp_server.storage.sqlite.store import DEFAULT_FLOOR_BYTES

__all__ = [
    "DATABASE_NAME",
    "DEFAULT_FLOOR_BYTES",
    "FILES_BESIDE",
    "RepairReport",
    "SqliteStore",
    "back_up",
    "exposed",
    "repair",
]
