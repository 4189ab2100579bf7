"""The position of a store in a replicated log, stored in its database."""

from __future__ import annotations

import sqlite3

from tmqp_server.storage.sqlite.topology import load_meta, save_meta

__all__ = ["LogPlace", "load_place", "save_place"]


class LogPlace:
    """The position of a store in a replicated log: the last entry that the database has, its epoch,
    the newest time in the log, and whether the leader had stopped cleanly there.

    The numbers are 0 if the store is not replicated, or has nothing of its log yet.
    """

    __slots__ = ("ended", "epoch", "now_us", "number")

    def __init__(self, number: int, epoch: int, now_us: int, ended: int) -> None:
        self.number = number
        self.epoch = epoch
        self.now_us = now_us
        self.ended = bool(ended)


def save_place(db: sqlite3.Connection, place: LogPlace) -> None:
    """Write a store's position in a replicated log."""
    save_meta(db, "entry", place.number)
    save_meta(db, "epoch", place.epoch)
    save_meta(db, "entry_us", place.now_us)
    save_meta(db, "entry_ends", int(place.ended))


def load_place(db: sqlite3.Connection) -> LogPlace:
    """Read a store's position.

    :raises DamageError: when a value is missing or damaged.
    """
    meta = load_meta(db)
    names = ("entry", "epoch", "entry_us", "entry_ends")
    return LogPlace(*[int(meta.get(name, 0)) for name in names])
