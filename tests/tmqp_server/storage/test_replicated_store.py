"""The store of a server in a group: its directory, and the log that is before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tmqp_server.storage.stores import (
    EVER,
    NOW_US,
    ReplicatedHome,
    batch,
    message,
    owed,
    push_each,
    with_queue,
)
from tmqp.blocks import FLAG_TRANSIENT
from tmqp_server.storage.log import Entries, LifeOverError, LogEntry, ReadEntries
from tmqp_server.storage.port import StoreError
from tmqp_server.storage.sqlite import SqliteStore
from tmqp_server.storage.sqlite.replicated import ReplicatedStore


@pytest.fixture
def home(tmp_path: Path) -> ReplicatedHome:
    return ReplicatedHome(tmp_path / "data")


def entries(home: ReplicatedHome, after: int = 0) -> list[LogEntry]:
    answer = home.log.ask(ReadEntries(after, EVER))
    assert isinstance(answer, Entries)
    return answer.entries


def test_a_follower_owes_what_its_leader_owes(home: ReplicatedHome, tmp_path: Path) -> None:
    store = with_queue(home.open())
    push_each(store, range(1, 6))
    store.write(batch(settled={1: [2, 4]}), NOW_US)
    follower = ReplicatedStore(tmp_path / "other", floor_bytes=0)
    follower.take(entries(home))
    assert owed(follower) == owed(store) == [1, 3, 5]
    assert follower.identity() == store.recover().store_id
    follower.close(clean=False)
    store.close(clean=True)


def test_a_follower_that_was_killed_reads_on_where_its_disk_ends(
    home: ReplicatedHome, tmp_path: Path
) -> None:
    store = with_queue(home.open())
    push_each(store, range(1, 4))
    place = tmp_path / "other"
    follower = ReplicatedStore(place, floor_bytes=0)
    log = entries(home)
    follower.take(log[:-1])
    carried = follower.carry()
    follower.take(log[-1:])
    follower.close(clean=False)
    assert carried == log[-2].number
    again = ReplicatedStore(place, floor_bytes=0)
    assert again.carried == carried
    again.take(entries(home, carried))
    assert owed(again) == [1, 2, 3]
    again.close(clean=False)
    store.close(clean=False)


def test_what_the_log_refuses_is_nowhere_and_nobody_may_be_answered(home: ReplicatedHome) -> None:
    store = with_queue(home.open())
    push_each(store, [1])
    last = home.log.last

    def refuse(_entry: LogEntry) -> None:
        raise LifeOverError("another one leads")

    assert isinstance(store, ReplicatedStore)
    store.lead(refuse)
    with pytest.raises(LifeOverError):
        push_each(store, [2])
    with pytest.raises(StoreError, match="no longer open"):
        push_each(store, [3])
    again = home.open()
    assert (home.log.last, owed(again)) == (last + 1, [1])
    again.close(clean=False)


def test_what_is_in_the_log_and_cannot_be_kept_here_ends_the_servers_life(
    home: ReplicatedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = with_queue(home.open())

    def fail(*_arguments: object) -> None:
        raise StoreError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(ReplicatedStore, "keep", fail)
        with pytest.raises(
            LifeOverError, match="of the log cannot be stored here: the disk is gone"
        ):
            push_each(store, [1])
    again = home.open()
    assert owed(again) == [1], "it was in the log"
    again.close(clean=False)


def test_sequences_of_transient_messages_are_not_given_again_by_another_leader(
    home: ReplicatedHome, tmp_path: Path
) -> None:
    store = with_queue(home.open())
    spilled = message(7, flags=FLAG_TRANSIENT)
    store.write(batch(appended={1: [message(5), spilled]}), NOW_US)
    assert owed(store) == [5, 7]
    other = ReplicatedStore(tmp_path / "other", floor_bytes=0)
    other.take(entries(home))
    (queue,) = other.recover().queues
    assert (queue.sequence, owed(other)) == (7, [5])
    other.close(clean=False)
    store.close(clean=False)


def test_a_server_that_is_not_replicated_does_not_write_to_a_groups_directory(
    home: ReplicatedHome,
) -> None:
    with_queue(home.open()).close(clean=True)
    plain = SqliteStore(home.directory, floor_bytes=0)
    with pytest.raises(StoreError, match="belongs to a group of replicated servers"):
        plain.recover()
    assert [each.queue.key for each in plain.recover(looking=True).queues] == [1]
    plain.close(clean=False)


def test_a_group_does_not_take_the_directory_of_a_server_that_is_not_replicated(
    tmp_path: Path,
) -> None:
    with_queue(SqliteStore(tmp_path, floor_bytes=0)).close(clean=True)
    with pytest.raises(StoreError, match="a group begins with empty directories"):
        ReplicatedStore(tmp_path, floor_bytes=0)
    SqliteStore(tmp_path, floor_bytes=0).close(clean=False)
