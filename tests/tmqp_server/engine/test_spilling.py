"""What the memory has no room for waits on disk, and comes back in order."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.blocks import StoredMessage
from tmqp.constants import STATUS_CACHE, STATUS_PAUSED, STATUS_PULL, STATUS_PUSH, STATUS_STOPPED
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import ClearMessages, PushExtras, RemoveQueue
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges
from tmqp_server.storage.port import DamageError


def spilling(limit: int = 2, **options: object) -> KeptWorld:
    world = KeptWorld()
    options = {"durable": True, "status": STATUS_PAUSED, **options}
    world.create(QueueChanges(memory_limit=limit, **options))  # type: ignore[arg-type]
    world.sync()
    return world


def push_many(world: KeptWorld, first: int, last: int, high: bool = False) -> list[str]:
    words: list[str] = []
    for each in range(first, last + 1):
        words += world.push(f"m{each}", high=high)
    return words


def delivered(words: list[str]) -> list[str]:
    return [word.split("<- ")[1].split()[0] for word in words if "<-" in word]


def drained(world: KeptWorld, name: str = "a", status: int = STATUS_PUSH) -> list[str]:
    """Everything there is, in the order in which it comes, acknowledged."""
    got: list[str] = []
    if "a" in world.numbers and name != "a":
        world.leave("a")
    words = world.update(QueueChanges(status=status))
    words += world.join(name)
    for _ in range(1_000):
        words += world.sync()
        new = delivered(words)
        if not new:
            return got
        words = []
        for each in new:
            got.append(each)
            words += world.ack(name, each)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("count", [3, 4, 9, 40])
def test_everything_comes_back_in_order(durable: bool, count: int) -> None:
    world = spilling(durable=durable, overflow=True)
    push_many(world, 1, count)
    world.sync()
    books = world.books()
    assert (books["messages"], books["spilled"]) == (count, count - 2)
    assert world.broker.statistics().bytes == 2 * (10 + MESSAGE_OVERHEAD_BYTES)
    assert world.broker.statistics().messages == count
    assert drained(world) == [f"m{each}" for each in range(1, count + 1)]
    assert "spilled" not in world.books()
    assert world.store._queues[1].owed == set()


def test_the_limit_of_the_broker_counts_where_the_queue_has_none() -> None:
    world = KeptWorld(EngineLimits(max_messages_in_memory=3))
    world.create(QueueChanges(overflow=True, status=STATUS_PAUSED))
    push_many(world, 1, 3)
    assert "spilled" not in world.books()
    push_many(world, 4, 4)
    assert world.books()["spilled"] == 1


def test_half_of_the_bytes_is_a_limit_too() -> None:
    world = KeptWorld(EngineLimits(max_queue_bytes=100))
    world.create(QueueChanges(overflow=True, status=STATUS_PAUSED))
    push_many(world, 1, 8)
    world.sync()
    push_many(world, 9, 12)
    world.sync()
    assert world.books()["spilled"] == 7
    assert drained(world) == [f"m{each}" for each in range(1, 13)]


def test_a_confirm_waits_for_the_disk_even_where_nothing_is_durable() -> None:
    world = spilling(1, durable=False, overflow=True)
    assert world.push("m1", wants=True) == ["p: m1 ok F"]
    assert world.push("m2", wants=True) == ["append 3 m2 transient"]
    assert world.write() == ["p: m2 ok F"]


def test_high_priority_comes_first_though_it_is_on_disk() -> None:
    world = spilling(1)
    push_many(world, 1, 2)
    push_many(world, 3, 5, high=True)
    world.sync()
    assert world.books()["spilled"] == 3
    # The first one leaves; the next high ones must be waited for.
    words = world.update(QueueChanges(status=STATUS_PUSH))
    words = world.join("a")
    assert delivered(words) == ["m3"]
    assert delivered(world.sync()) == ["m4", "m5", "m1", "m2"]


def test_new_ones_go_behind_those_on_disk() -> None:
    world = spilling(2, status=STATUS_PULL)
    push_many(world, 1, 4)
    world.sync()
    world.join("a")
    assert len(world.pull("a", 2)) == 3 + 1  # two messages, the end, and a fetch
    push_many(world, 5, 5)
    world.sync()
    assert world.books()["messages"] == 3
    assert drained(world, "b") == ["m3", "m4", "m5"]


def test_a_pull_waits_for_the_disk() -> None:
    world = spilling(1, status=STATUS_PULL)
    push_many(world, 1, 3)
    world.sync()
    world.join("a")
    words = [word for word in world.pull("a", 3, info=True) if word.startswith("a ")]
    assert words == ["a pull 1/3 m1 FA left 0+2"]
    words = [word for word in world.sync() if word.startswith("a ")]
    assert words == ["a pull 2/3 m2 FA left 0+1", "a pull 3/3 m3 FA left 0+0", "a pull End"]


def test_a_pull_with_clear_clears_the_disk() -> None:
    world = spilling(1, status=STATUS_PULL)
    push_many(world, 1, 4)
    world.sync()
    world.join("a")
    words = world.pull("a", 1, clear="r")
    assert "ClearStored 7" in words
    world.sync()
    assert world.books()["cleared"] == 3
    assert world.broker.statistics().bytes == 10 + MESSAGE_OVERHEAD_BYTES  # in flight
    world.crash()
    assert world.books()["messages"] == 1


def test_clearing_one_priority_leaves_the_other() -> None:
    world = spilling(1)
    push_many(world, 1, 3)
    push_many(world, 4, 6, high=True)
    world.sync()
    number = world.numbers["admin"]
    world.step(ClearMessages(number, "clear", "ch", 1, False, True))
    world.sync()
    assert world.books() == world.books() | {"priority_messages": 3, "cleared": 3, "spilled": 2}
    world.crash()
    assert world.books()["priority_messages"] == 3
    assert "messages" not in world.books()


def test_clearing_what_the_storage_has_not_answered_for() -> None:
    world = spilling(1)
    push_many(world, 1, 4)
    number = world.numbers["admin"]
    words = world.step(ClearMessages(number, "clear", "ch", 1, True, True))
    assert words == ["ClearStored 7"]
    world.sync()
    assert world.books() == world.books() | {"cleared": 4}
    assert world.broker.statistics().bytes == 0
    world.crash()
    assert world.books() == {}


def test_clearing_leaves_what_is_in_flight_on_disk() -> None:
    world = spilling(2, status=STATUS_PULL)
    push_many(world, 1, 5)
    world.sync()
    world.join("a")
    world.pull("a", 1)
    number = world.numbers["admin"]
    world.step(ClearMessages(number, "clear", "ch", 1, True, True))
    world.sync()
    world.crash()
    assert world.books()["messages"] == 1


@pytest.mark.parametrize("how", ["remove", "stop"])
def test_removing_and_stopping_take_the_disk_along(how: str) -> None:
    world = spilling(1)
    push_many(world, 1, 5)
    number = world.numbers["admin"]
    if how == "remove":
        world.step(RemoveQueue(number, "remove", "ch", 1))
    else:
        world.update(QueueChanges(status=STATUS_STOPPED))
    world.sync()
    assert world.broker.statistics().bytes == 0
    assert world.broker.statistics().messages == 0
    world.crash()
    assert world.broker.statistics().messages == 0


def test_a_queue_with_messages_on_disk_cannot_become_a_cache() -> None:
    world = spilling(1)
    push_many(world, 1, 3)
    world.sync()
    assert world.update(QueueChanges(status=STATUS_CACHE)) == ["admin update: 406"]


def test_put_back_at_the_end_goes_behind_those_on_disk() -> None:
    world = spilling(2, status=STATUS_PULL, delivery_handler="putback-end")
    push_many(world, 1, 4)
    world.sync()
    world.join("a")
    world.pull("a", 1)
    assert "append 7 m1 for 1/1" in world.nack("a", "m1")
    world.sync()
    assert drained(world, "b") == ["m2", "m3", "m4", "m1"]


def test_a_failed_put_back_at_the_end_loses_nothing() -> None:
    world = spilling(2, status=STATUS_PULL, delivery_handler="putback-end")
    push_many(world, 1, 4)
    world.sync()
    world.join("a")
    world.pull("a", 1)
    world.nack("a", "m1")
    world.write("no space")
    assert sorted(drained(world, "b")) == ["m1", "m2", "m3", "m4"]


def test_what_cannot_be_spilled_for_memory_s_sake_stays_in_memory() -> None:
    world = spilling(1, durable=False, overflow=True)
    world.push("m1")
    assert world.push("m2", wants=True) == ["append 3 m2 transient"]
    assert world.write("no space") == ["p: m2 ok F"]
    world.state(False)
    assert world.push("m3", wants=True) == ["p wire of m3: 503", "p: m3 no storage F"]
    assert drained(world) == ["m1", "m2"]


def test_what_a_durable_queue_cannot_spill_is_dropped() -> None:
    world = spilling(1)
    world.push("m1")
    world.sync()
    assert world.push("m2", wants=True) == ["append 4 m2"]
    assert world.write("no space") == ["p: m2 no error F"]
    assert world.books()["dropped"] == 1
    assert drained(world) == ["m1"]


def test_deferred_messages_keep_their_time_and_come_once() -> None:
    world = spilling(1)
    push_many(world, 1, 3)
    world.push("late", extras=PushExtras(delay_ms=2_000))
    push_many(world, 4, 5)
    world.sync()
    world.update(QueueChanges(status=STATUS_PUSH))
    words = world.join("a") + world.sync()
    assert delivered(words) == ["m1", "m2", "m3", "m4", "m5"]
    assert world.wait(2.5) == ["a <- late FA"]


def test_a_deferred_message_that_is_due_goes_behind_those_on_disk() -> None:
    world = spilling(1)
    world.push("late", extras=PushExtras(delay_ms=2_000))
    push_many(world, 1, 3)
    world.sync()
    world.wait(3)
    world.sync()
    assert drained(world) == ["m1", "m2", "m3", "late"]


def test_clearing_spares_the_deferred_of_the_other_priority() -> None:
    world = spilling(1)
    push_many(world, 1, 2)
    world.push("late", high=True, extras=PushExtras(delay_ms=2_000))
    push_many(world, 3, 4)
    world.sync()
    number = world.numbers["admin"]
    world.step(ClearMessages(number, "clear", "ch", 1, False, True))
    world.sync()
    world.crash()
    world.wait(3)
    assert world.books()["priority_messages"] == 1
    assert drained(world) == ["late"]


def test_those_on_disk_expire_when_they_come_back() -> None:
    world = spilling(1, message_timeout_ms=1_000)
    push_many(world, 1, 4)
    world.sync()
    world.wait(1.5)
    world.sync()
    assert world.books() == world.books() | {"expired": 4}
    assert "messages" not in world.books()


def test_the_message_limit_counts_those_on_disk() -> None:
    world = spilling(1, message_limit=4)
    push_many(world, 1, 4)
    world.sync()
    assert world.push("m5") == ["p wire of m5: 482"]


def test_an_ephemeral_queue_drops_and_counts() -> None:
    for world in (World(), KeptWorld()):
        world.create(QueueChanges(ephemeral=True, memory_limit=2, status=STATUS_PAUSED))
        world.push("m1", wants=True)
        world.push("m2")
        assert world.push("m3", wants=True) == ["p: m3 no limit-exceeded F"]
        assert world.push("m4") == []
        books = world.books()
        assert (books["messages"], books["overflowed"], books["dropped"]) == (2, 2, 2)


def test_an_ephemeral_queue_is_never_saved() -> None:
    world = KeptWorld()
    world.create(QueueChanges(ephemeral=True, delivery_handler="ack-ifsaved"))
    assert world.push("m1", wants=True) == []


def test_what_is_on_disk_only_is_read_as_far_as_the_memory_goes_after_a_restart() -> None:
    world = spilling(3)
    push_many(world, 1, 10)
    world.sync()
    world.crash()
    assert world.books() == {"messages": 10, "spilled": 7, "accepted": 10}
    assert drained(world) == [f"m{each}" for each in range(1, 11)]


def test_what_was_spilled_for_memory_s_sake_does_not_survive() -> None:
    world = spilling(1, durable=False, overflow=True)
    push_many(world, 1, 5)
    world.sync()
    world.restart()
    assert world.books() == {}


class Damaged:
    """A store in which some messages cannot be read."""

    def __init__(self, world: KeptWorld, *sequences: int) -> None:
        self.bad = sequences
        self.store = world.store
        self.fetch_whole = world.store.fetch

    def fetch(
        self, key: int, after: int, last: int, limit: int, max_bytes: int, priority: int
    ) -> list[StoredMessage]:
        found = self.fetch_whole(key, after, last, limit, max_bytes, priority)
        if any(each.sequence in self.bad for each in found):
            raise DamageError("the checksum of a block is wrong")
        return found


@pytest.mark.parametrize(
    ("bad", "left"),
    [
        ((5,), "12346789"),
        ((3,), "12456789"),
        ((9,), "12345678"),
        ((3, 4, 5, 6, 7, 8), "129"),
        ((4, 6, 8), "123579"),
        ((3, 4, 5, 6, 7, 8, 9), "12"),
    ],
)
def test_what_is_damaged_is_dropped_and_counted(
    bad: tuple[int, ...], left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = spilling(2)
    push_many(world, 1, 9)
    world.sync()
    monkeypatch.setattr(world.store, "fetch", Damaged(world, *bad).fetch)
    assert drained(world) == [f"m{each}" for each in left]
    assert world.books()["damaged"] == len(bad)
    assert world.books()["dropped"] == len(bad)
