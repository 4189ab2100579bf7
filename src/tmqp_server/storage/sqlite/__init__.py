"""The store that survives a power cut: blocks of messages in a SQLite database."""

from __future__ import annotations

from tmqp_server.storage.sqlite.store import DEFAULT_FLOOR_BYTES, SqliteStore

__all__ = ["DEFAULT_FLOOR_BYTES", "SqliteStore"]
