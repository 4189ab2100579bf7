"""Every adapter against a model of dictionaries, over random histories (D8, D12).

The model knows what must be owed, what must be kept for readers, and what may be there at most.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.tmqp_server.storage.stores import (
    EVER,
    HOMES,
    NOW_US,
    Home,
    batch,
    queue,
)
from tmqp.blocks import FLAG_HIGH, FLAG_TRANSIENT, StoredMessage
from tmqp_server.storage.port import (
    DropCursor,
    DropQueue,
    KeepCursor,
    KeepQueue,
    Note,
    Retention,
    SettleAll,
    Store,
)
from tmqp_server.storage.records import decode_block

pytestmark = pytest.mark.timeout(180)

KEYS = st.integers(1, 3)
RETENTIONS = st.sampled_from(
    [
        Retention(),
        Retention(),
        Retention(300),
        Retention(0, 20),
        Retention(0, 0, retain_for_readers=True),
        Retention(2_000, 50, retain_for_readers=True),
    ]
)


class ModelQueue:
    """One queue: all that was ever appended, what is owed, what readers were told they can read."""

    def __init__(self, kept: KeepQueue) -> None:
        self.kept = kept
        self.sequence = 0
        self.messages: dict[int, StoredMessage] = {}
        self.owed: set[int] = set()
        self.cursors: dict[str, int] = {}
        #: Settled messages that are retained: once let go they stay so.
        self.retained: set[int] = set()

    def settle(self, sequences: set[int]) -> None:
        done = self.owed & sequences
        self.owed -= done
        self.retained |= done

    def age(self, now_us: int) -> None:
        """Let go what no retention keeps; reckoned message by message from the newest."""
        retention = self.kept.retention
        newer = 0
        # What is forgotten already takes no part: a store counts only what it has.
        for sequence in sorted(self.owed | self.retained, reverse=True):
            message = self.messages[sequence]
            near = retention.retain_bytes > newer
            young = message.timestamp_us > now_us - retention.retain_time_ms * 1_000
            newer += len(message.body)
            if sequence not in self.retained:
                continue
            if retention.retain_for_readers:
                unread = any(cursor < sequence for cursor in self.cursors.values())
                bounded = (near or not retention.retain_bytes) and (
                    young or not retention.retain_time_ms
                )
                keep = unread and bounded
            else:
                keep = near or (bool(retention.retain_time_ms) and young)
            if not keep:
                self.retained.discard(sequence)


class StoreMachine(RuleBasedStateMachine):
    """One store, driven by random batches, closed and opened again at random."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home: Home = HOMES[self.kind](Path(self.folder.name) / "data")
        self.queues: dict[int, ModelQueue] = {}
        self.now_us = NOW_US
        self.next_key = 4
        self.open()

    @property
    def store(self) -> Store:
        return self._store

    def open(self) -> None:
        self._store = self.home.open()
        self.recovered = self._store.recover()

    def teardown(self) -> None:
        self._store.close(clean=False)
        self.folder.cleanup()

    def write(self, *changes: Any, **more: Any) -> None:
        self.store.write(batch(*changes, **more), self.now_us)
        for model in self.queues.values():
            model.age(self.now_us)

    @initialize(retentions=st.tuples(RETENTIONS, RETENTIONS, RETENTIONS))
    def create(self, retentions: tuple[Retention, ...]) -> None:
        changes = [queue(key, retention) for key, retention in enumerate(retentions, 1)]
        self.queues = {kept.key: ModelQueue(kept) for kept in changes}
        self.write(*changes)

    @rule(
        key=KEYS,
        sizes=st.lists(st.integers(0, 60), min_size=1, max_size=40),
        gap=st.sampled_from([0, 0, 0, 1, 7, 20_000]),
        flags=st.lists(st.sampled_from([0, 0, FLAG_HIGH, FLAG_TRANSIENT]), min_size=1),
        done=st.sampled_from([0, 0, 2, 1]),
    )
    def append(self, key: int, sizes: list[int], gap: int, flags: list[int], done: int) -> None:
        model = self.queues.get(key)
        if model is None:
            return
        appended = []
        for number, size in enumerate(sizes):
            model.sequence += 1 + gap * (number % 3 == 1)
            flag = flags[number % len(flags)]
            made = StoredMessage(
                model.sequence, self.now_us, 5, 6, flag, 0, 0, 1, 0, size, bytes([number]) * size
            )
            appended.append(made)
            model.messages[made.sequence] = made
            model.owed.add(made.sequence)
        settled = [m.sequence for m in appended[::done]] if done else []
        model.settle(set(settled))
        self.write(appended={key: appended}, settled={key: settled})

    @rule(key=KEYS, count=st.integers(1, 40))
    def append_one_by_one(self, key: int, count: int) -> None:
        for _ in range(count):
            self.append(key, [10], 0, [0], 0)

    @rule(key=KEYS, share=st.integers(1, 8), first=st.integers(0, 100))
    def settle(self, key: int, share: int, first: int) -> None:
        model = self.queues.get(key)
        if model is None:
            return
        chosen = [s for n, s in enumerate(sorted(model.owed)) if n >= first and n % share == 0]
        model.settle(set(chosen))
        self.write(settled={key: [*reversed(chosen), model.sequence + 5]})

    @rule(
        key=KEYS,
        share=st.integers(0, 100),
        priority=st.integers(0, 2),
        begin=st.sampled_from([0, 0, 1, 50, 90]),
    )
    def settle_all(self, key: int, share: int, priority: int, begin: int) -> None:
        model = self.queues.get(key)
        if model is None:
            return
        last = model.sequence * share // 100
        first = model.sequence * begin // 100
        chosen = {s for s in model.owed if first <= s <= last and self.has(model, s, priority)}
        model.settle(chosen)
        self.write(SettleAll(key, last, priority, first))

    @staticmethod
    def has(model: ModelQueue, sequence: int, priority: int) -> bool:
        high = bool(model.messages[sequence].flags & FLAG_HIGH)
        return priority == 0 or high == (priority == 1)

    @rule(key=KEYS, attempts=st.integers(0, 65_535), put_backs=st.integers(0, 65_535))
    def note(self, key: int, attempts: int, put_backs: int) -> None:
        model = self.queues.get(key)
        if model is None or not model.owed:
            return
        chosen = sorted(model.owed)[:: max(1, len(model.owed) // 3)]
        for sequence in chosen:
            old = model.messages[sequence]
            model.messages[sequence] = StoredMessage(
                sequence, old.timestamp_us, 5, 6, old.flags, attempts, put_backs, 1, 0,
                old.payload_size, old.body,
            )  # fmt: skip
        self.write(notes=[Note(key, sequence, attempts, put_backs) for sequence in chosen])

    @rule(key=KEYS, name=st.sampled_from(["a", "b"]), share=st.integers(0, 100))
    def move_cursor(self, key: int, name: str, share: int) -> None:
        model = self.queues.get(key)
        if model is None:
            return
        at = max(model.cursors.get(name, 0), model.sequence * share // 100)
        model.cursors[name] = at
        self.write(KeepCursor(name, key, at))

    @rule(key=KEYS, name=st.sampled_from(["a", "b"]))
    def drop_cursor(self, key: int, name: str) -> None:
        if key in self.queues:
            self.queues[key].cursors.pop(name, None)
        self.write(DropCursor(name, key))

    @rule(milliseconds=st.integers(1, 40))
    def wait(self, milliseconds: int) -> None:
        self.now_us += milliseconds * 1_000
        self.write()

    @rule(key=KEYS)
    @precondition(lambda self: len(self.queues) > 1)
    def drop(self, key: int) -> None:
        self.queues.pop(key, None)
        self.write(DropQueue(key))

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        if clean:
            self.store.close(clean=True)
        for model in self.queues.values():
            transient = {
                s for s in model.owed | model.retained
                if model.messages[s].flags & FLAG_TRANSIENT
            }  # fmt: skip
            model.owed -= transient
            model.retained -= transient
            for sequence in [s for s, m in model.messages.items() if m.flags & FLAG_TRANSIENT]:
                del model.messages[sequence]
        self.open()
        assert self.recovered.clean == clean
        assert [q.queue.key for q in self.recovered.queues] == list(self.queues)
        for found in self.recovered.queues:
            model = self.queues[found.queue.key]
            messages = [model.messages[s] for s in model.owed]
            high = sum(1 for m in messages if m.flags & FLAG_HIGH)
            size = sum(len(m.body) for m in messages)
            assert (found.sequence, found.bytes) == (model.sequence, size)
            assert (found.high_count, found.regular_count) == (high, len(messages) - high)
        cursors = {(c.key, c.name): c.sequence for c in self.recovered.cursors}
        assert cursors == {
            (key, name): at for key, m in self.queues.items() for name, at in m.cursors.items()
        }

    @rule(key=KEYS, first=st.integers(0, 100), limit=st.integers(1, 60), size=st.integers(1, 900))
    def fetch_some(self, key: int, first: int, limit: int, size: int) -> None:
        model = self.queues.get(key)
        if model is None:
            return
        for priority in (0, 1, 2):
            after = model.sequence * first // 100
            expected: list[str] = []
            total = 0
            for sequence in sorted(s for s in model.owed if s > after):
                if not self.has(model, sequence, priority):
                    continue
                total += len(model.messages[sequence].body)
                if len(expected) >= limit or (expected and total > size):
                    break
                expected.append(repr(model.messages[sequence]))
            found = self.store.fetch(key, after, EVER, limit, size, priority)
            assert [repr(m) for m in found] == expected

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        for key, model in self.queues.items():
            found = self.store.fetch(key, 0, EVER, 10**6, EVER, 0)
            assert [m.sequence for m in found] == sorted(model.owed)
            assert [repr(m) for m in found] == [repr(model.messages[m.sequence]) for m in found]
            blocks = self.store.read(key, 0, EVER, 10**6, EVER)
            readable = [m for block in blocks for m in decode_block(block).messages()]
            sequences = [m.sequence for m in readable]
            assert sequences == sorted(set(sequences))
            assert model.owed | model.retained <= set(sequences) <= set(model.messages)
            for each in readable:
                assert each.body == model.messages[each.sequence].body
            offsets = self.store.offsets([key])[0]
            bounds = (sequences[0], sequences[-1]) if sequences else (0, 0)
            assert (offsets.earliest, offsets.latest) == bounds
            assert (offsets.count, offsets.bytes) == (
                len(readable),
                sum(len(m.body) for m in readable),
            )

    @invariant()
    def the_check_is_content(self) -> None:
        assert self.store.check().problems == []


class SqliteMachine(StoreMachine):
    kind = "sqlite"


HISTORIES = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestMemory = StoreMachine.TestCase
TestMemory.settings = HISTORIES
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = HISTORIES
