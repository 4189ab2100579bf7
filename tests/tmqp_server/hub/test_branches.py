"""Connections with several consumers: each branch gets its own, all else is the connection's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tmqp_server.hub.test_doors import Toy
from tests.tmqp_server.outputs import faults, sent
from tests.tmqp_server.peers import Peer, push
from tests.tmqp_server.toy_door import ToyBodies, ToyDoor, ToyWire, lines_of
from tests.tmqp_server.world import World
from tmqp.constants import STATUS_ROUND_ROBIN, Operation
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.rights import JOIN
from tmqp_server.engine.commands import (
    Acknowledge,
    Batch,
    Block,
    Command,
    CreateQueue,
    OpenBranch,
    Push,
    Unblock,
    branch_number,
    connection_of,
    index_of,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import ChannelChanges, QueueChanges


def branching(world: World, name: str = "toy", *branches: int) -> Toy:
    """A client whose connection has branches."""
    world.door.letters.add(ToyBodies())
    toy = Toy(world, name, ToyDoor(world.door.letters, per_session=True))
    for branch in branches:
        toy.say(do="open", branch=branch)
        assert toy.take() == [{"is": "opened", "branch": branch}]
    return toy


def round_robin(world: World, admin: Peer, channel: str = "c") -> None:
    changes = QueueChanges(status=STATUS_ROUND_ROBIN, delivery_handler="putback-end")
    world.hub.perform(CreateQueue(admin.link.number, None, channel, 1, changes), world.now)


def heads(toy: Toy) -> list[tuple[int, str]]:
    """To which branch each delivery went, 0 for the connection."""
    return heads_of(toy.take())


def heads_of(lines: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(line.get("branch", 0), line["for"]) for line in lines if line["is"] == "head"]


def joined(toy: Toy, *branches: int) -> list[tuple[int, str]]:
    """Let branches join; returns what they get at once."""
    found = []
    for branch in branches:
        toy.say(do="join", channel="c", branch=branch)
        lines = toy.take()
        assert {"is": "reply", "to": "join", "code": 0} in lines
        found += heads_of(lines)
    return found


def taken(toy: Toy, name: str, branch: int) -> None:
    toy.say(do="ack", channel="c", queue=1, id=name, branch=branch)


def test_a_number_tells_its_connection() -> None:
    for connection in (1, 7, 1 << 30):
        for index in (1, 2, (1 << 32) - 1):
            number = branch_number(connection, index)
            assert number < 0
            assert (connection_of(number), index_of(number)) == (connection, index)
        assert (connection_of(connection), index_of(connection)) == (connection, 0)
    for index in (0, 1 << 32):
        with pytest.raises(ValueError, match="no branch"):
            branch_number(1, index)


def test_two_consumers_of_one_connection_take_turns() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1, 2)
    joined(toy, 1, 2)
    admin.say(push("c", 1, "m1"), push("c", 1, "m2"), push("c", 1, "m3"), push("c", 1, "m4"))
    assert heads(toy) == [(1, "m1"), (2, "m2"), (1, "m3"), (2, "m4")]
    assert faults(world.hub) == {}


def test_each_gets_its_copy_of_a_broadcast_beside_the_connection_itself() -> None:
    world = World()
    admin = Peer(world, "admin")
    toy = branching(world, "toy", 1, 2)
    world.hub.perform(CreateQueue(admin.link.number, None, "c", 1), world.now)
    toy.say(do="join", channel="c")
    toy.take()
    joined(toy, 1, 2)
    admin.say(push("c", 1, "m1"))
    assert heads(toy) == [(0, "m1"), (1, "m1"), (2, "m1")]


def test_only_the_branch_that_has_a_message_answers_for_it() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1, 2)
    joined(toy, 1, 2)
    admin.say(push("c", 1, "m1"))
    assert heads(toy) == [(1, "m1")]
    taken(toy, "m1", 2)
    (queue,) = world.broker.queues()
    assert queue.in_flight() == 1
    taken(toy, "m1", 1)
    assert queue.in_flight() == 0


def test_what_a_closed_branch_had_comes_back_and_nothing_more_goes_to_it() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1, 2)
    joined(toy, 1)
    admin.say(push("c", 1, "m1"))
    assert heads(toy) == [(1, "m1")]
    toy.say(do="close", branch=1)
    assert toy.take() == [{"is": "closed", "branch": 1}]
    joined(toy, 2)
    admin.say(push("c", 1, "m2"))
    assert heads(toy) == [(2, "m2")]
    taken(toy, "m2", 2)
    world.advance_to(16.0)  # the acknowledge timeout of what the other had (F99)
    assert heads(toy) == [(2, "m1")]
    toy.say(do="close", branch=1)
    assert toy.take() == [{"is": "reply", "to": "close", "code": 404}]


def test_a_connection_ends_with_all_its_branches() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    before = world.broker.statistics().state_bytes
    toy = branching(world, "toy", 1, 2)
    joined(toy, 1, 2)
    world.hub.forget(toy.number, world.now)
    assert world.broker.statistics().state_bytes == before
    assert world.broker.channel_names("") == ["c"]
    admin.say(push("c", 1, "m1"))
    other = branching(world, "toy", 1)  # its name is free again
    assert joined(other, 1) == [(1, "m1")]
    assert faults(world.hub) == {}


def test_lists_show_the_connection_and_not_its_branches() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1, 2)
    joined(toy, 1, 2)
    admin.say(push("c", 1, "m1"), push("c", 1, "m2"))
    clients = json.loads(admin.ask(Operation.CLIENT_LIST).payload)
    assert [each["Id"] for each in clients] == ["admin", "toy"]
    consumers = json.loads(admin.ask(Operation.CHANNEL_CONSUMERS, "c").payload)
    assert [each["Id"] for each in consumers] == ["toy", "toy"]
    assert world.broker.statistics().sessions == 2


def test_a_peer_that_does_not_read_holds_all_its_branches_back() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1)
    joined(toy, 1)
    world.hub.block(toy.number, world.now)
    toy.say(do="open", branch=2)
    toy.take()
    joined(toy, 2)
    admin.say(push("c", 1, "m1"), push("c", 1, "m2"))
    assert heads(toy) == []
    world.hub.unblock(toy.number, world.now)
    world.settle()
    assert heads(toy) == [(1, "m1"), (2, "m2")]


def test_a_branch_may_what_its_connection_may() -> None:
    world = World(guarded=True)
    world.door.letters.add(ToyBodies())
    door = ToyDoor(world.door.letters, per_session=True)
    number = 9
    world.hub.open(number, door, world.now)
    said: list[dict[str, Any]] = []

    def say(line: bytes) -> list[Question]:
        more = world.hub.receive(number, line, world.now)
        questions = [each for each in world.hub.take_outside() if isinstance(each, Question)]
        for question in questions:
            yes = question.about != "secret"
            command = question.command
            connect = command if question.right == "authenticate" else None
            verdict = Verdict(yes, 60.0, connect=connect)  # type: ignore[arg-type]
            world.hub.decide(number, question.ticket, verdict, world.now)
        while more:
            more = world.hub.go_on(number, world.now)
        return questions

    say(b'{"do": "connect", "id": "toy"}\n')
    assert say(b'{"do": "open", "branch": 1}\n') == []
    assert say(b'{"do": "open", "branch": 2}\n') == []
    (question,) = say(b'{"do": "join", "branch": 1, "channel": "c"}\n')
    assert (question.session, question.right, question.about) == (number, JOIN, "c")
    assert say(b'{"do": "join", "branch": 2, "channel": "c"}\n') == [], "known of the connection"
    say(b'{"do": "join", "branch": 2, "channel": "secret"}\n')
    said = [line for line in lines_of(sent(world.hub, number)) if line["is"] == "reply"]
    assert [line["code"] for line in said][-1] == 401


def test_branches_are_bounded_in_number_and_join_no_more_than_a_client() -> None:
    limits = EngineLimits(max_branches_per_session=2, max_subscriptions_per_session=3)
    world = World(engine_limits=limits)
    toy = branching(world, "toy", 1, 2)
    toy.say(do="open", branch=3)
    assert toy.take() == [{"is": "reply", "to": "open", "code": 482}]
    for channel, branch in (("a", 1), ("a", 2), ("b", 1)):
        toy.say(do="join", channel=channel, branch=branch)
        assert toy.take()[-1]["code"] == 0
    for branch in (1, 2):
        toy.say(do="join", channel="d", branch=branch)
        assert toy.take()[-1]["code"] == 482
    toy.say(do="close", branch=1)
    toy.take()
    toy.say(do="open", branch=4)
    assert toy.take() == [{"is": "opened", "branch": 4}]


def test_a_branch_of_another_connection_is_an_error_of_the_door() -> None:
    world = World()
    toy = branching(world, "toy", 1)
    for number in (branch_number(toy.number, 1), branch_number(toy.number + 1, 1), toy.number):
        with pytest.raises(ValueError, match="cannot open"):
            world.broker.step(OpenBranch(toy.number, "r", number), world.now)


def test_a_channel_for_its_owner_is_for_the_owners_branches() -> None:
    world = World()
    toy = branching(world, "toy", 1)
    other = branching(world, "other", 1)
    options = ChannelChanges(lifetime="owner", owner_only=True)
    world.hub.perform(CreateQueue(toy.number, None, "c", 1, QueueChanges(), options), world.now)
    joined(toy, 1)
    other.say(do="join", channel="c", branch=1)
    assert other.take()[-1]["code"] == 403


def test_a_removed_channel_is_told_to_each_branch() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1, 2)
    joined(toy, 1, 2)
    admin.ask(Operation.REMOVE_CHANNEL, "c")
    assert toy.take() == [{"is": "left", "branch": 1}, {"is": "left", "branch": 2}]


def test_what_comes_late_for_a_branch_of_a_closed_connection_is_counted() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1)
    joined(toy, 1)
    number = branch_number(toy.number, 1)
    assert world.hub._outlets.sessions[number] is world.hub._outlets.sessions[toy.number]
    world.hub.close(toy.number, "bye", world.now)
    world.settle()
    world.hub.perform(Acknowledge(number, "m1", "c", 1), world.now)  # late, and counted
    assert world.broker.statistics().stray_commands == 1
    world.hub.perform(Block(number), world.now)
    world.hub.perform(Unblock(number), world.now)
    world.hub.forget(toy.number, world.now)
    assert number not in world.hub._outlets.sessions


def test_a_transaction_takes_what_several_consumers_of_a_connection_have() -> None:
    world = World()
    admin = Peer(world, "admin")
    round_robin(world, admin)
    toy = branching(world, "toy", 1, 2)
    joined(toy, 1, 2)
    admin.say(push("c", 1, "m1"), push("c", 1, "m2"), push("c", 1, "m3"))
    assert heads(toy) == [(1, "m1"), (2, "m2"), (1, "m3")]
    first, second = (branch_number(toy.number, index) for index in (1, 2))
    own: list[Command] = [
        Acknowledge(first, "m1", "c", 1),
        Acknowledge(second, "m2", "c", 1),
        Push(toy.number, "out", "other", 1, False, False, 1, ToyWire({}, b"")),
    ]

    def outcome(*parts: Command) -> int:
        (reply,) = world.broker.step(Batch(toy.number, "r", list(parts)), world.now)[-1:]
        assert isinstance(reply, Reply)
        return reply.code

    (queue,) = world.broker.queues()
    wrong = Acknowledge(second, "m3", "c", 1)
    assert outcome(*own, wrong) == 404, "the other has it, and nothing was done"
    assert queue.in_flight() == 3
    stranger = branch_number(toy.number + 1, 1)
    assert outcome(Acknowledge(stranger, "m3", "c", 1)) == 406
    assert outcome(*own) == 0
    assert queue.in_flight() == 1
    assert [each.waiting_count() for each in world.broker.queues()] == [0, 1]
