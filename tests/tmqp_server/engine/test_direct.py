"""What clients say to each other: who gets it, who is passed over, and what the sender is told."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.test_nodes import enter_node
from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp_server.engine.commands import (
    BY_ID,
    BY_NAME,
    BY_TYPE,
    Acknowledge,
    Block,
    Connect,
    CreateChannel,
    PassAnswer,
    SendDirect,
    Unblock,
)
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_RESPONSE


def crew(limits: EngineLimits | None = None, *, takes_nodes: bool = False) -> World:
    """Four clients: three workers of one type, two of them of one name, and a boss."""
    world = World(limits, options=queue_defaults(takes_nodes=takes_nodes))
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


def ask(
    world: World, by: int, who: str, asks: int, message_id: str = "q", sender: str = "boss"
) -> list[str]:
    """Send a direct message that wants answers."""
    number = world.numbers[sender]
    return world.step(SendDirect(number, by, who, False, 10, "hi", None, message_id, asks))


def respond(world: World, by: str, to: str = "boss", message_id: str = "q") -> list[str]:
    number = world.numbers[by]
    return world.step(PassAnswer(number, to, 5, f"{by} says yes", message_id, ASKS_RESPONSE))


def confirm(world: World, by: str, to: str = "boss", message_id: str = "q") -> list[str]:
    number = world.numbers[by]
    return world.step(PassAnswer(number, to, 5, f"{by} has it", message_id, ASKS_ACKNOWLEDGE))


def dropped(world: World) -> int:
    return world.broker.statistics().answers_dropped


def test_an_answer_goes_to_whom_it_is_for_or_nowhere() -> None:
    world = crew()
    ask(world, BY_ID, "a", ASKS_RESPONSE)
    assert respond(world, "a", to="nobody") == []
    assert respond(world, "a") == ["boss <- forward a says yes"]
    assert dropped(world) == 1


def test_nobody_answers_who_was_not_asked() -> None:
    """An id is no secret: whoever is brought a message reads it, and ids can be told on."""
    world = crew()
    ask(world, BY_NAME, "w", ASKS_RESPONSE | ASKS_ACKNOWLEDGE)
    for forged in (respond, confirm):
        assert forged(world, "c") == []
        assert forged(world, "boss") == []
        assert forged(world, "a", message_id="another") == []
        assert forged(world, "a", to="b") == []
    assert dropped(world) == 8
    assert confirm(world, "a") == ["boss <- forward a has it"]
    assert respond(world, "b") == ["boss <- forward b says yes"]


def test_who_asks_for_nothing_is_answered_nothing() -> None:
    world = crew()
    ask(world, BY_ID, "a", 0)
    assert respond(world, "a") == []
    assert confirm(world, "a") == []
    assert world.step(Acknowledge(1, "q", "boss", 7, True, "", "ack", 5)) == []
    ask(world, BY_ID, "a", ASKS_ACKNOWLEDGE)
    assert respond(world, "a") == [], "it asked for an acknowledge"
    assert confirm(world, "a") == ["boss <- forward a has it"]


def test_each_answer_is_passed_on_once() -> None:
    world = crew()
    ask(world, BY_NAME, "w", ASKS_RESPONSE)
    assert confirm(world, "a") == ["boss <- forward a has it"], "it may acknowledge before"
    assert confirm(world, "a") == []
    assert respond(world, "a") == ["boss <- forward a says yes"]
    assert respond(world, "a") == []
    assert confirm(world, "a") == []
    assert respond(world, "b") == ["boss <- forward b says yes"]
    asked = world.broker._core.clients["boss"].asked
    assert asked is not None
    assert len(asked) == 0


def test_an_answer_that_comes_too_late_is_dropped() -> None:
    world = crew(EngineLimits(max_answer_wait_ms=2_000))
    ask(world, BY_ID, "a", ASKS_RESPONSE, "early")
    world.wait(1.5)
    ask(world, BY_ID, "a", ASKS_RESPONSE, "late")
    world.wait(0.5)
    assert respond(world, "a", message_id="early") == []
    assert respond(world, "a", message_id="late") == ["boss <- forward a says yes"]


def test_questions_end_with_the_connection_that_asked() -> None:
    world = crew()
    ask(world, BY_ID, "a", ASKS_RESPONSE)
    world.disconnect("boss")
    world.connect("boss")
    assert respond(world, "a") == []


def test_an_id_that_is_used_again_asks_again() -> None:
    world = crew()
    ask(world, BY_ID, "a", ASKS_RESPONSE)
    ask(world, BY_ID, "b", ASKS_RESPONSE)
    assert respond(world, "a") == ["boss <- forward a says yes"]
    assert respond(world, "b") == ["boss <- forward b says yes"]


def test_answers_to_one_who_does_not_read_are_bounded_until_it_reads_again() -> None:
    world = crew(EngineLimits(max_answer_bytes_while_blocked=10))
    for number in range(4):
        ask(world, BY_ID, "a", ASKS_RESPONSE, f"q{number}")
    world.step(Block(2))
    told = [respond(world, "a", message_id=f"q{number}") for number in range(3)]
    assert told == [["boss <- forward a says yes"]] * 2 + [[]]
    world.step(Unblock(2))
    world.step(Block(2))
    assert respond(world, "a", message_id="q3") == ["boss <- forward a says yes"]
    assert dropped(world) == 1


def test_an_acknowledge_that_names_no_channel_goes_to_the_client() -> None:
    world = crew()
    acknowledge = Acknowledge(1, "m", "boss", 7, True, "", "ack", 5)
    ask(world, BY_ID, "a", ASKS_ACKNOWLEDGE, "m")
    assert world.step(acknowledge) == ["boss <- forward ack"]
    assert world.step(Acknowledge(1, "m", "nobody", 7, True, "", "ack", 5)) == []
    ask(world, BY_ID, "a", ASKS_ACKNOWLEDGE, "m")
    world.step(CreateChannel(2, None, "BOSS"))
    assert world.step(acknowledge) == []  # the channel comes first, whatever its case (F116)
    assert world.broker.statistics().unknown_acks == 2


def test_another_node_answers_only_what_it_was_given() -> None:
    world = crew(takes_nodes=True)
    enter_node(world)
    command = SendDirect(2, BY_ID, "far", False, 10, "hi", None, "q", ASKS_RESPONSE)
    command.elsewhere = True
    assert world.step(command) == []
    ask(world, BY_ID, "a", ASKS_RESPONSE, "here")
    node = world.numbers["n"]
    assert world.step(PassAnswer(node, "boss", 5, "no", "here", ASKS_RESPONSE)) == []
    answer = PassAnswer(node, "boss", 5, "far says yes", "q", ASKS_RESPONSE)
    assert world.step(answer) == ["boss <- forward far says yes"]


def test_strangers_say_nothing() -> None:
    world = crew()
    assert world.step(SendDirect(99, BY_ID, "a", False, 1, "hi")) == []
    assert world.step(PassAnswer(99, "a", 1, "yes", "q", ASKS_RESPONSE)) == []
    assert world.broker.statistics().stray_commands == 2
