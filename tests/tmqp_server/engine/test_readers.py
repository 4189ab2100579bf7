"""Readers in the engine: what is asked of the storage, what is answered, and what is bounded."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import (
    Block,
    Blocks,
    CommitCursor,
    Disconnect,
    ListCursors,
    ListOffsets,
    NameStore,
    OffsetsFound,
    OpenCursor,
    Push,
    RangeRead,
    ReadIndex,
    ReadRange,
    RemoveCursor,
    RemoveQueue,
    SplitRange,
    Unblock,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.snapshots import CursorSnapshot, KeptOffsets, OffsetsSnapshot
from tmqp_server.engine.options import QueueChanges

NOTHING = KeptOffsets(0, 0, 0, 0, 0)
KEPT = QueueChanges(durable=True, retain_for_readers=True)


def ready(limits: EngineLimits | None = None, changes: QueueChanges = KEPT) -> KeptWorld:
    """A world with queue 1 of channel ``ch``, three messages in it, and two clients."""
    world = KeptWorld(limits)
    world.create(changes)
    world.connect("a", "b")
    for name in ("m1", "m2", "m3"):
        world.push(name)
    world.sync()
    return world


def a(world: World) -> int:
    return world.numbers["a"]


def read(
    world: World, first: int = 0, last: int = 0, limit: int = 0, max_bytes: int = 0
) -> list[str]:
    return world.step(ReadRange(a(world), "read", "CH", 1, first, last, limit, max_bytes))


def body(world: World) -> object:
    (reply,) = [each for each in world.last if isinstance(each, Reply)]
    return reply.body


def test_a_range_is_asked_of_the_storage_and_its_bytes_are_passed_on() -> None:
    world = ready()
    assert read(world, 2) == ["read 1 from 1: 100000 from 2 to 3, end 3"]
    assert world.step(RangeRead(1, 0, Blocks([b"opaque"]))) == ["a read: 0 with body"]
    found = body(world)
    assert isinstance(found, Blocks)
    assert (found.pieces, found.size) == ([b"opaque"], 6)
    assert read(world, 1, 2, limit=7) == ["read 2 from 1: 7 from 1 to 2, end 3"]
    assert world.step(RangeRead(2, 503, None)) == ["a read: 503"]
    assert read(world, last=99) == ["read 3 from 1: 100000 from 0 to 3, end 3"]
    assert world.step(RangeRead(3, 416, None, KeptOffsets(3, 3, 1, 5, 7))) == [
        "a read: 416 with body"
    ]
    answer = body(world)
    assert isinstance(answer, OffsetsSnapshot)
    assert (answer.earliest, answer.latest, answer.count, answer.bytes) == (3, 3, 1, 5)


def test_an_index_is_asked_of_the_storage_in_the_same_line_as_ranges() -> None:
    world = ready()
    me = a(world)
    assert world.step(ReadIndex(me, "index", "CH", 1, 2, 3)) == [
        "read 1 from 1: 100000 from 2 to 3, end 3 as 1"
    ]
    assert read(world, 1) == []
    assert world.step(RangeRead(1, 0, Blocks([b"heads"]))) == ["a index: 0 with body"]
    assert world.finish() == ["read 2 from 1: 100000 from 1 to 3, end 3"]
    world.step(RangeRead(2, 0))
    assert world.step(ReadIndex(me, "index", "CH", 1, 4)) == ["a index: 0 with body"]


def test_what_comes_next_costs_no_read_while_there_is_nothing() -> None:
    world = ready()
    assert read(world, 4) == ["a read: 0 with body"]
    nothing = body(world)
    assert isinstance(nothing, Blocks)
    assert nothing.size == 0
    assert read(world, 5) == ["read 1 from 1: 100000 from 5 to 3, end 3"]


def test_an_answer_to_nothing_is_counted_and_one_to_the_dead_is_dropped() -> None:
    world = ready()
    before = world.broker.statistics().unknown_tickets
    assert world.step(RangeRead(9, 0, None)) == []
    assert world.step(OffsetsFound(9, 0, [])) == []
    assert world.broker.statistics().unknown_tickets == before + 2
    read(world, 1)
    world.step(ListOffsets(a(world), "list", ""))
    world.step(Disconnect(a(world)))
    assert world.step(RangeRead(1, 0, Blocks([b"opaque"]))) == []
    assert world.step(OffsetsFound(2, 0, [NOTHING])) == []


def test_a_queue_that_goes_meanwhile_is_not_found() -> None:
    world = ready()
    read(world, 1)
    world.step(ListOffsets(a(world), "list", ""))
    world.step(OpenCursor(a(world), "open", "ch", 1, "r", True))
    world.step(RemoveQueue(world.numbers["b"], "gone", "ch", 1))
    assert world.step(RangeRead(1, 0, Blocks([b"opaque"]))) == ["a read: 404"]
    assert world.step(OffsetsFound(2, 0, [NOTHING])) == ["a list: 0 with body"]
    assert body(world) == []
    assert world.step(OffsetsFound(3, 0, [NOTHING])) == ["a open: 404"]
    for command in (
        ReadRange(a(world), "r", "ch", 1),
        OpenCursor(a(world), "r", "ch", 1, "r", True),
        CommitCursor(a(world), "r", "ch", 1, "r", 0),
        ListCursors(a(world), "r", "ch", 1),
        RemoveCursor(a(world), "r", "ch", 1, "r"),
    ):
        assert world.step(command) == ["a r: 404"]


def test_offsets_where_nothing_is_kept_say_where_it_goes_on() -> None:
    world = ready()
    world.step(NameStore("disk"))
    assert world.step(ListOffsets(a(world), "list", "*c*", 1)) == ["find 1 [1]"]
    world.step(OffsetsFound(1, 0, [NOTHING]))
    found = body(world)[0]  # type: ignore[index]
    assert (found.earliest, found.latest, found.count) == (4, 3, 0)
    assert (found.channel, found.queue_id, found.incarnation) == ("ch", 1, "disk-1")
    assert world.step(ListOffsets(a(world), "list", "", 2)) == ["find 2 []"]
    assert world.step(ListOffsets(a(world), "list", "", None, frozenset())) == ["find 3 []"]
    assert world.step(OffsetsFound(2, 503, [])) == ["a list: 503"]


def test_a_cursor_is_told_of_when_it_is_safe() -> None:
    world = ready()
    (kept,) = world.step(CommitCursor(a(world), "commit", "ch", 1, "r", 2))
    assert kept.startswith("StoreCursor")
    assert world.write() == ["a commit: 0 with body"]
    where = body(world)
    assert isinstance(where, CursorSnapshot)
    assert (where.name, where.sequence) == ("r", 2)
    assert world.step(CommitCursor(a(world), "commit", "ch", 1, "r", 1)) == [
        "a commit: 0 with body"
    ]
    assert world.step(CommitCursor(a(world), "commit", "ch", 1, "r", 4)) == ["a commit: 416"]
    world.step(CommitCursor(a(world), "commit", "ch", 1, "r", 3))
    assert world.write(fails="full") == ["a commit: 503"]


def test_opening_at_the_earliest_pins_before_it_looks() -> None:
    world = ready()
    kept, asked = world.step(OpenCursor(a(world), "open", "ch", 1, "r", True))
    assert kept.startswith("StoreCursor")
    assert asked == "find 1 [1]"
    assert world.write() == []
    (kept,) = world.step(OffsetsFound(1, 0, [KeptOffsets(3, 3, 1, 5, 7)]))
    assert kept.startswith("StoreCursor")
    assert world.write() == ["a open: 0 with body"]
    where = body(world)
    assert isinstance(where, CursorSnapshot)
    assert where.sequence == 2
    assert world.step(OpenCursor(a(world), "open", "ch", 1, "r", False)) == ["a open: 0 with body"]
    world.step(OpenCursor(a(world), "open", "ch", 1, "late", False))
    world.write()
    assert body(world).sequence == 3  # type: ignore[attr-defined]
    world.step(OpenCursor(a(world), "open", "ch", 1, "ill", True))
    world.write()
    assert world.step(OffsetsFound(2, 503, [])) == ["a open: 503"]


def test_a_range_behind_a_cursor_is_held_unless_retention_is_bounded() -> None:
    world = ready()
    world.step(CommitCursor(a(world), "commit", "ch", 1, "r", 1))
    assert read(world, 1) == ["read 1 from 1: 100000 from 1 to 3, end 3"]
    world.step(RangeRead(1, 0))
    assert read(world, 2) == ["read 2 from 1: 100000 from 2 to 3, end 3 held"]
    bounded = ready(changes=QueueChanges(durable=True, retain_for_readers=True, retain_time_ms=5))
    bounded.step(CommitCursor(a(bounded), "commit", "ch", 1, "r", 1))
    assert read(bounded, 2) == ["read 1 from 1: 100000 from 2 to 3, end 3"]


@pytest.mark.parametrize("stop", ["restart", "crash"])
def test_cursors_and_what_is_kept_for_them_come_back(stop: str) -> None:
    world = ready()
    world.step(CommitCursor(a(world), "commit", "ch", 1, "r", 1))
    world.step(CommitCursor(a(world), "commit", "ch", 1, "gone", 1))
    world.step(RemoveCursor(a(world), "drop", "ch", 1, "gone"))
    assert world.write() == ["a commit: 0 with body", "a commit: 0 with body", "a drop: 0"]
    getattr(world, stop)()
    (queue,) = world.broker.queues()
    assert queue.cursors == {"r": 1}


def test_a_queue_is_known_by_its_incarnation() -> None:
    world = ready()
    world.step(NameStore("disk"))
    me = a(world)
    for wrong in ("disk-2", "disc-1", "1"):
        for command in (
            ReadRange(me, "r", "ch", 1, incarnation=wrong),
            OpenCursor(me, "r", "ch", 1, "r", True, wrong),
            CommitCursor(me, "r", "ch", 1, "r", 1, wrong),
            ListCursors(me, "r", "ch", 1, wrong),
            RemoveCursor(me, "r", "ch", 1, "r", wrong),
        ):
            assert world.step(command) == ["a r: 409"]
    assert world.step(ListCursors(me, "r", "ch", 1, "disk-1")) == ["a r: 0 with body"]


def test_names_of_cursors() -> None:
    world = ready(EngineLimits(max_name_bytes=5))
    for name in ("", "abcdef", "äää", "a\x9b", "\u202e"):
        assert world.step(CommitCursor(a(world), "r", "ch", 1, name, 1)) == ["a r: 400"]
        assert world.step(OpenCursor(a(world), "r", "ch", 1, name, True)) == ["a r: 400"]
    assert world.step(RemoveCursor(a(world), "r", "ch", 1, "r")) == ["a r: 404"]


def test_numbers_below_zero_are_no_numbers() -> None:
    world = ready()
    assert read(world, -1) == ["a read: 400"]
    assert read(world, 0, -1) == ["a read: 400"]
    assert read(world, limit=-1) == ["a read: 400"]
    assert world.step(CommitCursor(a(world), "r", "ch", 1, "r", -1)) == ["a r: 400"]


def test_without_a_storage() -> None:
    world = World()
    world.create()
    world.connect("a")
    world.step(Push(a(world), "m", "ch", 1, False, False, 1, "w"))
    for command in (
        ListOffsets(a(world), "r", ""),
        ReadRange(a(world), "r", "ch", 1),
        OpenCursor(a(world), "r", "ch", 1, "r", True),
        CommitCursor(a(world), "r", "ch", 1, "r", 0),
        ListCursors(a(world), "r", "ch", 1),
        RemoveCursor(a(world), "r", "ch", 1, "r"),
    ):
        assert world.step(command) == ["a r: 501"]


# --- Bounds --------------------------------------------------------------------------------------


def test_open_questions_are_bounded_for_each_and_for_all() -> None:
    world = ready(EngineLimits(max_reads=3, max_reads_per_session=2))
    me, other = a(world), world.numbers["b"]
    assert read(world, 1)
    assert world.step(SplitRange(me, "split", "ch", 1))
    assert read(world, 3) == [], "it waits for the one before"
    assert read(world, 3) == []
    assert read(world, 3) == ["a read: 503"]
    assert world.step(OpenCursor(me, "r", "ch", 1, "r", True)) == ["a r: 503"]
    assert world.step(ListOffsets(me, "r", "")) == ["a r: 503"]
    assert world.step(ListOffsets(other, "r", "")) == ["find 3 [1]"]
    assert world.step(ListOffsets(other, "r", "")) == ["b r: 503"]
    world.step(RangeRead(1, 0, None))
    assert world.finish() == ["read 4 from 1: 100000 from 3 to 3, end 3"]
    world.step(RangeRead(4, 0, None))
    assert world.finish() == ["read 5 from 1: 100000 from 3 to 3, end 3"]


def test_ranges_of_one_client_are_read_one_by_one_and_only_while_it_reads() -> None:
    world = ready()
    me = a(world)
    assert read(world, 1) == ["read 1 from 1: 100000 from 1 to 3, end 3"]
    assert read(world, 2) == []
    assert read(world, 9, limit=-1) == []
    assert read(world, 3) == []
    # Others do not wait for it.
    other = ReadRange(world.numbers["b"], "read", "ch", 1)
    assert world.step(other) == ["read 2 from 1: 100000 from 0 to 3, end 3"]
    assert world.step(RangeRead(1, 0, Blocks([b"1"]))) == ["a read: 0 with body"]
    world.step(Block(me))
    assert world.finish() == [], "it is to read what it has first"
    world.step(Unblock(me))
    assert world.finish() == ["read 3 from 1: 100000 from 2 to 3, end 3"]
    world.step(Block(me))
    assert world.step(RangeRead(3, 0, Blocks([b"2"]))) == ["a read: 0 with body"]
    assert world.finish() == []
    assert read(world, 1) == [], "and what comes now has to wait as well"
    world.step(Unblock(me))
    # One is refused, and the next one is asked for at once.
    assert world.finish() == ["a read: 400", "read 4 from 1: 100000 from 3 to 3, end 3"]
    world.step(RangeRead(4, 0))
    world.step(RangeRead(2, 0))
    world.step(Disconnect(me))
    assert world.finish() == []
    assert not world.broker._readers._lines._lines


def test_answers_are_bounded() -> None:
    world = ready(EngineLimits(max_read_messages=2, max_read_bytes=1_024))
    read(world, 1, limit=9)
    (asked,) = world.last
    assert (asked.limit, asked.max_bytes) == (2, 1_024)  # type: ignore[attr-defined]
    world.step(RangeRead(1, 0))
    read(world, 1, max_bytes=512)
    (asked,) = world.last
    assert (asked.limit, asked.max_bytes) == (2, 512)  # type: ignore[attr-defined]
    world.step(RangeRead(2, 0))
    read(world, 1, max_bytes=1)
    (asked,) = world.last
    assert (asked.limit, asked.max_bytes) == (2, 1)  # type: ignore[attr-defined]


def test_queues_and_cursors_are_bounded() -> None:
    world = ready(EngineLimits(max_queues_per_read=2, max_cursors_per_queue=2))
    world.create(queue_id=2)
    world.sync()
    assert world.step(ListOffsets(a(world), "r", "")) == ["find 1 [1, 2]"]
    world.create(queue_id=3)
    world.sync()
    assert world.step(ListOffsets(a(world), "r", "")) == ["a r: 482"]
    assert world.step(ListOffsets(a(world), "r", "", 3)) == ["find 2 [3]"]
    for name in ("r1", "r2", "r1"):
        world.step(CommitCursor(a(world), "r", "ch", 1, name, 1))
    assert world.step(CommitCursor(a(world), "r", "ch", 1, "r3", 1)) == ["a r: 482"]
    assert world.step(OpenCursor(a(world), "r", "ch", 1, "r3", True)) == ["a r: 482"]
