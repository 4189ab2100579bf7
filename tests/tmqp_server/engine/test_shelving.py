"""Deferred messages beyond the memory of their queue: they are on disk only, and come in time."""

from __future__ import annotations

import sys
import tracemalloc
from random import Random

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.test_browsing import Looks
from tests.tmqp_server.engine.test_deferring import cancel
from tmqp.constants import STATUS_PULL, STATUS_ROUND_ROBIN
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import ClearMessages, PushExtras, RemoveQueue
from tmqp_server.engine.flights import LOOK_AHEAD_S
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.deferrals import Deferral, DeferralLine, ShelfLine
from tmqp_server.engine.model.snapshots import BROWSED_DEFERRED
from tmqp_server.engine.model.times import NEVER
from tmqp_server.engine.options import QueueChanges
from tmqp_sim.books import shelved_in

#: Delays, in milliseconds: one that is read at once if there is room, and one that is not.
SOON = 1_000
FAR = 60_000


def shelving(limits: EngineLimits | None = None, **changes: object) -> KeptWorld:
    """A world with a durable queue that keeps two deferred messages in memory."""
    world = KeptWorld(limits)
    options: dict[str, object] = {"durable": True, "memory_limit": 2, "status": STATUS_ROUND_ROBIN}
    world.create(QueueChanges(**(options | changes)))  # type: ignore[arg-type]
    world.sync()
    return world


def defer(world: KeptWorld, *ids: str, delay_ms: int = FAR, **more: bool) -> list[str]:
    """Push messages that are deferred, and let them be written."""
    words: list[str] = []
    for each in ids:
        extras = PushExtras(delay_ms=delay_ms)
        words += world.push(each, extras=extras, **more)  # type: ignore[arg-type]
    return words + world.sync()


def places(world: KeptWorld) -> tuple[list[str], list[str]]:
    """What is deferred in memory, and on disk only."""
    queue = world.queue()
    in_memory = sorted(each.message_id for each in queue.deferred.messages())
    return in_memory, sorted(each.message_id for each in shelved_in(queue))


def wait(world: KeptWorld, seconds: float) -> list[str]:
    """Let time pass, with a storage that is quick."""
    words: list[str] = []
    end = world.now + seconds
    while world.now < end:
        deadline = world.broker.next_deadline()
        step = end - world.now if deadline is None else max(deadline - world.now, 0.0)
        words += world.wait(min(step, end - world.now))
        words += world.sync()
    return words


def got(words: list[str]) -> list[str]:
    return [word.split("<- ")[1].split()[0] for word in words if "<- " in word]


# --- Where they are ------------------------------------------------------------------------------


def test_what_the_memory_has_no_room_for_is_on_disk_only_and_comes_in_time() -> None:
    world = shelving()
    world.join("a")
    before = world.broker.statistics().bytes
    assert defer(world, "m1", "m2", "m3", "m4", wants=True)[-1] == "p: m4 ok F"
    assert places(world) == (["m1", "m2"], ["m3", "m4"])
    assert world.broker.statistics().bytes == before + 2 * (10 + MESSAGE_OVERHEAD_BYTES)
    assert world.books() == world.books() | {"deferred": 4, "accepted": 4}
    assert world.broker.statistics().messages == 4
    assert wait(world, 60.0 - LOOK_AHEAD_S - 0.1) == []
    assert places(world)[1] == ["m3", "m4"]
    words = wait(world, 0.2)
    assert words == ["fetch 1 from 1: 2 after 2 to 4"]
    assert places(world) == (["m1", "m2", "m3", "m4"], [])
    assert wait(world, LOOK_AHEAD_S - 0.2) == []
    assert got(wait(world, 0.1)) == ["m1", "m2", "m3", "m4"]
    for each in ("m1", "m2", "m3", "m4"):
        world.ack("a", each)
    world.sync()
    assert world.queue().disk_bytes == 0
    assert world.store._queues[1].owed == set()


def test_each_comes_at_its_time_whatever_the_order_of_pushing() -> None:
    world = shelving()
    world.join("a")
    delays = [9.0, 30.0, 5.0, 8.0, 7.0, 6.0, 5.5, 9.5]
    for delay_s in delays:
        defer(world, f"{delay_s}", delay_ms=round(delay_s * 1000))
    began = world.now
    came: list[tuple[str, float]] = []
    while len(came) < len(delays):
        came += [(each, world.now) for each in got(wait(world, 0.25))]
    assert [each for each, _ in came] == [str(each) for each in sorted(delays)]
    assert all(0.0 <= at - began - float(each) <= 0.3 for each, at in came)


def test_what_is_due_soon_has_as_much_room_again() -> None:
    world = shelving()
    world.join("a")
    defer(world, "m1", "m2", "m3")
    defer(world, "s1", "s2", "s3", delay_ms=SOON)
    assert places(world) == (["m1", "m2", "s1", "s2"], ["m3", "s3"])
    assert sorted(got(wait(world, 1.1))) == ["s1", "s2", "s3"]
    assert places(world) == (["m1", "m2"], ["m3"])


def test_what_finds_no_room_is_read_when_it_is_due() -> None:
    world = shelving()
    world.join("a")
    defer(world, "m1", "m2")
    defer(world, *(f"s{each}" for each in range(20)), delay_ms=SOON)
    assert len(places(world)[1]) == 18
    world.wait(0.9)
    assert world.fetches == []
    assert sorted(got(wait(world, 0.2))) == sorted(f"s{each}" for each in range(20))


def test_a_late_disk_does_not_change_their_order() -> None:
    world = shelving(memory_limit=1)
    world.join("a")
    defer(world, "far", delay_ms=60_000)
    defer(world, "first", delay_ms=5_000)
    world.wait(4.0)
    world.push("second", extras=PushExtras(delay_ms=1_500))
    world.push("high", high=True, extras=PushExtras(delay_ms=1_600))
    assert places(world) == (["far", "high", "second"], ["first"])
    assert got(world.wait(4.0)) == ["high"], "which waits for none of the other priority"
    assert got(world.sync()) == ["first", "second"]


def test_a_high_priority_message_is_on_disk_and_comes_first() -> None:
    world = shelving(status=STATUS_PULL)
    defer(world, "m1", "m2", "m3")
    defer(world, "h1", high=True)
    assert places(world)[1] == ["h1", "m3"]
    wait(world, 61.0)
    queue = world.queue()
    assert [each.message_id for each in queue.high.messages()] == ["h1"]
    assert queue.regular_in_all() == 3


def test_half_of_the_bytes_is_a_limit_too() -> None:
    world = shelving(EngineLimits(max_queue_bytes=100), memory_limit=50)
    defer(world, *(f"m{each}" for each in range(9)))
    assert len(places(world)[0]) == 5
    world.join("a")
    assert len(got(wait(world, 61.0))) == 9


def test_the_bytes_on_disk_do_not_count_against_the_limit_of_deferred_bytes() -> None:
    world = shelving(EngineLimits(max_deferred_bytes_per_queue=30))
    for each in range(9):
        assert "482" not in " ".join(defer(world, f"m{each}"))
    assert world.books()["deferred"] == 9
    world = shelving(EngineLimits(max_deferred_per_queue=4))
    assert "p wire of m4: 482" in defer(world, *(f"m{each}" for each in range(9)))


def test_the_limit_of_messages_counts_them() -> None:
    world = shelving(message_limit=5)
    refused = [word for word in defer(world, *(f"m{each}" for each in range(7))) if "482" in word]
    assert refused == ["p wire of m5: 482", "p wire of m6: 482"]
    assert world.push("m7") == ["p wire of m7: 482"]
    cancel(world, "m3")
    world.update(QueueChanges(tag="new"))
    assert world.push("m8")[0].startswith("append")
    assert world.push("m9") == ["p wire of m9: 482"]


@pytest.mark.parametrize("durable", [True, False])
def test_what_the_disk_does_not_know_stays_in_memory(durable: bool) -> None:
    world = shelving(durable=durable, delivery_handler="ack-consumer")
    defer(world, "m1", "m2", "m3", wants=True)
    assert places(world)[1] == [], "its producer must still be told"
    world.join("a")
    assert got(wait(world, 61.0)) == ["m1", "m2", "m3"]
    assert "p: m3 ok from a" in world.ack("a", "m3", wire="w")


def test_a_message_that_could_not_be_saved_is_not_put_away() -> None:
    world = shelving()
    for each in ("m1", "m2", "m3", "m4"):
        world.push(each, wants=True, extras=PushExtras(delay_ms=FAR))
    words = world.write("no space")
    assert words[-1] == "p: m4 no error F"
    assert places(world) == ([], [])
    assert world.books() == world.books() | {"dropped": 4}


def test_what_is_given_back_with_a_delay_is_put_away_as_it_is_then() -> None:
    world = shelving()
    world.join("a")
    world.push("back")
    world.sync()
    defer(world, "m1", "m2")
    world.release("a", "back", delay_ms=FAR)
    world.sync()
    assert places(world) == (["m1", "m2"], ["back"])
    words = wait(world, 61.0)
    assert [word for word in words if "back" in word] == ["a <- back AR"]
    assert world.queue().flights["back"].put_backs == 1


# --- Cancelling, clearing, looking ---------------------------------------------------------------


@pytest.mark.parametrize("reads", [False, True])
def test_a_message_on_disk_is_cancelled_by_its_id(reads: bool) -> None:
    world = shelving()
    world.join("a")
    defer(world, "m1", "m2", "m3", "same", "same", "m4")
    world.now += 60.0 - LOOK_AHEAD_S
    if reads:
        world.finish()
        assert world.fetches
    words = cancel(world, "same")
    assert "p cancel: 0" not in words
    assert world.books() == world.books() | {"deferred": 4, "cleared": 2}
    assert "p cancel: 0" in world.sync()
    assert cancel(world, "same") == ["p cancel: 404"]
    assert got(wait(world, 3.0)) == ["m1", "m2", "m3", "m4"]
    world.crash()
    assert world.queue().regular_in_all() == 4


def test_no_more_of_an_id_than_a_batch_may_hold_are_cancelled_at_once() -> None:
    world = shelving(EngineLimits(max_batch_length=3))
    for _ in range(5):
        defer(world, "same")
    left: list[int] = []
    for _ in range(2):
        cancel(world, "same")
        left.append(world.books().get("deferred", 0))
    assert left == [2, 0]


@pytest.mark.parametrize("reads", [False, True])
def test_clearing_takes_what_is_on_disk(reads: bool) -> None:
    world = shelving()
    defer(world, *(f"m{each}" for each in range(6)))
    defer(world, "h1", "h2", high=True)
    if reads:
        world.now += 60.0 - LOOK_AHEAD_S
        world.finish()
    world.step(ClearMessages(world.numbers["admin"], "clear", "ch", 1, False, True))
    assert world.books() == world.books() | {"deferred": 2, "cleared": 6}
    world.sync()
    assert world.store._queues[1].owed == {7, 8}
    world.step(ClearMessages(world.numbers["admin"], "clear", "ch", 1, True, True))
    world.sync()
    assert world.store._queues[1].owed == set()
    assert wait(world, 61.0) == []


def test_a_queue_goes_with_what_it_has_on_disk() -> None:
    world = shelving()
    world.join("a")
    before = world.broker.statistics().bytes
    defer(world, *(f"m{each}" for each in range(6)))
    world.now += 60.0 - LOOK_AHEAD_S
    world.finish()
    world.step(RemoveQueue(world.numbers["admin"], "remove", "ch", 1))
    world.sync()
    assert world.broker.statistics().bytes == before
    assert got(wait(world, 61.0)) == []
    assert 1 not in world.store._queues


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_who_looks_into_the_queue_sees_what_is_on_disk(limit: int) -> None:
    world = shelving(status=STATUS_PULL)
    expected: list[tuple[str, int]] = []
    for number in range(12):
        extras = PushExtras(delay_ms=FAR + number * 1_000) if number % 3 else None
        world.push(f"m{number}", high=number % 4 == 0, extras=extras)
        expected.append((f"m{number}", BROWSED_DEFERRED if number % 3 else 1))
    world.sync()
    looks = Looks(world)
    before = places(world)
    shown = list(looks.everything(limit))
    assert [(each.message_id, each.state) for each in shown] == expected
    assert shown[-1].due_s == pytest.approx(world.now + 71.0, abs=1e-5)
    assert places(world) == before
    late = [each.message_id for each in looks.everything(limit) if each.state == BROWSED_DEFERRED]
    assert looks.ids(states=BROWSED_DEFERRED, limit=limit) == late[:limit]
    assert looks.ids(message_id="m11") == ["m11"]


# --- Storage that fails, and restarts ------------------------------------------------------------


def test_what_cannot_be_read_any_more_is_dropped_and_counted() -> None:
    world = shelving()
    world.join("a")
    defer(world, *(f"m{each}" for each in range(6)))
    world.store._queues[1].owed.discard(4)
    assert got(wait(world, 61.0)) == ["m0", "m1", "m2", "m4", "m5"]
    assert world.books() == world.books() | {"damaged": 1, "dropped": 1}


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_leaves_them_on_disk_and_they_come_in_time(clean: bool) -> None:
    world = shelving()
    defer(world, *(f"m{each}" for each in range(40)))
    defer(world, "h1", "h2", high=True)
    world.now += 10.0
    world.restart() if clean else world.crash()
    world.sync()
    assert len(places(world)[0]) == 2
    assert world.books()["deferred"] == 42
    assert world.broker.statistics().bytes < 3 * (10 + MESSAGE_OVERHEAD_BYTES)
    world.join("a")
    assert wait(world, 60.0 - 12.0 - LOOK_AHEAD_S) == []
    assert sorted(got(wait(world, LOOK_AHEAD_S + 2.0))) == sorted(
        ["h1", "h2", *(f"m{each}" for each in range(40))]
    )


def test_they_come_after_the_machine_was_down_for_longer() -> None:
    world = shelving()
    defer(world, *(f"m{each}" for each in range(9)))
    world.reboot(100.0)
    assert got(world.join("a") + wait(world, 1.0)) == [f"m{each}" for each in range(9)]


@pytest.mark.cold
def test_what_an_entry_is_charged_covers_what_it_takes() -> None:
    ids = [f"{number:032x}" for number in range(4_000)]
    line = ShelfLine()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number, each in enumerate(ids):
            line.add(Deferral(number * 1.5, 10**6 + number, each, 1_000 + number, None))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    taken += sum(sys.getsizeof(each) for each in ids)
    assert taken <= line.memory <= 2 * taken


# --- Against a model -----------------------------------------------------------------------------


def test_a_line_of_the_shelf_does_as_a_sorted_list_does() -> None:
    chance = Random(7)
    line = ShelfLine()
    model: dict[int, Deferral] = {}
    read: list[Deferral] = []
    for sequence in range(1, 500):
        what = chance.random()
        if what < 0.6:
            entry = Deferral(chance.choice((1.0, 2.0, 5.0)), sequence, f"m{sequence % 9}", 3, None)
            line.add(entry)
            model[sequence] = entry
        elif what < 0.8 and model:
            entry = model.pop(chance.choice(list(model)))
            line.remove(entry)
            read = [each for each in read if each is not entry]
        elif what < 0.9:
            found = line.lift(1.5, 1.0, 3, 1_000)
            waiting = sorted((each.due_at, each.sequence) for each in model.values()
                             if each not in read and each.due_at <= 2.5)  # fmt: skip
            assert [(each.due_at, each.sequence) for each in found] == waiting[:3]
            read += found
        elif read:
            line.lower(read.pop())
        assert line.entries == model
        assert line.size() == 3 * len(model)
        waits = [each.due_at for each in model.values() if each not in read]
        assert line.next_due() == min(waits, default=NEVER)
        ids = [each for each in model.values() if each.message_id == "m4"]
        assert line.find("m4", 100) == sorted(ids, key=lambda each: each.sequence)
    assert isinstance(line._line, DeferralLine)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("seed", range(16))
def test_each_comes_once_and_not_before_its_time_whatever_happens(seed: int, durable: bool) -> None:
    """Pushes, cancels, clears, looks, failing disks, crashes, restarts: a list says what is due."""
    chance = Random(seed)
    world = shelving(memory_limit=chance.choice((1, 2, 5)), durable=durable, overflow=True)
    unwritten: list[str] = []
    world.join("a")
    due: dict[str, float] = {}
    for number in range(250):
        act = chance.randrange(20)
        if act < 9:
            delay_ms = chance.choice((300, 1_500, 2_500, 5_000, 20_000))
            name = f"m{number}"
            high = chance.random() < 0.2
            due[name] = world.now + delay_ms / 1000
            words = world.push(name, high=high, extras=PushExtras(delay_ms=delay_ms))
            if chance.random() < 0.1:
                words += world.write("no space")
                if durable:
                    del due[name]  # nobody wanted to be told
                else:
                    unwritten.append(name)  # which stay in memory
            _answer(world, words + world.sync(), due)
        elif act < 12 and due:
            name = chance.choice(list(due))
            words = cancel(world, name, client=f"c{len(world.names)}") + world.sync()
            assert any("cancel: 0" in word for word in words)
            del due[name]
            _answer(world, words, due)
        elif act == 12 and chance.random() < 0.2:
            due = _clear_regular(world, f"x{number}", due)
        elif act == 13 and chance.random() < 0.3:
            world.restart() if chance.random() < 0.5 else world.crash()
            if not durable:
                due.clear()
            world.sync()
            _answer(world, world.join("a") + world.sync(), due, in_order=False)
        elif act == 14:
            looks = Looks(world)
            shown = [each.message_id for each in looks.everything(chance.choice((1, 3, 100)))]
            assert sorted(shown) == sorted(due)
        else:
            _answer(world, wait(world, chance.choice((0.1, 0.7, 3.0))), due)
        assert world.books().get("deferred", 0) == len(due)
        late = [name for name, at in due.items() if at < world.now]
        assert not late
        written = [each for each in places(world)[0] if each not in unwritten]
        assert len(written) <= 2 * world.queue().memory_limit
    for _ in range(25):
        _answer(world, wait(world, 1.0), due)
    assert due == {}
    assert world.queue().disk_bytes == 0
    assert world.store._queues[1].owed == set()


def _clear_regular(world: KeptWorld, client: str, due: dict[str, float]) -> dict[str, float]:
    """What is due when all but the messages of high priority are cleared."""
    world.connect(client)
    clear = ClearMessages(world.numbers[client], "clear", "ch", 1, False, True)
    kept = _high_ids(world)
    _answer(world, world.step(clear) + world.sync(), due)
    return {name: at for name, at in due.items() if name in kept}


def _high_ids(world: KeptWorld) -> list[str]:
    queue = world.queue()
    high = [each.message_id for each in queue.deferred.messages() if each.high_priority]
    shelf = queue.deferred.shelf
    if shelf is not None:
        high += [each.message_id for each in shelf.high.entries.values()]
    return high


def _answer(
    world: KeptWorld, words: list[str], due: dict[str, float], *, in_order: bool = True
) -> None:
    """What came was due, in its order unless its time came while there was no server."""
    last = {True: 0.0, False: 0.0}
    for name in got(words):
        # The storage keeps whole microseconds.
        at = due.pop(name)
        assert at <= world.now + 2e-6
        high = world.queue().flights[name].high_priority
        assert at >= last[high] - 2e-6 or not in_order
        last[high] = at
        world.ack("a", name)
    world.sync()
