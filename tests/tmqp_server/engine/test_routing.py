"""Routers: their bindings, who gets a message by which method, and what the sender is told."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.letters import Letter
from tests.tmqp_server.engine.world import World
from tmqp_server.engine.commands import (
    AddBinding,
    Block,
    Connect,
    CreateRouter,
    ListBindings,
    ListRouters,
    Publish,
    RemoveBinding,
    RemoveChannel,
    RemoveQueue,
    RemoveRouter,
    SetRouterEnabled,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import (
    ASKS_ACKNOWLEDGE,
    ASKS_NOTHING,
    ASKS_RESPONSE,
    TO_CLIENTS,
    TO_QUEUE,
    TO_TAG,
    BindingOptions,
    QueueChanges,
)

DISTRIBUTE, ROUND_ROBIN, ONLY_FIRST = 0, 1, 2


def world_with(method: int = DISTRIBUTE, limits: EngineLimits | None = None) -> World:
    """A router r, queues a/1 to c/1 without consumers, and a publisher."""
    world = World(limits)
    world.connect("p")
    assert world.step(CreateRouter(1, "create", "r", method)) == ["p create: 0"]
    for channel in "abc":
        world.create(QueueChanges(tag=f"tag-{channel}"), channel=channel)
    return world


def bind(
    world: World,
    name: str,
    kind: int = TO_QUEUE,
    target: str = "",
    content_type: int | None = 1,
    priority: int = 0,
    interaction: int = ASKS_NOTHING,
    method: int = DISTRIBUTE,
) -> list[str]:
    options = BindingOptions(
        name, kind, target or name, content_type, priority, interaction, method
    )
    return world.step(AddBinding(1, "bind", "r", options))


def publish(world: World, message_id: str = "m", router: str = "r", size: int = 10) -> list[str]:
    return world.step(Publish(1, "publish", router, size, Letter(message_id)))


def waiting(world: World) -> dict[str, int]:
    """How many messages wait in each queue."""
    return {queue.channel_name: queue.regular_count for queue in world.broker.queues()}


def bodies(world: World) -> list[object]:
    """The names in the body of the last reply."""
    (reply,) = world.last
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, list)
    return [each.name for each in reply.body]


# --- Operations ----------------------------------------------------------------------------------


def test_creating_and_removing_routers() -> None:
    world = world_with(ROUND_ROBIN)
    assert world.step(CreateRouter(1, "again", "r", ONLY_FIRST)) == ["p again: 0"]
    assert world.step(CreateRouter(1, "other", "R", DISTRIBUTE)) == ["p other: 0"]
    world.step(ListRouters(1, "list"))
    assert bodies(world) == ["r", "R"]
    assert "method=1" in repr(world.last[0])  # as it was created
    for _ in range(2):
        assert world.step(RemoveRouter(1, "remove", "r")) == ["p remove: 0"]
    world.step(ListRouters(1, "list"))
    assert bodies(world) == ["R"]


@pytest.mark.parametrize(
    "name", ["", "a b", "@a", "a;b", "a*", "a\n", "x" * 256, "a\x85", "\u202e"]
)
def test_names_no_router_may_have(name: str) -> None:
    assert world_with().step(CreateRouter(1, "create", name, 0)) == ["p create: 400"]


def test_bindings_are_listed_by_priority_then_age() -> None:
    world = world_with()
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -1)):
        assert bind(world, name, priority=priority) == ["p bind: 0"]
    world.step(ListBindings(1, "list", "r"))
    assert bodies(world) == ["b", "d", "a", "c", "e"]
    assert bind(world, "a", priority=9) == ["p bind: 0"]  # it is there: nothing changes (F61)
    assert world.step(RemoveBinding(1, "remove", "r", "b")) == ["p remove: 0"]
    assert world.step(RemoveBinding(1, "remove", "r", "b")) == ["p remove: 404"]
    world.step(ListBindings(1, "list", "r"))
    assert bodies(world) == ["d", "a", "c", "e"]


def test_operations_on_a_router_that_is_not_there() -> None:
    world = world_with()
    options = BindingOptions("b", TO_QUEUE, "a", 1, 0, 0, 0)
    for command in (
        AddBinding(1, "x", "no", options),
        RemoveBinding(1, "x", "no", "b"),
        ListBindings(1, "x", "no"),
    ):
        assert world.step(command) == ["p x: 404"]


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("", TO_QUEUE, "a"),
        ("a b", TO_QUEUE, "a"),
        ("b", TO_QUEUE, "a b"),
        ("b", TO_CLIENTS, ""),
        ("b", TO_TAG, "x" * 256),
        ("x" * 256, TO_CLIENTS, "a"),
        ("b", TO_CLIENTS, "@name:\u202e"),
        ("a\x9b", TO_CLIENTS, "a"),
    ],
)
def test_bindings_that_cannot_be(name: str, kind: int, target: str) -> None:
    options = BindingOptions(name, kind, target, 1, 0, 0, 0)
    assert world_with().step(AddBinding(1, "bind", "r", options)) == ["p bind: 400"]


# --- Methods -------------------------------------------------------------------------------------


def test_distribute_gives_it_to_all_that_work() -> None:
    world = world_with()
    for name in ("a", "nowhere", "c"):
        bind(world, name)
    assert publish(world) == ["p publish: 0"]
    assert waiting(world) == {"a": 1, "b": 0, "c": 1}


def test_round_robin_takes_turns_and_passes_over_what_does_not_work() -> None:
    world = world_with(ROUND_ROBIN)
    for name in ("a", "nowhere", "b", "c"):
        bind(world, name)
    for _ in range(4):
        assert publish(world) == ["p publish: 0"]
    assert waiting(world) == {"a": 2, "b": 1, "c": 1}
    world.step(RemoveBinding(1, "remove", "r", "a"))
    publish(world)  # begins anew
    assert waiting(world) == {"a": 2, "b": 2, "c": 1}


def test_only_first_fails_over_in_the_order_of_priority() -> None:
    world = world_with(ONLY_FIRST)
    for name, priority in (("a", 1), ("b", 3), ("c", 2)):
        bind(world, name, priority=priority)
    publish(world)
    assert waiting(world) == {"a": 0, "b": 1, "c": 0}
    world.step(RemoveQueue(1, None, "b", 1))
    publish(world)
    world.step(RemoveChannel(1, None, "c"))
    publish(world)
    assert waiting(world) == {"a": 1}
    world.step(RemoveChannel(1, None, "a"))
    assert publish(world) == ["p publish: 404"]


def test_a_full_or_stopped_queue_does_not_work() -> None:
    world = world_with(ONLY_FIRST, EngineLimits(max_messages_per_queue=1))
    bind(world, "a", priority=1)
    bind(world, "b")
    publish(world)
    publish(world)
    assert waiting(world) == {"a": 1, "b": 1, "c": 0}
    assert publish(world) == ["p publish: 404"]
    assert world.queue("a").counters.refused == 2


def test_a_disabled_router_answers_as_if_it_were_not_there() -> None:
    """F123."""
    world = world_with()
    bind(world, "a")
    assert world.step(SetRouterEnabled(1, "off", "r", False)) == ["p off: 0"]
    assert publish(world) == ["p publish: 404"]
    world.step(ListRouters(1, "list"))
    assert "enabled=False" in repr(world.last[0])
    assert bind(world, "b") == ["p bind: 0"]  # it can be made ready meanwhile
    assert world.step(SetRouterEnabled(1, "on", "r", True)) == ["p on: 0"]
    assert publish(world) == ["p publish: 0"]
    assert waiting(world) == {"a": 1, "b": 1, "c": 0}
    assert world.step(SetRouterEnabled(1, "off", "R", False)) == ["p off: 404"]
    assert not world.broker.set_router_enabled("R", False)


@pytest.mark.parametrize("router", ["r", "R", "nowhere"])
def test_nothing_is_reached(router: str) -> None:
    assert publish(world_with(), router=router) == ["p publish: 404"]


def test_too_large() -> None:
    world = world_with(limits=EngineLimits(max_message_bytes=9))
    bind(world, "a")
    assert publish(world) == ["p publish: 482"]


# --- Bindings ------------------------------------------------------------------------------------


def test_a_queue_binding_that_asks_nothing_pushes_a_copy_of_its_own_id() -> None:
    world = world_with()
    world.join("x", "a")
    bind(world, "a")
    assert publish(world, "m1") == ["x <- copy of m1 FA", "p publish: 0"]
    assert world.ack("x", "copy of m1", "a") == []  # nobody asked to be told


def test_a_queue_binding_that_asks_keeps_the_id_and_the_queue_answers() -> None:
    world = world_with()
    world.join("x", "a")
    bind(world, "a", interaction=ASKS_ACKNOWLEDGE)
    bind(world, "b")
    told = publish(world, "m1")
    assert "p publish: 0" not in told  # the queue confirms in the server's place
    assert [word for word in told if word.startswith("p: m1 ok")] != []


def test_a_queue_binding_without_a_queue_id_leaves_it_to_the_message() -> None:
    world = world_with()
    bind(world, "a", content_type=None)
    bind(world, "b", content_type=2)
    publish(world)
    assert waiting(world) == {"a": 1, "b": 0, "c": 0}


def workers(world: World) -> None:
    for name in ("x", "y", "z"):
        number = len(world.names) + 1
        world.numbers[name] = number
        world.names[number] = name
        world.step(Connect(number, None, name, "worker"))


def test_a_direct_binding_by_its_own_method() -> None:
    world = world_with()
    workers(world)
    for method, expected in (
        (DISTRIBUTE, ["x y z"] * 2),
        (ONLY_FIRST, ["x"] * 2),
        (ROUND_ROBIN, ["x", "y", "z", "x"]),
    ):
        world.step(RemoveBinding(1, None, "r", "d"))
        bind(world, "d", TO_CLIENTS, "~worker", 7, method=method)
        told = [publish(world) for _ in expected]
        assert told == [[f"{names} <- forward m/7/0", "p publish: 0"] for names in expected]


@pytest.mark.parametrize("interaction", [ASKS_ACKNOWLEDGE, ASKS_RESPONSE])
def test_who_is_asked_answers_and_the_server_is_silent(interaction: int) -> None:
    world = world_with()
    workers(world)
    bind(world, "d", TO_CLIENTS, "x", None, interaction=interaction)
    bind(world, "a")
    assert publish(world) == [f"x <- forward m/None/{interaction}"]
    assert waiting(world)["a"] == 1


def test_a_direct_binding_passes_over_who_does_not_read() -> None:
    world = world_with(ONLY_FIRST)
    workers(world)
    bind(world, "d", TO_CLIENTS, "~worker", priority=1)
    bind(world, "a")
    world.step(Block(world.numbers["x"]))
    assert publish(world) == ["y z <- forward m/1/0", "p publish: 0"]
    for name in ("y", "z"):
        world.step(Block(world.numbers[name]))
    publish(world)
    assert waiting(world)["a"] == 1


def test_a_tag_binding_reaches_the_queues_that_fit_as_they_come_and_go() -> None:
    world = world_with()
    bind(world, "t", TO_TAG, "tag-*")
    publish(world)
    assert waiting(world) == {"a": 1, "b": 1, "c": 1}
    world.update(QueueChanges(tag="else"), channel="b")
    world.step(RemoveQueue(1, None, "c", 1))
    world.create(QueueChanges(tag="tag-a"), channel="a", queue_id=2)
    assert publish(world) == ["p publish: 0"]
    counts = {(q.channel_name, q.queue_id): q.regular_count for q in world.broker.queues()}
    assert counts == {("a", 1): 2, ("a", 2): 1, ("b", 1): 1}
    world.step(RemoveChannel(1, None, "a"))
    assert publish(world) == ["p publish: 404"]
