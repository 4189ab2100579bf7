"""Damage to a data directory changes nothing, or is refused and named; it is never silent."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest

from tests.tmqp_server.storage.breaking import contents
from tests.tmqp_server.storage.damaging import (
    FILES,
    SCENES,
    Scene,
    damages,
    grown,
    judge,
    open_store,
    push,
    reported,
    scene,
    young,
)
from tests.tmqp_server.storage.stores import NOW_US, batch, message, owed, queue, with_queue
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import DamageError, DropQueue, KeepChannel, StoreError
from tmqp_server.storage.sqlite import back_up
from tmqp_server.storage.sqlite.schema import digest
from tmqp_server.storage.sqlite.witness import read_witness

#: Bits that are flipped in each file of each scene, one at a time.
FLIPS = int(os.environ.get("TMQP_SOAK_FLIPS", "10"))
#: What an earlier release left behind after `kill -9`: the life of `grown`, in format 1.
FORMAT_1 = Path(__file__).with_name("data") / "format-1.tar.xz"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    folder = tmp_path_factory.mktemp("scenes")
    return {name: scene(name, folder / name) for name in SCENES}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def opening(folder: Path) -> str:
    """Why a directory cannot be opened; nothing when it can."""
    try:
        store = open_store(folder)
    except StoreError as error:
        return str(error)
    try:
        store.recover()
    except StoreError as error:
        return str(error)
    finally:
        store.close(clean=False)
    return ""


def changed(folder: Path, *statements: str) -> None:
    """Change the database behind the store's back."""
    db = sqlite3.connect(folder / "messages.sqlite3", isolation_level=None)
    for statement in statements:
        assert db.execute(statement).rowcount
    db.close()


# --- Every file x every damage -------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("file", FILES)
def test_damage_was_silent(made: dict[str, Scene], name: str, file: str, tmp_path: Path) -> None:
    """Before, 138 of 871 of these lost messages or queues without a word."""
    place = tmp_path / "place"
    silent: list[str] = []
    unnamed: list[str] = []
    for title, data in damages(made[name], file, FLIPS):
        outcome = judge(made[name], place, file, data)
        if outcome.startswith("silent"):
            silent.append(f"{title}: {outcome}")
        elif outcome.startswith("error"):
            shutil.rmtree(place)
            shutil.copytree(made[name].folder, place)
            if data is None:
                (place / file).unlink()
            else:
                (place / file).write_bytes(data)
            if not reported(place):
                unnamed.append(f"{title}: {outcome}")
    assert silent == []
    assert unnamed == [], "check had nothing to say"


def test_undamaged_directories_are_opened(made: dict[str, Scene], tmp_path: Path) -> None:
    for each in made.values():
        lock = (each.folder / "lock").read_bytes()
        assert judge(each, tmp_path / "place", "lock", lock) == "right"
        shutil.rmtree(tmp_path / "place")
        assert reported(shutil.copytree(each.folder, tmp_path / "place")) == []


# --- What was lost without a word ----------------------------------------------------------------


def test_a_lost_wal_before_the_first_carry_dropped_the_queue(
    made: dict[str, Scene], tmp_path: Path
) -> None:
    folder = shutil.copytree(made["young"].folder, tmp_path / "data")
    (folder / "messages.sqlite3-wal").unlink()
    assert "messages.sqlite3 is older than recent.log: it has 0 of 3 transactions" in opening(
        folder
    )
    (problem, *others) = reported(folder)
    assert "messages.sqlite3 is older than recent.log" in problem
    assert any("200 messages of queue 1, which the database does not" in each for each in others)


def test_writes_of_an_unknown_queue_were_passed_over(folder: Path) -> None:
    store = with_queue(open_store(folder))
    for each in push(1, range(1, 4)):
        store.write(each, NOW_US)
    store.close(clean=False)
    changed(folder, "DELETE FROM queues", "DELETE FROM meta WHERE name = 'records'")
    changed(folder, "PRAGMA user_version = 1", "UPDATE meta SET value = 0 WHERE name = 'last_key'")
    crc = digest("last_key", 0)
    changed(folder, f"UPDATE meta SET crc = {crc} WHERE name = 'last_key'")  # noqa: S608
    assert "have 3 messages of queue 1, which the database does not have" in opening(folder)


def test_a_write_of_a_deleted_queue_does_not_reach_the_log(folder: Path) -> None:
    store = with_queue(open_store(folder))
    store.write(batch(queue(2)), NOW_US)
    store.write(batch(DropQueue(1)), NOW_US)
    store.write(batch(appended={1: [message(5)], 2: [message(1)]}, settled={1: [4]}), NOW_US)
    store.write(batch(settled={1: [5]}), NOW_US)
    store.close(clean=False)
    store = open_store(folder)
    assert [each.queue.key for each in store.recover().queues] == [2]
    assert owed(store, 2) == [1]
    assert store.problems == []
    store.close(clean=True)


def test_a_missing_log_was_taken_for_an_empty_one(folder: Path) -> None:
    store = with_queue(open_store(folder))
    store.write(batch(appended={1: [message(1)]}), NOW_US)
    store.close(clean=False)
    (folder / "recent.log").unlink()
    (folder / "witness").unlink()
    assert "recent.log is missing: writes after number 0 are lost" in opening(folder)
    assert "recent.log is missing" in opening(folder), "it is not made by the attempt"


def test_a_missing_log_after_a_clean_stop_lost_nothing(folder: Path) -> None:
    store = with_queue(open_store(folder))
    store.write(batch(appended={1: [message(1)]}), NOW_US)
    store.close(clean=True)
    (folder / "recent.log").unlink()
    store = open_store(folder)
    store.recover()
    assert owed(store) == [1]
    store.close(clean=False)
    assert opening(folder) == ""


@pytest.mark.parametrize("last", [b"\xff", b"cut"])
def test_the_last_write_of_the_log_was_lost_silently(folder: Path, last: bytes) -> None:
    store = with_queue(open_store(folder))
    for each in push(1, range(1, 11)):
        store.write(each, NOW_US)
    store.close(clean=False)
    path = folder / "recent.log"
    data = bytearray(path.read_bytes())
    place = data.rindex(b"TMQW")
    data[place + 200 : place + 200 + len(last)] = last
    if last == b"cut":
        del data[place:]
    path.write_bytes(data)
    assert "recent.log: write 10 is missing at its end" in opening(folder)
    assert reported(folder) == ["recent.log: write 10 is missing at its end"]


def test_an_older_database_was_taken_for_the_present_one(folder: Path, tmp_path: Path) -> None:
    store = with_queue(open_store(folder))
    store.close(clean=True)
    shutil.copy(folder / "messages.sqlite3", tmp_path / "older")
    store = open_store(folder)
    store.recover()
    store.write(batch(queue(2)), NOW_US)
    store.close(clean=True)
    shutil.copy(tmp_path / "older", folder / "messages.sqlite3")
    assert "messages.sqlite3 is older than witness: it has 2 of 4 transactions" in opening(folder)


@pytest.mark.parametrize("size", [-1, 0])
def test_a_missing_database_was_replaced_by_an_empty_one(folder: Path, size: int) -> None:
    store = with_queue(open_store(folder))
    store.close(clean=True)
    path = folder / "messages.sqlite3"
    path.unlink()
    if not size:
        path.touch()
    said = opening(folder)
    assert "messages.sqlite3 is missing or empty, but recent.log and witness of its store" in said
    assert not path.exists() or not path.stat().st_size


def test_the_database_of_another_store_was_taken_for_this_one(folder: Path, tmp_path: Path) -> None:
    for each in (folder, tmp_path / "other"):
        with_queue(open_store(each)).close(clean=True)
    shutil.copy(tmp_path / "other" / "messages.sqlite3", folder / "messages.sqlite3")
    assert "witness belongs to the store" in opening(folder)


def test_the_log_of_another_store_was_taken_for_this_one(folder: Path, tmp_path: Path) -> None:
    for each in (folder, tmp_path / "other"):
        store = with_queue(open_store(each))
        store.write(batch(appended={1: [message(1)]}), NOW_US)
        store.close(clean=False)
    shutil.copy(tmp_path / "other" / "recent.log", folder / "recent.log")
    assert "recent.log does not belong to this database" in opening(folder)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM queues WHERE key = 2", "the table queues has 3 of 4 records"),
        ("DELETE FROM cursors", "the table cursors has 0 of 1 records"),
        ("DELETE FROM marks", "the table marks has 0 of 1 records"),
        ("DELETE FROM channels", "the table channels has 0 of 1 records"),
        ("DELETE FROM routers", "the table routers has 0 of 1 records"),
        ("DELETE FROM counters", "the table counters has 0 of"),
        ("DELETE FROM blocks WHERE id = (SELECT max(id) FROM blocks)", "the table blocks has"),
        (
            "UPDATE marks SET epoch = 2, at_us = at_us - 1, crc = {crc}",
            "the table marks has records that are not the latest ones",
        ),
    ],
)
def test_a_record_that_is_gone_was_not_missed(
    made: dict[str, Scene], tmp_path: Path, statement: str, problem: str
) -> None:
    folder = shutil.copytree(made["closed"].folder, tmp_path / "data")
    changed(folder, statement.format(crc=digest("app", 2, NOW_US + 1)))
    assert problem in opening(folder)
    assert any(problem in each for each in reported(folder))


def test_the_messages_of_a_lost_record_are_named(made: dict[str, Scene], tmp_path: Path) -> None:
    folder = shutil.copytree(made["closed"].folder, tmp_path / "data")
    changed(folder, "DELETE FROM queues WHERE key = 2")
    assert any("queue 2 has no record;" in each for each in reported(folder))
    folder = shutil.copytree(made["closed"].folder, tmp_path / "more")
    changed(folder, "DELETE FROM blocks WHERE key = 4")
    assert any("(messages 1 to 50 of queue 4) has no record" in each for each in reported(folder))


def test_a_deleted_queue_is_no_damage(folder: Path) -> None:
    store = with_queue(open_store(folder))
    for number in range(1, 301):
        store.write(batch(appended={1: [message(n, bytes(9_000)) for n in (number,)]}), NOW_US)
    store.write(batch(queue(2), DropQueue(1)), NOW_US)
    store.close(clean=False)
    assert reported(folder) == []
    assert opening(folder) == ""


def test_a_damaged_table_definition_was_a_traceback(folder: Path) -> None:
    with_queue(open_store(folder)).close(clean=True)
    path = folder / "messages.sqlite3"
    data = path.read_bytes()
    assert data.count(b"epoch INTEGER NOT NULL") == 1
    path.write_bytes(data.replace(b"epoch INTEGER NOT NULL", b"epoch INTEGER NOT NUL\xcc"))
    with pytest.raises(DamageError, match="cannot open"):
        open_store(folder)


def test_the_loss_of_the_witness_loses_nothing(made: dict[str, Scene], tmp_path: Path) -> None:
    for name in SCENES:
        assert judge(made[name], tmp_path / "place", "witness", None) == "right"


def test_the_witness_is_written_with_each_write(folder: Path) -> None:
    store = with_queue(open_store(folder))
    for number in range(1, 6):
        store.write(batch(appended={1: [message(number)]}), NOW_US)
        said = read_witness(folder)
        assert said is not None
        assert (said.number, said.generation) == (number, 2)
    store.write(batch(KeepChannel("d", b"")), NOW_US)
    said = read_witness(folder)
    assert said is not None
    assert (said.number, said.generation) == (5, 3)
    store.close(clean=False)


def test_a_damaged_copy_is_noticed_too(folder: Path, tmp_path: Path) -> None:
    store = with_queue(open_store(folder))
    for each in push(1, range(1, 11)):
        store.write(each, NOW_US)
    back_up(folder, tmp_path / "copy")
    store.close(clean=False)
    path = tmp_path / "copy" / "recent.log"
    assert reported(tmp_path / "copy") == []
    path.write_bytes(path.read_bytes()[: 512 * 5])
    assert reported(tmp_path / "copy") == ["recent.log: writes 6 to 10 are missing at its end"]


def test_a_backup_of_a_damaged_store_says_so(folder: Path, tmp_path: Path) -> None:
    store = with_queue(open_store(folder))
    for each in push(1, range(1, 11)):
        store.write(each, NOW_US)
    store.close(clean=False)
    path = folder / "recent.log"
    path.write_bytes(path.read_bytes()[: 512 * 5])
    report = back_up(folder, tmp_path / "copy")
    assert report.problems == ["recent.log: writes 6 to 10 are missing at its end"]


# --- Data directories of earlier releases --------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Path:
    folder = tmp_path / "old"
    with tarfile.open(FORMAT_1) as archive:
        archive.extractall(folder, filter="data")
    return folder


def versions(folder: Path) -> int:
    db = sqlite3.connect(folder / "messages.sqlite3")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    return int(version)


def test_a_store_of_format_1_is_upgraded(old: Path) -> None:
    model = MemoryStore()
    model.recover()
    for number, each in enumerate(grown()):
        model.write(each, NOW_US + number)
    assert reported(old) == []
    assert versions(old) == 1, "check changes nothing"
    for _ in range(2):
        store = open_store(old)
        assert contents(store) == contents(model)
        store.close(clean=False)
        assert versions(old) == 2
        assert reported(old) == []


def test_a_store_of_format_1_that_lost_a_queue_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    store = open_store(folder)
    store.recover()
    for each in young():
        store.write(each, NOW_US)
    shutil.copytree(folder, tmp_path / "copy")
    store.close(clean=False)
    (tmp_path / "copy" / "messages.sqlite3-wal").unlink()
    (tmp_path / "copy" / "witness").unlink()
    changed(tmp_path / "copy", "PRAGMA user_version = 1")
    assert "200 messages of queue 1" in opening(tmp_path / "copy")
