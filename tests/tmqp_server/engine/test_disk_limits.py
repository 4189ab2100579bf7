"""``disk_limit_bytes``: how much of a queue may be on disk, and what a full one does."""

from __future__ import annotations

from random import Random

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.line_door import LineDoor
from tmqp.constants import STATUS_PULL, STATUS_PUSH
from tmqp_server.engine.commands import Batch, ClearMessages, Command, Push
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import DEAD_LETTER, DROP_OLDEST, QueueChanges
from tmqp_server.storage.journal import Journal

DEAD = ("dead", 1)


class SizedDoor(LineDoor):
    """A door whose messages are as large on disk as they say."""

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        text = f"{message.message_id} {message.source} {message.channel} "
        body = text.encode().ljust(message.size, b".")
        assert len(body) == message.size, "it needs room for its names"
        return body, 0, len(body)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        message_id, source, channel, _ = body.decode().split(" ")
        return "wire", message_id, source, channel, len(body)


def world_with(**changes: object) -> KeptWorld:
    """A world with a durable pull queue that may have 100 bytes on disk."""
    world = KeptWorld()
    world.door = SizedDoor("")
    world.journal = Journal([world.door])
    options = {"status": STATUS_PULL, "durable": True, "disk_limit_bytes": 100, **changes}
    world.create(QueueChanges(**options))  # type: ignore[arg-type]
    world.sync()
    return world


def on_disk(world: KeptWorld, channel: str = "ch") -> int:
    """The bytes that the storage owes, as the storage has them."""
    kept = world.store._queues[world.queue(channel).key]
    return sum(len(kept.messages[each].body) for each in kept.owed)


def waiting(world: KeptWorld, channel: str = "ch") -> list[str]:
    queue = world.queue(channel)
    found = [*queue.high.messages(), *queue.regular.messages()]
    return [each.message_id for each in found]


def clear(world: KeptWorld, high: bool, regular: bool) -> None:
    world.connect("admin")
    world.step(ClearMessages(world.numbers["admin"], "clear", "ch", 1, high, regular))


def pushed(world: KeptWorld, *ids: str, size: int = 30, high: bool = False) -> list[str]:
    words = [word for each in ids for word in world.push(each, size=size, high=high)]
    world.sync()
    return [word for word in words if not word.startswith(("append", "erase", "fetch"))]


def test_a_full_disk_quota_refuses_until_something_is_settled() -> None:
    world = world_with()
    assert pushed(world, "m1", "m2", "m3", "m4") == ["p wire of m4: 482"]
    assert pushed(world, "m5", size=10) == []
    assert pushed(world, "m6", size=10) == ["p wire of m6: 482"]
    assert world.queue().disk_bytes == on_disk(world) == 100
    world.join("a")
    world.pull("a", 1)
    assert pushed(world, "m7", size=10) == ["p wire of m7: 482"], "it is in flight"
    world.ack("a", "m1")
    assert pushed(world, "m8") == []
    assert world.queue().disk_bytes == on_disk(world) == 100


def test_what_has_waited_longest_makes_way_on_disk() -> None:
    world = world_with(when_full=DROP_OLDEST)
    pushed(world, "h", high=True)
    assert pushed(world, "m1", "m2", "m3", "m4") == []
    assert waiting(world) == ["h", "m3", "m4"]
    assert pushed(world, "large", size=101) == ["p wire of large: 482"]
    assert waiting(world) == ["h", "m3", "m4"], "nothing makes way for what cannot fit"
    assert world.queue().disk_bytes == on_disk(world) == 90


def test_dead_letters_of_a_full_quota_need_room_themselves() -> None:
    world = world_with(when_full=DEAD_LETTER, dead_letter=DEAD)
    world.create(QueueChanges(status=STATUS_PULL, disk_limit_bytes=50), channel="dead")
    pushed(world, "m1", "m2", "m3", "m4", "m5")
    assert waiting(world) == ["m3", "m4", "m5"]
    assert waiting(world, "dead") == ["m1"]
    assert world.books()["dropped"] == 1, "m2 does not fit, though its queue need not save it"
    assert world.queue("dead").disk_bytes == on_disk(world, "dead") == 30


@pytest.mark.parametrize("clean", [True, False])
def test_the_quota_is_the_same_after_a_restart(clean: bool) -> None:
    world = world_with(memory_limit=1)
    pushed(world, "h1", "h2", high=True, size=20)
    pushed(world, "m1", "m2", size=25)
    world.restart() if clean else world.crash()
    queue = world.queue()
    tails = [queue.high_tail, queue.regular_tail]
    assert [0 if tail is None else tail.bytes for tail in tails] == [20, 25], "one is read again"
    assert pushed(world, "m3", size=11) == ["p wire of m3: 482"]
    assert pushed(world, "m4", size=10) == []
    assert queue.disk_bytes == on_disk(world) == 100
    clear(world, True, False)
    world.sync()
    assert queue.disk_bytes == on_disk(world) == 60


def test_what_could_not_be_written_takes_nothing() -> None:
    world = world_with(memory_limit=1)
    world.push("m1", size=40)
    world.push("m2", size=40)
    assert world.queue().disk_bytes == 80
    world.write(fails="full")
    world.sync()
    assert world.queue().disk_bytes == on_disk(world) == 0


def test_what_was_never_saved_took_more_room_on_the_disk_than_the_quota_when_it_came_back() -> None:
    """Its write failed while it was in flight, and others have filled the quota since."""
    world = world_with(memory_limit=1, overflow=True)
    world.join("a")
    world.push("m1", size=30)
    world.pull("a", 1)
    world.write(fails="full")
    world.sync()
    assert world.queue().disk_bytes == 0
    assert pushed(world, "m2", "m3", "m4") == []
    world.release("a", "m1")
    world.sync()
    assert "dropped" not in world.books()
    assert world.queue().disk_bytes == on_disk(world) == 90


def test_a_queue_that_only_overflows_counts_what_does_not_fit_into_memory() -> None:
    world = world_with(durable=False, overflow=True, memory_limit=2)
    assert pushed(world, *[f"m{number}" for number in range(6)]) == ["p wire of m5: 482"]
    assert (world.queue().disk_bytes, on_disk(world)) == (90, 90)
    world.join("a")
    world.pull("a", 2)
    world.sync()
    assert (world.queue().disk_bytes, on_disk(world)) == (30, 30), "two came back"


def test_the_oldest_make_way_for_what_overflows_without_more_being_lost() -> None:
    """They are in memory: a push that looked at the disk alone would have dropped all of them."""
    world = world_with(durable=False, overflow=True, memory_limit=4, when_full=DROP_OLDEST)
    for number in range(40):
        assert pushed(world, f"m{number}") == []
    queue = world.queue()
    assert queue.counters.displaced == 40 - queue.regular_in_all()
    assert queue.regular_in_all() >= 6
    assert queue.disk_bytes == on_disk(world) <= 100 + 4 * 30
    world.join("a")
    words = [word for _ in range(5) for word in [*world.pull("a", 4), *world.sync()]]
    numbers = [int(word.split()[2][1:]) for word in words if word.startswith("a <- m")]
    assert numbers == list(range(40 - len(numbers), 40)), "the newest, in order"


def test_a_batch_is_refused_as_a_whole() -> None:
    world = world_with(when_full=DROP_OLDEST)
    pushed(world, "m1", "m2")
    number = world.numbers["p"]
    pushes: list[Command] = [
        Push(number, f"b{each}", "ch", 1, False, False, 25, "wire") for each in range(2)
    ]
    assert world.step(Batch(number, "batch", pushes)) == ["p batch: 482"]
    assert world.step(Batch(number, "batch", pushes[:1])) != ["p batch: 482"]
    world.sync()
    assert world.queue().disk_bytes == on_disk(world) == 85


def test_a_handler_may_save_only_what_fits() -> None:
    world = world_with(durable=False, delivery_handler="ack-ifsaved", disk_limit_bytes=50)
    words = [word for each in ("m1", "m2") for word in world.push(each, wants=True, size=30)]
    words += world.sync()
    assert [word for word in words if word.startswith("p: ")] == [
        "p: m2 no storage F",
        "p: m1 ok F",
    ]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_counted_is_what_is_on_disk(seed: int) -> None:
    """Whatever happens: pushes, answers, put-backs, full disks, crashes, changes of the options."""
    chance = Random(seed)
    world = world_with(
        status=chance.choice((STATUS_PULL, STATUS_PUSH)),
        durable=seed % 3 > 0,
        overflow=seed % 3 == 0,
        memory_limit=chance.choice((1, 3, 50)),
        put_back_limit=2,
        disk_limit_bytes=300,
        when_full=chance.choice(("refuse", DROP_OLDEST, DEAD_LETTER)),
        dead_letter=DEAD,
        expired_to_dead_letter=True,
        message_timeout_ms=4_000,
        delivery_handler=chance.choice(("ack-if-asked", "ack-consumer")),
    )
    names = iter(range(10_000))
    slack = 300 if seed % 3 == 0 else 0  # what its memory holds, and what is put back
    for _ in range(150):
        act = chance.randrange(12)
        if act < 6:
            before = world.queue().disk_bytes
            world.push(f"m{next(names)}", high=chance.random() < 0.2, size=chance.randint(12, 60))
            after = world.queue().disk_bytes
            assert after <= max(300 + slack, before)
        elif act == 6:
            world.join("a")
            world.pull("a", 3)
        elif act == 7 and world.queue().flights:
            message_id = next(iter(world.queue().flights))
            (world.ack if chance.random() < 0.6 else world.nack)("a", message_id)
        elif act == 8:
            world.write(fails="full" if chance.random() < 0.4 else "")
        elif act == 9:
            world.wait(chance.choice((0.5, 3.0)))
        elif act == 10 and chance.random() < 0.3:
            world.crash()
            world.sync()
        elif act == 11:
            clear(world, chance.random() < 0.3, chance.random() < 0.3)
        if chance.random() < 0.3:
            world.sync()
            assert world.queue().disk_bytes == on_disk(world)
    world.sync()
    assert world.queue().disk_bytes == on_disk(world)
