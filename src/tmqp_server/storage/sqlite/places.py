"""The position of a store in a replicated log: values about the store, in its database."""

from __future__ import annotations

import sqlite3

from tmqp_server.storage.sqlite.topology import load_meta, save_meta

__all__ = ["LogPlace", "load_place", "save_place"]


class LogPlace:
    """The place of a store in a replicated log: the last entry that the database has, its epoch,
    the newest time that was written, and whether the leader had stopped in order there.

    The numbers are 0 for a store that is not replicated, or has nothing of its log yet.
    """

    __slots__ = ("ended", "epoch", "now_us", "number")

    def __init__(self, number: int, epoch: int, now_us: int, ended: int) -> None:
        self.number = number
        self.epoch = epoch
        self.now_us = now_us
        self.ended = bool(ended)


def save_place(db: sqlite3.Connection, place: LogPlace) -> None:
    """Write a store's place in a replicated log."""
    save_meta(db, "entry", place.number)
    save_meta(db, "epoch", place.epoch)
    save_meta(db, "entry_us", place.now_us)
    save_meta(db, "entry_ends", int(place.ended))


def load_place(db: sqlite3.Connection) -> LogPlace:
    """The place again.

    :raises DamageError: when a value about the store is missing or not what was written.
    """
    meta = load_meta(db)
    names = ("entry", "epoch", "entry_us", "entry_ends")
    return LogPlace(*[int(meta.get(name, 0)) for name in names])
