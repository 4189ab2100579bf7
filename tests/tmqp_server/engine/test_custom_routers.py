"""Custom routers: what they are given, where their messages go, what becomes of their faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tmqp_server.engine.letters import Letter
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    AddBinding,
    CreateRouter,
    HttpAnswered,
    ListBindings,
    ListRouters,
    Publish,
    RemoveBinding,
    RemoveRouter,
    SetRouterEnabled,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.events import NO_EVENTS
from tmqp_server.engine.options import (
    ASKS_RESPONSE,
    TO_QUEUE,
    BindingOptions,
    BrokerOptions,
    QueueChanges,
)
from tmqp_server.engine.routing.custom import (
    CustomRouter,
    RoutedMessage,
    Target,
    to_clients,
    to_queue,
    to_tag,
    to_url,
)

OPTIONS = BrokerOptions(events=NO_EVENTS, http_prefixes=("http://h/",))


class Calls(CustomRouter):
    """Routes as a function says."""

    def __init__(self, function: Callable[[RoutedMessage], Any]) -> None:
        self.function = function

    def route(self, message: RoutedMessage) -> list[Target]:
        found: list[Target] = self.function(message)
        return found


def world_with(function: Callable[[RoutedMessage], Any]) -> World:
    """The custom router r, queues a/1 and b/1, a publisher p and a client x."""
    world = World(None, OPTIONS, routers={"r": Calls(function)})
    world.connect("p", "x")
    for channel in "ab":
        world.create(QueueChanges(tag=f"tag-{channel}"), channel=channel)
    return world


def publish(world: World, **headers: str) -> list[str]:
    return world.step(Publish(1, "publish", "r", 10, Letter("m", headers)))


def waiting(world: World) -> list[int]:
    return [queue.regular_count for queue in world.broker.queues()]


def test_what_a_router_is_given() -> None:
    seen: list[object] = []

    def look(message: RoutedMessage) -> list[Target]:
        seen.extend([message.router, message.sender.client_id, message.message_id])
        seen.extend([message.content_type, message.payload])
        seen.extend([message.header("Country"), message.header("Else")])
        return []

    assert publish(world_with(look), Country="dk") == ["p publish: 404"]
    assert seen == ["r", "p", "m", 9, b"body of m", "dk", None]


def test_where_messages_go() -> None:
    world = world_with(lambda message: [to_queue(message.header("To") or "b", 1)])
    assert publish(world, To="a") == ["p publish: 0"]
    assert publish(world) == ["p publish: 0"]
    assert publish(world, To="nowhere") == ["p publish: 404"]
    assert waiting(world) == [1, 1]


def test_targets_of_every_kind() -> None:
    world = world_with(
        lambda _: [
            to_queue("a"),
            to_clients("x", 7),
            to_tag("tag-*"),
            to_url("http://h/x", 0),
        ]
    )
    assert publish(world) == [
        "x <- forward m/7/0",
        "call 1 GET http://h/x",
        "p publish: 0",
    ]
    assert waiting(world) == [2, 1]


def test_a_receiver_that_is_asked_answers() -> None:
    world = world_with(lambda _: [to_url("http://h/x", 1, ASKS_RESPONSE)])
    publish(world)
    assert world.step(HttpAnswered(1, 200, b"said")) == ["p publish response: 0 said"]


def raising(_: RoutedMessage) -> list[Target]:
    raise RuntimeError("a bug")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (raising, "a bug"),
        (lambda _: None, ""),
        (lambda _: "queue", ""),
        (lambda _: ["queue"], ""),
        (lambda _: [to_queue("a b")], "refused with 400"),
        (lambda _: [to_url("http://else/")], "refused with 401"),
        (lambda _: [to_queue("a", 1)] * 101, "more than max_bindings_per_router"),
    ],
)
def test_one_that_fails_hurts_its_message_only(
    function: Callable[[RoutedMessage], Any], why: str
) -> None:
    world = world_with(lambda m: [to_queue("a", 1)] if m.header("Good") else function(m))
    failed, told = publish(world)
    assert failed.startswith("router r failed: ")
    assert why in failed
    assert told == "p publish: 500"
    assert waiting(world) == [0, 0]
    assert publish(world, Good="yes") == ["p publish: 0"]


def test_operations_on_a_custom_router() -> None:
    world = world_with(lambda _: [to_queue("a", 1)])
    binding = BindingOptions("b", TO_QUEUE, "b", 1, 0, 0, 0)
    for command, code in (
        (RemoveRouter(1, "o", "r"), 401),
        (AddBinding(1, "o", "r", binding), 401),
        (RemoveBinding(1, "o", "r", "b"), 401),
        (CreateRouter(1, "o", "r", 2), 0),  # it is there: nothing changes (F60)
    ):
        assert world.step(command) == [f"p o: {code}"]
    assert world.step(ListBindings(1, "list", "r")) == ["p list: 0 with body"]
    world.step(ListRouters(1, "list"))
    (reply,) = world.last
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    assert [(each.name, each.method, each.enabled) for each in reply.body] == [("r", 0, True)]
    world.step(SetRouterEnabled(1, "off", "r", False))
    assert publish(world) == ["p publish: 404"]
    world.step(SetRouterEnabled(1, "on", "r", True))
    assert publish(world) == ["p publish: 0"]


@pytest.mark.parametrize("name", ["", "a b", "@x"])
def test_names_no_router_may_have(name: str) -> None:
    with pytest.raises(ValueError, match="is not a router name"):
        Broker(routers={name: CustomRouter()})


def test_a_router_that_overrides_nothing_fails() -> None:
    world = World(routers={"r": CustomRouter()})
    world.connect("p")
    assert publish(world) == ["router r failed: ", "p publish: 500"]
