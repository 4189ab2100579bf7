"""What is put aside for transactions: the bodies, the folder, and what is left of them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.storage.gathering import Codec, Gathering
from tests.tmqp_server.storage.stores import NOW_US, batch, message, owed, queue
from tests.tmqp_server.storage.test_commits import appended, commit, laid_out, segment
from tmqp.blocks import StoredMessage
from tmqp_server.engine.commands import Segment
from tmqp_server.engine.effects import ClearStored, DropStaged, StageSegment
from tmqp_server.storage.gathered import BodyCodec, CommittedSegment, SetAside
from tmqp_server.storage.port import DamageError, StagedBody, StoreFullError
from tmqp_server.storage.sqlite import SqliteStore, room
from tmqp_server.storage.sqlite.aside import ASIDE_NAME, Aside
from tmqp_server.storage.stored_runs import StoredRun

CODEC: dict[str, BodyCodec] = {"plain": Codec()}


class Body(StagedBody):
    def __init__(self, body: bytes) -> None:
        self._body = body

    def body(self) -> bytes:
        return self._body

    def size(self) -> int:
        return len(self._body)


def told(portion: CommittedSegment) -> tuple[list[str], list[str], list[int], list[int]]:
    """All that a portion says."""
    runs: list[StoredRun] = portion.runs()
    messages: list[StoredMessage] = [] if runs else portion.messages()
    return (
        [
            f"{m.sequence} {m.flags} {m.payload_offset} {m.payload_size} {m.body!r}"
            for m in messages
        ],
        [f"{r.first} {r.count} {r.flags} {r.bodies!r} {r._payload_offsets}" for r in runs],
        portion.within(0, 1 << 40, True),
        portion.within(4, 9, False),
    )


def put_aside(some: Segment, number: int = 1) -> bytes:
    """What the storage has of a segment, of which the engine keeps the counts only."""
    aside = SetAside(CODEC, some)
    body = aside.body()
    assert aside.size() <= len(body)
    some.staging = number
    some.message_sets = []
    return body


def _loaded(portion: CommittedSegment, body: bytes) -> list[StoredMessage]:
    portion.load(body)
    return portion.messages()


# --- Bodies --------------------------------------------------------------------------------------


@given(st.lists(st.text("abc", max_size=5).map("<".__add__) | st.just("!high"), min_size=1))
def test_a_segment_comes_back_as_it_was(bodies: list[str]) -> None:
    some = segment(*bodies)
    before = told(CommittedSegment(1, CODEC, some, 3, 7, 9))
    body = put_aside(some)
    portion = CommittedSegment(1, CODEC, some, 3, 7, 9)
    assert portion.staging == 1
    assert portion.within(0, 1 << 40, True) == before[2], "known without the body"
    portion.load(body)
    assert told(portion) == before
    assert portion.size() == sum(len(each) for each in bodies)


@given(st.lists(st.integers(1, 9), min_size=1), st.booleans())
def test_runs_come_back_as_they_were(sizes: list[int], high: bool) -> None:
    some = laid_out(*sizes, high=high)
    before = told(CommittedSegment(1, CODEC, some, 3, 7, 9))
    body = put_aside(some)
    portion = CommittedSegment(1, CODEC, some, 3, 7, 9)
    portion.load(body)
    assert told(portion) == before


@given(st.lists(st.text("abc", max_size=5).map("<".__add__), min_size=1), st.data())
def test_a_body_that_is_cut_off_is_refused(bodies: list[str], data: st.DataObject) -> None:
    some = segment(*bodies)
    body = put_aside(some)
    portion = CommittedSegment(1, CODEC, some, 1, 7, 9)
    rest = body[: data.draw(st.integers(0, len(body) - 1))]
    with pytest.raises(ValueError, match=r"staged messages|does not match its head"):
        _loaded(portion, rest)


# --- The journal ---------------------------------------------------------------------------------


def test_what_is_put_aside_is_in_a_batch_before_what_drops_it() -> None:
    some = Gathering()
    held = segment("<a", "!b")
    some.change(StageSegment(4, held))
    assert some.journal.is_urgent
    first = some.journal.take()
    assert list(first.batch.staged) == [4]
    assert not first.batch.keeps()
    assert first.batch.brings()
    some.change(StageSegment(5, segment("<c")))
    some.journal.change(DropStaged([4]))
    second = some.journal.take()
    assert (list(second.batch.staged), second.batch.dropped) == ([5], [4])
    assert some.finished(first, ok=True) == (1, True, 1)
    assert some.finished(second, ok=False) == (2, False, 1)
    assert (some.journal.is_empty, some.journal.is_urgent) == (False, False)
    third = some.journal.take()
    assert (list(third.batch.staged), third.batch.dropped) == ([], [4]), "void, and owed"


def test_a_queue_is_cleared_of_what_was_put_aside_and_committed_in_the_same_batch() -> None:
    some = Gathering()
    held = segment("<a", "!b", "<c")
    body = put_aside(held, 4)
    some.change(commit(3, held))
    some.change(ClearStored(1, False, 0, 5))
    writing = some.journal.take()
    assert writing.batch.settled == {1: [3, 5]}
    (portion,) = writing.batch.portions
    portion.load(body)
    assert appended(writing) == [3, 4, 5]


# --- The folder ----------------------------------------------------------------------------------


def test_what_is_put_aside_is_for_its_owner_only(tmp_path: Path) -> None:
    aside = Aside(tmp_path)
    aside.put({1: Body(b"one"), 2: Body(b"")})
    folder = tmp_path / ASIDE_NAME
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
    assert (aside.get(1), aside.get(2)) == (b"one", b"")
    aside.drop([1, 3])
    assert [each.name for each in folder.iterdir()] == ["2"]


@pytest.mark.parametrize("place", [0, 5, 9, 17, 20])
def test_what_the_disk_has_garbled_is_refused(tmp_path: Path, place: int) -> None:
    aside = Aside(tmp_path)
    aside.put({1: Body(b"something")})
    path = tmp_path / ASIDE_NAME / "1"
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    with pytest.raises(DamageError, match="staged/1, of a transaction, is damaged"):
        aside.get(1)
    path.write_bytes(data[:-1])
    with pytest.raises(DamageError, match="is damaged"):
        aside.get(1)
    path.unlink()
    with pytest.raises(DamageError, match="is missing"):
        aside.get(1)


def test_a_server_that_was_killed_leaves_nothing_aside(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, floor_bytes=0)
    store.recover()
    staged = batch()
    staged.staged = {1: Body(b"one"), 2: Body(b"two")}
    log = (tmp_path / "recent.log").read_bytes()
    store.write(staged, NOW_US)
    assert (tmp_path / "recent.log").read_bytes() == log, "nothing is synced for it"
    store.close(clean=False)
    again = SqliteStore(tmp_path, floor_bytes=0)
    again.recover(looking=True)
    assert len(list((tmp_path / ASIDE_NAME).iterdir())) == 2, "who looks leaves no trace"
    again.close()
    last = SqliteStore(tmp_path, floor_bytes=0)
    last.recover()
    assert not (tmp_path / ASIDE_NAME).exists()
    last.close()


def test_what_finds_no_room_is_not_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path, floor_bytes=0)
    store.recover()
    store.write(batch(queue(1)), NOW_US)
    staged = batch(appended={1: [message(1)]})
    staged.staged = {1: Body(bytes(10_000_000))}
    monkeypatch.setattr(room, "free_bytes", lambda _path: 12_000_000)
    with pytest.raises(StoreFullError, match="free space"):
        store.write(staged, NOW_US)
    assert not (tmp_path / ASIDE_NAME).exists()
    assert owed(store) == []
    staged.staged = {1: Body(bytes(100_000))}
    store.write(staged, NOW_US)
    assert owed(store) == [1]
    assert [each.name for each in (tmp_path / ASIDE_NAME).iterdir()] == ["1"]
    store.close()
