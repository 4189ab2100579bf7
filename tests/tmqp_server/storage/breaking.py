"""The breaking of the SQLite store; runs in a process of its own, on the disk of ``disk.c``.

    python -m tests.tmqp_server.storage.breaking cut SHARE     power cuts: every boundary, a share
    python -m tests.tmqp_server.storage.breaking fail SHARE    the n-th call fails
    python -m tests.tmqp_server.storage.breaking count 1       how often a write syncs

A share of 1 is everything, 10 is every tenth; the life that is broken follows from TMQP_SOAK_SEED.
The last line says what was done.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tmqp_server.storage.disk import FATES, Disk, Image, Operation, Replay, lay_out
from tests.tmqp_server.storage.stores import EVER, NOW_US, InRuns, batch, message, queue
from tmqp.blocks import FLAG_HIGH
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.port import (
    DropQueue,
    KeepChannel,
    KeepCursor,
    Note,
    Retention,
    SettleAll,
    Store,
    StoreBatch,
    StoreError,
)
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.sqlite import SqliteStore
from tmqp_server.storage.stored_runs import StoredRun

SEED: Final = int(os.environ.get("TMQP_SOAK_SEED", "1"))
#: Small, so that the log is carried into the database often.
CHECKPOINT_PAGES: Final = 10
#: Small, so that the recent writes are often carried too.
LOG_BYTES: Final = 1 << 17


def committed(key: int, sequences: range, chance: random.Random) -> InRuns:
    """Messages of two sizes, as two runs."""
    middle = (sequences.start + sequences.stop) // 2
    runs: list[StoredRun] = []
    for some in (range(sequences.start, middle), range(middle, sequences.stop)):
        if some:
            size = chance.choice([5, 100, 3_000])
            bodies = chance.randbytes(size * len(some))
            flags = FLAG_HIGH * chance.randrange(2)
            runs.append(
                StoredRun(some.start, len(some), NOW_US, flags, 0, bodies, [size], [size // 2])
            )
    return InRuns(key, runs)


def batches(count: int, seed: int = SEED) -> list[StoreBatch]:
    """A life of a store: topology, bursts and single messages, settling, clearing, merging."""
    chance = random.Random(seed)
    made = [batch(KeepChannel("c", b"{}"), queue(1), queue(2, Retention(3_000)), queue(3))]
    last = dict.fromkeys((1, 2, 3), 0)
    unsettled: dict[int, list[int]] = {1: [], 2: [], 3: []}
    while len(made) < count:
        each = StoreBatch()
        for key in (1, 2, 3):
            if chance.random() < 0.3:
                continue
            size = chance.choice([1, 1, 1, 2, 30])
            sequences = range(last[key] + 1, last[key] + 1 + size)
            last[key] += size
            if chance.random() < 0.1:
                each.portions.append(committed(key, sequences, chance))
            else:
                sizes = [5, 100, 3_000]
                each.appended[key] = [
                    message(n, chance.randbytes(chance.choice(sizes)), FLAG_HIGH * (n % 3))
                    for n in sequences
                ]
            unsettled[key].extend(sequences)
        for key in (1, 2, 3):
            if chance.random() < 0.5:
                most = len(unsettled[key])
                done = chance.sample(unsettled[key], chance.randrange(most + 1) // 2)
                each.settled[key] = done
                unsettled[key] = [n for n in unsettled[key] if n not in set(done)]
        if chance.random() < 0.05 and unsettled[2]:
            each.notes = [Note(2, n, 3, 4) for n in unsettled[2][:5]]
        if chance.random() < 0.05:
            each.changes.append(KeepCursor("r", 2, last[2]))
        if chance.random() < 0.02:
            each.changes.append(SettleAll(3, last[3] // 2, 0))
            each.changes.append(KeepChannel(f"c{len(made)}", chance.randbytes(50)))
        if len(made) == count // 2:
            each.changes.extend([DropQueue(3), queue(4)])
        made.append(each)
    return made


def contents(store: Store) -> list[str]:
    """All that a store must bring back: topology, and what is owed."""
    found = store.recover()
    lines = [repr(found.channels), repr(found.cursors), repr(found.routers)]
    for each in sorted(found.queues, key=lambda each: each.queue.key):
        key = each.queue.key
        lines.append(repr(each))
        lines.extend(repr(m) for m in store.fetch(key, 0, EVER, 10**6, EVER, 0))
        for block in store.read(key, 0, EVER, 10**6, EVER):
            decode_block(block)
    return lines


def expectations(life: list[StoreBatch]) -> list[list[str]]:
    """What must be there after none, one, two... of the batches, told by the other store."""
    model = MemoryStore()
    found = [contents(model)]
    for number, each in enumerate(life):
        model.write(each, NOW_US + number)
        found.append(contents(model))
    return found


def open_store(folder: Path) -> SqliteStore:
    return SqliteStore(
        folder, floor_bytes=0, checkpoint_pages=CHECKPOINT_PAGES, log_bytes=LOG_BYTES
    )


def record_life(disk: Disk, folder: Path, life: list[StoreBatch]) -> list[Operation]:
    """Live it once; mark 2n before the n-th batch is written, 2n + 1 when it was confirmed."""
    disk.watch(folder)
    store = open_store(folder)
    store.recover()
    for number, each in enumerate(life):
        disk.mark(2 * number)
        store.write(each, NOW_US + number)
        disk.mark(2 * number + 1)
        if each.portions:
            store.catch_up()
    store.close(clean=True)
    done = disk.record()
    disk.watch(None)
    return done


def judge(folder: Path, image: Image, marks: list[int], wanted: list[list[str]]) -> None:
    """Open what was left by a cut: the confirmed must be there, and nothing half done."""
    lay_out(image, folder)
    confirmed = sum(1 for mark in marks if mark % 2)
    attempted = sum(1 for mark in marks if mark % 2 == 0)
    store = open_store(folder)
    found = contents(store)
    report = store.check()
    store.close(clean=False)
    assert report.problems == [], report.problems
    assert found in wanted[confirmed : attempted + 1], (confirmed, attempted)


def cut(disk: Disk, folder: Path, share: int) -> str:
    """D1, D2, D4: cut the power at every boundary; D7: and during the recovery, three deep."""
    life = batches(200)
    wanted = expectations(life)
    done = record_life(disk, folder / "life", life)
    chance = random.Random(SEED)
    replay = Replay({})
    judged = deep = 0
    offset = chance.randrange(share)
    for place, operation in enumerate(done):
        replay.step(operation)
        if operation[0] == "M" or (place + offset) % share:
            continue
        for fate in FATES:
            image = replay.image(fate, chance)
            try:
                judge(folder / "image", image, replay.marks, wanted)
            except BaseException as error:
                raise AssertionError(f"step {place} of {len(done)}, {fate}: {error}") from error
            judged += 1
        if judged % 100 < len(FATES):
            deep += deeper(disk, folder, replay.image("mixed", chance), replay.marks, wanted, 3)
    return f"{judged} cuts at {len(done)} steps and {deep} cuts during recoveries"


def deeper(
    disk: Disk, folder: Path, image: Image, marks: list[int], wanted: list[list[str]], depth: int
) -> int:
    """Cut the power while the store is opened; the result must be the same."""
    if not depth:
        return 0
    place = folder / "deep"
    lay_out(image, place)
    disk.watch(place)
    store = open_store(place)
    found = contents(store)
    store.close(clean=False)
    done = disk.record()
    disk.watch(None)
    assert found in wanted
    wanted = [found] * len(wanted)
    replay = Replay(image)
    chance = random.Random(depth)
    judged = 0
    images: list[Image] = []
    for operation in done:
        replay.step(operation)
        images.extend(replay.image(fate, chance) for fate in FATES)
    for image_after in chance.sample(images, min(8, len(images))):
        judge(folder / "image", image_after, marks, wanted)
        judged += 1
    if images:
        judged += deeper(disk, folder, chance.choice(images), marks, wanted, depth - 1)
    return judged


# --- Calls that fail -----------------------------------------------------------------------------


class Life:
    """What came of living with failures.

    ``wanted`` has for each mark in ``done`` what a power cut there must leave, or none where nobody
    can know: while the disk takes nothing at all.
    """

    def __init__(self) -> None:
        self.failed = 0
        self.done: list[Operation] = []
        self.wanted: list[list[str] | None] = []


def live_with_failures(
    disk: Disk, folder: Path, life: list[StoreBatch], plan: tuple[int, int, bool]
) -> Life:
    """Live on as the server does: what failed to be appended is refused, the rest comes again."""
    at, error, always = plan
    came = Life()
    model = MemoryStore()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    disk.watch(folder)
    disk.fail(at, error, always)
    store: SqliteStore | None = None
    owing = StoreBatch()
    for number, each in enumerate([*life, StoreBatch()]):
        owing = joined(owing, each)
        if number == len(life):
            disk.heal()
        try:
            if store is None:
                store = open_store(folder)
                store.recover()
            store.write(owing, NOW_US + number)
            if owing.portions:
                store.catch_up()
        except StoreError:
            came.failed += 1
            owing.appended = {}
            owing.portions = []
            disk.mark(len(came.wanted))
            came.wanted.append(None if always or store is None else contents(model))
        else:
            model.write(owing, NOW_US + number)
            owing = StoreBatch()
            if came.wanted[-1:] == [None] or number == len(life):
                disk.mark(len(came.wanted))
                came.wanted.append(contents(model))
    came.done = disk.record()
    disk.watch(None)
    assert store is not None
    assert owing.is_empty(), "it did not heal"
    found = contents(store)
    store.close(clean=False)
    assert found == contents(model), "something is missing, or came back"
    return came


def joined(first: StoreBatch, second: StoreBatch) -> StoreBatch:
    """One batch of two; the first has nothing to append."""
    made = StoreBatch()
    made.changes = first.changes + second.changes
    made.notes = first.notes + second.notes
    made.appended = second.appended
    made.portions = second.portions
    for each in (first, second):
        for key, sequences in each.settled.items():
            made.settled[key] = made.settled.get(key, []) + sequences
    return made


def plans(calls: int, share: int) -> Iterator[tuple[int, int, bool]]:
    """Which call fails, with what, and whether for good."""
    for number, at in enumerate(range(calls + 5)):
        for kind, error in enumerate((errno.EIO, errno.ENOSPC)):
            for always in (False, True):
                if (number * 4 + kind * 2 + always) % share == 0:
                    yield at, error, always


def fail(disk: Disk, folder: Path, share: int) -> str:
    """D5, D6: the n-th call fails, once or for good; then a power cut after it has healed."""
    life = batches(40)
    disk.watch(folder / "life")
    disk.watch(folder / "life")
    disk.fail(1 << 40)
    store = open_store(folder / "life")
    for number, each in enumerate(life):
        store.write(each, NOW_US + number)
        if each.portions:
            store.catch_up()
    calls = disk.calls()
    store.close(clean=False)
    chance = random.Random(SEED)
    runs = refused = cuts = 0
    for plan in plans(calls, share):
        try:
            came = live_with_failures(disk, folder / "life", life, plan)
            replay = Replay({})
            for operation in came.done:
                replay.step(operation)
                wanted = came.wanted[operation[2]] if operation[0] == "M" else None
                for fate in FATES if wanted is not None else ():
                    lay_out(replay.image(fate, chance), folder / "image")
                    store = open_store(folder / "image")
                    found = contents(store)
                    store.close(clean=False)
                    assert found == wanted, f"after a cut ({fate})"
                    cuts += 1
        except BaseException as error:
            raise AssertionError(f"call {plan[0]} of {calls}, {plan[1:]}: {error!r}") from error
        runs += 1
        refused += came.failed
    return f"{runs} lives with {refused} failed writes, {cuts} cuts after them"


def count(disk: Disk, folder: Path, share: int) -> str:
    """How often a write syncs."""
    del share
    disk.watch(folder / "life")
    store = SqliteStore(folder / "life", floor_bytes=0)
    store.recover()
    store.write(batch(queue(1)), NOW_US)
    syncs = []
    for number in range(1, 200):
        disk.watch(folder / "life")
        made = batch(appended={1: [message(number)]}, settled={1: [max(number - 3, 0)]})
        store.write(made, NOW_US)
        syncs.append(sum(1 for operation in disk.record() if operation[0] == "S"))
    store.close(clean=True)
    # The first write makes the log longer: the zeros are synced before anything stands in them.
    assert syncs[0] == 2, syncs
    assert set(syncs[1:]) == {1}, syncs
    return "1 sync each, 2 where the log is made longer"


def main(arguments: list[str]) -> None:
    """Run one of the two."""
    task, share = arguments[0], int(arguments[1])
    shared = Path("/dev/shm")
    parent = str(shared) if shared.is_dir() else None
    with tempfile.TemporaryDirectory(dir=parent, prefix="tmqp-disk-") as name:
        run = {"cut": cut, "fail": fail, "count": count}[task]
        print(run(Disk(), Path(name), share))


if __name__ == "__main__":
    main(sys.argv[1:])
