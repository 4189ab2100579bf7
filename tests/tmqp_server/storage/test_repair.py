"""The repair of damaged data directories: what can be read is kept, the rest is named."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.tmqp_server.storage.breaking import contents
from tests.tmqp_server.storage.damaging import (
    SCENES,
    Scene,
    damages,
    open_store,
    push,
    reported,
    scene,
)
from tests.tmqp_server.storage.stores import NOW_US, batch, message, owed, with_queue
from tmqp_server.storage.port import DamageError, StoreError
from tmqp_server.storage.sqlite import repair


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    folder = tmp_path_factory.mktemp("scenes")
    return {name: scene(name, folder / name) for name in SCENES}


def messages_of(folder: Path) -> list[str]:
    store = open_store(folder)
    try:
        return [line for line in contents(store) if line.startswith("StoredMessage")]
    finally:
        store.close(clean=False)


@pytest.mark.parametrize("name", SCENES)
def test_a_repair_of_a_sound_store_keeps_everything(
    made: dict[str, Scene], name: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(made[name].folder, tmp_path / "data")
    report = repair(folder)
    assert report.given_up == []
    assert reported(folder) == []
    store = open_store(folder)
    found = contents(store)
    store.close(clean=False)

    def without_sequences(lines: list[str]) -> list[str]:
        return [line for line in lines if not line.startswith("RecoveredQueue")]

    assert without_sequences(found) == without_sequences(made[name].wanted)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["damaged-1"]
    kept = {path.name for path in (folder / "damaged-1").iterdir()}
    assert {"messages.sqlite3", "recent.log", "witness"} <= kept


@pytest.mark.parametrize("name", ["young", "grown", "closed"])
@pytest.mark.parametrize("file", ["messages.sqlite3", "messages.sqlite3-wal", "recent.log"])
def test_what_is_repaired_can_be_opened_and_nothing_is_made_up(
    made: dict[str, Scene], name: str, file: str, tmp_path: Path
) -> None:
    place = tmp_path / "data"
    wanted = {line for line in made[name].wanted if line.startswith("StoredMessage")}
    repaired = 0
    for title, data in list(damages(made[name], file, 2))[::2]:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(made[name].folder, place)
        if data is None:
            (place / file).unlink()
        else:
            (place / file).write_bytes(data)
        if not reported(place):
            continue
        try:
            report = repair(place)
        except StoreError:
            continue  # nothing could be read; it says so
        repaired += 1
        assert reported(place) == [], title
        there = set(messages_of(place))
        if not wanted <= there:
            assert report.given_up, f"{title}: {len(wanted - there)} messages are gone"
    # The log of a store that was closed holds nothing; what SQLite's log has hides its database.
    harmless = (("closed", "recent.log"), ("grown", "messages.sqlite3"))
    assert repaired or (name, file) in harmless or not (made[name].folder / file).exists()


def test_a_repair_names_what_it_gives_up(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    store = open_store(folder)
    with_queue(store)
    store.write(batch(appended={1: [message(n) for n in range(1, 101)]}), NOW_US)
    store.reserve(1, 100)  # carries
    store.write(batch(appended={1: [message(n) for n in range(101, 201)]}), NOW_US)
    store.reserve(1, 200)
    for each in push(1, range(201, 206)):
        store.write(each, NOW_US)
    store.close(clean=False)
    db = sqlite3.connect(folder / "messages.sqlite3", isolation_level=None)
    db.execute("UPDATE bodies SET block = x'00' WHERE id = 1")
    db.close()
    log = folder / "recent.log"
    log.write_bytes(log.read_bytes()[: 512 * 3])
    report = repair(folder)
    assert report.given_up == [
        "recent.log: writes 6 to 7 are missing at its end",
        "messages 1 to 100 of queue 1: a block has a head of 64 bytes, here are 1",
    ]
    store = open_store(folder)
    found = store.recover()
    assert owed(store) == list(range(101, 204))
    # Sequences 204 and 205 were given out, and are not given out again.
    assert found.queues[0].sequence > 205
    store.close(clean=True)


def test_the_id_of_the_store_stays(made: dict[str, Scene], tmp_path: Path) -> None:
    folder = shutil.copytree(made["grown"].folder, tmp_path / "data")
    ids = []
    for _ in range(2):
        store = open_store(folder)
        ids.append(store.recover().store_id)
        store.close(clean=False)
        repair(folder)
    assert ids[0] == ids[1]
    assert (folder / "damaged-2").is_dir()


def test_an_interrupted_repair_is_finished(
    made: dict[str, Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [line for line in made["grown"].wanted if line.startswith("StoredMessage")]
    real = Path.rename
    interrupted = True
    for stop in range(10):
        folder = shutil.copytree(made["grown"].folder, tmp_path / f"data-{stop}")
        left = [stop]

        def rename(path: Path, target: Path, left: list[int] = left) -> Path:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return real(path, target)

        monkeypatch.setattr(Path, "rename", rename)
        try:
            repair(folder)
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
        monkeypatch.setattr(Path, "rename", real)
        if interrupted:
            if not (folder / "messages.sqlite3").exists():
                with pytest.raises(DamageError, match=r"messages\.sqlite3 is missing"):
                    open_store(folder)
            repair(folder)
        assert messages_of(folder) == wanted
        assert not (folder / "repaired").exists()
    assert not interrupted


def test_a_directory_in_use_is_not_repaired(tmp_path: Path) -> None:
    store = with_queue(open_store(tmp_path / "data"))
    with pytest.raises(StoreError, match="is in use"):
        repair(tmp_path / "data")
    store.close(clean=True)


def test_nothing_to_repair_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with_queue(open_store(folder)).close(clean=True)
    (folder / "messages.sqlite3").unlink()
    with pytest.raises(StoreError, match="there is nothing to repair; restore a backup"):
        repair(folder)
    (folder / "messages.sqlite3").write_bytes(bytes(20_000))
    with pytest.raises(StoreError, match="not a database"):
        repair(folder)
    assert (folder / "recent.log").exists()
