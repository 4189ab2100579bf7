"""Surveys of channels, queues and clients in portions; clients described and disconnected."""

from __future__ import annotations

from typing import Any

import pytest

from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Command,
    Connect,
    CreateChannel,
    CreateQueue,
    DescribeClient,
    DisconnectClient,
    Join,
    RemoveChannel,
    SessionCommand,
    SurveyChannels,
    SurveyClients,
    SurveyQueues,
)
from tmqp_server.engine.effects import CloseSession, Effect, Reply
from tmqp_server.engine.model.surveyed import ClientDetails


class World:
    """A broker, and its time."""

    def __init__(self) -> None:
        self.broker = Broker()

    def step(self, command: Command) -> list[Effect]:
        """Carry out a command."""
        return list(self.broker.step(command, 1.0))

    def connect(self, number: int) -> None:
        """A client whose id is its number."""
        self.step(Connect(number, None, str(number)))


def replies(world: World, command: SessionCommand) -> Reply:
    """The one answer to a command."""
    (reply,) = [each for each in world.step(command) if isinstance(each, Reply)]
    return reply


def body(world: World, command: SessionCommand) -> list[Any]:
    """The list in an answer."""
    found = replies(world, command).body
    assert isinstance(found, list)
    return found


def walked(world: World, pattern: str = "") -> tuple[list[tuple[str, int]], int]:
    """All queues of a survey, and how many portions it took."""
    found: list[tuple[str, int]] = []
    walk, portions = None, 0
    while walk is None or not walk.done:
        command = SurveyQueues(1, "r", pattern, walk)
        found += [(each.channel, each.queue_id) for each in body(world, command)]
        walk = command.walk
        assert walk is not None
        portions += 1
    return found, portions


@pytest.fixture
def world() -> World:
    """A client, and 200 queues in channels of one, of many and of none."""
    world = World()
    world.connect(1)
    world.step(CreateChannel(1, "r", "empty"))
    for queue_id in range(150):
        world.step(CreateQueue(1, "r", "many", queue_id))
    for number in range(50):
        world.step(CreateQueue(1, "r", f"c{number}", 1))
    return world


def test_a_survey_shows_every_queue_once_in_portions(world: World) -> None:
    found, portions = walked(world)
    assert len(found) == len(set(found)) == 200
    assert portions == 4
    assert walked(world, "c1*")[0] == [("c1", 1), *[(f"c1{digit}", 1) for digit in range(10)]]
    assert walked(world, "none") == ([], 1)


def test_a_survey_passes_over_what_goes_and_does_not_see_what_comes(world: World) -> None:
    first = SurveyQueues(1, "r")
    assert len(body(world, first)) == 63
    world.step(RemoveChannel(1, "r", "c49"))
    world.step(RemoveChannel(1, "r", "many"))
    world.step(CreateQueue(1, "r", "new", 1))
    rest: list[str] = []
    walk = first.walk
    while walk is not None and not walk.done:
        command = SurveyQueues(1, "r", "", walk)
        rest += [each.channel for each in body(world, command)]
        walk = command.walk
    assert rest == [f"c{number}" for number in range(49)]


def test_a_channel_that_came_again_under_its_name_is_another(world: World) -> None:
    first = SurveyChannels(1, "r")
    assert [each.name for each in body(world, first)][:2] == ["empty", "many"]
    assert first.walk is not None
    assert first.walk.done
    later = SurveyChannels(1, "r")
    names = world.broker.surveying.prepare(later)
    world.step(RemoveChannel(1, "r", "empty"))
    world.step(CreateChannel(1, "r", "empty"))
    assert "empty" in names
    assert "empty" not in [each.name for each in body(world, later)]


def test_named_things_come_in_that_order_as_far_as_they_are_there(world: World) -> None:
    places = [("c7", 1), ("none", 1), ("many", 3), ("many", 999)]
    shown = body(world, SurveyQueues(1, "r", places=places))
    assert [(each.channel, each.queue_id) for each in shown] == [("c7", 1), ("many", 3)]
    names = body(world, SurveyChannels(1, "r", names=["none", "c7"]))
    assert [each.name for each in names] == ["c7"]
    clients = body(world, SurveyClients(1, "r", ids=["none", "1"]))
    assert [each.client.client_id for each in clients] == ["1"]
    too_many = SurveyQueues(1, "r", places=[("c7", 1)] * 129)
    assert replies(world, too_many).code == 482


def test_only_visible_channels_are_shown(world: World) -> None:
    command = SurveyQueues(1, "r")
    assert set(world.broker.surveying.prepare(command)) == {"empty", "many"}
    command.visible = frozenset({"empty"})
    assert body(world, command) == []


def test_clients_are_surveyed_in_portions_without_those_who_have_gone(world: World) -> None:
    for number in range(2, 102):
        world.connect(number)
    command = SurveyClients(1, "r")
    found = [each.client.client_id for each in body(world, command)]
    assert len(found) == 64
    world.step(DisconnectClient(1, "r", "100"))
    assert command.walk is not None
    rest = SurveyClients(1, "r", command.walk)
    found += [each.client.client_id for each in body(world, rest)]
    assert found == [str(number) for number in range(1, 102) if number != 100]


def test_a_client_is_described_with_what_it_has_joined(world: World) -> None:
    world.connect(2)
    world.step(Join(2, "r", "c1", 5))
    found = replies(world, DescribeClient(1, "r", "2")).body
    assert isinstance(found, ClientDetails)
    (joined,) = found.subscriptions
    assert (joined.channel, joined.credit, joined.window) == ("c1", 5, -1)
    assert replies(world, DescribeClient(1, "r", "3")).code == 404


def test_a_client_that_is_disconnected_is_told_and_forgotten(world: World) -> None:
    world.connect(2)
    world.step(Join(2, "r", "c1"))
    effects = world.step(DisconnectClient(1, "r", "2"))
    assert [each.code for each in effects if isinstance(each, Reply)] == [0]
    (closed,) = [each for each in effects if isinstance(each, CloseSession)]
    assert (closed.session, closed.reason) == (2, "an operator ended the connection")
    assert replies(world, DisconnectClient(1, "r", "2")).code == 404


def test_no_portion_of_many_queues_is_larger_than_another() -> None:
    """A walk over all of them held everybody up for sixteen milliseconds."""
    world = World()
    world.connect(1)
    for number in range(3_000):
        world.broker.step(CreateQueue(1, None, f"c{number:05}", 1), 1.0)
    world.broker.take_work()
    sizes, work, walk = [], [], None
    while walk is None or not walk.done:
        command = SurveyQueues(1, "r", "", walk)
        sizes.append(len(body(world, command)))
        work.append(world.broker.take_work())
        walk = command.walk
    assert (sum(sizes), max(sizes)) == (3_000, 64)
    assert max(work) < 100


def test_a_filter_that_nothing_passes_looks_at_few_names_at_a_time() -> None:
    world = World()
    world.connect(1)
    for number in range(2_000):
        world.broker.step(CreateQueue(1, None, f"c{number:05}", 1), 1.0)
    assert walked(world, "x*") == ([], 4)
