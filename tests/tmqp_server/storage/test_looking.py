"""What readers get of a database: whole blocks as they are, others cut to what is wanted."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.tmqp_server.storage.stores import EVER, NOW_US, batch, message, with_queue
from tmqp.block_columns import (
    COLUMN_ATTEMPTS,
    COLUMN_TIMESTAMP,
    COLUMN_VALUE,
    block_columns,
)
from tmqp.blocks import (
    AS_COLUMNS,
    AS_INDEXES,
    AS_REFERENCES,
    DOOR_NATIVE,
    FLAG_DOOR_SHIFT,
    BlockError,
    decode_block,
    head_of,
    index_end,
    split_indexes,
)
from tmqp.references import REFERENCE_SIZE, database_mark, is_reference, read_reference
from tmqp_server.storage.port import DamageError, Note, Retention
from tmqp_server.storage.sqlite.store import BlockStore

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 1_000
#: Messages of one block.
COUNT = 300


def filled(folder: Path, blocks: int = 4, *, settled: bool = True) -> BlockStore:
    """A queue that retains all, each block with its own messages."""
    made = BlockStore(folder, floor_bytes=0)
    with_queue(made, 1, Retention(1 << 40))
    for start in range(1, blocks * COUNT + 1, COUNT):
        sequences = range(start, start + COUNT)
        part = [
            message(each, each.to_bytes(4, "big") * (SIZE // 4), DOOR_NATIVE << FLAG_DOOR_SHIFT)
            for each in sequences
        ]
        made.write(
            batch(appended={1: part}, settled={1: list(sequences)} if settled else {}), NOW_US
        )
    return made


def on_disk(folder: Path) -> list[bytes]:
    db = sqlite3.connect(folder / "messages.sqlite3")
    found = [row[0] for row in db.execute("SELECT block FROM bodies ORDER BY id")]
    db.close()
    return found


def ranges(blocks: list[bytes]) -> list[tuple[int, int]]:
    for each in blocks:
        assert decode_block(each).count == head_of(each)[3]
    return [head_of(each)[1:3] for each in blocks]


@pytest.mark.parametrize("settled", [False, True])
def test_whole_blocks_go_out_as_they_are_whether_owed_or_not(tmp_path: Path, settled: bool) -> None:
    made = filled(tmp_path, settled=settled)
    blocks = made.read(1, 0, EVER, EVER, EVER)
    made.close(clean=True)
    assert blocks == on_disk(tmp_path)
    assert ranges(blocks) == [(1, 300), (301, 600), (601, 900), (901, 1_200)]


def test_what_is_wanted_of_a_block_is_cut_out(tmp_path: Path) -> None:
    made = filled(tmp_path)
    blocks = made.read(1, 250, 950, EVER, EVER)
    assert ranges(blocks) == [(250, 300), (301, 600), (601, 900), (901, 950)]
    for block in map(decode_block, blocks):
        for each in block.messages():
            assert each.body == each.sequence.to_bytes(4, "big") * (SIZE // 4)
    assert ranges(made.read(1, 5, 5, EVER, EVER)) == [(5, 5)]
    assert made.read(1, 1_201, EVER, EVER, EVER) == []
    made.close(clean=True)


@pytest.mark.parametrize(
    ("first", "last"), [(0, EVER), (250, 950), (301, 600), (5, 5), (1_201, EVER)]
)
def test_indexes_are_those_of_the_same_blocks(tmp_path: Path, first: int, last: int) -> None:
    made = filled(tmp_path)
    made.write(batch(notes=[Note(1, 700, 3, 2)]), NOW_US)
    for _ in "ab":  # the second time some blocks are remembered
        whole = made.read(1, first, last, EVER, EVER)
        alone = made.read(1, first, last, EVER, EVER, form=AS_INDEXES)
        assert alone == [each[: index_end(head_of(each)[3])] for each in whole]
    made.close(clean=True)


def test_references_name_the_blocks_that_would_be_sent(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.write(batch(notes=[Note(1, 700, 3, 2)]), NOW_US)
    whole = made.read(1, 250, EVER, EVER, EVER)
    found = made.read(1, 250, EVER, EVER, EVER, form=AS_REFERENCES)
    kinds = [is_reference(each, 0) for each in found]
    # A part of a block, and one about whose messages something was noted, are sent themselves.
    assert kinds == [False, True, False, True]
    made.close(clean=True)
    db = sqlite3.connect(tmp_path / "messages.sqlite3")
    for each, block in zip(found, whole, strict=True):
        if not is_reference(each, 0):
            assert each == block
            continue
        reference = read_reference(each, 0)
        query = "SELECT block FROM bodies WHERE id = ?"
        assert db.execute(query, (reference.number,)).fetchone() == (block,)
        assert head_of(each) == head_of(block)
        (store_id,) = db.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
        file = (tmp_path / "messages.sqlite3").stat()
        assert reference.mark == database_mark(store_id, file.st_dev, file.st_ino)
    db.close()


def test_references_take_next_to_no_room(tmp_path: Path) -> None:
    made = filled(tmp_path)
    for max_bytes, expected in ((4 * REFERENCE_SIZE, 4), (4 * REFERENCE_SIZE - 1, 3), (1, 1)):
        found = made.read(1, 0, EVER, EVER, max_bytes, form=AS_REFERENCES)
        assert len(found) == expected
    assert len(made.read(1, 0, EVER, 2 * COUNT, EVER, form=AS_REFERENCES)) == 2
    made.close(clean=True)


@pytest.mark.parametrize("columns", [COLUMN_VALUE, COLUMN_TIMESTAMP | COLUMN_ATTEMPTS, 0])
def test_columns_are_those_of_the_same_blocks(tmp_path: Path, columns: int) -> None:
    made = filled(tmp_path)
    made.write(batch(notes=[Note(1, 700, 3, 2)]), NOW_US)
    for first, last in ((0, EVER), (250, 950), (5, 5), (1_201, EVER)):
        whole = made.read(1, first, last, EVER, EVER)
        alone = made.read(1, first, last, EVER, EVER, form=AS_COLUMNS + columns)
        assert alone == [block_columns(decode_block(each), columns) for each in whole]
    made.close(clean=True)


def test_columns_of_a_damaged_block_are_damage(tmp_path: Path) -> None:
    """The columns' own checksum must not hide it."""
    made = filled(tmp_path)
    made.close(clean=True)
    db = sqlite3.connect(tmp_path / "messages.sqlite3")
    (block,) = db.execute("SELECT block FROM bodies WHERE id = 2").fetchone()
    broken = block[:-3] + bytes([block[-3] ^ 1]) + block[-2:]
    db.execute("UPDATE bodies SET block = ? WHERE id = 2", (broken,))
    db.commit()
    db.close()
    again = BlockStore(tmp_path, floor_bytes=0)
    again.recover()
    with pytest.raises(DamageError, match="messages 301 to 600"):
        again.read(1, 0, EVER, EVER, EVER, form=AS_COLUMNS + COLUMN_VALUE)
    again.close(clean=True)


def test_bodies_that_are_not_sent_do_not_count(tmp_path: Path) -> None:
    made = filled(tmp_path)
    some = index_end(COUNT)
    for max_bytes, expected in ((2 * some, 600), (3 * some - 1, 600), (some, 300), (1, 1)):
        blocks = made.read(1, 0, EVER, EVER, max_bytes, form=AS_INDEXES)
        assert sum(map(len, blocks)) <= max(max_bytes, index_end(1))
        assert sum(each.count for each in split_indexes(b"".join(blocks))) == expected
    made.close(clean=True)


def test_an_answer_ends_with_a_block_where_another_would_be_cut(tmp_path: Path) -> None:
    made = filled(tmp_path)
    whole = len(made.read(1, 1, COUNT, EVER, EVER)[0])
    bounds = [
        (EVER, 2 * whole, [(1, 300), (301, 600)]),
        (EVER, 3 * whole - 1, [(1, 300), (301, 600)]),
        (EVER, 2 * whole - 1, [(1, 300)]),
        (EVER, whole + SIZE * 2, [(1, 300)]),
        (599, EVER, [(1, 300)]),
        (700, EVER, [(1, 300), (301, 600)]),
        (299, EVER, [(1, 299)]),  # what comes first is cut, whatever its size
        (1, EVER, [(1, 1)]),
        (EVER, 1, [(1, 1)]),
    ]
    for limit, max_bytes, expected in bounds:
        blocks = made.read(1, 0, EVER, limit, max_bytes)
        assert ranges(blocks) == expected, (limit, max_bytes)
        assert sum(map(len, blocks)) <= max(max_bytes, SIZE + 120)
    made.close(clean=True)


def test_all_is_read_by_going_on_whatever_the_bounds(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.write(batch(appended={1: [message(n) for n in (1_203, 1_207)]}), NOW_US)
    made.write(batch(appended={1: [message(n) for n in (1_204, 1_205)]}), NOW_US)
    for limit, max_bytes in ((7, EVER), (EVER, 5_000), (1_000, 400_000), (EVER, EVER), (1, 1)):
        found: list[int] = []
        first = 0
        while blocks := made.read(1, first, EVER, limit, max_bytes):
            for block in map(decode_block, blocks):
                found += [each.sequence for each in block.messages()]
            first = found[-1] + 1
        assert found == [*range(1, 1_201), 1_203, 1_204, 1_205, 1_207]
    made.close(clean=True)


def test_what_was_noted_is_in_the_answer(tmp_path: Path) -> None:
    made = filled(tmp_path, settled=False)
    made.write(batch(notes=[Note(1, 400, 3, 2)]), NOW_US)
    blocks = made.read(1, 0, EVER, EVER, EVER)
    (second,) = [each for each in map(decode_block, blocks) if each.first == 301]
    noted = second.message(second.find(400))
    assert (noted.attempts, noted.put_backs) == (3, 2)
    made.close(clean=True)


def test_who_reads_a_whole_block_finds_the_damage_in_it(tmp_path: Path) -> None:
    made = filled(tmp_path)
    made.close(clean=True)
    db = sqlite3.connect(tmp_path / "messages.sqlite3")
    (block,) = db.execute("SELECT block FROM bodies WHERE id = 2").fetchone()
    db.execute("UPDATE bodies SET block = ? WHERE id = 2", (block[:-1] + b"!",))
    short = on_disk(tmp_path)[2][:-1]
    db.execute("UPDATE bodies SET block = ? WHERE id = 3", (short,))
    db.commit()
    db.close()
    made = BlockStore(tmp_path, floor_bytes=0)
    made.recover()
    _, damaged = made.read(1, 0, 600, EVER, EVER)
    with pytest.raises(BlockError, match="the checksum of the bodies does not match"):
        decode_block(damaged)
    (untouched,) = made.read(1, 301, 600, EVER, EVER, form=AS_INDEXES)
    assert split_indexes(untouched)[0].first == 301, "the body alone is damaged"
    with pytest.raises(DamageError, match="messages 301 to 600 of queue 1"):
        made.read(1, 302, 600, EVER, EVER)
    with pytest.raises(DamageError, match="messages 601 to 900 of queue 1"):
        made.read(1, 601, EVER, EVER, EVER)
    made.close(clean=True)
