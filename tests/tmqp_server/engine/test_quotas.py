"""Full queues: what has waited longest may make way; expired messages may become dead letters."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_CACHE, STATUS_PULL
from tmqp_server.engine.commands import Batch, Command, Push, PushExtras
from tmqp_server.engine.effects import Append, Erase
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import (
    DEAD_LETTER,
    DROP_OLDEST,
    NOWHERE,
    BrokerOptions,
    QueueChanges,
)

DEAD = ("dead", 1)


def full(world: World, **changes: object) -> World:
    """A world with a queue that holds three messages: h of high priority, m1 and m2."""
    options = {"status": STATUS_PULL, "message_limit": 3, **changes}
    world.create(QueueChanges(**options))  # type: ignore[arg-type]
    world.push("h", high=True)
    world.push("m1")
    world.push("m2")
    return world


def waiting(world: World, channel: str = "ch") -> list[str]:
    queue = world.queue(channel)
    found = [*queue.high.messages(), *queue.regular.messages()]
    return [each.message_id for each in found]


def test_a_full_queue_refuses() -> None:
    world = full(World())
    assert world.push("m3") == ["p wire of m3: 482"]
    assert waiting(world) == ["h", "m1", "m2"]
    assert "displaced" not in world.books()


def test_what_has_waited_longest_makes_way() -> None:
    world = full(World(), when_full=DROP_OLDEST)
    assert world.push("m3", wants=True) == ["p: m3 ok F"]
    assert waiting(world) == ["h", "m2", "m3"]
    for number in range(4, 7):
        world.push(f"h{number}", high=True)
    assert waiting(world) == ["h4", "h5", "h6"], "high priority last"
    assert (world.books()["dropped"], world.books()["displaced"]) == (4, 4)


def test_it_makes_way_to_the_dead_letters() -> None:
    world = full(World(), when_full=DEAD_LETTER, dead_letter=DEAD)
    world.push("m3")
    world.push("m4")
    assert waiting(world) == ["h", "m3", "m4"]
    assert waiting(world, "dead") == ["m1", "m2"]
    assert (world.books()["dead"], world.books()["displaced"]) == (2, 2)


def test_a_producer_that_still_waits_is_told() -> None:
    world = World()
    world.create(
        QueueChanges(message_limit=1, when_full=DROP_OLDEST, delivery_handler="ack-consumer")
    )
    world.push("m1", wants=True)
    assert world.push("m2", wants=True) == ["p: m1 no limit-exceeded F"]


def test_bytes() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL, bytes_limit=100, when_full=DROP_OLDEST))
    for number in range(10):
        world.push(f"m{number}", size=10)
    world.push("large", size=75)
    assert waiting(world) == ["m8", "m9", "large"]
    assert world.queue().bytes == 95
    assert world.push("larger", size=101) == ["p wire of larger: 482"]
    assert waiting(world) == ["m8", "m9", "large"], "nothing makes way for what cannot fit"


def test_bytes_refuse_too() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_PULL, bytes_limit=25))
    world.push("m1")
    world.push("m2")
    assert world.push("m3") == ["p wire of m3: 482"]


def test_what_is_in_flight_does_not_make_way() -> None:
    world = World()
    world.create(QueueChanges(bytes_limit=20, when_full=DROP_OLDEST))
    world.join("a")
    world.push("m1")
    world.push("m2")
    assert world.push("m3") == ["p wire of m3: 482"]
    world.ack("a", "m1")
    assert world.push("m3") == ["a <- m3 FA"]


def test_a_full_server_drops_nothing() -> None:
    world = full(World(EngineLimits(max_total_bytes=300_000)), when_full=DROP_OLDEST)
    world.update(QueueChanges(message_limit=1_000))
    while world.push("more", size=20_000) != ["p wire of more: 503"]:
        pass
    assert waiting(world)[:3] == ["h", "m1", "m2"]


def test_a_batch_is_refused_as_a_whole() -> None:
    world = full(World(), when_full=DROP_OLDEST)
    number = world.numbers["p"]
    pushes: list[Command] = [
        Push(number, f"b{each}", "ch", 1, False, False, 10, "wire") for each in range(2)
    ]
    assert world.step(Batch(number, "batch", pushes)) == ["p batch: 482"]
    assert waiting(world) == ["h", "m1", "m2"]


@pytest.mark.parametrize("when_full", [DROP_OLDEST, DEAD_LETTER])
def test_stored_messages_make_way_on_disk_too(when_full: str) -> None:
    world = KeptWorld()
    full(world, when_full=when_full, dead_letter=DEAD, durable=True)
    world.sync()
    world.push("m3")
    world.sync()
    world.crash()
    world.sync()
    assert waiting(world) == ["h", "m2", "m3"]
    if when_full == DEAD_LETTER:
        assert waiting(world, "dead") == ["m1"]


def test_what_lies_on_disk_only_comes_in_its_turn() -> None:
    world = KeptWorld()
    changes = QueueChanges(
        status=STATUS_PULL, durable=True, memory_limit=2, message_limit=6, when_full=DROP_OLDEST
    )
    world.create(changes)
    for number in range(30):
        world.push(f"m{number}")
        world.sync()
    queue = world.queue()
    assert queue.regular_in_all() == 6
    assert world.books()["displaced"] == 24
    world.join("a")
    world.pull("a", 2)
    world.sync()
    assert waiting(world)[0] == "m26"


def test_expired_messages_become_dead_letters() -> None:
    world = World()
    world.create(
        QueueChanges(message_timeout_ms=500, dead_letter=DEAD, expired_to_dead_letter=True)
    )
    world.push("m1")
    world.wait(1)
    assert waiting(world) == []
    assert waiting(world, "dead") == ["m1"]
    assert world.books()["dead"] == 1
    assert "expired" not in world.books()
    world.wait(100)
    assert waiting(world, "dead") == ["m1"], "there it may wait"


@pytest.mark.parametrize(
    "changes",
    [
        QueueChanges(when_full="explode"),
        QueueChanges(when_full=DEAD_LETTER),
        QueueChanges(expired_to_dead_letter=True),
        QueueChanges(bytes_limit=-1),
    ],
)
def test_options_that_mean_nothing_are_refused(changes: QueueChanges) -> None:
    assert World().create(changes)[-1] == "admin create: 400"


def test_what_a_cache_has_replaced_takes_up_no_room() -> None:
    """Pushes that came before the scheduler disposed of the replaced messages were refused."""
    world = World(EngineLimits(max_messages_per_queue=3))
    world.create(QueueChanges(status=STATUS_CACHE))
    world.connect("p")
    number = world.numbers["p"]
    pushes: list[Command] = [
        Push(number, f"m{each}", "ch", 1, False, False, 10, "w") for each in range(9)
    ]
    assert world.broker.steps(pushes, 0, world.now, 1_000) == (9, [])
    assert waiting(world) == ["m8"]
    assert world.books() == {
        "messages": 1,
        "accepted": 9,
        "cleared": 8,
        "received_messages": 9,
    }
    queue = world.queue()
    assert (queue.count, queue.bytes) == (1, 10)


def test_a_cache_takes_all_dead_letters_of_one_moment() -> None:
    """The model counted four, the engine three: replaced letters still filled ``bytes_limit``."""
    world = World()
    world.create(QueueChanges(status=STATUS_CACHE, bytes_limit=35), channel="dead")
    world.create(
        QueueChanges(
            status=STATUS_PULL,
            message_timeout_ms=1_000,
            expired_to_dead_letter=True,
            dead_letter=DEAD,
        )
    )
    for number in range(6):
        world.push(f"m{number}")
    world.wait(2)
    assert world.books()["dead"] == 6
    assert "dropped" not in world.books()
    assert waiting(world, "dead") == ["m5"]


def test_a_stored_message_that_a_cache_replaces_is_erased_after_the_new_one_is_written() -> None:
    """Otherwise a crash between the two would leave the cache empty."""
    world = World(options=BrokerOptions(events=NO_EVENTS, storage=True))
    world.create(QueueChanges(status=STATUS_CACHE, durable=True))
    world.push("m1")
    world.push("m2")
    kinds = [type(each) for each in world.last if isinstance(each, (Append, Erase))]
    assert kinds == [Append, Erase]


def test_a_large_message_in_a_cache_could_never_be_updated() -> None:
    """The next one was refused, as if the one that it replaces went on filling ``bytes_limit``."""
    world = World()
    world.create(QueueChanges(status=STATUS_CACHE, bytes_limit=100))
    assert world.push("m1", size=80) == []
    assert world.push("m2", size=90) == []
    assert world.push("m3", size=101) == ["p wire of m3: 482"]
    later = PushExtras(delay_ms=500)
    assert world.push("m4", size=20, extras=later) == ["p wire of m4: 482"], "nothing makes way yet"
    assert world.push("m5", size=70, wants=True) == ["p: m5 ok F"]
    assert waiting(world) == ["m5"]
    assert (world.queue().bytes, world.books()["cleared"]) == (70, 2)


def test_a_cache_is_updated_when_the_server_and_its_quota_are_full() -> None:
    world = KeptWorld(EngineLimits(max_messages_per_queue=1))
    world.create(QueueChanges(status=STATUS_CACHE, durable=True, disk_limit_bytes=100))
    for number in range(3):
        assert [each for each in world.push(f"m{number}", size=90) if "482" in each] == []
        world.sync()
    assert waiting(world) == ["m2"]
    assert world.queue().disk_bytes == 90
    world.push("larger", size=110)
    assert waiting(world) == ["m2"]


def test_a_large_dead_letter_in_a_cache_is_replaced_by_the_next() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_CACHE, bytes_limit=100), channel="dead")
    world.create(
        QueueChanges(status=STATUS_PULL, message_limit=1, when_full=DEAD_LETTER, dead_letter=DEAD)
    )
    for number in range(4):
        world.push(f"m{number}", size=80)
    assert waiting(world, "dead") == ["m2"]
    assert "dropped" not in world.books()


# --- Queues of dead letters that clients name ----------------------------------------------------


def test_a_circle_of_dead_letters_ends() -> None:
    world = World()
    for mine, other in (("a", "b"), ("b", "a")):
        world.create(
            QueueChanges(message_timeout_ms=100, dead_letter=(other, 1)),
            channel=mine,
        )
        world.update(
            QueueChanges(message_limit=1, when_full=DEAD_LETTER, expired_to_dead_letter=True),
            channel=mine,
        )
    for number in range(6):
        world.push(f"m{number}", channel="a")
    books = [world.books("a"), world.books("b")]
    assert [waiting(world, "a"), waiting(world, "b")] != [[], []]
    assert sum(each["accepted"] - each.get("dead", 0) for each in books) == 6
    assert world.broker.statistics().dead_lettered <= 6 * EngineLimits().max_dead_letter_hops


def test_no_queue_is_its_own_queue_of_dead_letters() -> None:
    world = World()
    changes = QueueChanges(dead_letter=("CH", 1))
    assert world.create(changes) == ["admin create: 400"]
    world.create(QueueChanges())
    assert world.update(changes)[-1].endswith("400")
    assert world.update(QueueChanges(dead_letter=("ch", 2)))[-1].endswith("0")
    assert world.update(QueueChanges(dead_letter=NOWHERE))[-1].endswith("0")
    assert world.queue().options.dead_letter is None


def test_a_name_that_no_channel_can_have_is_refused() -> None:
    for name in ("", "a*", "a;b", "n" * 70_000):
        changes = QueueChanges(dead_letter=(name, 2))
        assert World().create(changes)[-1] == "admin create: 400", name


def test_a_target_that_is_missing_and_may_not_be_created_takes_nothing() -> None:
    world = World(options=BrokerOptions(auto_channel_creation=False, events=NO_EVENTS))
    world.create(
        QueueChanges(message_timeout_ms=100, expired_to_dead_letter=True, dead_letter=DEAD)
    )
    world.push("m1")
    world.wait(1)
    assert (world.books()["dropped"], world.books().get("dead", 0)) == (1, 0)


def test_a_quota_of_the_disk_kept_what_is_never_saved_from_making_room() -> None:
    world = full(World(), when_full=DROP_OLDEST, disk_limit_bytes=20)
    assert world.push("large", size=30) == []
    assert waiting(world) == ["h", "m2", "large"]


def test_what_must_be_saved_and_has_no_place_on_disk_displaces_nothing() -> None:
    options = {"when_full": DROP_OLDEST, "disk_limit_bytes": 100, "durable": True}
    world = full(KeptWorld(), **options)
    assert world.push("large", size=101) == ["p wire of large: 482"]
    assert waiting(world) == ["h", "m1", "m2"]
