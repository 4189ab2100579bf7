"""The log of recent writes: its format, what is held of it, and the store that begins with it."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.storage.stores import (
    EVER,
    NOW_US,
    batch,
    kept,
    message,
    owed,
    push_each,
    queue,
    with_queue,
)
from tmqp.blocks import FLAG_TRANSIENT
from tmqp_server.storage.memory import MemoryStore
from tmqp_server.storage.pending import GatheredWrites
from tmqp_server.storage.port import (
    DamageError,
    KeepChannel,
    KeepCursor,
    Note,
    Retention,
    StoreBatch,
    StoreError,
)
from tmqp_server.storage.sqlite import SqliteStore, back_up
from tmqp_server.storage.sqlite.recent import LOG_NAME, RecentLog
from tmqp_server.storage.sqlite.store import BlockStore
from tmqp_server.storage.writes import ALIGNMENT, TURN_SIZE, encode_write, read_writes

TURN = b"the turn"
OTHER = b"another!"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def writes(count: int, first: int = 1, turn: bytes = TURN) -> list[bytes]:
    """Some writes, one message each and one settled."""
    return [
        encode_write(
            number,
            turn,
            NOW_US + number,
            batch(
                appended={7: [message(number, b"body %d" % number)]},
                settled={7: [number - 1], 8: [1, 2]} if number > 1 else {},
                notes=[Note(7, number, 3, 4)],
            ),
        )
        for number in range(first, first + count)
    ]


# --- The format ----------------------------------------------------------------------------------


def test_what_is_written_is_read() -> None:
    data = b"".join(writes(5))
    found, problems = read_writes(data, 0, set())
    assert problems == []
    assert [write.number for write in found] == [1, 2, 3, 4, 5]
    assert [write.now_us for write in found] == [NOW_US + n for n in range(1, 6)]
    fourth = found[3].batch
    assert [repr(m) for m in fourth.appended[7]] == [repr(message(4, b"body 4"))]
    assert fourth.settled == {7: [3], 8: [1, 2]}
    assert repr(fourth.notes) == repr([Note(7, 4, 3, 4)])
    assert all(len(each) % ALIGNMENT == 0 for each in writes(5))


def test_each_sync_of_the_log_is_timed(folder: Path) -> None:
    store = SqliteStore(folder)
    with_queue(store, 7)
    before = sum(store.syncs.counts)
    store.write(batch(appended={7: [message(1, b"body")]}), NOW_US)
    assert sum(store.syncs.counts) == before + 1
    store.close()


def test_what_the_database_has_is_passed_over() -> None:
    data = b"".join(writes(5))
    assert [write.number for write in read_writes(data, 3, set())[0]] == [4, 5]
    assert read_writes(data, 9, set()) == ([], [])
    assert read_writes(b"", 0, {TURN}) == ([], [])
    assert read_writes(bytes(10_000), 0, {TURN}) == ([], [])


def test_an_earlier_turn_is_no_part_of_it() -> None:
    old = b"".join(writes(6))
    new = b"".join(writes(2, first=7, turn=OTHER))
    data = new + old[len(new) :]
    found, problems = read_writes(data, 6, {OTHER})
    assert ([write.number for write in found], problems) == ([7, 8], [])


def test_a_client_cannot_make_a_write() -> None:
    """A payload that looks like one has not the turn, which is a secret."""
    forged = encode_write(2, b"guessed!", NOW_US, batch(appended={7: [message(9)]}))
    parts = writes(2)
    hidden = batch(appended={7: [message(1, bytes(ALIGNMENT * 2) + forged)]})
    first = encode_write(1, TURN, NOW_US, hidden)
    at = first.index(forged)
    aligned = encode_write(
        1,
        TURN,
        NOW_US,
        batch(appended={7: [message(1, bytes(ALIGNMENT * 2 - at % ALIGNMENT) + forged)]}),
    )
    assert aligned.index(forged) % ALIGNMENT == 0
    found, problems = read_writes(aligned, 0, {TURN})
    assert ([write.number for write in found], problems) == ([1], [])
    # Nor when the write it is in was cut off.
    found, problems = read_writes(aligned[:-ALIGNMENT] + bytes(ALIGNMENT) + parts[1], 0, {TURN})
    assert "damaged" in problems[0]
    assert [write.number for write in found] == [2]


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_every_flip_is_noticed_but_in_the_last_write(place: int, bit: int) -> None:
    """D3.  The last write may have been cut off; with one behind it, it was confirmed."""
    parts = writes(4)
    data = bytearray(b"".join(parts))
    place %= len(data)
    data[place] ^= 1 << bit
    found, problems = read_writes(bytes(data), 0, {TURN})
    expected = [each.number for each in read_writes(b"".join(parts), 0, {TURN})[0]]
    number = place // ALIGNMENT // (len(parts[0]) // ALIGNMENT) + 1
    if [write.number for write in found] == expected:
        assert problems == []  # it was in the padding
        assert [repr(w.batch.appended) for w in found] == [
            repr(w.batch.appended) for w in read_writes(b"".join(parts), 0, {TURN})[0]
        ]
    elif len(found) == 3 and not problems:
        assert number >= 4
    else:
        assert problems == [f"write {number} is damaged"]


def test_every_cut_leaves_whole_writes() -> None:
    data = b"".join(writes(3))
    before = -1
    for size in range(len(data) + 1):
        found, problems = read_writes(data[:size], 0, {TURN})
        assert problems == []
        assert len(found) >= before
        before = len(found)
    assert before == 3


def test_a_missing_beginning_is_noticed() -> None:
    found, problems = read_writes(b"".join(writes(2, first=5)), 2, {TURN})
    assert problems == ["writes 3 to 4 are missing"]
    assert len(found) == 2


@pytest.mark.parametrize(
    "bad",
    [
        batch(notes=[Note(1, 1, 1 << 16, 0)]),
        batch(settled={1: [-1]}),
        batch(appended={1: [message(2), message(1)]}),
    ],
)
def test_what_has_no_place_is_refused(bad: StoreBatch) -> None:
    with pytest.raises(ValueError):
        encode_write(1, TURN, 1, bad)


# --- What is held --------------------------------------------------------------------------------


def test_what_is_settled_soon_is_nothing() -> None:
    pending = GatheredWrites()
    assert pending.is_empty()
    pending.add(batch(appended={1: [message(n) for n in range(1, 101)]}), {1: 0})
    assert pending.weight > 0
    pending.add(batch(settled={1: list(range(1, 101))}), {1: 0})
    assert pending.weight == 0
    assert not pending.is_empty()
    assert pending.batch().is_empty()
    assert pending.tops == {1: 100}


def test_what_is_retained_is_held() -> None:
    pending = GatheredWrites()
    pending.add(batch(appended={1: [message(1), message(2)]}, settled={1: [2]}), {1: -1})
    made = pending.batch()
    assert [m.sequence for m in made.appended[1]] == [1, 2]
    assert made.settled == {1: [2]}


def test_what_is_not_known_is_passed_over() -> None:
    pending = GatheredWrites()
    pending.add(batch(appended={1: [message(1)]}, settled={2: [1]}, notes=[Note(3, 1, 1, 1)]), {})
    assert pending.is_empty()


def test_a_message_that_comes_again_is_owed_again() -> None:
    pending = GatheredWrites()
    pending.add(batch(settled={1: [5]}, notes=[Note(1, 5, 2, 2)]), {1: 9})
    pending.add(batch(appended={1: [message(5, b"new")]}), {1: 9})
    made = pending.batch()
    assert made.settled == {}
    assert made.notes == []
    assert made.appended[1][0].body == b"new"
    pending.add(batch(settled={1: [5]}), {1: 9})
    assert pending.batch().settled == {1: [5]}, "the older copy is in the database"


# --- The store -----------------------------------------------------------------------------------


def both(folder: Path, log_bytes: int) -> tuple[SqliteStore, MemoryStore]:
    return SqliteStore(folder, floor_bytes=0, log_bytes=log_bytes), MemoryStore()


@pytest.mark.parametrize("log_bytes", [2_048, 16_384, 1 << 20])
def test_random_writes_are_there_after_every_end(folder: Path, log_bytes: int) -> None:
    """Whether it is carried, left in the log or both: the same as in a store of dictionaries."""
    chance = random.Random(log_bytes)
    store, model = both(folder, log_bytes)
    for each in (store, model):
        each.recover()
        each.write(batch(queue(1), queue(2, Retention(10**9)), KeepChannel("c", b"")), NOW_US)
    last = {1: 0, 2: 0}
    unsettled: dict[int, list[int]] = {1: [], 2: []}
    for number in range(300):
        made = StoreBatch()
        for key in (1, 2):
            size = chance.choice([0, 1, 3, 20])
            if size:
                fresh = list(range(last[key] + 1, last[key] + size + 1))
                made.appended[key] = [
                    message(n, chance.randbytes(chance.randrange(200))) for n in fresh
                ]
                unsettled[key] += fresh
                last[key] += size
            done = chance.sample(unsettled[key], chance.randrange(len(unsettled[key]) + 1))
            if chance.random() < 0.7:
                made.settled[key] = done
                unsettled[key] = [n for n in unsettled[key] if n not in set(done)]
        if chance.random() < 0.1:
            made.changes.append(KeepCursor("r", 2, chance.randrange(last[2] + 1)))
        if chance.random() < 0.1 and unsettled[1]:
            made.notes.append(Note(1, chance.choice(unsettled[1]), 5, 6))
        store.write(made, NOW_US + number)
        model.write(made, NOW_US + number)
        if chance.random() < 0.1:
            store.close(clean=chance.random() < 0.5)
            store = SqliteStore(folder, floor_bytes=0, log_bytes=log_bytes)
            found = store.recover()
            assert [repr(q) for q in found.queues] == [repr(q) for q in model.recover().queues]
        if chance.random() < 0.1:
            for key in (1, 2):
                ours = store.fetch(key, 0, EVER, 10**6, EVER, 0)
                assert [repr(m) for m in ours] == [
                    repr(m) for m in model.fetch(key, 0, EVER, 10**6, EVER, 0)
                ]
            assert kept(store, 2) == kept(model, 2)
            assert repr(store.offsets([1, 2])) == repr(model.offsets([1, 2]))
    assert store.check().problems == []
    store.close(clean=True)


def test_a_message_that_is_consumed_soon_never_reaches_the_database(folder: Path) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0))
    for n in range(1, 2_001):
        store.write(batch(appended={1: [message(n)]}, settled={1: [n - 1]}), NOW_US)
    store.close(clean=False)
    base = BlockStore(folder, floor_bytes=0)
    assert base.recover().queues[0].sequence == 0
    base.close(clean=False)
    store = SqliteStore(folder, floor_bytes=0)
    found = store.recover().queues[0]
    assert (found.sequence, found.regular_count) == (2_000, 1)
    assert owed(store) == [2_000]
    store.close(clean=True)


def test_looking_leaves_no_trace(folder: Path) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0))
    push_each(store, range(1, 11))
    store.close(clean=False)
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "lock"}
    for _ in range(2):
        looker = SqliteStore(folder, floor_bytes=0)
        assert looker.check().messages == 10
        assert looker.recover(looking=True).queues[0].regular_count == 10
        assert owed(looker) == list(range(1, 11))
        with pytest.raises(StoreError, match="not open for writing"):
            looker.write(batch(settled={1: [1]}), NOW_US)
        looker.close(clean=False)
    assert (folder / LOG_NAME).read_bytes() == before[LOG_NAME]
    store = SqliteStore(folder, floor_bytes=0)
    assert not store.recover().clean
    assert owed(store) == list(range(1, 11))
    store.close(clean=True)


def test_transient_messages_in_the_log_are_forgotten(folder: Path) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0))
    messages = [message(n, b"x", FLAG_TRANSIENT if n % 2 else 0) for n in range(1, 10)]
    store.write(batch(appended={1: messages}), NOW_US)
    assert owed(store) == list(range(1, 10))
    push_each(store, [10])
    store.write(batch(appended={1: [message(11, b"", FLAG_TRANSIENT)]}), NOW_US)
    store.close(clean=False)
    store = SqliteStore(folder, floor_bytes=0)
    assert store.recover().queues[0].sequence == 11
    assert owed(store) == [2, 4, 6, 8, 10]
    store.close(clean=True)


def test_a_damaged_log_is_refused_or_passed_over(folder: Path) -> None:
    """D3."""
    store = with_queue(SqliteStore(folder, floor_bytes=0))
    push_each(store, range(1, 6))
    store.close(clean=False)
    path = folder / LOG_NAME
    data = bytearray(path.read_bytes())
    data[ALIGNMENT + 130] ^= 4
    path.write_bytes(data)
    store = SqliteStore(folder, floor_bytes=0)
    with pytest.raises(DamageError, match="write 2 is damaged"):
        store.recover()
    assert store.check().problems == [f"{LOG_NAME}: write 2 is damaged"]
    with pytest.raises(StoreError):
        store.write(batch(settled={1: [1]}), NOW_US)
    store.close(clean=False)
    assert path.read_bytes() == data
    store = SqliteStore(folder, floor_bytes=0, skip_damage=True)
    store.recover()
    assert owed(store) == [1, 3, 4, 5]
    assert store.problems == [f"{LOG_NAME}: write 2 is damaged"]
    store.close(clean=True)


def test_a_large_write_goes_straight_into_the_database(folder: Path) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0, log_bytes=8_192))
    push_each(store, [1, 2])
    store.write(batch(appended={1: [message(3, bytes(100_000))]}), NOW_US)
    push_each(store, [4])
    store.close(clean=False)
    assert (folder / LOG_NAME).stat().st_size <= 8_192
    store = SqliteStore(folder, floor_bytes=0, log_bytes=8_192)
    store.recover()
    assert owed(store) == [1, 2, 3, 4]
    store.close(clean=True)


@pytest.mark.parametrize("name", ["pwrite", "fdatasync"])
def test_a_failed_write_is_written_over(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0))
    push_each(store, [1])
    real = getattr(os, name)
    failures = [2]

    def failing(*arguments: object) -> object:
        result = real(*arguments)
        if failures[0]:
            failures[0] -= 1
            raise OSError(errno.EIO, "as the test wants it")
        return result

    monkeypatch.setattr(os, name, failing)
    with pytest.raises(StoreError, match="as the test wants it"):
        push_each(store, [2])
    assert failures == [0], "it was written over at once, or that was tried"
    push_each(store, [3])
    store.close(clean=False)
    store = SqliteStore(folder, floor_bytes=0)
    store.recover()
    assert owed(store) == [1, 3]
    store.close(clean=True)


def test_the_log_has_a_size(folder: Path) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0, log_bytes=1 << 16))
    for n in range(1, 500):
        store.write(batch(appended={1: [message(n, bytes(500))]}), NOW_US)
        assert not n or (folder / LOG_NAME).stat().st_size <= 1 << 16
    assert owed(store) == list(range(1, 500))
    store.close(clean=True)


def test_memory_is_bounded_and_the_rest_in_the_database(folder: Path) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0))
    for n in range(1, 60_001, 500):
        made = [message(m, bytes(60)) for m in range(n, n + 500)]
        store.write(batch(appended={1: made}), NOW_US)
    store.close(clean=False)
    base = BlockStore(folder, floor_bytes=0)
    assert base.recover().queues[0].regular_count > 30_000
    base.close(clean=False)


def test_a_turn_is_never_the_same(folder: Path) -> None:
    folder.mkdir()
    log = RecentLog(folder, 1 << 16)
    assert log.read() == b""
    log.begin(TURN)
    assert log.turn == TURN
    assert len(TURN) == TURN_SIZE
    assert log.fits(1 << 16)
    assert not log.fits((1 << 16) + 1)
    log.close()
    store = with_queue(SqliteStore(folder, floor_bytes=0, log_bytes=4_096))
    turns = set()
    for n in range(1, 30):
        push_each(store, [n], size=1_000)
        turns.add((folder / LOG_NAME).read_bytes()[24:32])
    assert len(turns) > 5
    store.close(clean=True)


def test_a_backup_has_the_recent_writes(folder: Path, tmp_path: Path) -> None:
    store = with_queue(SqliteStore(folder, floor_bytes=0))
    push_each(store, range(1, 21))
    store.write(batch(settled={1: [3]}), NOW_US)
    report = back_up(folder, tmp_path / "copy")
    assert (report.messages, report.problems) == (19, [])
    push_each(store, [21])
    store.close(clean=True)
    copy = SqliteStore(tmp_path / "copy", floor_bytes=0)
    assert not copy.recover().clean
    assert owed(copy) == [n for n in range(1, 21) if n != 3]
    copy.close(clean=True)
    assert sorted(p.name for p in (tmp_path / "copy").iterdir()) == [
        "lock",
        "messages.sqlite3",
        "recent.log",
        "witness",
    ]
