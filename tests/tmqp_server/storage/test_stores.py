"""The contract of a store, held against each adapter (D12)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.tmqp_server.storage.stores import (
    EVER,
    HOMES,
    NOW_US,
    Home,
    InRuns,
    Listed,
    batch,
    kept,
    message,
    owed,
    push_each,
    queue,
    with_queue,
)
from tmqp.blocks import AS_INDEXES, FLAG_HIGH, FLAG_TRANSIENT, StoredMessage, split_indexes
from tmqp_server.storage.port import (
    HIGH_ONLY,
    REGULAR_ONLY,
    DropChannel,
    DropCursor,
    DropMark,
    DropQueue,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepRouter,
    Note,
    QueueOffsets,
    Retention,
    SettleAll,
    StoreError,
)
from tmqp_server.storage.records import decode_block
from tmqp_server.storage.stored_runs import StoredRun


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    made = HOMES[request.param](tmp_path / "data")
    yield made
    made.open().close(clean=False)


def test_a_new_store_is_empty_and_clean(home: Home) -> None:
    found = home.open().recover()
    assert found.clean
    assert found.store_id
    assert (found.last_key, found.channels, found.queues) == (0, [], [])
    assert (found.routers, found.cursors) == ([], [])


def test_topology_comes_back_in_the_order_of_creation(home: Home) -> None:
    store = home.open()
    store.recover()
    store.write(
        batch(
            KeepChannel("b", b"1"),
            KeepChannel("a", b"2"),
            queue(9, Retention(1, 2, retain_for_readers=True)),
            queue(4),
            KeepRouter("r", b"3"),
            KeepRouter("q", b"4"),
            KeepCursor("y", 4, 1),
            KeepCursor("x", 9, 7),
        ),
        NOW_US,
    )
    # What is changed keeps its place, what is gone is gone, what is unknown is passed over.
    store.write(
        batch(
            KeepChannel("b", b"5"),
            KeepRouter("r", b"6"),
            KeepCursor("y", 4, 2),
            queue(9, Retention(1, 2, retain_for_readers=True), b"new"),
            KeepChannel("gone", b""),
            DropChannel("gone"),
            DropChannel("never"),
            KeepRouter("gone", b""),
            DropRouter("gone"),
            queue(12),
            KeepCursor("z", 12, 1),
            DropQueue(12),
            KeepCursor("w", 99, 1),
            KeepCursor("v", 4, 3),
            DropCursor("v", 4),
            DropCursor("v", 99),
            DropQueue(99),
        ),
        NOW_US,
    )
    found = home.open().recover()
    assert [(c.name, c.options) for c in found.channels] == [("b", b"5"), ("a", b"2")]
    assert [(r.name, r.value) for r in found.routers] == [("r", b"6"), ("q", b"4")]
    assert [(c.name, c.key, c.sequence) for c in found.cursors] == [("y", 4, 2), ("x", 9, 7)]
    assert [(q.queue.key, q.queue.options) for q in found.queues] == [(9, b"new"), (4, b"{}")]
    retention = found.queues[0].queue.retention
    assert (retention.retain_bytes, retention.retain_time_ms, retention.retain_for_readers) == (
        1,
        2,
        True,
    )
    assert found.last_key == 12


def test_every_field_of_a_message_comes_back(home: Home) -> None:
    store = with_queue(home.open())
    highest = StoredMessage(
        (1 << 62) - 1,
        (1 << 62) - 2,
        (1 << 62) - 3,
        (1 << 62) - 4,
        65_535 & ~FLAG_TRANSIENT,
        65_534,
        65_533,
        65_532,
        3,
        5,
        b"headbodytail",
    )
    store.write(batch(appended={1: [message(1, b""), highest]}), NOW_US)
    for again in range(2):
        if again:
            store = home.open()
            store.recover()
        first, second = store.fetch(1, 0, EVER, 10, EVER, 0)
        assert repr(first) == repr(message(1, b""))
        assert repr(second) == repr(highest)
        blocks = store.read(1, 0, EVER, 10, EVER)
        assert [repr(m) for b in blocks for m in decode_block(b).messages()] == [
            repr(first),
            repr(second),
        ]


def test_the_clean_mark_is_set_by_closing_and_taken_back_by_opening(home: Home) -> None:
    store = home.open()
    assert store.recover().clean
    store.close(clean=True)
    store.close(clean=False)
    store = home.open()
    assert store.recover().clean
    store = home.open()
    assert not store.recover().clean
    store.close(clean=False)
    assert not home.open().recover().clean


def test_the_store_id_stays(home: Home) -> None:
    first = home.open().recover().store_id
    assert home.open().recover().store_id == first


def test_what_is_settled_is_not_owed(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(appended={1: [message(n) for n in range(1, 11)]}), NOW_US)
    store.write(batch(settled={1: [7, 2, 2, 99], 5: [1]}), NOW_US)
    left = [1, 3, 4, 5, 6, 8, 9, 10]
    assert owed(store) == left
    assert kept(store) == left
    store = home.open()
    (found,) = store.recover().queues
    assert (found.sequence, found.high_count, found.regular_count, found.bytes) == (10, 0, 8, 32)
    assert owed(store) == left


def test_appended_and_settled_in_one_batch(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(appended={1: [message(1), message(2)]}, settled={1: [2]}), NOW_US)
    assert owed(store) == [1]
    store.write(batch(appended={1: [message(3)]}, settled={1: [3, 1]}), NOW_US)
    assert owed(store) == []
    found = home.open().recover()
    assert found.queues[0].sequence == 3


def test_a_sequence_is_remembered_when_nothing_is_left(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(appended={1: [message(4), message(9)]}), NOW_US)
    store.write(batch(settled={1: [4, 9]}), NOW_US)
    for _ in range(3):
        store = home.open()
        assert store.recover().queues[0].sequence == 9
        store.write(batch(), NOW_US)


def test_all_of_a_priority_can_be_settled_up_to_a_sequence(home: Home) -> None:
    store = with_queue(home.open())
    messages = [message(n, b"b", FLAG_HIGH if n % 2 else 0) for n in range(1, 11)]
    store.write(batch(appended={1: messages}), NOW_US)
    assert owed(store, 1, HIGH_ONLY) == [1, 3, 5, 7, 9]
    assert owed(store, 1, REGULAR_ONLY) == [2, 4, 6, 8, 10]
    store.write(batch(SettleAll(1, 5, HIGH_ONLY), SettleAll(8, 5, 0)), NOW_US)
    assert owed(store) == [2, 4, 6, 7, 8, 9, 10]
    store.write(batch(SettleAll(1, 7, REGULAR_ONLY)), NOW_US)
    assert owed(store) == [7, 8, 9, 10]
    found = home.open().recover().queues[0]
    assert (found.high_count, found.regular_count, found.bytes) == (2, 2, 4)
    store = home.open()
    store.recover()
    store.write(batch(SettleAll(1, 9, 0, 8)), NOW_US)
    assert owed(store) == [7, 10]
    # What is appended in the same batch comes after.
    store.write(batch(SettleAll(1, EVER, 0), appended={1: [message(11)]}), NOW_US)
    assert owed(store) == [11]


def test_fetching_keeps_to_its_limits(home: Home) -> None:
    store = with_queue(home.open())
    messages = [message(n, bytes(100), FLAG_HIGH if n == 15 else 0) for n in range(1, 21)]
    for start in range(0, 20, 5):
        store.write(batch(appended={1: messages[start : start + 5]}), NOW_US)

    def fetch(after: int, last: int, limit: int, size: int, priority: int = 0) -> list[int]:
        return [m.sequence for m in store.fetch(1, after, last, limit, size, priority)]

    assert fetch(3, 8, 100, EVER) == [4, 5, 6, 7, 8]
    assert fetch(3, EVER, 3, EVER) == [4, 5, 6]
    assert fetch(0, EVER, 100, 350) == [1, 2, 3]
    assert fetch(0, EVER, 100, 300) == [1, 2, 3]
    assert fetch(0, EVER, 100, 1) == [1]
    assert fetch(0, EVER, 0, EVER) == []
    assert fetch(20, EVER, 5, EVER) == []
    assert fetch(8, 8, 5, EVER) == []
    assert fetch(0, EVER, 5, 1, HIGH_ONLY) == [15]
    assert fetch(13, 16, 5, EVER, REGULAR_ONLY) == [14, 16]
    assert store.fetch(77, 0, EVER, 5, EVER, 0) == []
    assert kept(store, 1, 4, 7) == [4, 5, 6, 7]
    assert [len(store.read(1, 0, EVER, 0, EVER)), len(store.read(7, 0, EVER, 1, 1))] == [0, 0]
    blocks = store.read(1, 2, EVER, 7, EVER)
    assert sum(decode_block(b).count for b in blocks) == 7
    (block,) = store.read(1, 2, EVER, 100, 1)
    assert [m.sequence for m in decode_block(block).messages()] == [2]
    alone = b"".join(store.read(1, 2, EVER, 7, EVER, form=AS_INDEXES))
    assert sum(block.count for block in split_indexes(alone)) == 7
    assert len(alone) < sum(map(len, blocks)) - 7


def test_messages_may_be_saved_later_than_those_that_follow_them(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(appended={1: [message(n) for n in (2, 5, 9)]}), NOW_US)
    store.write(batch(appended={1: [message(n) for n in (1, 3, 7, 10)]}), NOW_US)
    store.write(batch(appended={1: [message(6)]}), NOW_US)
    store.write(batch(settled={1: [3, 5]}), NOW_US)
    assert owed(store) == [1, 2, 6, 7, 9, 10]
    store = home.open()
    assert store.recover().queues[0].sequence == 10
    assert owed(store) == [1, 2, 6, 7, 9, 10]
    assert [m.sequence for m in store.fetch(1, 1, EVER, 3, EVER, 0)] == [2, 6, 7]


def test_sequences_may_lie_far_apart(home: Home) -> None:
    store = with_queue(home.open())
    sequences = [1, 2, 10**6, 10**6 + 1, 10**9, 2**40, 2**61]
    store.write(batch(appended={1: [message(n) for n in sequences]}), NOW_US)
    store.write(batch(settled={1: [2, 10**9]}), NOW_US)
    store = home.open()
    store.recover()
    assert owed(store) == [1, 10**6, 10**6 + 1, 2**40, 2**61]


def test_a_message_that_is_appended_again_is_there_once(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(appended={1: [message(1, b"old"), message(2, b"old")]}), NOW_US)
    store.write(batch(appended={1: [message(2, b"newer")]}), NOW_US)
    assert [m.body for m in store.fetch(1, 0, EVER, 9, EVER, 0)] == [b"old", b"newer"]
    store.write(batch(appended={1: [message(1, b"newer")]}), NOW_US)
    store = home.open()
    assert store.recover().queues[0].bytes == 10
    assert [m.body for m in store.fetch(1, 0, EVER, 9, EVER, 0)] == [b"newer", b"newer"]


def test_transient_messages_are_there_until_the_store_is_opened_again(home: Home) -> None:
    store = with_queue(home.open(), 1, Retention(10**6))
    messages = [message(n, b"12", FLAG_TRANSIENT if n % 2 else 0) for n in range(1, 7)]
    store.write(batch(appended={1: messages}), NOW_US)
    store.write(batch(appended={1: [message(7, b"12", FLAG_TRANSIENT)]}), NOW_US)
    assert owed(store) == [1, 2, 3, 4, 5, 6, 7]
    store = home.open()
    found = store.recover().queues[0]
    assert (found.sequence, found.regular_count, found.bytes) == (7, 3, 6)
    assert owed(store) == [2, 4, 6]
    assert kept(store) == [2, 4, 6]
    store.write(batch(appended={1: [message(8, b"12", FLAG_TRANSIENT)]}), NOW_US)
    assert owed(store) == [2, 4, 6, 8]


def test_notes_come_back_with_their_messages(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(appended={1: [message(1), message(2, attempts=1)]}), NOW_US)
    notes = [Note(1, 2, 7, 3), Note(1, 99, 1, 1), Note(4, 1, 1, 1)]
    store.write(batch(notes=notes), NOW_US)
    store.close(clean=True)
    for _ in range(2):
        store = home.open()
        store.recover()
        found = store.fetch(1, 0, EVER, 5, EVER, 0)
        assert [(m.attempts, m.put_backs) for m in found] == [(0, 0), (7, 3)]
        (block,) = store.read(1, 0, EVER, 5, EVER)
        assert [m.attempts for m in decode_block(block).messages()] == [0, 7]


def test_a_dropped_queue_is_gone_and_its_key_stays_used(home: Home) -> None:
    store = with_queue(home.open(), 5)
    store.write(batch(appended={5: [message(n) for n in range(1, 50)]}), NOW_US)
    store.write(batch(DropQueue(5), appended={5: [message(50)]}, settled={5: [1]}), NOW_US)
    assert owed(store, 5) == []
    store.write(batch(queue(6)), NOW_US)
    store = home.open()
    found = store.recover()
    assert found.last_key == 6
    assert [q.queue.key for q in found.queues] == [6]
    assert (owed(store, 5), owed(store, 6)) == ([], [])


def test_offsets_tell_what_can_be_read(home: Home) -> None:
    store = with_queue(home.open())
    assert repr(store.offsets([1, 2])) == repr([QueueOffsets(0, 0, 0, 0, 0)] * 2)
    messages = [message(n, bytes(n), timestamp_us=NOW_US + n) for n in range(1, 11)]
    store.write(batch(appended={1: messages}), NOW_US)
    assert repr(store.offsets([1])[0]) == repr(QueueOffsets(1, 10, 10, 55, NOW_US + 1))
    store.write(batch(settled={1: [1, 5, 10]}), NOW_US)
    assert repr(store.offsets([1])[0]) == repr(QueueOffsets(2, 9, 7, 39, NOW_US + 2))


# --- Retention -----------------------------------------------------------------------------------


def retained(home: Home, retention: Retention) -> list[int]:
    """What can still be read of 600 settled messages of 10 bytes, one a second."""
    store = with_queue(home.open(), 1, retention)
    for n in range(1, 601):
        now = NOW_US + n * 1_000_000
        made = message(n, bytes(10), timestamp_us=now)
        store.write(batch(appended={1: [made]}, settled={1: [n]}), now)
    assert owed(store) == []
    found = kept(store)
    assert found == sorted(set(found))
    again = home.open()
    assert again.recover().queues[0].sequence == 600
    assert set(found) <= set(kept(again))
    return found


def holds(found: list[int], most: list[int], slack: int = 256) -> bool:
    """Whether all that must be there is, and not much more: a store may keep whole blocks."""
    return set(most) <= set(found) and len(found) <= len(most) + slack


def test_settled_messages_are_kept_by_bytes(home: Home) -> None:
    assert holds(retained(home, Retention(200)), list(range(581, 601)))


def test_settled_messages_are_kept_by_age(home: Home) -> None:
    assert holds(retained(home, Retention(0, 30_000)), list(range(571, 601)))


def test_the_longer_of_bytes_and_age_counts(home: Home) -> None:
    assert holds(retained(home, Retention(200, 30_000)), list(range(571, 601)))


def test_without_a_cursor_nothing_is_kept_for_readers(home: Home) -> None:
    assert retained(home, Retention(0, 0, retain_for_readers=True)) == []


def test_age_alone_lets_go(home: Home) -> None:
    store = with_queue(home.open(), 1, Retention(0, 1_000))
    store.write(batch(appended={1: [message(1)]}, settled={1: [1]}), NOW_US)
    assert kept(store) == [1]
    store.write(batch(KeepChannel("d", b"")), NOW_US + 2_000_000)
    assert kept(store) == []


def test_messages_are_kept_until_every_reader_has_passed(home: Home) -> None:
    store = with_queue(home.open(), 1, Retention(0, 0, retain_for_readers=True))
    store.write(batch(KeepCursor("a", 1, 0), KeepCursor("b", 1, 0)), NOW_US)
    push_each(store, range(1, 41))
    store.write(batch(settled={1: list(range(1, 41))}), NOW_US)
    assert kept(store) == list(range(1, 41))
    store.write(batch(KeepCursor("a", 1, 40)), NOW_US)
    assert kept(store) == list(range(1, 41))
    store.write(batch(KeepCursor("b", 1, 35)), NOW_US)
    assert holds(kept(store), [36, 37, 38, 39, 40])
    store = home.open()
    store.recover()
    assert holds(kept(store), [36, 37, 38, 39, 40])
    store.write(batch(DropCursor("b", 1)), NOW_US)
    assert kept(store) == []


def test_a_bound_frees_what_a_lagging_reader_holds_back(home: Home) -> None:
    store = with_queue(home.open(), 1, Retention(1_000, 0, retain_for_readers=True))
    store.write(batch(KeepCursor("a", 1, 0)), NOW_US)
    for n in range(1, 601):
        made = message(n, bytes(100))
        store.write(batch(appended={1: [made]}, settled={1: [n]}), NOW_US)
    assert holds(kept(store), list(range(591, 601)))


def test_retention_can_be_switched_on_and_off(home: Home) -> None:
    store = with_queue(home.open())
    push_each(store, range(1, 11))
    store.write(batch(settled={1: [1, 2, 3]}), NOW_US)
    store.write(batch(queue(1, Retention(10**6))), NOW_US)
    push_each(store, range(11, 21))
    store.write(batch(settled={1: list(range(5, 21))}), NOW_US)
    assert set(range(11, 21)) <= set(kept(store))
    assert owed(store) == [4]
    store.write(batch(queue(1)), NOW_US)
    assert kept(store) == [4]
    assert store.offsets([1])[0].count == 1


def test_what_came_since_a_time_is_found(home: Home) -> None:
    store = with_queue(home.open(), 1, Retention(10**9))
    assert (store.find(1, 0), store.find(99, 0)) == (0, 0)
    for first in (1, 41, 81):
        part = [message(n, b"x", timestamp_us=NOW_US + 10 * n) for n in range(first, first + 40)]
        store.write(batch(appended={1: part}), NOW_US)
    assert store.find(1, 0) == 1
    assert store.find(1, NOW_US + 10) == 1
    assert store.find(1, NOW_US + 11) == 2
    assert store.find(1, NOW_US + 400) == 40
    assert store.find(1, NOW_US + 401) == 41
    assert store.find(1, NOW_US + 1_200) == 120
    assert store.find(1, NOW_US + 1_201) == 0
    # The clock was put back, and what was saved late stands among the others.
    late = [message(n, b"x", timestamp_us=NOW_US + 5) for n in (122, 124)]
    store.write(batch(appended={1: late}), NOW_US)
    store.write(batch(appended={1: [message(123, b"x", timestamp_us=NOW_US + 9_000)]}), NOW_US)
    assert store.find(1, NOW_US + 1_201) == 123
    store.write(batch(queue(1)), NOW_US)
    store.write(batch(settled={1: [1, 2, 3, 123]}), NOW_US)
    assert store.find(1, 0) == 4
    assert store.find(1, NOW_US + 1_201) == 0


def test_a_range_is_split_into_parts_that_follow_one_another(home: Home) -> None:
    store = with_queue(home.open(), 1, Retention(10**9))
    everything = (1, 10**9)
    assert store.split(1, *everything, 0, 0, 9) == store.split(99, *everything, 0, 0, 9) == []
    for first in (1, 41, 81):
        some = [message(n, bytes(n)) for n in range(first, first + 40)]
        store.write(batch(appended={1: some}), NOW_US)
    (whole,) = store.split(1, *everything, 0, 0, 9)
    assert (whole.first, whole.last, whole.count, whole.bytes) == (1, 120, 120, 60 * 121)
    (whole,) = store.split(1, 30, 90, 0, 0, 9)
    assert (whole.first, whole.last, whole.count) == (30, 90, 61)
    assert whole.bytes == sum(range(30, 91))
    for limit, max_bytes in ((7, 0), (40, 0), (45, 0), (1, 0), (0, 100), (0, 4_000), (30, 2_000)):
        parts = store.split(1, *everything, limit, max_bytes, 200)
        assert parts[0].first == 1
        assert parts[-1].last == 120
        assert sum(part.count for part in parts) == 120
        assert sum(part.bytes for part in parts) == 60 * 121
        for before, part in pairwise(parts):
            assert part.first == before.last + 1
        for part in parts:
            assert part.count == part.last - part.first + 1
            assert part.bytes == sum(range(part.first, part.last + 1))
            assert not limit or part.count <= limit
            assert not max_bytes or part.bytes <= max_bytes or part.count == 1
        begin = store.split(1, *everything, limit, max_bytes, 2)
        assert list(map(repr, begin)) == list(map(repr, parts[:2]))
    # Holes, and messages that were saved late, stand in their places.
    store.write(batch(appended={1: [message(n, b"1") for n in (122, 124, 130)]}), NOW_US)
    store.write(batch(appended={1: [message(n, b"22") for n in (123, 125)]}), NOW_US)
    store.write(batch(queue(1)), NOW_US)
    store.write(batch(settled={1: [*range(1, 41), 50, 124]}), NOW_US)
    parts = store.split(1, *everything, 2, 0, 1_000)
    assert sum(part.count for part in parts) == 79 + 4
    assert [(p.first, p.last, p.count, p.bytes) for p in parts[-2:]] in (
        [(120, 122, 2, 121), (123, 125, 2, 4), (130, 130, 1, 1)][-2:],
        [(122, 123, 2, 3), (125, 130, 2, 3)],
    )


def test_a_check_finds_nothing_wrong(home: Home) -> None:
    store = with_queue(home.open())
    push_each(store, range(1, 101))
    store.write(batch(settled={1: [1, 2, 3, 50]}), NOW_US)
    report = store.check()
    assert (report.channels, report.queues, report.messages, report.problems) == (1, 1, 96, [])


# --- Portions and marks --------------------------------------------------------------------------


def marks(home: Home) -> list[tuple[str, int, int]]:
    return [(each.application, each.epoch, each.at_us) for each in home.open().recover().marks]


def test_portions_come_behind_what_is_appended_in_their_order(home: Home) -> None:
    store = with_queue(home.open())
    store.write(
        batch(
            queue(2),
            appended={1: [message(1), message(2)]},
            portions=[
                Listed(1, [message(3, b"three"), message(4)]),
                Listed(2, [message(1)]),
                Listed(9, [message(1)]),
                Listed(1, [message(7, b"seven")]),
            ],
            settled={1: [4]},
        ),
        NOW_US,
    )
    for again in range(2):
        if again:
            store = home.open()
            found = store.recover()
            assert [each.sequence for each in found.queues] == [7, 1]
        assert owed(store) == [1, 2, 3, 7]
        assert owed(store, 2) == [1]
        assert [each.body for each in store.fetch(1, 2, EVER, 10, EVER, 0)] == [b"three", b"seven"]


def run(first: int, count: int, size: int, flags: int = 0) -> StoredRun:
    bodies = b"".join([f"{first + n:0{size}}".encode() for n in range(count)])
    return StoredRun(first, count, NOW_US, flags, 0, bodies, [size], [1], NOW_US + 5)


def in_runs() -> list[StoredRun]:
    return [run(3, 2_500, 20), run(2_503, 7, 300_000), run(2_510, 100, 9, FLAG_HIGH)]


@pytest.mark.parametrize("max_bytes", [0, 80_000])
def test_portions_in_runs_are_kept_as_their_messages_are(home: Home, max_bytes: int) -> None:
    store = with_queue(home.open(), retention=Retention(max_bytes))
    appended = {1: [message(1), message(2)]}
    store.write(batch(appended=appended, portions=[InRuns(1, in_runs())]), NOW_US)
    store.catch_up()
    store.write(batch(settled={1: [1, 2, 5, 2_600]}), NOW_US)
    wanted = [each for one in in_runs() for each in one.messages()]
    wanted = [each for each in wanted if each.sequence not in (5, 2_600)]
    for again in range(2):
        if again:
            store = home.open()
            assert [each.sequence for each in store.recover().queues] == [2_609]
        found = store.fetch(1, 0, EVER, 10_000, EVER, 0)
        assert [repr(each) for each in found] == [repr(each) for each in wanted]
        assert [each.body for each in found] == [each.body for each in wanted]
        assert len(store.fetch(1, 0, EVER, 10_000, EVER, HIGH_ONLY)) == 99
        blocks = [decode_block(each) for each in store.read(1, 3, EVER, 10_000, EVER)]
        assert sum([each.count for each in blocks]) >= len(wanted)
    assert store.check().problems == []


def test_runs_of_a_portion_that_are_settled_or_known_are_looked_at(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(portions=[InRuns(1, [run(3, 4, 9)])], settled={1: [4, 5]}), NOW_US)
    assert owed(store) == [3, 6]
    store.write(batch(portions=[InRuns(1, [run(6, 3, 9)]), InRuns(9, [run(1, 3, 9)])]), NOW_US)
    assert owed(store) == [3, 6, 7, 8]
    store.write(batch(portions=[InRuns(1, [run(9, 1, 9)]), InRuns(1, [run(10, 1, 9)])]), NOW_US)
    store = home.open()
    store.recover()
    assert owed(store) == [3, 6, 7, 8, 9, 10]


def test_a_portion_that_cannot_be_made_leaves_nothing_of_its_batch(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(KeepMark("app", 1, NOW_US), portions=[Listed(1, [message(1)])]), NOW_US)
    with pytest.raises((StoreError, ValueError), match="no messages"):
        store.write(
            batch(
                KeepMark("app", 2, NOW_US),
                KeepMark("other", 1, NOW_US),
                portions=[Listed(1, [message(2)]), Listed(1, [])],
            ),
            NOW_US,
        )
    assert owed(store) == [1]
    assert marks(home) == [("app", 1, NOW_US)]
    store = home.open()
    store.recover()
    assert owed(store) == [1]


def test_marks_come_back_the_oldest_first(home: Home) -> None:
    store = with_queue(home.open())
    store.write(batch(KeepMark("a", 1, NOW_US), KeepMark("b", 2**62, NOW_US + 1)), NOW_US)
    store.write(batch(KeepMark("c", 0, NOW_US + 2), KeepMark("gone", 1, NOW_US)), NOW_US)
    store.write(batch(KeepMark("a", 2, NOW_US + 3), DropMark("gone"), DropMark("never")), NOW_US)
    expected = [("b", 2**62, NOW_US + 1), ("c", 0, NOW_US + 2), ("a", 2, NOW_US + 3)]
    assert marks(home) == expected
    assert marks(home) == expected
