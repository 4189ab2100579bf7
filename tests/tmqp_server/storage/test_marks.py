"""Marks of commits in the SQLite store: stores of earlier releases, damage."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.tmqp_server.storage.stores import NOW_US, batch, message, owed, with_queue
from tmqp_server.storage.port import DamageError, KeepMark
from tmqp_server.storage.sqlite import SqliteStore


def made(folder: Path) -> SqliteStore:
    return SqliteStore(folder, floor_bytes=0)


def test_a_store_of_an_earlier_release_learns_of_marks(tmp_path: Path) -> None:
    store = made(tmp_path)
    with_queue(store).write(batch(appended={1: [message(1)]}), NOW_US)
    store.close(clean=True)
    db = sqlite3.connect(tmp_path / "messages.sqlite3")
    db.execute("DROP TABLE marks")
    db.execute("PRAGMA user_version = 1")
    db.close()
    for epoch in range(2):
        store = made(tmp_path)
        found = store.recover()
        assert found.clean
        assert [each.epoch for each in found.marks] == [*range(epoch)]
        assert owed(store) == [1]
        store.write(batch(KeepMark("app", epoch, NOW_US)), NOW_US)
        assert store.check().problems == []
        store.close(clean=True)


def test_a_mark_that_is_not_what_was_written_is_damage(tmp_path: Path) -> None:
    store = made(tmp_path)
    with_queue(store).write(batch(KeepMark("app", 1, NOW_US)), NOW_US)
    store.close(clean=True)
    db = sqlite3.connect(tmp_path / "messages.sqlite3", isolation_level=None)
    db.execute("UPDATE marks SET epoch = 2")
    db.close()
    store = made(tmp_path)
    (problem,) = store.check().problems
    assert "a record of the table marks is damaged" in problem
    with pytest.raises(DamageError, match="table marks"):
        store.recover()
    store.close(clean=False)
