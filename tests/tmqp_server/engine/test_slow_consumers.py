"""Full buffers, credit, too much unanswered: queues hold, broadcasts pass over, all bounded."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.test_feed_runs import SIZE, Ids
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_BROADCAST, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import Block, Grant, PushRun, RunNotes, Unblock
from tmqp_server.engine.effects import DeliverRun, Effect
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.options import QueueChanges


def block(world: World, name: str) -> list[str]:
    return world.step(Block(world.numbers[name]))


def unblock(world: World, name: str) -> list[str]:
    return world.step(Unblock(world.numbers[name]))


def test_a_push_queue_holds_while_one_consumer_is_blocked() -> None:
    world = World()
    world.join("a")
    world.join("b")
    world.create(QueueChanges(message_limit=2))
    assert block(world, "b") == []
    assert block(world, "b") == []
    assert world.push("m1") == []
    assert world.push("m2") == []
    assert world.push("m3") == ["p wire of m3: 482"]
    assert unblock(world, "b") == ["a <- m1 FA", "b <- m1 A", "a <- m2 FA", "b <- m2 A"]
    assert unblock(world, "b") == []
    assert world.push("m4") == ["a <- m4 FA", "b <- m4 A"]


@pytest.mark.parametrize("how", ["leave", "disconnect"])
def test_it_goes_on_when_the_blocked_one_goes(how: str) -> None:
    world = World()
    world.join("a")
    world.join("b")
    block(world, "b")
    world.push("m1")
    if how == "leave":
        assert world.leave("b") == ["b leave: 0", "a <- m1 FA"]
    else:
        assert world.disconnect("b") == ["a <- m1 FA"]


def test_a_blocked_session_blocks_all_its_channels() -> None:
    world = World()
    world.join("a", "one")
    world.join("a", "two")
    block(world, "a")
    assert world.push("m1", channel="one") == []
    assert world.push("m2", channel="two", queue_id=2) == []
    assert world.push("m3", channel="two", queue_id=3) == []
    assert unblock(world, "a") == ["a <- m1 FA", "a <- m2 FA", "a <- m3 FA"]


def test_one_may_join_while_blocked() -> None:
    world = World()
    world.connect("a")
    block(world, "a")
    world.push("m1")
    assert world.join("a") == ["a join: 0"]
    assert unblock(world, "a") == ["a <- m1 FA"]


def test_round_robin_passes_over_the_blocked() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_ROUND_ROBIN))
    for name in "abc":
        world.join(name)
    block(world, "b")
    got = [world.push(f"m{number}")[0][0] for number in range(4)]
    assert got == ["a", "c", "a", "c"]
    block(world, "a")
    block(world, "c")
    assert world.push("m4") == []
    assert unblock(world, "b") == ["b <- m4 FA"]


def test_the_first_acquirer_is_the_first_who_can_take_it() -> None:
    world = World()
    world.create(QueueChanges(send_only_first_acquirer=True))
    world.join("a")
    world.join("b")
    block(world, "a")
    assert world.push("m1") == ["b <- m1 FA"]


def test_a_broadcast_passes_over_the_blocked() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_BROADCAST))
    for name in "abc":
        world.join(name)
    block(world, "a")
    assert world.push("m1") == ["b <- m1 FA", "c <- m1 A"]
    assert world.books()["skipped"] == 1
    block(world, "b")
    block(world, "c")
    assert world.push("m2") == []
    assert world.books()["dropped"] == 1
    unblock(world, "a")
    assert world.push("m3") == ["a <- m3 FA"]


# --- Push, and nobody waits for a slow one -------------------------------------------------------


def skipping(limits: EngineLimits | None = None, **changes: object) -> World:
    """A push queue that skips slow consumers, and three consumers."""
    world = World(limits or EngineLimits())
    world.create(QueueChanges(skip_slow_consumers=True, **changes))  # type: ignore[arg-type]
    for name in "abc":
        world.join(name)
    return world


def push_run(world: World, *ids: str) -> list[Effect]:
    size = SIZE * len(ids)
    world.connect("p")
    number = world.numbers["p"]
    run = PushRun(number, "ch", 1, False, False, len(ids), size, SIZE, Ids([*ids]), RunNotes())
    return world.broker.step(run, world.now)


def test_the_others_go_on() -> None:
    world = skipping()
    block(world, "b")
    assert world.push("m1") == ["a <- m1 FA", "c <- m1 A"]
    assert world.books()["skipped"] == 1
    assert unblock(world, "b") == []  # what it missed it has missed
    assert world.push("m2") == ["a <- m2 FA", "b c <- m2 A"]


def test_nothing_is_lost_while_all_are_slow() -> None:
    world = skipping(request_acknowledge=False)
    for name in "abc":
        block(world, name)
    assert world.push("m1") == []
    assert world.push("m2") == []
    assert world.books()["messages"] == 2
    assert unblock(world, "c") == ["c <- m1 F", "c <- m2 F"]
    assert world.books()["skipped"] == 4
    assert "dropped" not in world.books()


@pytest.mark.parametrize("skips", [False, True])
def test_a_run_goes_to_the_others(skips: bool) -> None:
    world = skipping(request_acknowledge=False)
    world.update(QueueChanges(skip_slow_consumers=skips))
    block(world, "b")
    sent = push_run(world, "m1", "m2")
    runs = [each for each in sent if isinstance(each, DeliverRun)]
    names = [sorted(world.names[number] for number in each.sessions) for each in runs]
    assert names == ([["a"], ["c"]] if skips else [])
    assert world.books().get("skipped", 0) == (2 if skips else 0)
    assert world.books().get("messages", 0) == (0 if skips else 2)


def test_one_with_too_much_unanswered_gets_it_and_is_not_waited_for() -> None:
    world = skipping(EngineLimits(max_in_flight_per_session=1), acknowledge_timeout_ms=5_000)
    assert world.push("m1") == ["a <- m1 FA", "b c <- m1 A"]
    assert world.push("m2") == []  # all have too much unanswered
    assert world.ack("a", "m1") == ["a <- m2 FA", "b c <- m2 A"]
    assert world.books()["untracked"] == 2
    world.ack("b", "m2")
    assert world.books()["unknown_acks"] == 1


def test_where_one_consumer_gets_each_message_nothing_changes() -> None:
    world = skipping(status=STATUS_ROUND_ROBIN)
    block(world, "b")
    assert [world.push(f"m{number}") for number in range(3)] == [
        ["a <- m0 FA"],
        ["c <- m1 FA"],
        ["a <- m2 FA"],
    ]
    world.update(QueueChanges(status=STATUS_PUSH, send_only_first_acquirer=True))
    block(world, "a")
    block(world, "c")
    assert world.push("m3") == []
    assert unblock(world, "c") == ["c <- m3 FA"]


def test_an_update_lets_what_waits_for_a_slow_one_go() -> None:
    world = World()
    for name in "ab":
        world.join(name)
    block(world, "b")
    assert world.push("m1") == []
    assert world.update(QueueChanges(skip_slow_consumers=True)) == ["a <- m1 FA", "admin update: 0"]


# --- Credit --------------------------------------------------------------------------------------


def test_credit_is_spent_by_deliveries() -> None:
    world = World()
    assert world.join("a", credit=2) == ["a join: 0"]
    assert world.push("m1") == ["a <- m1 FA"]
    assert world.push("m2") == ["a <- m2 FA"]
    assert world.push("m3") == []
    assert world.push("m4") == []
    number = world.numbers["a"]
    assert world.step(Grant(number, "ch", 1)) == ["a <- m3 FA"]
    assert world.step(Grant(number, "CH", 0)) == []
    assert world.step(Grant(number, "ch", -1)) == ["a <- m4 FA"]
    assert world.push("m5") == ["a <- m5 FA"]
    assert world.step(Grant(number, "elsewhere", 1)) == []
    assert world.step(Grant(world.numbers["p"], "ch", 1)) == []


def test_a_push_queue_waits_for_everybodys_credit() -> None:
    world = World()
    world.join("a", credit=1)
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA", "b <- m1 A"]
    assert world.push("m2") == []
    assert world.step(Grant(world.numbers["a"], "ch", 5)) == ["a <- m2 FA", "b <- m2 A"]


def test_a_broadcast_is_missed_without_credit() -> None:
    world = World()
    world.create(QueueChanges(status=STATUS_BROADCAST))
    world.join("a", credit=1)
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA", "b <- m1 A"]
    assert world.push("m2") == ["b <- m2 FA"]
    assert world.books()["skipped"] == 1


def test_joining_again_sets_the_credit_anew() -> None:
    world = World()
    world.join("a", credit=0)
    world.push("m1")
    assert world.join("a", credit=1) == ["a <- m1 FA", "a join: 0"]
    world.push("m2")
    assert world.join("a") == ["a <- m2 FA", "a join: 0"]


# --- Too much unanswered -------------------------------------------------------------------------


def test_in_flight_is_bounded_and_goes_on_when_a_quarter_is_free() -> None:
    world = World(EngineLimits(max_in_flight_per_session=4))
    world.join("a")
    sent = sum(len(world.push(f"m{number}")) for number in range(8))
    assert sent == 4
    assert world.books()["in_flight"] == 4
    assert world.ack("a", "m0") == ["a <- m4 FA"]
    assert world.nack("a", "m1") == ["a <- m5 FA"]
    # The timeout frees the rest.
    world.create(QueueChanges(), queue_id=2)
    assert world.wait(16) == ["a <- m6 FA", "a <- m7 FA"]


def test_a_window_of_eight_waits_for_two() -> None:
    world = World(EngineLimits(max_in_flight_per_session=8))
    world.join("a")
    for number in range(12):
        world.push(f"m{number}")
    assert world.ack("a", "m0") == []
    assert world.ack("a", "m1") == ["a <- m8 FA", "a <- m9 FA"]


def test_one_full_window_holds_all_channels_of_the_session() -> None:
    world = World(EngineLimits(max_in_flight_per_session=1))
    world.join("a", "one")
    world.join("a", "two")
    world.push("m1", channel="one")
    assert world.push("m2", channel="two") == []
    assert world.ack("a", "m1", "one") == ["a <- m2 FA"]


def test_a_broadcast_goes_on_untracked() -> None:
    world = World(EngineLimits(max_in_flight_per_session=2))
    world.create(QueueChanges(status=STATUS_BROADCAST))
    world.join("a")
    for number in range(3):
        assert world.push(f"m{number}") == [f"a <- m{number} FA"]
    world.join("b")
    assert world.push("m3") == ["a <- m3 FA", "b <- m3 A"]
    books = world.books()
    assert (books["untracked"], books["in_flight"], books["done"]) == (2, 3, 1)
    world.ack("a", "m2")
    assert world.books()["unknown_acks"] == 1


def test_a_stopped_queue_frees_the_windows() -> None:
    world = World(EngineLimits(max_in_flight_per_session=2))
    world.join("a", "one")
    world.join("a", "two")
    world.push("m1", channel="one")
    world.push("m2", channel="one")
    world.push("m3", channel="two")
    world.update(QueueChanges(status=6), "one")
    assert world.finish() == ["a <- m3 FA"]


# --- Filters -------------------------------------------------------------------------------------


class Odd(SubscriptionFilter):
    """Takes messages with an odd number at the end."""

    def accepts(self, message: Message) -> bool:
        return int(message.message_id[-1]) % 2 == 1


def test_a_filter_chooses() -> None:
    world = World()
    world.join("a", filter=Odd())
    world.join("b")
    assert world.push("m1") == ["a <- m1 FA", "b <- m1 A"]
    assert world.push("m2") == ["b <- m2 FA"]
    assert world.push("mx") == ["b <- mx FA"]  # the filter raises
    assert world.books()["errors"] == 1
    assert world.join("a") == ["a join: 0"]
    assert world.push("m4") == ["a <- m4 FA", "b <- m4 A"]


def test_the_plain_filter_takes_all() -> None:
    world = World()
    world.join("a", filter=SubscriptionFilter())
    assert world.push("m1") == ["a <- m1 FA"]


def test_a_message_no_filter_takes_is_dropped() -> None:
    world = World()
    world.join("a", filter=Odd())
    assert world.push("m2") == []
    assert world.books()["dropped"] == 1
