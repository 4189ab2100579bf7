"""What is staged beyond a share of the memory is put aside by the storage, and comes back."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.staging import (
    all_of,
    answer,
    commit,
    listed,
    message_set,
    opened,
    push,
    ready,
    t,
)
from tmqp_server.engine.commands import AbortTransaction, MessageSet, OpenTransaction
from tmqp_server.engine.limits import EngineLimits

#: What the smallest push counts.
ONE: Final = len(message_set("m1").data) + 512


def tight(most: int, **more: int) -> KeptWorld:
    """A world with room for so many small pushes in memory."""
    return ready(EngineLimits(max_transactions_memory_bytes=most * ONE, **more))


def large(name: str) -> MessageSet:
    """A message set that fills a segment."""
    made = message_set(name)
    made.count = 1
    made.data = (made.data + b" ").ljust(1 << 20, b"x")
    return made


def memory(world: KeptWorld) -> int:
    return world.broker._transactions._holdings.memory


def test_700_mb_in_one_transaction_were_refused_with_482() -> None:
    """Here in small: ten times what may be in memory, by a client that waits for answers."""
    names = [f"m{place:02}".ljust(20_000, "x") for place in range(80)]
    limit = 8 * 21_000
    world = ready(EngineLimits(max_transactions_memory_bytes=limit))
    number = opened(world)
    most = 0
    for name in names:
        words = push(world, number, message_set(name))
        most = max(most, memory(world))
        if words != ["t push: 0 with body"]:
            assert words[0].startswith("StageSegment")
            assert world.write() == ["t push: 0 with body"]
    assert answer(world).count == 80
    assert most <= limit
    # A segment each, of which nothing is left but the counts.
    assert commit(world, 1, number)[0].startswith("CommitStored")
    assert world.store.staged
    assert world.write() != []
    world.sync()
    assert world.store.staged == [], "a commit lets it go"
    assert memory(world) == 0
    assert all_of(world, "b") == names


def test_little_stays_in_memory() -> None:
    world = tight(400)
    number = opened(world)
    for place in range(100):
        assert push(world, number, message_set(f"m{place}")) == ["t push: 0 with body"]
    assert memory(world) == sum(ONE + len(str(place)) - 1 for place in range(100))


def test_a_push_is_answered_when_all_before_it_is_put_aside() -> None:
    world = tight(8)
    number = opened(world)
    words: list[str] = []
    for place in range(7):
        words += push(world, number, message_set(f"m{place}"))
    assert words[:4] == ["t push: 0 with body"] * 4
    assert [word.split()[0] for word in words[4:]] == ["StageSegment"] * 3
    assert world.sync() == ["t push: 0 with body"] * 3
    assert push(world, number) == ["t push: 0 with body"], "nothing is no reason to wait"


def test_who_does_not_wait_for_answers_meets_the_bound() -> None:
    world = tight(8)
    number = opened(world)
    for place in range(8):
        push(world, number, message_set(f"m{place}"))
    assert push(world, number, message_set("m8")) == ["DropStaged 0", "t push: 503"]
    assert listed(world) == [("app", 1, "broken")]
    assert memory(world) == 0, "it can never be committed, so nothing of it is kept"
    assert world.sync() == ["t push: 409"] * 4
    assert world.store.staged == []
    assert push(world, opened(world, 2), message_set("m1")) == ["t push: 0 with body"]


def test_what_is_staged_counts_as_memory() -> None:
    world = tight(1_000)
    before = world.broker._core.total_bytes
    number = opened(world)
    world.broker._core.most_bytes = world.broker._core.total_bytes + 4 * ONE - 1
    assert push(world, number, message_set("m1"), message_set("m2")) == ["t push: 0 with body"]
    assert push(world, number, message_set("m3"), message_set("m4")) == ["t push: 503"]
    world.broker._core.most_bytes = 1 << 30
    world.step(AbortTransaction(t(world), "abort", "app", number))
    assert world.broker._core.total_bytes == before


def test_what_cannot_be_put_aside_breaks_its_transaction() -> None:
    world = tight(8)
    broken, fine = opened(world), opened(world, 2)
    for place in range(4):
        push(world, fine, message_set(f"f{place}"))
    assert push(world, broken, message_set("m1"))[0].startswith("StageSegment")
    assert push(world, broken, message_set("m2"))[0].startswith("StageSegment")
    assert world.write(fails="no room") == ["DropStaged 0", "t push: 503", "t push: 503"]
    world.sync()
    assert listed(world) == [("app", 1, "broken"), ("app", 2, "open")]
    assert world.store.staged == []
    assert push(world, broken, message_set("m3")) == ["t push: 409"]
    assert commit(world, 1, broken) == ["t commit: 409"]
    assert commit(world, 2, fine)[0].startswith("CommitStored")
    world.sync()
    assert all_of(world) == [f"f{place}" for place in range(4)]


def test_a_commit_waits_for_what_is_being_put_aside() -> None:
    world = tight(4)
    number = opened(world)
    for place in range(3):
        push(world, number, message_set(f"m{place}"))
    assert commit(world, 1, number, counts=[3]) == []
    assert commit(world, 1, number, counts=[3]) == [], "asked twice"
    words = world.write()
    assert words[0] == "t push: 0 with body"
    assert words[-1].startswith("CommitStored")
    assert [word for word in world.sync() if "commit" in word] == ["t commit: 0 with body"] * 2
    assert all_of(world) == ["m0", "m1", "m2"]


def test_a_commit_that_waits_hears_that_it_cannot_be() -> None:
    world = tight(4)
    number = opened(world)
    for place in range(3):
        push(world, number, message_set(f"m{place}"))
    assert commit(world, 1, number) == []
    assert world.write(fails="no room")[-1] == "t commit: 409"
    assert world.sync() == []
    assert all_of(world) == []


def test_a_commit_that_fails_leaves_what_was_put_aside() -> None:
    world = tight(4)
    number = opened(world)
    for place in range(6):
        push(world, number, message_set(f"m{place}"))
        world.sync()
    assert commit(world, 1, number)[0].startswith("CommitStored")
    assert world.write(fails="no room") == ["t commit: 503"]
    aside = world.store.staged
    assert len(aside) >= 3
    assert commit(world, 1, number)[0].startswith("CommitStored")
    world.sync()
    assert world.store.staged == []
    assert all_of(world) == [f"m{place}" for place in range(6)]


def test_giving_up_and_time_outs_free_what_was_put_aside() -> None:
    world = tight(4)
    for way in ("abort", "timeout", "another attempt"):
        number = opened(world, part=1, timeout_ms=1_000)
        for place in range(4):
            push(world, number, message_set(f"m{place}"))
            world.sync()
        assert world.store.staged
        if way == "abort":
            world.step(AbortTransaction(t(world), "abort", "app", number))
        elif way == "timeout":
            world.wait(1.5)
        else:
            again = OpenTransaction(t(world), "open", "app", 1, 1)
            assert world.step(again)[0] == "DropStaged 0"
        world.sync()
        assert (way, world.store.staged, memory(world)) == (way, [], 0)


def test_what_is_given_up_while_it_is_put_aside_does_not_stay() -> None:
    world = tight(4)
    number = opened(world)
    push(world, number, message_set("m1"), message_set("m2"))
    push(world, number, message_set("m3"))
    assert world.step(AbortTransaction(t(world), "abort", "app", number))[-1] == "t abort: 0"
    assert world.sync() == ["t push: 409"]
    world.sync()
    assert world.store.staged == []
    assert memory(world) == 0


def test_a_full_segment_is_put_aside_before_memory_is_short() -> None:
    world = ready(EngineLimits(max_transactions_memory_bytes=8 << 20))
    number = opened(world)
    assert push(world, number, large("m1")) == ["t push: 0 with body"]
    assert push(world, number, large("m2"))[0].startswith("StageSegment")
    world.sync()
    assert memory(world) < 1 << 21
    world.step(OpenTransaction(t(world), "open", "other", 1))
    assert push(world, answer(world).number, message_set("m3")) == ["t push: 404"], "another's"


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 3), st.sampled_from(["push", "!", "sync"])),
        max_size=30,
    )
)
def test_in_memory_or_aside_a_commit_brings_the_same(
    steps: list[tuple[int, int, str]],
) -> None:
    """Two parts, message sets of either priority, and a disk that answers sooner or later."""
    got: list[list[str]] = []
    for most in (40, 10_000):
        world = tight(most)
        parts = [opened(world, part=0), opened(world, part=1)]
        count = [0, 0]
        for place, (part, size, what) in enumerate(steps):
            if what == "sync":
                world.sync()
            mark = "!" if what == "!" else ""
            names = [f"{mark}{part}.{place}.{each}" for each in range(size)]
            push(world, parts[part], message_set(*names, f"{part}.{place}.r"))
            count[part] += size + 1
        commit(world, 1, *parts, counts=count)
        world.sync()
        world.sync()
        assert world.store.staged == []
        assert memory(world) == 0
        got.append(all_of(world))
    assert got[0] == got[1]
    pushed = sum(size + 1 for _, size, what in steps)
    assert len(got[0]) == pushed
