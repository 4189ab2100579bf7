"""Owns the rows about channels, queues, routers and cursors: each checked when it is read."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from tmqp_server.storage.port import (
    DamageError,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Retention,
)
from tmqp_server.storage.sqlite.schema import digest

__all__ = [
    "load_carried",
    "load_channels",
    "load_counters",
    "load_cursors",
    "load_marks",
    "load_meta",
    "load_queues",
    "load_routers",
    "save_channel",
    "save_counter",
    "save_cursor",
    "save_mark",
    "save_meta",
    "save_queue",
    "save_router",
]

_QUEUE: Final = "key, channel, queue_id, options, max_bytes, max_age_ms, for_readers"


def save_meta(db: sqlite3.Connection, name: str, value: int | str) -> None:
    """Write one value about the store as a whole."""
    db.execute("REPLACE INTO meta VALUES (?, ?, ?)", (name, value, digest(name, value)))


def load_meta(db: sqlite3.Connection) -> dict[str, Any]:
    """The values about the store as a whole.

    :raises DamageError: when one is missing or not what was written.
    """
    found = {row[0]: row[1] for row in _rows(db, "meta", "name, value", "name")}
    for name in ("store_id", "clean", "last_key"):
        if name not in found:
            raise DamageError(f"the store's own record of its {name} is missing")
    return found


def load_carried(db: sqlite3.Connection) -> tuple[int, bytes]:
    """The number of the last recent write that the database has, and the turn that followed.

    :raises DamageError: when a value about the store is missing or not what was written.
    """
    meta = load_meta(db)
    return int(meta.get("carried", 0)), bytes.fromhex(str(meta.get("turn", "")))


def save_channel(db: sqlite3.Connection, channel: KeepChannel) -> None:
    """Write a channel; one that is known keeps its place."""
    values = (channel.name, channel.options)
    db.execute(
        "INSERT INTO channels (name, options, crc) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET options = excluded.options, crc = excluded.crc",
        (*values, digest(*values)),
    )


def load_channels(db: sqlite3.Connection) -> list[KeepChannel]:
    """All channels, in the order of creation."""
    return [KeepChannel(*row) for row in _rows(db, "channels", "name, options")]


def save_queue(db: sqlite3.Connection, queue: KeepQueue) -> None:
    """Write a queue; one that is known keeps its place."""
    retention = queue.retention
    values = (
        queue.key,
        queue.channel,
        queue.queue_id,
        queue.options,
        retention.max_bytes,
        retention.max_age_ms,
        int(retention.for_readers),
    )
    db.execute(
        f"INSERT INTO queues ({_QUEUE}, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET channel = excluded.channel,"
        " queue_id = excluded.queue_id, options = excluded.options,"
        " max_bytes = excluded.max_bytes, max_age_ms = excluded.max_age_ms,"
        " for_readers = excluded.for_readers, crc = excluded.crc",
        (*values, digest(*values)),
    )


def load_queues(db: sqlite3.Connection) -> list[KeepQueue]:
    """All queues, in the order of creation."""
    return [
        KeepQueue(row[0], row[1], row[2], row[3], Retention(row[4], row[5], bool(row[6])))
        for row in _rows(db, "queues", _QUEUE)
    ]


def save_router(db: sqlite3.Connection, router: KeepRouter) -> None:
    """Write a router; one that is known keeps its place."""
    values = (router.name, router.value)
    db.execute(
        "INSERT INTO routers (name, value, crc) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value, crc = excluded.crc",
        (*values, digest(*values)),
    )


def load_routers(db: sqlite3.Connection) -> list[KeepRouter]:
    """All routers, in the order of creation."""
    return [KeepRouter(*row) for row in _rows(db, "routers", "name, value")]


def save_cursor(db: sqlite3.Connection, cursor: KeepCursor) -> None:
    """Write a cursor; one that is known keeps its place."""
    values = (cursor.name, cursor.key, cursor.sequence)
    db.execute(
        "INSERT INTO cursors (name, key, sequence, crc) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (key, name) DO UPDATE SET sequence = excluded.sequence, crc = excluded.crc",
        (*values, digest(*values)),
    )


def load_cursors(db: sqlite3.Connection) -> list[KeepCursor]:
    """All cursors, in the order of creation."""
    return [KeepCursor(*row) for row in _rows(db, "cursors", "name, key, sequence")]


def save_mark(db: sqlite3.Connection, mark: KeepMark) -> None:
    """Write the last epoch that an application has committed."""
    values = (mark.application, mark.epoch, mark.at_us)
    db.execute("REPLACE INTO marks VALUES (?, ?, ?, ?)", (*values, digest(*values)))


def load_marks(db: sqlite3.Connection) -> list[KeepMark]:
    """The last epochs of applications, the oldest commit first."""
    rows = _rows(db, "marks", "name, epoch, at_us", "at_us, name")
    return [KeepMark(*row) for row in rows]


def save_counter(db: sqlite3.Connection, key: int, sequence: int) -> None:
    """Write the last sequence of a queue whose blocks do not show it."""
    values = (key, sequence)
    db.execute("REPLACE INTO counters VALUES (?, ?, ?)", (*values, digest(*values)))


def load_counters(db: sqlite3.Connection) -> dict[int, int]:
    """The last sequence of queues, by key."""
    return {row[0]: row[1] for row in _rows(db, "counters", "key, sequence", "key")}


def _rows(
    db: sqlite3.Connection, table: str, columns: str, order: str = "id"
) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for *values, crc in db.execute(f"SELECT {columns}, crc FROM {table} ORDER BY {order}"):
        if crc != digest(*values):
            raise DamageError(f"a record of the table {table} is not what was written: {values!r}")
        rows.append(tuple(values))
    return rows
