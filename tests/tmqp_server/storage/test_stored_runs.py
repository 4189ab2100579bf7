"""Runs as they are kept: the same bytes, and the same left over, as of single messages."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmqp.block_writing import encode_block
from tmqp_server.storage.pending import GatheredWrites
from tmqp_server.storage.port import StoreBatch
from tmqp_server.storage.records import encode_runs
from tmqp_server.storage.stored_runs import StoredRun, find_run, unrolled
from tmqp_server.storage.writes import encode_write, read_writes

TURN = b"12345678"


def run_of(first: int, sizes: list[int], count: int = 0) -> StoredRun:
    """A run; with a count all of its messages have the one size."""
    sizes_of_all = sizes * count if count else sizes
    bodies = b"".join([bytes([at % 251]) * size for at, size in enumerate(sizes_of_all)])
    offsets = [size // 2 for size in sizes]
    return StoredRun(first, len(sizes_of_all), 1_000 + first, 0x0102, 1, bodies, sizes, offsets)


@st.composite
def runs(draw: st.DrawFn) -> list[StoredRun]:
    found: list[StoredRun] = []
    first = draw(st.integers(1, 1 << 40))
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            run = run_of(first, [draw(st.integers(0, 40))], draw(st.integers(1, 9)))
        else:
            run = run_of(first, draw(st.lists(st.integers(0, 40), min_size=2, max_size=9)))
        found.append(run)
        first = run.last + draw(st.integers(1, 3))
    return found


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(0, 30), st.data())
def test_a_run_is_cut_into_what_fits(sizes: list[int], count: int, data: st.DataObject) -> None:
    run = run_of(5, sizes[:1] if count else sizes, count)
    run.expires_us = 77
    most, most_bytes = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 200))
    pieces = run.cut(most, most_bytes)
    assert [piece.first for piece in pieces[1:]] == [piece.last + 1 for piece in pieces[:-1]]
    for piece in pieces:
        assert piece.count <= most
        assert piece.count == 1 or len(piece.bodies) <= most_bytes
    for piece, following in pairwise(pieces):
        more = len(following.messages()[0].body)
        assert piece.count == most or len(piece.bodies) + more > most_bytes, "it was full"
    assert encode_runs(7, pieces) == encode_runs(7, [run]) == encode_block(7, run.messages())
    assert {each.expires_us for each in run.messages()} == {77}


@given(runs())
def test_a_block_of_runs_is_that_of_their_messages(found: list[StoredRun]) -> None:
    """So whatever was shown of writes and power cuts is true of them."""
    assert encode_runs(7, found) == encode_block(7, unrolled(None, found))


@given(runs(), st.data())
def test_what_is_settled_in_any_order_is_gone(found: list[StoredRun], data: st.DataObject) -> None:
    sequences = [each.sequence for each in unrolled(None, found)]
    order = data.draw(st.permutations(sequences))
    gone: list[int] = []
    for sequence in order:
        run = find_run(found, sequence)
        assert run is not None
        assert not run.is_over
        assert run.settle(sequence)
        assert not run.settle(sequence)
        gone.append(sequence)
        left = [each.sequence for each in unrolled(None, found)]
        assert left == [each for each in sequences if each not in gone]
        assert sorted([each for some in found for each in some.settled()]) == sorted(gone)
    assert all(run.is_over for run in found)
    assert find_run(found, sequences[0] - 1) is None
    assert find_run(found, sequences[-1] + 1) is None


@given(runs(), st.data(), st.sampled_from([0, -1, 1 << 41]), st.booleans())
def test_recent_writes_keep_the_same_of_runs(
    found: list[StoredRun], data: st.DataObject, last: int, mixed: bool
) -> None:
    """Of a queue that is new, that keeps what is settled, and that knows the sequences already."""
    sequences = [each.sequence for each in unrolled(None, found)]
    settled = data.draw(st.lists(st.sampled_from(sequences), unique=True))
    together, single, then = StoreBatch(), StoreBatch(), StoreBatch()
    single.appended[7] = unrolled(None, found)
    together.runs[7] = found
    if mixed and len(found) > 1:
        together.runs[7] = found[1:]
        together.appended[7] = found[0].messages()
    then.settled[7] = settled
    assert encode_write(3, TURN, 5, together) == encode_write(3, TURN, 5, single)
    made: list[str] = []
    for batch in (together, single):
        pending = GatheredWrites()
        pending.add(batch, {7: last})
        pending.add(then, {7: last})
        left = pending.batch()
        kept = [repr(each) for each in left.appended.get(7, [])]
        # That a message is settled which nobody has need not be said.
        needed = set(left.settled.get(7, [])) if last else set()
        made.append(repr([kept, sorted(needed), pending.tops]))
        assert (pending.weight == 0) == (set(settled) == set(sequences) and not last)
    assert made[0] == made[1]


def test_a_write_of_a_run_settled_in_part_is_read_as_that() -> None:
    run = run_of(1, [10], 5)
    run.settle(2)
    batch = StoreBatch()
    batch.runs[7] = [run]
    batch.settled[7] = run.settled()
    writes, problems = read_writes(encode_write(1, TURN, 5, batch), 0, {TURN})
    assert not problems
    pending = GatheredWrites()
    pending.add(writes[0].batch, {7: 0})
    assert [each.sequence for each in pending.batch().appended[7]] == [1, 3, 4, 5]


def test_what_has_no_place_in_the_format_is_refused() -> None:
    with pytest.raises(ValueError, match="one message"):
        encode_runs(7, [])
    with pytest.raises(ValueError, match="does not follow"):
        encode_runs(7, [run_of(5, [1], 2), run_of(6, [1], 2)])
    with pytest.raises(ValueError, match="do not fit"):
        run_of(1, [4], 2).index((1 << 32) - 4)
    with pytest.raises(ValueError, match=r"not fit|too large"):  # as the build says it
        encode_runs(7, [StoredRun((1 << 64) - 1, 2, 5, 0, 0, b"ab", [1], [0])])
    with pytest.raises(ValueError, match="does not fit"):
        encode_runs(1 << 64, [run_of(1, [1], 2)])
