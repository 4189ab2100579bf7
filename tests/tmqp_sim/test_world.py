"""Virtual time under test: order, children of the seed, the digest, the end of runaways."""

from __future__ import annotations

import pytest

from tmqp_sim import world as worlds
from tmqp_sim.world import Runaway, World


def test_events_happen_in_order_of_time_and_then_of_asking() -> None:
    world = World(1)
    seen: list[tuple[float, str]] = []
    for when, name in ((2.0, "c"), (1.0, "a"), (1.0, "b"), (3.0, "d")):
        world.at(when, lambda name=name: seen.append((world.now, name)))
    assert not world.run(2.5)
    assert seen == [(1.0, "a"), (1.0, "b"), (2.0, "c")]
    assert world.now == 2.5
    world.run(10.0)
    assert world.now == 10.0
    assert [name for _, name in seen] == ["a", "b", "c", "d"]


def test_nothing_happens_in_the_past() -> None:
    world = World(1)
    world.run(5.0)
    seen: list[float] = []
    world.at(1.0, lambda: seen.append(world.now))
    world.run(6.0)
    assert seen == [5.0]


def test_a_run_ends_when_it_is_done_and_not_in_the_middle_of_a_moment() -> None:
    world = World(1)
    seen: list[int] = []
    for number in range(4):
        world.at(1.0 + number // 2, seen.append, number)
    assert world.run(10.0, lambda: len(seen) >= 1)
    assert seen == [0, 1]
    assert world.now == 1.0
    assert world.run(10.0, lambda: len(seen) >= 4)
    assert seen == [0, 1, 2, 3]


def test_subsystems_draw_from_their_own() -> None:
    first, second = World(7), World(7)
    first.child("network").random()
    assert first.child("disk").random() == second.child("disk").random()
    assert World(8).child("disk").random() != second.child("disk").random()


def test_the_digest_tells_histories_apart() -> None:
    digests = []
    for said in (b"a", b"a", b"b"):
        world = World(1)
        world.absorb(said)
        digests.append(world.digest())
    assert digests[0] == digests[1] != digests[2]


def test_a_history_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "MAX_EVENTS", 100)
    world = World(1)

    def again() -> None:
        world.after(0.0, again)

    again()
    with pytest.raises(Runaway, match="more than 100 events"):
        world.run(1.0)


def test_the_memory_is_short_and_readable() -> None:
    world = World(1, remembered=2)
    for number in range(3):
        world.note("kind", "number", number)
    assert world.recent() == [
        "    0.0000  kind         number 1",
        "    0.0000  kind         number 2",
    ]
