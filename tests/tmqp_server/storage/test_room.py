"""A disk that the store filled by itself still lets it be opened again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tmqp_server.storage.stores import NOW_US, InRuns, batch, message
from tmqp_server.storage.port import KeepQueue, Retention, StoreFullError
from tmqp_server.storage.sqlite import SqliteStore, room
from tmqp_server.storage.stored_runs import StoredRun

BODY = bytes(10_000)


def used(folder: Path) -> int:
    """What the files of a directory take."""
    return sum(path.stat().st_size for path in folder.iterdir())


class SmallDisk:
    """A disk of a fixed size that has only one directory on it."""

    def __init__(self, folder: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.size = size
        self.most_used = 0
        monkeypatch.setattr(room, "free_bytes", lambda _path: self.free())

    def free(self) -> int:
        self.most_used = max(self.most_used, used(self.folder))
        return max(0, self.size - used(self.folder))


def opened(folder: Path) -> SqliteStore:
    made = SqliteStore(folder, floor_bytes=0)
    made.recover()
    return made


def opened_after_a_kill(folder: Path, copy: Path) -> tuple[int, int]:
    """How many messages are there after the server was killed, and what opening took at most."""
    shutil.copytree(folder, copy)
    log = (copy / "messages.sqlite3-wal").stat().st_size
    again = SqliteStore(copy, floor_bytes=0)
    found = again.recover()
    (queue,) = found.queues
    count = queue.high_count + queue.regular_count
    # SQLite's log is there until all that it holds is in the database.
    peak = used(copy) + log
    again.close(clean=False)
    return count, peak


@pytest.mark.parametrize("size_mib", [24, 60, 100])
def test_a_disk_that_the_store_filled_does_not_keep_it_from_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size_mib: int
) -> None:
    folder = tmp_path / "data"
    made = opened(folder)
    disk = SmallDisk(folder, size_mib << 20, monkeypatch)
    made.write(batch(KeepQueue(1, "c", 1, b"", Retention())), NOW_US)
    saved = 0
    refusal = ""
    while not refusal:
        many = [message(saved + each, BODY) for each in range(1, 11)]
        try:
            made.write(batch(appended={1: many}), NOW_US)
        except StoreFullError as error:
            refusal = str(error)
        else:
            saved += 10
    assert "of free space; saving these messages needs" in refusal
    assert saved * len(BODY) > disk.size // 4, "most of the disk can be used"
    count, peak = opened_after_a_kill(folder, tmp_path / "copy")
    assert count == saved
    assert peak <= disk.size
    made.close(clean=False)


def test_a_large_commit_is_refused_before_it_fills_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    made = opened(folder)
    disk = SmallDisk(folder, 64 << 20, monkeypatch)
    made.write(batch(KeepQueue(1, "c", 1, b"", Retention())), NOW_US)
    large = StoredRun(1, 4, NOW_US, 0, 0, bytes(40 << 20), [10 << 20], [0])
    with pytest.raises(StoreFullError):
        made.write(batch(portions=[InRuns(1, [large])]), NOW_US)
    assert disk.most_used < 2 << 20
    half = StoredRun(1, 2, NOW_US, 0, 0, bytes(20 << 20), [10 << 20], [0])
    made.write(batch(portions=[InRuns(1, [half])]), NOW_US)
    count, peak = opened_after_a_kill(folder, tmp_path / "copy")
    assert (count, peak <= disk.size) == (2, True)
    made.close(clean=False)


def test_what_others_left_too_little_room_for_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    made = opened(folder)
    made.write(batch(KeepQueue(1, "c", 1, b"", Retention())), NOW_US)
    made.write(batch(appended={1: [message(1, bytes(1_000_000))]}), NOW_US)
    shutil.copytree(folder, tmp_path / "copy")
    made.close(clean=False)
    again = SqliteStore(tmp_path / "copy", floor_bytes=0)
    (pages,) = again._database._db.execute("PRAGMA page_count").fetchone()
    again._database._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFullError, match=r"the disk is full: the server starts when") as full:
        again.recover()
    assert "MiB of free space" in str(full.value)
    assert "nothing is lost" in str(full.value)
    again._database._db.execute("PRAGMA max_page_count = 1000000")
    (queue,) = again.recover().queues
    assert queue.regular_count == 1
    again.close(clean=True)
