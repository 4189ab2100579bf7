"""Data directories that a killed server left behind, and damage done to one of their files.

A *scene* is such a directory with what it holds and earlier states of it.  Damage is a flipped bit,
a cut, a zeroed range, a deleted file, or an older copy of the file.  The outcome of each is *right*
(everything that was confirmed is there), an *error*, or *silent*, which no test allows.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tmqp_server.storage.breaking import contents
from tests.tmqp_server.storage.stores import EVER, NOW_US, InRuns, batch, message, queue
from tmqp.blocks import FLAG_HIGH
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import (
    DropQueue,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepRouter,
    Retention,
    StoreBatch,
    StoreError,
)
from tmqp_server.storage.sqlite import SqliteStore
from tmqp_server.storage.stored_runs import StoredRun

FILES: Final = (
    "messages.sqlite3",
    "messages.sqlite3-wal",
    "messages.sqlite3-shm",
    "recent.log",
    "lock",
    "witness",
)


def open_store(folder: Path) -> SqliteStore:
    return SqliteStore(folder, floor_bytes=0, log_bytes=1 << 17)


def push(key: int, sequences: range, size: int = 100) -> list[StoreBatch]:
    """Writes of one message each."""
    return [
        batch(appended={key: [message(n, b"%d:" % n + bytes(size), FLAG_HIGH * (n % 3 == 0))]})
        for n in sequences
    ]


def young() -> list[StoreBatch]:
    """A queue and 200 messages, none of them carried into the database yet."""
    return [batch(KeepChannel("c", b"{}")), batch(queue(1)), *push(1, range(1, 201))]


def grown() -> list[StoreBatch]:
    """Everything a store can hold, carried several times, and recent writes behind it."""
    life = [
        batch(KeepChannel("c", b"{}"), queue(1), queue(2, Retention(30_000)), queue(3)),
        batch(KeepRouter("r", b"router"), KeepMark("app", 1, NOW_US)),
        *push(1, range(1, 300)),
        *push(2, range(1, 100), 700),
        *push(3, range(1, 20)),
        batch(settled={1: [*range(1, 50), 70, 71], 2: [1, 2, 3, 50]}),
        batch(KeepCursor("reader", 2, 10), queue(4), queue(5)),
        *push(5, range(1, 4)),
        batch(settled={5: [1, 2, 3]}),
        batch(DropQueue(3), KeepMark("app", 2, NOW_US + 1)),
    ]
    runs = [StoredRun(1, 50, NOW_US, 0, 0, bytes(50 * 40), [40], [10])]
    life.append(batch(KeepMark("app", 3, NOW_US + 2), portions=[InRuns(4, runs)]))
    life.extend(push(1, range(300, 340)))
    life.append(batch(settled={1: [310, 311], 4: [3]}))
    return life


#: Sequences of messages that are pushed after the damage: what was not noticed must not cost them.
_LATER: Final = range(1_000, 1_060)


class Scene:
    """A directory as ``kill -9`` leaves it, what it must hold, and copies of it taken earlier."""

    def __init__(
        self,
        name: str,
        folder: Path,
        life: list[StoreBatch],
        *,
        clean: bool = False,
        killed_at: int = -1,
    ) -> None:
        self.name = name
        self.folder = folder / "now"
        self.before: list[Path] = []
        model = MemoryStore()
        model.recover()
        store = open_store(folder / "life")
        store.recover()
        earlier = {len(life) // 4, len(life) // 2, len(life) - 4, len(life) - 1}
        for number, each in enumerate(life):
            if number in earlier:
                self.before.append(shutil.copytree(folder / "life", folder / f"before-{number}"))
            model.write(each, NOW_US + number)
            store.write(each, NOW_US + number)
            if number == killed_at:
                left = shutil.copytree(folder / "life", folder / "left")
                store.close(clean=False)
                shutil.rmtree(folder / "life")
                left.rename(folder / "life")
                store = open_store(folder / "life")
                store.recover()
        if clean:
            store.close(clean=True)
        shutil.copytree(folder / "life", self.folder)
        store.close(clean=False)
        model.recover()
        self.wanted = contents(model)


SCENES: Final = ("young", "grown", "killed before", "closed")


def scene(name: str, folder: Path) -> Scene:
    """The scene with a name, laid out below a folder."""
    if name == "young":
        return Scene(name, folder, young())
    life = grown()
    return Scene(
        name,
        folder,
        life,
        clean=name == "closed",
        killed_at=len(life) - 20 if name == "killed before" else -1,
    )


def damages(scene: Scene, name: str, flips: int) -> Iterator[tuple[str, bytes | None]]:
    """What may become of one file: a title, and the bytes, none when it is deleted."""
    path = scene.folder / name
    if not path.exists():
        return
    chance = random.Random(name + scene.name)
    data = path.read_bytes()
    yield "delete", None
    for before in scene.before:
        if (before / name).exists():
            yield f"older copy ({before.name})", (before / name).read_bytes()
    if not data:
        return
    used = [at for at in range(0, len(data), 64) if any(data[at : at + 64])]
    for _ in range(flips):
        at = chance.choice(used) + chance.randrange(64)
        if at < len(data):
            bit = chance.randrange(8)
            yield f"flip {at}.{bit}", data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
    end = used[-1] + 64 if used else len(data)
    sizes = {0, 1, 100, 512, end // 3, end // 2, end - 512, end - 4096, end - 16_384}
    for size in sorted(sizes):
        if 0 <= size < len(data):
            yield f"cut to {size}", data[:size]
    for size in sorted({0, end // 3, end // 2, max(end - 4096, 0), max(end - 512, 0)}):
        if size >= len(data):
            continue
        yield f"zero from {size}", data[:size] + bytes(len(data) - size)
    for at in sorted({0, end // 2 // 4096 * 4096, max(end // 4096 * 4096 - 4096, 0)}):
        size = min(4096, len(data) - at)
        yield f"zero {at} to {at + size}", data[:at] + bytes(size) + data[at + size :]


def judge(scene: Scene, place: Path, name: str, data: bytes | None) -> str:
    """Open the scene with one file damaged: ``right``, ``error: ...`` or ``silent: ...``."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(scene.folder, place)
    if data is None:
        (place / name).unlink()
    else:
        (place / name).write_bytes(data)
    try:
        store = open_store(place)
    except StoreError as error:
        return f"error: {error}"
    try:
        found = contents(store)
        if found != scene.wanted:
            lost = [line for line in scene.wanted if line not in found]
            return f"silent: {len(lost)} lines differ, such as {lost[:1]}"
        for each in push(1, _LATER, 3_000):
            store.write(each, NOW_US)
    except StoreError as error:
        return f"error: {error}"
    finally:
        store.close(clean=False)
    return _reopened(place, scene.wanted)


def _reopened(place: Path, wanted: list[str]) -> str:
    """Open again, after more was written: all of that is there too."""
    try:
        store = open_store(place)
    except StoreError as error:
        return f"error: {error}"
    try:
        store.recover()
        found = [repr(m) for m in store.fetch(1, 0, EVER, 10**6, EVER, 0)]
        there = set(contents(store))
    except StoreError as error:
        return f"error: {error}"
    finally:
        store.close(clean=False)
    if len([1 for each in found if "b'10" in each]) < len(_LATER):
        return "silent: what was pushed later is missing"
    missing = [each for each in wanted if each.startswith("StoredMessage") and each not in there]
    return f"silent: later {missing[:1]}" if missing else "right"


def reported(place: Path) -> list[str]:
    """What ``check`` has to say about a directory."""
    try:
        store = open_store(place)
    except StoreError as error:
        return [str(error)]
    try:
        return store.check().problems
    finally:
        store.close(clean=False)
