"""HTTP bindings in the engine: what is called, what the publisher is told, and fail-over."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.letters import Letter
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import (
    AddBinding,
    CreateRouter,
    Disconnect,
    HttpAnswered,
    Publish,
    RemoveBinding,
    RemoveRouter,
    SetRouterEnabled,
)
from tmqp_server.engine.effects import CallHttp
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import (
    ASKS_ACKNOWLEDGE,
    ASKS_NOTHING,
    ASKS_RESPONSE,
    TO_CLIENTS,
    TO_QUEUE,
    TO_URL,
    BindingOptions,
    BrokerOptions,
)

DISTRIBUTE, ROUND_ROBIN, ONLY_FIRST = 0, 1, 2
ALLOWED = BrokerOptions(events=NO_EVENTS, http_prefixes=("http://h/",))


def world_with(method: int = DISTRIBUTE, limits: EngineLimits | None = None) -> World:
    """A router r, queue q/1 without consumers, and a publisher p."""
    world = World(limits, ALLOWED)
    world.connect("p")
    world.step(CreateRouter(1, None, "r", method))
    world.create(channel="q")
    return world


def bind(
    world: World,
    name: str,
    url: str = "",
    method: int | None = None,
    interaction: int = ASKS_NOTHING,
) -> list[str]:
    """Add an HTTP binding; each goes behind those that are there."""
    options = BindingOptions(name, TO_URL, url or f"http://h/{name}", method, 0, interaction, 0)
    return world.step(AddBinding(1, "bind", "r", options))


def bind_queue(world: World, target: str = "q", interaction: int = ASKS_NOTHING) -> None:
    options = BindingOptions(f"queue-{target}", TO_QUEUE, target, 1, 0, interaction, 0)
    assert world.step(AddBinding(1, "bind", "r", options)) == ["p bind: 0"]


def publish(world: World, message_id: str = "m") -> list[str]:
    return world.step(Publish(1, "publish", "r", 10, Letter(message_id)))


def answer(world: World, ticket: int, status: int = 200, body: bytes = b"") -> list[str]:
    return world.step(HttpAnswered(ticket, status, body))


def pushed(world: World) -> int:
    return world.queue("q").regular_count


# --- Adding --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "method", "code"),
    [
        ("http://h/x", None, 0),
        ("http://h/x", 4, 0),
        ("http://h/x", 5, 400),
        ("http://h/x", 65_535, 400),
        ("http://else/x", 1, 401),
        ("h/x", 1, 400),
    ],
)
def test_what_can_be_bound(url: str, method: int | None, code: int) -> None:
    assert bind(world_with(), "b", url, method) == [f"p bind: {code}"]


def test_without_an_allowed_url_there_are_no_http_bindings() -> None:
    world = World()
    world.connect("p")
    assert bind(world, "b") == ["p bind: 501"]


# --- Calls and answers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "word", "body"),
    [
        (0, "GET", b""),
        (1, "POST", b"body of m"),
        (2, "PUT", b"body of m"),
        (3, "PATCH", b"body of m"),
        (4, "DELETE", b""),
        (None, "POST", b"body of m"),
    ],
)
def test_the_methods(method: int | None, word: str, body: bytes) -> None:
    """F120: get and delete carry no payload."""
    world = world_with()
    bind(world, "b", method=method)
    publish(world)
    (call,) = world.last
    assert isinstance(call, CallHttp)
    assert (call.method, call.url, call.body) == (word, "http://h/b", body)
    assert call.headers == [("Id", "m")]


def test_who_publishes_is_told_when_the_program_has_answered() -> None:
    world = world_with()
    bind(world, "b")
    assert publish(world) == ["call 1 POST http://h/b body of m"]
    assert answer(world, 1, 204) == ["p publish: 0"]
    assert answer(world, 1, 200) == []  # nobody waits any more
    assert world.broker.statistics().unknown_tickets == 1


@pytest.mark.parametrize("status", [100, 302, 400, 404, 500, 502, 504, 999])
def test_a_call_that_fails_has_reached_nobody(status: int) -> None:
    world = world_with()
    bind(world, "b")
    publish(world)
    assert answer(world, 1, status) == ["p publish: 404"]


def test_the_first_success_of_several_calls_settles() -> None:
    world = world_with()
    for name in "abc":
        bind(world, name)
    assert len(publish(world)) == 3
    assert answer(world, 2, 500) == []
    assert answer(world, 3, 200) == ["p publish: 0"]
    assert answer(world, 1, 200) == []


def test_when_all_calls_fail_nobody_was_reached() -> None:
    world = world_with()
    for name in "ab":
        bind(world, name)
    publish(world)
    assert answer(world, 1, 500) == []
    assert answer(world, 2, 500) == ["p publish: 404"]


def test_a_queue_that_took_it_needs_no_waiting() -> None:
    world = world_with()
    bind(world, "b")
    bind_queue(world)
    assert publish(world) == ["call 1 POST http://h/b body of m", "p publish: 0"]
    assert answer(world, 1, 500) == []
    assert pushed(world) == 1


@pytest.mark.parametrize(
    ("status", "code"), [(200, 0), (299, 0), (301, 1), (101, 1), (404, 404), (503, 503), (600, 1)]
)
def test_a_binding_that_asks_hands_the_answer_on(status: int, code: int) -> None:
    for method in (DISTRIBUTE, ROUND_ROBIN, ONLY_FIRST):
        world = world_with(method)
        bind(world, "b", interaction=ASKS_RESPONSE)
        publish(world)
        assert answer(world, 1, status, b"said") == [f"p publish response: {code} said"]
        world = world_with(method)
        bind(world, "b", interaction=ASKS_ACKNOWLEDGE)
        publish(world)
        assert answer(world, 1, status, b"said") == [f"p publish acknowledge: {code} said"]


def test_who_is_asked_answers_and_the_router_is_silent() -> None:
    world = world_with()
    bind(world, "a", interaction=ASKS_RESPONSE)
    bind(world, "b")
    bind_queue(world)
    assert len(publish(world)) == 2
    assert answer(world, 2) == []
    assert answer(world, 1) == ["p publish response: 0"]


def test_a_publisher_that_has_gone_is_told_nothing() -> None:
    for interaction in (ASKS_NOTHING, ASKS_ACKNOWLEDGE):
        world = world_with()
        bind(world, "b", interaction=interaction)
        publish(world)
        world.step(Disconnect(1))
        assert answer(world, 1) == []


# --- Fail-over -----------------------------------------------------------------------------------


def test_only_first_goes_on_when_the_call_fails() -> None:
    world = world_with(ONLY_FIRST)
    bind(world, "a")
    bind(world, "b")
    bind_queue(world)
    assert publish(world) == ["call 1 POST http://h/a body of m"]
    assert answer(world, 1, 500) == ["call 2 POST http://h/b body of m"]
    assert answer(world, 2, 500) == ["p publish: 0"]
    assert pushed(world) == 1


def test_only_first_ends_when_none_is_left() -> None:
    world = world_with(ONLY_FIRST)
    bind(world, "a")
    bind_queue(world, "nowhere")
    publish(world)
    assert answer(world, 1, 500) == ["p publish: 404"]


def test_fail_over_to_a_receiver_that_is_asked() -> None:
    world = world_with(ONLY_FIRST)
    world.connect("x")
    bind(world, "a")
    to_x = BindingOptions("x", TO_CLIENTS, "x", None, 0, ASKS_RESPONSE, 0)
    world.step(AddBinding(1, None, "r", to_x))
    publish(world)
    assert answer(world, 1, 500) == ["x <- forward m/None/2"]


def test_round_robin_takes_turns_and_fails_over_round_the_circle() -> None:
    world = world_with(ROUND_ROBIN)
    bind(world, "a")
    bind_queue(world)
    bind(world, "c")
    assert publish(world) == ["call 1 POST http://h/a body of m"]
    assert publish(world) == ["p publish: 0"]
    assert publish(world) == ["call 2 POST http://h/c body of m"]
    assert answer(world, 2, 500) == ["call 3 POST http://h/a body of m"]
    assert answer(world, 3, 500) == ["p publish: 0"]
    assert pushed(world) == 2
    assert answer(world, 1, 200) == ["p publish: 0"]


def test_bindings_removed_meanwhile_are_passed_over() -> None:
    world = world_with(ONLY_FIRST)
    for name in "abc":
        bind(world, name)
    publish(world)
    world.step(RemoveBinding(1, None, "r", "b"))
    assert answer(world, 1, 500) == ["call 2 POST http://h/c body of m"]


def test_a_router_removed_or_disabled_meanwhile_goes_no_further() -> None:
    for command in (RemoveRouter(1, None, "r"), SetRouterEnabled(1, None, "r", False)):
        world = world_with(ONLY_FIRST)
        bind(world, "a")
        bind_queue(world)
        publish(world)
        world.step(command)
        assert answer(world, 1, 500) == ["p publish: 404"]
        assert pushed(world) == 0


def test_fail_over_for_a_publisher_that_has_gone() -> None:
    """Its message is as good as anybody's."""
    world = world_with(ONLY_FIRST)
    bind(world, "a")
    bind_queue(world)
    publish(world)
    world.step(Disconnect(1))
    assert answer(world, 1, 500) == []
    assert pushed(world) == 1


def test_a_full_table_does_not_work_until_a_call_ends() -> None:
    world = world_with(ONLY_FIRST, EngineLimits(max_http_calls=1, max_http_call_bytes=10))
    bind(world, "a")
    bind_queue(world)
    publish(world)
    assert publish(world) == ["p publish: 0"]
    assert pushed(world) == 1
    answer(world, 1)
    assert publish(world) == ["call 2 POST http://h/a body of m"]
