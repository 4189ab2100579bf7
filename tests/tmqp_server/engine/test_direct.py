"""What clients say to each other: who gets it, who is passed over, and what the sender is told."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp_server.engine.client_commands import BY_ID, BY_NAME, BY_TYPE, PassAnswer, SendDirect
from tmqp_server.engine.commands import Acknowledge, Block, Connect, CreateChannel, Unblock
from tmqp_server.engine.limits import EngineLimits


def crew(limits: EngineLimits | None = None) -> World:
    """Four clients: three workers of one type, two of them of one name, and a boss."""
    world = World(limits)
    members = [("a", "w", "t"), ("boss", None, None), ("b", "w", "t"), ("c", "v", "t")]
    for number, (client_id, name, kind) in enumerate(members, 1):
        world.numbers[client_id] = number
        world.names[number] = client_id
        world.step(Connect(number, None, client_id, name, kind))
    return world


def send(world: World, by: int, who: str, first: bool = False, sender: str = "boss") -> list[str]:
    return world.step(SendDirect(world.numbers[sender], by, who, first, 10, "hi"))


@pytest.mark.parametrize(
    ("by", "who", "receivers"),
    [(BY_ID, "a", "a"), (BY_ID, "boss", "boss"), (BY_NAME, "w", "a b"), (BY_TYPE, "t", "a b c")],
)
def test_all_who_fit_get_it_in_the_order_they_connected(by: int, who: str, receivers: str) -> None:
    assert send(crew(), by, who) == [f"{receivers} <- forward hi"]


@pytest.mark.parametrize(("by", "who"), [(BY_NAME, "w"), (BY_TYPE, "t"), (BY_ID, "a")])
def test_first_only_is_the_oldest(by: int, who: str) -> None:
    world = crew()
    assert send(world, by, who, first=True) == ["a <- forward hi"]
    world.disconnect("a")
    following = [] if by == BY_ID else ["b <- forward hi"]
    assert send(world, by, who, first=True) == (following or ["boss hi: 404"])


def test_the_sender_is_not_excluded() -> None:
    assert send(crew(), BY_TYPE, "t", sender="b") == ["a b c <- forward hi"]


@pytest.mark.parametrize(
    ("by", "who"),
    [
        *((BY_ID, who) for who in ("A", "w", "")),
        *((BY_NAME, who) for who in ("W", "t", "")),
        *((BY_TYPE, who) for who in ("T", "t*", "")),
    ],
)
def test_nobody_of_that_name(by: int, who: str) -> None:
    assert send(crew(), by, who) == ["boss hi: 404"]


def test_one_who_reconnects_is_the_youngest() -> None:
    world = crew()
    world.disconnect("a")
    world.numbers["a"] = 5
    world.names[5] = "a"
    world.step(Connect(5, None, "a", "w", "t"))
    assert send(world, BY_NAME, "w") == ["b a <- forward hi"]
    for name in ("a", "b"):
        world.disconnect(name)
    assert send(world, BY_NAME, "w") == ["boss hi: 404"]
    assert world.broker._core.by_name == {"v": {4: world.broker._core.clients["c"]}}


def test_who_does_not_read_is_passed_over_and_counted() -> None:
    world = crew()
    world.step(Block(1))
    assert send(world, BY_TYPE, "t") == ["b c <- forward hi"]
    assert send(world, BY_TYPE, "t", first=True) == ["b <- forward hi"]
    assert send(world, BY_ID, "a") == ["boss hi: 503"]
    assert world.broker.statistics().directs_skipped == 3
    world.step(Unblock(1))
    assert send(world, BY_ID, "a") == ["a <- forward hi"]


def test_too_large() -> None:
    world = crew(EngineLimits(max_message_bytes=9))
    assert send(world, BY_ID, "a") == ["boss hi: 482"]


def test_an_answer_goes_to_its_client_or_nowhere() -> None:
    world = crew()
    assert world.step(PassAnswer(1, "boss", 5, "yes")) == ["boss <- forward yes"]
    assert world.step(PassAnswer(1, "nobody", 5, "yes")) == []
    assert world.broker.statistics().answers_dropped == 1


def test_answers_to_one_who_does_not_read_are_bounded_until_it_reads_again() -> None:
    world = crew(EngineLimits(max_answer_bytes_while_blocked=10))
    world.step(Block(2))
    answer = PassAnswer(1, "boss", 5, "yes")
    told = [world.step(answer) for _ in range(3)]
    assert told == [["boss <- forward yes"]] * 2 + [[]]
    world.step(Unblock(2))
    world.step(Block(2))
    assert world.step(answer) == ["boss <- forward yes"]
    assert world.broker.statistics().answers_dropped == 1


def test_an_acknowledge_that_names_no_channel_goes_to_the_client() -> None:
    world = crew()
    acknowledge = Acknowledge(1, "m", "boss", 7, True, "", "ack", 5)
    assert world.step(acknowledge) == ["boss <- forward ack"]
    assert world.step(Acknowledge(1, "m", "nobody", 7, True, "", "ack", 5)) == []
    world.step(CreateChannel(2, None, "BOSS"))
    assert world.step(acknowledge) == []  # the channel comes first, whatever its case (F116)
    assert world.broker.statistics().unknown_acks == 2


def test_strangers_say_nothing() -> None:
    world = crew()
    assert world.step(SendDirect(99, BY_ID, "a", False, 1, "hi")) == []
    assert world.step(PassAnswer(99, "a", 1, "yes")) == []
    assert world.broker.statistics().stray_commands == 2
