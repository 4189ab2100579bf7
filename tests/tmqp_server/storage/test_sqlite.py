"""The SQLite store as a directory, and its database: who may open it, damage, what it costs."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tmqp_server.storage.stores import (
    EVER,
    NOW_US,
    InRuns,
    batch,
    kept,
    message,
    owed,
    push_each,
    queue,
    with_queue,
)
from tmqp.blocks import FLAG_TRANSIENT
from tmqp_server.storage.port import (
    DamageError,
    DropQueue,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepRouter,
    Note,
    Retention,
    SettleAll,
    StoreBatch,
    StoreError,
    StoreFullError,
)
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.sqlite import SqliteStore, back_up, exposed, room, schema, store, upkeep
from tmqp_server.storage.sqlite.store import BlockStore
from tmqp_server.storage.stored_runs import StoredRun


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def opened(folder: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(folder, floor_bytes=0)
    yield made
    made.close(clean=False)


@pytest.fixture
def base(folder: Path) -> Iterator[BlockStore]:
    made = BlockStore(folder, floor_bytes=0)
    yield made
    made.close(clean=False)


def raw(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "messages.sqlite3", isolation_level=None)


# --- Who may open it -----------------------------------------------------------------------------


def test_one_process_has_a_directory(folder: Path, opened: SqliteStore) -> None:
    with pytest.raises(StoreError, match=f"{folder} is in use by process {os.getpid()}"):
        SqliteStore(folder)
    opened.close(clean=True)
    SqliteStore(folder).close(clean=True)


def test_another_process_is_kept_out_and_told_by_whom(folder: Path, opened: SqliteStore) -> None:
    code = (
        "import sys; from pathlib import Path; from tmqp_server.storage.sqlite import SqliteStore\n"
        "SqliteStore(Path(sys.argv[1]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=False
    )
    assert f"is in use by process {os.getpid()}" in ended.stderr


@pytest.mark.parametrize("name", ["a b", "ünï-日本", "quote'\"", "per%20cent?x=1#y", "new\nline"])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "deep"
    for _ in range(2):
        made = SqliteStore(folder, floor_bytes=0)
        made.recover()
        made.write(batch(KeepChannel(name, b"")), NOW_US)
        made.close(clean=True)
    assert (folder / "messages.sqlite3").is_file()
    assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_garbage_is_refused_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    path = folder / "messages.sqlite3"
    path.write_bytes(b"these are somebody's notes" * 400)
    with pytest.raises(DamageError, match="file is not a database"):
        SqliteStore(folder)
    assert path.read_bytes() == b"these are somebody's notes" * 400


def test_the_database_of_another_program_is_refused(folder: Path) -> None:
    folder.mkdir()
    db = raw(folder)
    db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(StoreError, match="is a database of another program"):
        SqliteStore(folder)


def test_a_newer_version_is_refused_and_left_alone(folder: Path, opened: SqliteStore) -> None:
    """D9."""
    opened.close(clean=True)
    db = raw(folder)
    db.execute("PRAGMA user_version = 3")
    db.close()
    before = (folder / "messages.sqlite3").read_bytes()
    with pytest.raises(StoreError, match="has the format version 3, this program knows 2"):
        SqliteStore(folder)
    assert (folder / "messages.sqlite3").read_bytes() == before


def test_a_making_that_was_interrupted_is_made_again(folder: Path) -> None:
    folder.mkdir()
    (folder / "messages.sqlite3").touch()
    made = with_queue(SqliteStore(folder, floor_bytes=0))
    made.close(clean=True)


def test_what_is_no_directory_is_refused(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(StoreError, match="is not a directory"):
        SqliteStore(folder)
    with pytest.raises(StoreError, match="cannot create the directory"):
        SqliteStore(folder / "below")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_directory_that_cannot_be_written_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o500)
    with pytest.raises(StoreError, match="cannot open"):
        SqliteStore(folder)


def test_a_database_that_cannot_be_opened_gives_the_lock_back(folder: Path) -> None:
    (folder / "messages.sqlite3").mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot open"):
            SqliteStore(folder)


# --- Damage --------------------------------------------------------------------------------------


def damage(folder: Path, statement: str) -> None:
    db = raw(folder)
    assert db.execute(statement).rowcount > 0
    db.close()


def two_blocks(folder: Path) -> None:
    made = with_queue(BlockStore(folder, floor_bytes=0))
    made.write(batch(appended={1: [message(n, bytes(500)) for n in range(1, 301)]}), NOW_US)
    made.write(batch(appended={1: [message(n, b"ok") for n in range(301, 601)]}), NOW_US)
    made.write(batch(settled={1: [5, 305]}), NOW_US)
    made.close(clean=True)


FLIP = (
    "UPDATE bodies SET block ="
    " CAST(substr(block, 1, {0}) || x'77' || substr(block, {0} + 2) AS BLOB)"
)


def recover_and_fetch(made: BlockStore) -> None:
    made.recover()
    made.fetch(1, 0, EVER, 10, EVER, 0)


@pytest.mark.parametrize(
    "statement",
    [
        FLIP.format(40_000) + " WHERE id = 1",
        FLIP.format(100) + " WHERE id = 1",
        "DELETE FROM bodies WHERE id = 1",
        "UPDATE bodies SET block = 'text' WHERE id = 1",
        "UPDATE bodies SET block = (SELECT block FROM bodies WHERE id = 2) WHERE id = 1",
    ],
)
def test_a_damaged_block_is_refused_or_passed_over(folder: Path, statement: str) -> None:
    """D3."""
    two_blocks(folder)
    damage(folder, statement)
    made = BlockStore(folder, floor_bytes=0)
    with pytest.raises(DamageError, match=r"messages 1 to 300 of queue 1"):
        recover_and_fetch(made)
    with pytest.raises(DamageError, match=r"messages 1 to 300 of queue 1"):
        made.read(1, 0, EVER, 10, EVER)
    assert made.fetch(1, 300, EVER, 1, EVER, 0)[0].sequence == 301
    assert "messages 1 to 300 of queue 1" in made.check().problems[0]
    made.close(clean=False)

    made = BlockStore(folder, floor_bytes=0, skip_damage=True)
    made.recover()
    assert owed(made) == [n for n in range(301, 601) if n != 305]
    assert kept(made)[0] == 301
    assert len(made.problems) == 1
    assert "messages 1 to 300 of queue 1" in made.problems[0]
    made.write(batch(appended={1: [message(601)]}, settled={1: [302]}), NOW_US)
    made.close(clean=False)


def test_a_damaged_row_is_refused_or_passed_over(folder: Path) -> None:
    two_blocks(folder)
    damage(folder, "UPDATE blocks SET owed = x'00' WHERE id = 1")
    made = BlockStore(folder, floor_bytes=0)
    with pytest.raises(DamageError, match=r"messages 1 to 300 of queue 1: the record of unsettled"):
        made.recover()
    made.close(clean=False)
    made = BlockStore(folder, floor_bytes=0, skip_damage=True)
    made.recover()
    assert owed(made)[0] == 301
    assert len(made.problems) == 1
    made.close(clean=False)


def test_damage_does_not_keep_others_from_being_written(folder: Path) -> None:
    made = with_queue(BlockStore(folder, floor_bytes=0))
    push_each(made, range(1, 11))
    made.close(clean=True)
    damage(folder, FLIP.format(130) + " WHERE id = 3")
    made = BlockStore(folder, floor_bytes=0)
    made.recover()
    push_each(made, range(11, 61))
    assert [m.sequence for m in made.fetch(1, 0, 2, 10, EVER, 0)] == [1, 2]
    assert made.fetch(1, 3, EVER, 100, EVER, 0)[-1].sequence == 60
    with pytest.raises(DamageError, match="messages 3 to 3 of queue 1"):
        made.fetch(1, 0, EVER, 10, EVER, 0)
    made.write(batch(settled={1: [3]}), NOW_US)
    assert owed(made) == [n for n in range(1, 61) if n != 3]
    made.close(clean=True)


def test_a_failure_forgets_no_transient_message(folder: Path) -> None:
    made = with_queue(BlockStore(folder, floor_bytes=0))
    push_each(made, range(1, 6))
    made.close(clean=True)
    made = BlockStore(folder, floor_bytes=0)
    made.recover()
    made.write(batch(settled={1: [1, 2, 3, 4, 5]}), NOW_US)
    for number in (6, 7):
        with pytest.raises(StoreError):
            made.write(batch(appended={1: [message(9, attempts=1 << 16)]}), NOW_US)
        made.write(batch(appended={1: [message(number, b"", FLAG_TRANSIENT)]}), NOW_US)
    with pytest.raises(StoreError):
        made.write(batch(appended={1: [message(9, attempts=1 << 16)]}), NOW_US)
    assert owed(made) == [6, 7]
    made.close(clean=True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE queues SET channel = 'x'",
        "UPDATE channels SET options = x'01'",
        "UPDATE routers SET value = x'01'",
        "UPDATE cursors SET sequence = 9",
        "UPDATE meta SET value = 7 WHERE name = 'last_key'",
        "DELETE FROM meta WHERE name = 'clean'",
        "UPDATE counters SET sequence = 1",
    ],
)
def test_damaged_topology_is_refused(folder: Path, statement: str) -> None:
    made = with_queue(BlockStore(folder, floor_bytes=0))
    made.write(batch(KeepRouter("r", b""), KeepCursor("x", 1, 4)), NOW_US)
    made.write(batch(appended={1: [message(5)]}, settled={1: [5]}), NOW_US)
    made.close(clean=True)
    damage(folder, statement)
    made = BlockStore(folder, floor_bytes=0)
    with pytest.raises(DamageError, match="record of"):
        made.recover()
    assert len(made.check().problems) >= 1
    made.close(clean=False)


def everything(folder: Path) -> tuple[list[str], list[str]]:
    """What comes back from a directory, and the problems that are told."""
    made = BlockStore(folder, floor_bytes=0)
    try:
        problems = made.check().problems
        found = made.recover(looking=True)
        lines = [repr(found)]
        for each in found.queues:
            key = each.queue.key
            lines.extend(repr(m) for m in made.fetch(key, 0, EVER, 10**6, EVER, 0))
            lines.extend(repr(block) for block in made.read(key, 0, EVER, 10**6, EVER))
            lines.append(repr(made.offsets([key])))
        return lines, problems
    finally:
        made.close(clean=False)


@pytest.mark.timeout(120)
def test_no_flip_in_the_file_goes_unnoticed(folder: Path) -> None:
    """D3: whatever byte is changed, the store says so, or all is there as it was."""
    made = with_queue(BlockStore(folder, floor_bytes=0))
    made.write(batch(queue(2, Retention(9_999)), KeepRouter("r", b"x"), KeepCursor("k", 2, 3)), 1)
    for key in (1, 2):
        push_each(made, range(1, 30), key)
        made.write(batch(appended={key: [message(n, bytes(90)) for n in range(30, 90)]}), NOW_US)
        made.write(batch(settled={key: [2, 40, 41, 88]}, notes=[Note(key, 44, 2, 1)]), NOW_US)
    made.close(clean=True)
    path = folder / "messages.sqlite3"
    good = path.read_bytes()
    before = everything(folder)
    assert before[1] == []
    chance = random.Random(5)
    noticed = 0
    for place in chance.sample(range(len(good)), 900):
        flipped = bytearray(good)
        flipped[place] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        try:
            after = everything(folder)
        except StoreError:
            noticed += 1
            continue
        if after[1]:
            noticed += 1
        else:
            assert after[0] == before[0], f"the flip at {place} goes unnoticed"
    assert noticed > 50


# --- Merging, deleting, space --------------------------------------------------------------------


def rows(folder: Path, table: str) -> int:
    db = raw(folder)
    (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    db.close()
    return int(count)


def test_messages_that_come_one_by_one_are_merged(folder: Path, base: BlockStore) -> None:
    with_queue(base)
    push_each(base, range(1, 2_001))
    assert rows(folder, "blocks") <= 2_000 / 256 + 2 * 16 + 3
    assert owed(base) == list(range(1, 2_001))
    assert base.check().problems == []


def test_messages_left_over_are_merged(folder: Path, base: BlockStore) -> None:
    with_queue(base)
    for start in range(1, 6_000, 300):
        made = [message(n) for n in range(start, start + 300)]
        base.write(batch(appended={1: made}), NOW_US)
    left = list(range(1, 6_001, 100))
    base.write(batch(settled={1: sorted({*range(1, 6_001)} - {*left})}), NOW_US)
    for _ in range(20):
        base.write(batch(KeepChannel("d", b"")), NOW_US)
    assert owed(base) == left
    assert rows(folder, "blocks") <= 5
    assert base.offsets([1])[0].count == len(left)


def test_what_is_settled_takes_no_space(folder: Path, base: BlockStore) -> None:
    with_queue(base)
    for start in range(1, 4_000, 100):
        made = [message(n, bytes(1_000)) for n in range(start, start + 100)]
        base.write(batch(appended={1: made}), NOW_US)
        base.write(batch(settled={1: list(range(start, start + 100))}), NOW_US)
    assert rows(folder, "blocks") == rows(folder, "bodies") == 0
    assert (folder / "messages.sqlite3").stat().st_size < 2 << 20


@pytest.mark.parametrize("how", ["drop", "clear"])
def test_a_large_queue_is_emptied_some_at_a_time(
    folder: Path, base: BlockStore, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_BURIED_AT_ONCE", 20)
    monkeypatch.setattr(upkeep, "_FREE_PAGES", 10)
    with_queue(base)
    for start in range(1, 30_001, 300):
        made = [message(n, bytes(200)) for n in range(start, start + 300)]
        base.write(batch(appended={1: made}), NOW_US)
    size = (folder / "messages.sqlite3").stat().st_size
    assert rows(folder, "bodies") == 100
    base.write(batch(DropQueue(1) if how == "drop" else SettleAll(1, EVER, 0)), NOW_US)
    assert owed(base) == []
    assert rows(folder, "bodies") > 0
    base.close(clean=False)
    base = BlockStore(folder, floor_bytes=0)
    assert [q.regular_count for q in base.recover().queues] == ([0] if how == "clear" else [])
    for _ in range(1_000):
        base.write(batch(KeepChannel("d", b"")), NOW_US)
    assert rows(folder, "bodies") == rows(folder, "blocks") == 0
    base.close(clean=True)
    assert (folder / "messages.sqlite3").stat().st_size < size / 4


def test_the_log_is_bounded(folder: Path, base: BlockStore) -> None:
    with_queue(base)
    for n in range(1, 400):
        base.write(batch(appended={1: [message(n, bytes(60_000))]}), NOW_US)
    assert (folder / "messages.sqlite3-wal").stat().st_size < 20 << 20


def test_a_commit_of_a_queue_is_in_blocks_as_large_as_may_be(
    folder: Path, base: BlockStore
) -> None:
    with_queue(base)
    alike = StoredRun(1, 5_000, NOW_US, 0, 0, bytes(5_000), [1], [0])
    large = StoredRun(5_001, 7, NOW_US, 0, 0, bytes(2_100_000), [300_000], [0])
    base.write(batch(portions=[InRuns(1, [alike, large])]), NOW_US)
    blocks = [decode_block(each) for each in base.read(1, 1, EVER, 9_999, EVER)]
    assert [each.count for each in blocks] == [1_000] * 4 + [1_003, 3, 1]
    assert max([len(each.data) for each in blocks]) <= 1 << 20
    assert rows(folder, "bodies") == rows(folder, "blocks") == 7


def test_a_commit_is_carried_out_of_the_log_when_it_was_answered(
    folder: Path, base: BlockStore
) -> None:
    with_queue(base)
    log = folder / "messages.sqlite3-wal"

    def carried() -> bool:
        """The log begins anew with what is written next."""
        base.write(batch(KeepMark("b", 1, NOW_US)), NOW_US)
        return log.stat().st_size <= 2 * 4096 * 2_048

    def write(first: int) -> None:
        runs = [StoredRun(first, 30, NOW_US, 0, 0, bytes(21_000_000), [700_000], [0])]
        base.write(batch(KeepMark("a", first, NOW_US), portions=[InRuns(1, runs)]), NOW_US)
        assert log.stat().st_size > 21_000_000

    size = (folder / "messages.sqlite3").stat().st_size
    write(1)
    assert (folder / "messages.sqlite3").stat().st_size == size, "only the log was written"
    base.catch_up()
    assert (folder / "messages.sqlite3").stat().st_size > 21_000_000
    assert carried()
    write(31)
    base.write(batch(KeepMark("b", 1, NOW_US)), NOW_US)
    assert carried(), "the next write makes up for it"
    assert base.offsets([1])[0].count == 60


def test_a_database_with_the_smaller_pages_of_an_earlier_release_is_used_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_PAGE_BYTES", 4_096)
    with_queue(BlockStore(folder, floor_bytes=0)).close(clean=True)
    monkeypatch.undo()
    made = BlockStore(folder, floor_bytes=0)
    made.recover()
    for first in (1, 31):
        runs = [StoredRun(first, 30, NOW_US, 0, 0, bytes(21_000_000), [700_000], [0])]
        made.write(batch(portions=[InRuns(1, runs)]), NOW_US)
        made.catch_up()
    assert made._db.execute("PRAGMA page_size").fetchone() == (4_096,)
    assert made._db.execute("PRAGMA wal_autocheckpoint").fetchone() == (2_048,)
    assert made.offsets([1])[0].count == 60
    assert made.check().problems == []
    made.close(clean=True)


def test_the_memory_for_many_messages_is_bounded(folder: Path, base: BlockStore) -> None:
    """5 million messages in blocks of 256 are 20,000 extents: so much for 400 of them."""
    with_queue(base)
    made = [message(n, b"") for n in range(1, 257)]
    tracemalloc.start()
    for _ in range(400):
        base.write(batch(appended={1: made}), NOW_US)
        for each in made:
            each.sequence += 256
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert base.offsets([1])[0].count == 400 * 256
    # What SQLite and the cache hold is not counted by blocks: 4 MiB and a little.
    assert size < 5 << 20


# --- No room, and other failures -----------------------------------------------------------------


def test_below_the_floor_messages_are_refused_and_settling_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_queue(BlockStore(folder, floor_bytes=1 << 20))
    made.write(batch(appended={1: [message(1), message(2)]}), NOW_US)
    monkeypatch.setattr(room, "free_bytes", lambda _path: (1 << 20) - 1)
    with pytest.raises(StoreFullError, match=r"has 1.0 MiB of free space; saving these messages"):
        made.write(batch(appended={1: [message(3)]}, settled={1: [2]}), NOW_US)
    assert owed(made) == [1, 2]
    made.write(batch(settled={1: [2]}), NOW_US)
    assert owed(made) == [1]
    monkeypatch.setattr(room, "free_bytes", schema.free_bytes)
    made.write(batch(appended={1: [message(3)]}), NOW_US)
    assert owed(made) == [1, 3]
    made.close(clean=True)


def test_a_full_database_says_so_and_heals(base: BlockStore) -> None:
    with_queue(base)
    (pages,) = base._db.execute("PRAGMA page_count").fetchone()
    base._db.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(StoreFullError, match="database or disk is full"):
        base.write(batch(appended={1: [message(1, bytes(100_000))]}), NOW_US)
    assert owed(base) == []
    base._db.execute("PRAGMA max_page_count = 1000000")
    base.write(batch(appended={1: [message(2)]}), NOW_US)
    assert owed(base) == [2]


def test_a_message_that_cannot_be_kept_fails_its_batch_alone(base: BlockStore) -> None:
    with_queue(base)
    bad = message(2, attempts=1 << 16)
    with pytest.raises(StoreError, match="cannot be kept"):
        base.write(batch(KeepRouter("r", b""), appended={1: [message(1), bad]}), NOW_US)
    assert owed(base) == []
    base.write(StoreBatch(), NOW_US)
    assert base.recover().routers == []


def test_after_closing_nothing_works_and_nothing_breaks(base: BlockStore) -> None:
    with_queue(base)
    base.close(clean=True)
    base.close(clean=True)
    with pytest.raises(StoreError):
        base.write(batch(KeepChannel("c", b"")), NOW_US)
    with pytest.raises(StoreError):
        base.fetch(1, 0, 1, 1, 1, 0)


# --- Who else can get at it ----------------------------------------------------------------------


def test_a_deleted_lock_file_let_a_second_server_in(folder: Path, opened: SqliteStore) -> None:
    opened.recover()
    (folder / "lock").unlink()
    with pytest.raises(StoreError, match=f"{folder} is in use by another process"):
        SqliteStore(folder)
    with pytest.raises(StoreError, match="is in use"):
        SqliteStore(folder)
    opened.close(clean=True)
    SqliteStore(folder).close(clean=True)


def test_files_were_readable_for_all_in_a_directory_that_was_there(
    folder: Path, tmp_path: Path
) -> None:
    before = os.umask(0o022)
    try:
        folder.mkdir(mode=0o755)
        made = with_queue(SqliteStore(folder, floor_bytes=0))
        push_each(made, [1])
        (tmp_path / "copy").mkdir(mode=0o755)
        back_up(folder, tmp_path / "copy")
        for place in (folder, tmp_path / "copy"):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()}
            assert {"messages.sqlite3", "recent.log", "witness"} <= set(modes)
            assert set(modes.values()) == {0o600}, modes
        assert (folder / "messages.sqlite3-wal").exists()
        made.close(clean=True)
    finally:
        os.umask(before)


def test_an_open_directory_is_told(folder: Path) -> None:
    with_queue(SqliteStore(folder, floor_bytes=0)).close(clean=True)
    assert exposed(folder) == ""
    folder.chmod(0o755)
    (folder / "messages.sqlite3").chmod(0o644)
    assert exposed(folder) == (
        f"other users can open the data directory {folder} (mode 0755) and its files"
        f" messages.sqlite3; to close it: chmod -R go-rwx {folder}"
    )
    assert exposed(folder / "missing") == ""
