"""The rows about channels, queues, routers and cursors: each checked when it is read.

The ``tally`` counts all rows that are written or deleted here.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from tmqp.references import FORMAT_VERSION
from tmqp_server.storage.port import (
    DamageError,
    DropChannel,
    DropMark,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Retention,
    TopologyChange,
)
from tmqp_server.storage.sqlite.schema import (
    digest,
    format_of,
)
from tmqp_server.storage.sqlite.tally import Tally
from tmqp_server.storage.sqlite.witness import Known

__all__ = [
    "change",
    "drop_cursor",
    "drop_queue",
    "load_channels",
    "load_counters",
    "load_cursors",
    "load_known",
    "load_marks",
    "load_meta",
    "load_queues",
    "load_routers",
    "save_counter",
    "save_cursor",
    "save_meta",
    "save_queue",
    "upgrade",
]

_QUEUE: Final = "key, channel, queue_id, options, max_bytes, max_age_ms, for_readers"


def save_meta(db: sqlite3.Connection, name: str, value: int | str) -> None:
    """Write one value about the whole store."""
    db.execute("REPLACE INTO meta VALUES (?, ?, ?)", (name, value, digest(name, value)))


def load_meta(db: sqlite3.Connection) -> dict[str, Any]:
    """The values about the whole store.

    :raises DamageError: when one is missing or damaged.
    """
    found = {row[0]: row[1] for row in _rows(db, "meta", "name, value", "name")}
    needed = ["store_id", "clean", "last_key"]
    if format_of(db) > 1:
        needed += ["generation", "records"]
    for name in needed:
        if name not in found:
            raise DamageError(f"the store's own record of its {name} is missing")
    return found


def upgrade(db: sqlite3.Connection) -> None:
    """Convert a database of format 1 to the current format; the caller writes its tally."""
    save_meta(db, "generation", 0)
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def load_known(db: sqlite3.Connection) -> Known:
    """What the database knows about itself and about the log of recent writes.

    :raises DamageError: when a value is missing or damaged.
    """
    meta = load_meta(db)
    return Known(
        str(meta["store_id"]),
        int(meta.get("carried", 0)),
        bytes.fromhex(str(meta.get("turn", ""))),
        bytes.fromhex(str(meta.get("before", ""))),
        int(meta.get("generation", 0)),
        bool(meta["clean"]),
        format_of(db) > 1,
        int(meta["last_key"]),
        {key for (key,) in db.execute("SELECT key FROM queues NOT INDEXED")},
    )


def change(db: sqlite3.Connection, tally: Tally, made: TopologyChange) -> bool:
    """Write a change of a channel, a router or a mark; return False if it concerns a queue."""
    if isinstance(made, KeepChannel):
        values: tuple[Any, ...] = (made.name, made.options)
        _save(db, tally, "channels", "name, options", values)
    elif isinstance(made, DropChannel):
        _drop(db, tally, "channels", "name = ?", (made.name,))
    elif isinstance(made, KeepRouter):
        values = (made.name, made.value)
        _save(db, tally, "routers", "name, value", values)
    elif isinstance(made, DropRouter):
        _drop(db, tally, "routers", "name = ?", (made.name,))
    elif isinstance(made, KeepMark):
        values = (made.application, made.epoch, made.at_us)
        _save(db, tally, "marks", "name, epoch, at_us", values)
    elif isinstance(made, DropMark):
        _drop(db, tally, "marks", "name = ?", (made.application,))
    else:
        return False
    return True


def load_channels(db: sqlite3.Connection) -> list[KeepChannel]:
    """All channels, in the order of creation."""
    return [KeepChannel(*row) for row in _rows(db, "channels", "name, options")]


def save_queue(db: sqlite3.Connection, tally: Tally, queue: KeepQueue) -> None:
    """Write a queue; a known queue keeps its place in the order."""
    retention = queue.retention
    values = (
        queue.key,
        queue.channel,
        queue.queue_id,
        queue.options,
        retention.retain_bytes,
        retention.retain_time_ms,
        int(retention.retain_for_readers),
    )
    _save(db, tally, "queues", _QUEUE, values)


def drop_queue(db: sqlite3.Connection, tally: Tally, key: int) -> None:
    """Delete a queue, its cursors and its counter."""
    for table in ("queues", "cursors", "counters"):
        _drop(db, tally, table, "key = ?", (key,))


def load_queues(db: sqlite3.Connection) -> list[KeepQueue]:
    """All queues, in the order of creation."""
    return [
        KeepQueue(row[0], row[1], row[2], row[3], Retention(row[4], row[5], bool(row[6])))
        for row in _rows(db, "queues", _QUEUE)
    ]


def load_routers(db: sqlite3.Connection) -> list[KeepRouter]:
    """All routers, in the order of creation."""
    return [KeepRouter(*row) for row in _rows(db, "routers", "name, value")]


def save_cursor(db: sqlite3.Connection, tally: Tally, cursor: KeepCursor) -> None:
    """Write a cursor; a known cursor keeps its place in the order."""
    values = (cursor.name, cursor.key, cursor.sequence)
    _save(db, tally, "cursors", "name, key, sequence", values, "name = ? AND key = ?")


def drop_cursor(db: sqlite3.Connection, tally: Tally, key: int, name: str) -> None:
    """Delete a cursor."""
    _drop(db, tally, "cursors", "key = ? AND name = ?", (key, name))


def load_cursors(db: sqlite3.Connection) -> list[KeepCursor]:
    """All cursors, in the order of creation."""
    return [KeepCursor(*row) for row in _rows(db, "cursors", "name, key, sequence")]


def load_marks(db: sqlite3.Connection) -> list[KeepMark]:
    """The last epochs of applications, the oldest commit first."""
    rows = _rows(db, "marks", "name, epoch, at_us", "at_us, name")
    return [KeepMark(*row) for row in rows]


def save_counter(db: sqlite3.Connection, tally: Tally, key: int, sequence: int) -> None:
    """Write the last sequence of a queue if its blocks do not show it."""
    _save(db, tally, "counters", "key, sequence", (key, sequence))


def load_counters(db: sqlite3.Connection) -> dict[int, int]:
    """The last sequence of queues, by key."""
    return {row[0]: row[1] for row in _rows(db, "counters", "key, sequence", "key")}


def _save(
    db: sqlite3.Connection,
    tally: Tally,
    table: str,
    columns: str,
    values: tuple[Any, ...],
    where: str = "",
) -> None:
    """Write a row; it replaces the row with the same key, in its place.

    :param where: the condition for the key; by default, an equal first column.
    """
    names = columns.split(", ")
    where = where or f"{names[0]} = ?"
    keys = values[: where.count("?")]
    found = db.execute(f"SELECT crc FROM {table} WHERE {where}", keys).fetchone()
    crc = digest(*values)
    if found is None:
        places = ", ".join("?" * (len(names) + 1))
        db.execute(f"INSERT INTO {table} ({columns}, crc) VALUES ({places})", (*values, crc))
    else:
        tally.remove(table, found[0])
        changed = ", ".join([f"{name} = ?" for name in [*names[len(keys) :], "crc"]])
        rest = (*values[len(keys) :], crc)
        db.execute(f"UPDATE {table} SET {changed} WHERE {where}", (*rest, *keys))
    tally.add(table, crc)


def _drop(
    db: sqlite3.Connection, tally: Tally, table: str, where: str, keys: tuple[Any, ...]
) -> None:
    for (crc,) in db.execute(f"SELECT crc FROM {table} WHERE {where}", keys).fetchall():
        tally.remove(table, crc)
    db.execute(f"DELETE FROM {table} WHERE {where}", keys)


def _rows(
    db: sqlite3.Connection, table: str, columns: str, order: str = "id"
) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for *values, crc in db.execute(f"SELECT {columns}, crc FROM {table} ORDER BY {order}"):
        if crc != digest(*values):
            raise DamageError(f"a record of the table {table} is damaged: {values!r}")
        rows.append(tuple(values))
    return rows
