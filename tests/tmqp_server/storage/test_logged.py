"""Version 2 of the format of writes: what a replicated log carries, byte for byte."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.storage.stores import NOW_US, Listed, batch, message
from tmqp.blocks import FLAG_TRANSIENT
from tmqp_server.engine.records import field_names
from tmqp_server.storage.changes import decode_changes, encode_changes
from tmqp_server.storage.log import MOST_ENTRY_BYTES, LogEntry
from tmqp_server.storage.logged import (
    BEGIN,
    END,
    MOST_WRITE_BYTES,
    WRITE,
    Logged,
    LogReader,
    encode_begin,
    encode_end,
    encode_logged,
    payload_of,
)
from tmqp_server.storage.port import (
    DamageError,
    DropChannel,
    DropCursor,
    DropMark,
    DropQueue,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Note,
    Retention,
    SettleAll,
    StoreBatch,
    TopologyChange,
)
from tmqp_server.storage.stored_runs import StoredRun

EPOCH: Final = 5
#: What was written when the format was made: servers of later releases read it.
GOLDEN: Final[dict[str, str]] = json.loads(
    Path(__file__).with_name("data").joinpath("logged.json").read_text(encoding="ascii")
)
EVERY_CHANGE: Final[list[TopologyChange]] = [
    KeepChannel("orders", b"{}"),
    DropChannel("oldé"),
    KeepQueue(7, "orders", 2, b"{1}", Retention(100, 200, True)),
    DropQueue(8),
    KeepRouter("r", b"{}"),
    DropRouter("q"),
    KeepCursor("reader", 7, 12),
    DropCursor("gone", 7),
    KeepMark("app", 3, NOW_US),
    DropMark("app2"),
    SettleAll(7, 40, 1, 3),
]


def plain(value: Any) -> Any:
    """Records, messages and lists as what can be compared."""
    if isinstance(value, (int, str, bytes)):
        return value
    if isinstance(value, StoreBatch):
        return {
            "changes": plain(value.changes),
            "appended": plain(value.appended),
            "portions": [(each.key, plain(each.messages())) for each in value.portions],
            "settled": value.settled,
            "notes": plain(value.notes),
        }
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    names = field_names(type(value))
    return (type(value).__name__, *[plain(getattr(value, name)) for name in names])


def everything() -> StoreBatch:
    made = batch(
        *EVERY_CHANGE,
        appended={7: [message(3, b"three"), message(5, b"five", attempts=2)]},
        settled={7: [1, 2], 9: [4]},
        notes=[Note(7, 3, 1, 2)],
        portions=[Listed(7, [message(6, b"six")]), Listed(9, [message(1, b"one")])],
    )
    made.runs[11] = [run_of(20, [b"a", b"bb"])]
    return made


def run_of(first: int, bodies: list[bytes], flags: int = 0) -> StoredRun:
    sizes = [len(body) for body in bodies]
    return StoredRun(first, len(bodies), NOW_US, flags, 0, b"".join(bodies), sizes, [0])


def logged(made: StoreBatch, number: int = 2) -> list[LogEntry]:
    return encode_logged(number, EPOCH, NOW_US, payload_of(made))


def read_all(entries: list[LogEntry], number: int = 1, epoch: int = EPOCH) -> list[Logged]:
    reader = LogReader(number, epoch)
    return [found for found in map(reader.read, entries) if found is not None]


def changed(entry: LogEntry, at: int, data: bytes) -> LogEntry:
    """An entry with other bytes somewhere, and the right checksum all the same."""
    new = bytearray(entry.data)
    new[at : at + len(data)] = data
    new[12:16] = crc32(new[16:], crc32(new[:12])).to_bytes(4, "little")
    return LogEntry(entry.number, bytes(new))


# --- What is written -----------------------------------------------------------------------------


def test_the_bytes_of_every_change_are_as_they_were_first_written() -> None:
    assert encode_changes(EVERY_CHANGE).hex() == GOLDEN["changes"]


def test_the_bytes_of_a_write_are_as_they_were_first_written() -> None:
    (entry,) = logged(everything())
    assert entry.data.hex() == GOLDEN["write"]


def test_the_bytes_of_a_beginning_and_of_an_end_are_as_they_were_first_written() -> None:
    begin = encode_begin(1, EPOCH, NOW_US, "a", "tmqp://a", "the-store")
    assert begin.data.hex() == GOLDEN["begin"]
    assert encode_end(2, EPOCH, NOW_US).data.hex() == GOLDEN["end"]


# --- What is read --------------------------------------------------------------------------------


def test_what_is_read_is_what_was_written() -> None:
    made = everything()
    (found,) = read_all(logged(made))
    assert (found.kind, found.epoch, found.number, found.now_us) == (WRITE, EPOCH, 2, NOW_US)
    made.unroll()
    assert plain(found.batch) == plain(made)


def test_a_beginning_says_who_leads_and_whose_the_store_is() -> None:
    entries = [
        encode_begin(1, 3, NOW_US, "a", "tmqp://a", "the-store"),
        encode_end(2, 3, NOW_US + 1),
    ]
    begin, end = read_all(entries, 0, 0)
    assert (begin.kind, begin.node, begin.address, begin.store) == (
        BEGIN, "a", "tmqp://a", "the-store",
    )  # fmt: skip
    assert (end.kind, end.number, end.now_us) == (END, 2, NOW_US + 1)


def test_an_empty_write_is_a_write() -> None:
    (found,) = read_all(logged(StoreBatch()))
    assert plain(found.batch) == plain(StoreBatch())


def test_transient_messages_are_left_out_and_their_sequences_stay_used() -> None:
    made = batch(
        appended={
            1: [message(3, b"kept"), message(4, b"local", FLAG_TRANSIENT)],
            2: [message(8, b"local", FLAG_TRANSIENT), message(9, b"kept")],
            3: [message(7, b"local", FLAG_TRANSIENT)],
        },
    )
    made.runs[4] = [run_of(5, [b"local", b"too"], FLAG_TRANSIENT)]
    (found,) = read_all(logged(made))
    assert {key: [each.body for each in some] for key, some in found.batch.appended.items()} == {
        1: [b"kept"], 2: [b"kept"],
    }  # fmt: skip
    assert found.used == {1: 4, 3: 7, 4: 6}


# --- Parts ---------------------------------------------------------------------------------------


def test_a_large_write_has_several_entries_none_of_which_is_too_large() -> None:
    body = bytes(range(256)) * 4096
    made = batch(appended={1: [message(n, body) for n in (1, 2, 3)]})
    entries = logged(made, 10)
    assert [entry.number for entry in entries] == [10, 11, 12, 13]
    assert max(len(entry.data) for entry in entries) == MOST_ENTRY_BYTES
    reader = LogReader(9, EPOCH)
    for entry in entries[:-1]:
        assert reader.read(entry) is None
        assert reader.applied == 9, "a server that ends here reads the first part again"
    found = reader.read(entries[-1])
    assert found is not None
    assert (found.first, found.number, reader.applied) == (10, 13, 13)
    assert plain(found.batch) == plain(made)


def test_a_write_whose_leader_ended_between_two_parts_does_not_count() -> None:
    body = bytes(MOST_ENTRY_BYTES)
    first, _ = logged(batch(appended={1: [message(1, body)]}), 2)
    after = encode_begin(3, EPOCH + 1, NOW_US, "b", "tmqp://b", "the-store")
    (write,) = encode_logged(4, EPOCH + 1, NOW_US, payload_of(batch(settled={1: [7]})))
    begin, found = read_all([first, after, write])
    assert (begin.kind, found.batch.settled) == (BEGIN, {1: [7]})


def test_a_write_that_no_server_could_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmqp_server.storage.logged.MOST_WRITE_BYTES", 1000)
    with pytest.raises(ValueError, match="bytes at once are more than the 1000"):
        payload_of(batch(appended={1: [message(1, bytes(1000))]}))
    assert MOST_WRITE_BYTES > MOST_ENTRY_BYTES


# --- What is not accepted ------------------------------------------------------------------------


def refused(entries: list[LogEntry], number: int = 1, epoch: int = EPOCH) -> str:
    with pytest.raises(DamageError) as caught:
        read_all(entries, number, epoch)
    return str(caught.value)


def test_entries_come_in_order() -> None:
    entries = [*logged(StoreBatch(), 2), *logged(StoreBatch(), 4)]
    assert refused(entries) == "entry 4 of the log follows entry 2"


def test_an_entry_under_another_number_than_its_own_is_damaged() -> None:
    (entry,) = logged(StoreBatch(), 3)
    assert refused([LogEntry(2, entry.data)]) == "entry 2 of the log is damaged"


def test_an_older_epoch_does_not_follow_a_newer_one() -> None:
    assert refused(logged(StoreBatch()), epoch=6) == (
        "entry 2 of the log has the epoch 5, behind 6"
    )


def test_a_new_epoch_begins_with_a_beginning_and_only_that_begins_one() -> None:
    assert "has the epoch 5, behind 4" in refused(logged(StoreBatch()), epoch=4)
    begin = encode_begin(2, EPOCH, NOW_US, "a", "", "s")
    assert "has the epoch 5, behind 5" in refused([begin])


def test_a_part_follows_the_part_before_it() -> None:
    first, second = logged(batch(appended={1: [message(1, bytes(MOST_ENTRY_BYTES))]}))
    moved = changed(second, 16, (2).to_bytes(8, "little"))
    assert refused([LogEntry(2, moved.data)]) == "entry 2 of the log is part 1 of a write"
    again = changed(first, 16, (3).to_bytes(8, "little"))
    assert refused([first, LogEntry(3, again.data)]) == "entry 3 of the log is part 0 of a write"


@pytest.mark.parametrize(
    ("at", "data", "reason"),
    [
        (0, b"X", "is not one of this server"),
        (4, b"\3", "a newer server wrote it"),
        (6, b"\11", "is of a kind that is not known here"),
        (44, b"\0", "is of a kind that is not known here"),
        (48, b"\1", "has a wrong length"),
        (52, b"\1", "a block has a head of 64 bytes"),
        (60, b"\1", "is cut off"),
    ],
)
def test_what_no_leader_writes_is_damage(at: int, data: bytes, reason: str) -> None:
    (entry,) = logged(StoreBatch())
    assert reason in refused([changed(entry, at, data)])


def test_a_change_of_a_kind_to_come_is_named() -> None:
    with pytest.raises(DamageError, match="changes of the kind 12 are not known here"):
        decode_changes(b"\x0c\0\0\0\0\0\0\0")


@given(st.data())
def test_a_flipped_bit_is_noticed(data: st.DataObject) -> None:
    (entry,) = logged(everything())
    bit = data.draw(st.integers(0, len(entry.data) * 8 - 1))
    broken = bytearray(entry.data)
    broken[bit // 8] ^= 1 << bit % 8
    assert refused([LogEntry(entry.number, bytes(broken))])


@given(st.binary(max_size=200))
def test_no_bytes_are_more_than_damage(data: bytes) -> None:
    (entry,) = logged(StoreBatch())
    head = entry.data[:8] + (48 + len(data)).to_bytes(4, "little") + entry.data[12:48]
    with suppress(DamageError):
        read_all([changed(LogEntry(2, head + data), 0, b"")])
