"""Exclusive consumers: one of several gets every message that goes to one consumer."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.feeds import topic, waiting_in
from tests.tmqp_server.engine.keyed import busy, keyed, sent
from tests.tmqp_server.engine.test_choosing import Kinds
from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_BROADCAST, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import Join, SetTerms, Unblock, UpdateChannel
from tmqp_server.engine.model.delivery import ALLOW, Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import STICKY, ChannelChanges, QueueChanges


class Deciding(DeliveryHandler):
    """Makes each message go the long way."""

    def begin_send(self, queue: QueueFacts, message: Message) -> Decision:
        return ALLOW


def exclusive(
    world: World,
    name: str,
    priority: int | None = None,
    filter: SubscriptionFilter | None = None,
    channel: str = "ch",
) -> list[str]:
    """Let an exclusive consumer join."""
    if name not in world.numbers:
        world.connect(name)
    terms = Terms(priority=priority, exclusive=True)
    return sent(world.step(Join(world.numbers[name], "join", channel, -1, filter, terms)))


def no_more(world: World, name: str) -> list[str]:
    """Let a consumer be exclusive no longer."""
    return sent(world.step(SetTerms(world.numbers[name], "terms", "ch", Terms(exclusive=False))))


def queue_of(*names: str, decides: bool = False, status: int = STATUS_ROUND_ROBIN) -> World:
    """A queue with such consumers that are not exclusive.

    :param decides: a handler of it makes each message go the long way.
    """
    handler = "deciding" if decides else "ack-if-asked"
    options = queue_defaults(status=status, delivery_handler=handler)
    world = World(None, options, {"deciding": Deciding()})
    world.create()
    for name in names:
        world.join(name)
    return world


def let_one_take(world: World, single: bool = True) -> list[str]:
    """Let one consumer of the channel take everything, or all of them again."""
    world.connect("operator")
    changes = ChannelChanges(single_consumer=single)
    step = world.step(UpdateChannel(world.numbers["operator"], "update", "ch", changes))
    world.disconnect("operator")
    return sent(step)


@pytest.mark.parametrize("decides", [False, True])
def test_the_first_gets_all_and_the_next_takes_over(decides: bool) -> None:
    world = queue_of("a", "b", decides=decides)
    exclusive(world, "c")
    exclusive(world, "d")
    assert [sent(world.push(f"m{number}")) for number in range(2)] == [["c <- m0"], ["c <- m1"]]
    world.disconnect("c")
    assert sent(world.push("m2")) == ["d <- m2"]
    world.leave("d")
    assert [sent(world.push(f"m{number}"))[0][0] for number in (3, 4)] in (["a", "b"], ["b", "a"])


@pytest.mark.parametrize("decides", [False, True])
def test_a_higher_priority_takes_over_at_once_and_an_equal_one_does_not(decides: bool) -> None:
    world = queue_of(decides=decides)
    exclusive(world, "a", 3)
    exclusive(world, "b", 3)
    assert sent(world.push("m0")) == ["a <- m0"]
    exclusive(world, "c", 4)
    world.connect("d")
    world.step(Join(world.numbers["d"], "join", "ch", terms=Terms(priority=9)))
    assert sent(world.push("m1")) == ["c <- m1"], "the highest is not exclusive"
    no_more(world, "c")
    assert sent(world.push("m2")) == ["a <- m2"]


@pytest.mark.parametrize("decides", [False, True])
def test_messages_wait_for_the_exclusive_consumer_while_it_is_busy(decides: bool) -> None:
    world = queue_of("a", decides=decides)
    exclusive(world, "b")
    busy(world, "b")
    assert sent(world.push("m0")) == []
    assert sent(world.push("m1")) == []
    assert sent(world.step(Unblock(world.numbers["b"]))) == ["b <- m0", "b <- m1"]
    busy(world, "b")
    world.push("m2")
    assert no_more(world, "b") == ["a <- m2"]


def test_what_waits_for_an_exclusive_consumer_goes_to_the_others_when_it_leaves() -> None:
    world = queue_of("a")
    exclusive(world, "b")
    busy(world, "b")
    world.push("m0")
    assert sent(world.leave("b")) == ["a <- m0"]


def test_another_that_is_busy_or_comes_back_changes_nothing() -> None:
    world = queue_of("a", "b")
    exclusive(world, "c")
    busy(world, "a")
    assert sent(world.push("m0")) == ["c <- m0"]
    assert sent(world.step(Unblock(world.numbers["a"]))) == []
    busy(world, "c")
    assert sent(world.push("m1")) == []
    busy(world, "a")
    assert sent(world.step(Unblock(world.numbers["a"]))) == []
    assert sent(world.step(Unblock(world.numbers["c"]))) == ["c <- m1"]


def test_what_its_filter_does_not_accept_waits_too() -> None:
    world = queue_of()
    world.join("a", filter=Kinds("xy"))
    exclusive(world, "b", filter=Kinds("x"))
    assert sent(world.push("1x")) == ["b <- 1x"]
    assert sent(world.push("1y")) == []
    assert sent(world.leave("b")) == ["a <- 1y"]


def test_keys_are_the_exclusive_consumers_while_it_is_there() -> None:
    world = keyed(STICKY)
    world.join("a")
    world.join("b")
    for key in "klmn":
        world.push(f"{key}-1")
    for name in "ab":
        for key in "klmn":
            world.ack(name, f"{key}-1")
    exclusive(world, "c")
    assert [sent(world.push(f"{key}-2"))[0][0] for key in "klmn"] == ["c"] * 4
    for key in "klmn":
        world.ack("c", f"{key}-2")
    world.leave("c")
    assert sorted(sent(world.push(f"{key}-3"))[0][0] for key in "klmn") == ["a", "a", "b", "b"]


def test_feeds_get_nothing_meanwhile() -> None:
    world = topic("x", source=QueueChanges(status=STATUS_ROUND_ROBIN))
    exclusive(world, "c", channel="t")
    assert sent(world.push("m0", channel="t")) == ["c <- m0"]
    assert sent(world.push("m1", channel="t")) == ["c <- m1"]
    busy(world, "c")
    world.push("m2", channel="t")
    assert waiting_in(world, "x") == []
    world.leave("c", channel="t")
    world.finish()
    assert waiting_in(world, "x") == ["m2"]


@pytest.mark.parametrize("status", [STATUS_PUSH, STATUS_BROADCAST])
def test_where_everybody_gets_each_message_it_makes_no_difference(status: int) -> None:
    world = queue_of("a", "b", status=status)
    exclusive(world, "c")
    first, others = [word for word in world.push("m0") if " <- " in word]
    assert (first.split(" <- ")[0], others.split(" <- ")[0]) == ("a", "b c")


@pytest.mark.parametrize("decides", [False, True])
@pytest.mark.parametrize("status", [STATUS_PUSH, STATUS_BROADCAST])
def test_the_first_acquirer_is_the_exclusive_one(status: int, decides: bool) -> None:
    world = queue_of("a", "b", status=status, decides=decides)
    world.update(QueueChanges(send_only_first_acquirer=True))
    exclusive(world, "c")
    assert sent(world.push("m0")) == ["c <- m0"]
    busy(world, "c")
    assert sent(world.push("m1")) == []
    words = sent(world.step(Unblock(world.numbers["c"])))
    assert words == (["c <- m1"] if status == STATUS_PUSH else []), "a broadcast keeps nothing"


@pytest.mark.parametrize("decides", [False, True])
def test_in_a_channel_of_a_single_consumer_everybody_is_exclusive(decides: bool) -> None:
    world = queue_of("a", "b", decides=decides)
    assert let_one_take(world) == []
    assert [sent(world.push(f"m{number}")) for number in range(2)] == [["a <- m0"], ["a <- m1"]]
    exclusive(world, "c", 1)
    assert sent(world.push("m2")) == ["c <- m2"], "the highest priority comes first"
    world.disconnect("c")
    world.leave("a")
    assert sent(world.push("m3")) == ["b <- m3"]


def test_what_waited_for_a_single_consumer_goes_to_others_when_the_option_is_taken_away() -> None:
    world = queue_of("a", "b")
    let_one_take(world)
    busy(world, "a")
    assert sent(world.push("m0")) == []
    assert let_one_take(world, False) == ["b <- m0"]


def test_a_consumer_that_can_take_more_gets_what_waits_when_the_option_is_given() -> None:
    world = queue_of("a", "b")
    exclusive(world, "b")
    busy(world, "b")
    assert sent(world.push("m0")) == []
    assert let_one_take(world) == ["a <- m0"], "it joined first"
