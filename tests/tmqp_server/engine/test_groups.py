"""Groups in the engine: many cursors in one step, one answer when all of it is safe."""

from __future__ import annotations

from typing import Any

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import (
    Command,
    CommitCursor,
    CommitGroup,
    Disconnect,
    DropGroup,
    GroupPlace,
    KeptPart,
    ListGroups,
    NameStore,
    OffsetsFound,
    OpenGroup,
    RangeSplit,
    RemoveQueue,
    ResetGroup,
    SplitRange,
    StoredMeasured,
)
from tmqp_server.engine.effects import Reply, StoreCursors
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.snapshots import KeptOffsets
from tmqp_server.engine.options import QueueChanges

NOTHING = KeptOffsets(0, 0, 0, 0, 0)
KEPT = QueueChanges(durable=True, retain_for_readers=True)


def ready(limits: EngineLimits | None = None) -> KeptWorld:
    """Queue 1 of ``ch`` with five messages, queues 1 and 2 of ``other`` with three and none."""
    world = KeptWorld(limits)
    world.step(NameStore("disk"))
    world.create(KEPT)
    world.create(KEPT, "other", 1)
    world.create(KEPT, "other", 2)
    world.connect("a", "b")
    for number in range(5):
        world.push(f"m{number}")
    for number in range(3):
        world.push(f"o{number}", channel="other")
    world.sync()
    return world


def a(world: World) -> int:
    return world.numbers["a"]


def body(world: World) -> Any:
    (reply,) = [each for each in world.last if isinstance(each, Reply)]
    return reply.body


def where(world: World) -> list[tuple[str, int, int]]:
    """What an answer says: channel, queue, sequence of each."""
    return [(each.channel, each.queue_id, each.sequence) for each in body(world)]


def cursors(world: KeptWorld) -> list[dict[str, int]]:
    return [queue.cursors for queue in world.broker.queues()]


def stored(world: World) -> list[tuple[list[int], str, list[int]]]:
    """The cursors that the last step has stored."""
    found = [each for each in world.last if isinstance(each, StoreCursors)]
    return [(each.keys, each.cursor, each.sequences) for each in found]


def commit(world: World, *places: tuple[str, int, int], incarnation: str = "") -> list[str]:
    made = [GroupPlace(*place, incarnation) for place in places]
    return world.step(CommitGroup(a(world), "commit", "g", made))


def opened(world: KeptWorld, pattern: str = "*", earliest: bool = False) -> None:
    """Open group ``g`` behind the latest, or at the earliest where all is kept."""
    world.step(OpenGroup(a(world), "open", "g", pattern, None, earliest))
    world.write()


def test_a_group_opens_in_all_queues_that_pass_and_stays_where_it_is() -> None:
    world = ready()
    world.step(OpenGroup(a(world), "open", "g", "other", None, False))
    assert stored(world) == [([2, 3], "g", [3, 0])], "all of it is one change"
    assert world.write() == ["a open: 0 with body"]
    assert where(world) == [("other", 1, 3), ("other", 2, 0)]
    _, asked = world.step(OpenGroup(a(world), "open", "g", "*", None, True))
    assert stored(world) == [([1], "g", [0])]
    assert asked == "find 1 [1]"
    assert cursors(world) == [{"g": 0}, {"g": 3}, {"g": 0}]
    assert world.write() == []
    world.step(OffsetsFound(1, 0, [KeptOffsets(3, 5, 3, 30, 7)]))
    assert world.write() == ["a open: 0 with body"]
    assert where(world) == [("ch", 1, 2), ("other", 1, 3), ("other", 2, 0)]
    # Once more: nothing moves, and nothing is asked.
    assert world.step(OpenGroup(a(world), "open", "g", "*", None, True)) == ["a open: 0 with body"]
    assert where(world) == [("ch", 1, 2), ("other", 1, 3), ("other", 2, 0)]
    assert world.step(OpenGroup(a(world), "open", "h", "none", None, True)) == [
        "a open: 0 with body"
    ]
    assert body(world) == []


def test_a_group_opens_at_a_time() -> None:
    world = ready()
    world.step(OpenGroup(a(world), "open", "g", "*", 1, False, 5))
    world.step(OffsetsFound(1, 0, [KeptOffsets(1, 5, 5, 50, 7, at=4), KeptOffsets(1, 3, 3, 30, 7)]))
    world.write()
    assert where(world) == [("ch", 1, 3), ("other", 1, 3)]


def test_what_the_storage_cannot_say_is_refused_and_a_queue_that_goes_is_left_out() -> None:
    world = ready()
    world.step(OpenGroup(a(world), "open", "g", "*", None, True))
    assert world.step(OffsetsFound(1, 503, [])) == ["a open: 503"]
    world.step(OpenGroup(a(world), "open", "h", "*", None, True))
    world.step(RemoveQueue(world.numbers["b"], None, "ch", 1))
    world.step(OffsetsFound(2, 0, [NOTHING, KeptOffsets(1, 3, 3, 30, 7), NOTHING]))
    world.write()
    assert where(world) == [("other", 1, 0), ("other", 2, 0)]


def test_one_commit_is_for_many_queues_and_answered_when_safe() -> None:
    world = ready()
    opened(world)
    assert commit(world, ("CH", 1, 5), ("other", 1, 3)) == ["a commit: 0 with body"]
    words = commit(world, ("ch", 1, 5), ("other", 1, 2), ("other", 2, 0))
    assert words == ["a commit: 0 with body"], "nothing moves back"
    world.push("m9")
    world.push("o9", channel="other")
    world.sync()
    commit(world, ("ch", 1, 6), ("other", 1, 4), ("other", 2, 0))
    assert stored(world) == [([1, 2], "g", [6, 4])]
    assert world.write() == ["a commit: 0 with body"]
    assert where(world) == [("ch", 1, 6), ("other", 1, 4), ("other", 2, 0)]
    world.crash()
    assert cursors(world) == [{"g": 6}, {"g": 4}, {"g": 0}]


def test_a_queue_that_a_commit_names_twice_does_not_move_back() -> None:
    world = ready()
    commit(world, ("ch", 1, 5), ("CH", 1, 3))
    assert stored(world) == [([1], "g", [5])]
    world.write()
    assert where(world) == [("ch", 1, 5), ("ch", 1, 5)]


def test_a_commit_that_is_impossible_in_part_changes_nothing() -> None:
    world = ready(EngineLimits(max_cursors_per_queue=1))
    assert commit(world, ("ch", 1, 5), ("other", 1, 4)) == ["a commit: 416"]
    assert commit(world, ("ch", 1, 5), ("other", 1, -1)) == ["a commit: 400"]
    assert cursors(world) == [{}, {}, {}]
    world.step(CommitCursor(a(world), None, "other", 1, "x", 1))
    assert commit(world, ("ch", 1, 5), ("other", 1, 3)) == ["a commit: 482"]
    assert cursors(world) == [{}, {"x": 1}, {}]
    assert world.step(CommitGroup(a(world), "commit", "", [GroupPlace("ch", 1, 1)])) == [
        "a commit: 400"
    ]


def test_a_queue_that_is_gone_or_another_one_is_left_out() -> None:
    world = ready()
    commit(world, ("ch", 1, 5), ("gone", 1, 4))
    world.write()
    assert where(world) == [("ch", 1, 5)]
    assert commit(world, ("gone", 1, 4)) == ["a commit: 404"]
    assert commit(world, ("ch", 1, 4), incarnation="disk-7") == ["a commit: 404"]
    assert commit(world, ("ch", 1, 4), incarnation="disk-1") == ["a commit: 0 with body"]


def test_an_answer_that_changes_nothing_waits_for_what_is_under_way() -> None:
    world = ready()
    (kept,) = commit(world, ("ch", 1, 5))
    assert kept.startswith("StoreCursor")
    # The same again, by whatever operation, before the first is safe.
    for command in (
        CommitGroup(a(world), "again", "g", [GroupPlace("ch", 1, 5)]),
        CommitCursor(a(world), "again", "ch", 1, "g", 3),
        OpenGroup(a(world), "again", "g", "ch", None, True),
    ):
        (kept,) = world.step(command)
        assert kept.startswith("StoreCursor"), command
    assert world.write() == ["a commit: 0 with body"] + ["a again: 0 with body"] * 3
    # And while the storage fails.
    world.step(CommitCursor(a(world), "late", "ch", 1, "h", 3))
    world.write("full")
    world.state(ok=False)
    (kept,) = world.step(CommitCursor(a(world), "late", "ch", 1, "h", 3))
    assert kept.startswith("StoreCursor")
    assert world.write("full") == ["a late: 503"]


def test_a_reset_goes_back_to_what_is_kept_and_no_further() -> None:
    world = ready()
    commit(world, ("ch", 1, 5), ("other", 1, 3))
    world.write()
    places = [GroupPlace("ch", 1, 1), GroupPlace("other", 1, 2), GroupPlace("other", 2, 0)]
    _, asked = world.step(ResetGroup(a(world), "reset", "g", None, None, places))
    assert stored(world) == [([1, 2], "g", [1, 2])]
    assert asked == "find 1 [1, 2]"
    world.write()
    world.step(OffsetsFound(1, 0, [KeptOffsets(4, 5, 2, 20, 7), KeptOffsets(1, 3, 3, 30, 7)]))
    world.write()
    assert where(world) == [("ch", 1, 3), ("other", 1, 2)]
    assert cursors(world) == [{"g": 3}, {"g": 2}, {}], "it is nowhere else than it was"


def test_a_reset_to_a_time_or_an_end_is_for_all_that_pass_the_filter() -> None:
    world = ready()
    commit(world, ("ch", 1, 2), ("other", 1, 1))
    world.write()
    world.step(ResetGroup(a(world), "reset", "g", "*", None, None, False))
    world.write()
    assert where(world) == [("ch", 1, 5), ("other", 1, 3)]
    world.step(ResetGroup(a(world), "reset", "g", "other", None, None, True))
    world.step(OffsetsFound(1, 0, [KeptOffsets(1, 3, 3, 30, 7)]))
    world.write()
    assert where(world) == [("other", 1, 0)]
    world.step(ResetGroup(a(world), "reset", "g", "ch", None, None, False, 9))
    world.step(OffsetsFound(2, 0, [KeptOffsets(1, 5, 5, 50, 7, at=2)]))
    world.write()
    assert where(world) == [("ch", 1, 1)]
    assert world.step(ResetGroup(a(world), "reset", "x", "*", None, None)) == ["a reset: 404"]
    places = [GroupPlace("ch", 1, 6)]
    assert world.step(ResetGroup(a(world), "r", "g", None, None, places)) == ["a r: 416"]
    assert cursors(world)[0] == {"g": 1}


def test_a_group_is_dropped_as_a_whole_or_in_part() -> None:
    world = ready()
    opened(world)
    words = world.step(DropGroup(a(world), "drop", "g", "other", None))
    assert [word.split()[0] for word in words] == ["ForgetCursors"]
    assert world.write() == ["a drop: 0"]
    assert cursors(world) == [{"g": 5}, {}, {}]
    assert world.step(DropGroup(a(world), "drop", "g", "other", None)) == ["a drop: 404"]
    world.step(DropGroup(a(world), "drop", "g", "*", 1))
    world.write()
    world.restart()
    assert cursors(world) == [{}, {}, {}]


def test_groups_are_listed_with_their_lag() -> None:
    world = ready()
    commit(world, ("ch", 1, 2), ("other", 1, 3))
    world.write()
    world.step(CommitCursor(a(world), None, "ch", 1, "x", 4))
    list_all = ListGroups(a(world), "list", "*")
    assert world.step(list_all) == ["measure 1 [1, 1, 2] after [2, 4, 3]"]
    parts = [KeptPart(3, 5, 3, 30), KeptPart(5, 5, 1, 10), KeptPart(0, 0, 0, 0)]
    assert world.step(StoredMeasured(1, 0, parts)) == ["a list: 0 with body"]
    assert [(each.name, each.behind, each.behind_bytes) for each in body(world)] == [
        ("g", 3, 30),
        ("x", 1, 10),
        ("g", 0, 0),
    ]
    one = ListGroups(a(world), "list", "*", None, None, "x")
    assert world.step(one) == ["measure 2 [1] after [4]"]
    assert world.step(StoredMeasured(2, 503, [])) == ["a list: 503"]
    none = ListGroups(a(world), "list", "*", 2)
    assert world.step(none) == ["a list: 0 with body"]
    hidden = ListGroups(a(world), "list", "*", None, frozenset({"other"}))
    assert world.step(hidden) == ["measure 3 [2] after [3]"]
    world.step(RemoveQueue(world.numbers["b"], None, "other", 1))
    assert world.step(StoredMeasured(3, 0, [KeptPart(0, 0, 0, 0)])) == ["a list: 0 with body"]
    assert body(world) == []
    world.step(list_all)
    world.step(Disconnect(a(world)))
    assert world.step(StoredMeasured(4, 0, parts[:2])) == []


def test_groups_are_bounded() -> None:
    world = ready(EngineLimits(max_queues_per_read=2, max_reads=1))
    me = a(world)
    refused: list[Command] = [
        OpenGroup(me, "r", "g", "*", None, False),
        DropGroup(me, "r", "g", "*", None),
        ListGroups(me, "r", "*"),
        ResetGroup(me, "r", "g", "*", None, None),
        CommitGroup(me, "r", "g", [GroupPlace("ch", 1, 1)] * 3),
    ]
    for command in refused:
        assert world.step(command) == ["a r: 482"], command
    world.step(OpenGroup(me, "open", "g", "other", None, True))
    busy: list[Command] = [
        OpenGroup(me, "r", "h", "other", None, True),
        ListGroups(me, "r", "other"),
        ResetGroup(me, "r", "g", "other", None, None, True),
        ResetGroup(me, "r", "g", None, None, [GroupPlace("other", 1, 1)]),
    ]
    for command in busy:
        assert world.step(command) == ["a r: 503"], command
    assert cursors(world) == [{}, {"g": 0}, {"g": 0}]


def test_without_a_storage_there_are_no_groups() -> None:
    world = World()
    world.connect("a")
    me = world.numbers["a"]
    for command in (
        OpenGroup(me, "r", "g", "*", None, True),
        CommitGroup(me, "r", "g", []),
        ListGroups(me, "r", "*"),
        DropGroup(me, "r", "g", "*", None),
        SplitRange(me, "r", "ch", 1),
    ):
        assert world.step(command) == ["a r: 501"]


def test_a_range_is_split_by_the_storage() -> None:
    world = ready(EngineLimits(max_reads=1))
    me = a(world)
    split = SplitRange(me, "split", "CH", 1, 2, 0, 7, 1_000)
    assert world.step(split) == ["split 1 of 1: 7 and 1000 B from 2 to 5, end 5"]
    assert world.step(SplitRange(me, "split", "ch", 1)) == ["a split: 503"]
    parts = [KeptPart(2, 5, 4, 40)]
    assert world.step(RangeSplit(1, 0, parts)) == ["a split: 0 with body"]
    assert body(world) == parts
    assert world.step(SplitRange(me, "split", "ch", 1, 6)) == ["a split: 0 with body"]
    assert body(world) == []
    world.step(SplitRange(me, "split", "ch", 1, 1))
    answer = RangeSplit(2, 416, [], KeptOffsets(3, 5, 3, 30, 7))
    assert world.step(answer) == ["a split: 416 with body"]
    assert body(world).earliest == 3
    assert world.step(SplitRange(me, "split", "ch", 1, incarnation="x")) == ["a split: 409"]
    assert world.step(SplitRange(me, "split", "no", 1)) == ["a split: 404"]
