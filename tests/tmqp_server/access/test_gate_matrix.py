"""The gate's matrix: what each operation needs, and how its refusal is told."""

from __future__ import annotations

import json
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.guarded import QUEUE, GuardedWorld, asks, event, frame, stage
from tests.tmqp_server.peers import Peer, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.extensions import (
    HEADER_EPOCH,
    HEADER_FEED_CHANNEL,
    HEADER_FEED_QUEUE,
    HEADER_ROUTER_ENABLED,
    HEADER_TRANSACTION,
    OP_ABORT_TRANSACTION,
    OP_ADD_FEED,
    OP_APPLY_BATCH,
    OP_BROWSE,
    OP_CANCEL_MESSAGE,
    OP_CHANGE_CELL,
    OP_COMMIT_CURSOR,
    OP_COMMIT_GROUP,
    OP_COMMIT_TRANSACTION,
    OP_DESCRIBE_CELL,
    OP_DESCRIBE_SERVER,
    OP_DRAIN,
    OP_DROP_CELL,
    OP_DROP_CURSOR,
    OP_DROP_GROUP,
    OP_LIST_CELLS,
    OP_LIST_CURSORS,
    OP_LIST_FEEDS,
    OP_LIST_GROUPS,
    OP_LIST_TRANSACTIONS,
    OP_MAKE_COUNTER,
    OP_OFFSETS,
    OP_OPEN_GROUP,
    OP_OPEN_TRANSACTION,
    OP_PUSH_TRANSACTION,
    OP_PUT_VALUE,
    OP_READ_CELL,
    OP_READ_INDEX,
    OP_READ_RANGE,
    OP_REMOVE_FEED,
    OP_REMOVE_MESSAGE,
    OP_RESET_GROUP,
    OP_SET_ROUTER_ENABLED,
    OP_SPLIT_RANGE,
    OP_UPDATE_CHANNEL,
)
from tmqp.frames import Frame
from tmqp_server.access import rights
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.needs import NO_QUEUE
from tmqp_server.engine.commands import GroupCommand, ListBindings, ListRouters

NO: Final = Verdict(False)
BINDING = json.dumps({"Name": "b", "Target": "c", "BindingType": 1, "ContentType": 1}).encode()
PLACES = json.dumps([{"Channel": "c", "Queue": 1}]).encode()

CELL = [("Cell-Key", "k")]
FEED = [("Queue-Id", "1"), (HEADER_FEED_CHANNEL, "d"), (HEADER_FEED_QUEUE, "2")]

Shape = tuple[int, int, list[tuple[str, str]]]
CODE_401: list[Shape] = [(MessageType.RESPONSE, 401, [])]
FAILED: list[Shape] = [(MessageType.RESPONSE, 1, [])]
#: The request, what is asked about it, and what tells that it was refused.
MATRIX: dict[str, tuple[Frame, tuple[str, str, int], list[Shape]]] = {
    "join": (asks(Operation.JOIN, "C"), (rights.JOIN, "C", NO_QUEUE), CODE_401),
    "create channel": (
        asks(Operation.CREATE_CHANNEL, "new"),
        (rights.CREATE_CHANNEL, "new", NO_QUEUE),
        CODE_401,
    ),
    "remove channel": (
        asks(Operation.REMOVE_CHANNEL, "c"),
        (rights.REMOVE_CHANNEL, "c", NO_QUEUE),
        CODE_401,
    ),
    "channel information": (
        asks(Operation.CHANNEL_INFORMATION, "c"),
        (rights.SEE_CHANNEL, "c", NO_QUEUE),
        CODE_401,
    ),
    "channel list": (
        asks(Operation.CHANNEL_LIST),
        (rights.SEE_CHANNEL, "", NO_QUEUE),
        CODE_401,
    ),
    "channel consumers": (
        asks(Operation.CHANNEL_CONSUMERS, "c"),
        (rights.SEE_CONSUMERS, "c", NO_QUEUE),
        CODE_401,
    ),
    "create queue": (
        asks(Operation.CREATE_QUEUE, "c", headers=[("Queue-Id", "2")]),
        (rights.CREATE_QUEUE, "c", 2),
        CODE_401,
    ),
    "update channel": (
        asks(OP_UPDATE_CHANNEL, "c", b"{}"),
        (rights.UPDATE_CHANNEL, "c", NO_QUEUE),
        CODE_401,
    ),
    "remove queue": (
        asks(Operation.REMOVE_QUEUE, "c", b"\1\0"),
        (rights.REMOVE_QUEUE, "c", 1),
        CODE_401,
    ),
    "update queue": (
        asks(Operation.UPDATE_QUEUE, "c", b"{}", headers=QUEUE),
        (rights.UPDATE_QUEUE, "c", 1),
        CODE_401,
    ),
    "clear messages": (
        asks(Operation.CLEAR_MESSAGES, "c", headers=[*QUEUE, ("Messages", "yes")]),
        (rights.CLEAR_MESSAGES, "c", 1),
        CODE_401,
    ),
    "make counter": (
        asks(OP_MAKE_COUNTER, "s", headers=[*CELL, ("Timeout", "9")]),
        (rights.CELLS_WRITE, "s", NO_QUEUE),
        CODE_401,
    ),
    "put value": (
        asks(OP_PUT_VALUE, "s", headers=[*CELL, ("Timeout", "9")]),
        (rights.CELLS_WRITE, "s", NO_QUEUE),
        CODE_401,
    ),
    "read cell": (
        asks(OP_READ_CELL, "s", headers=[*CELL]),
        (rights.CELLS_READ, "s", NO_QUEUE),
        CODE_401,
    ),
    "change cell": (
        asks(OP_CHANGE_CELL, "s", headers=[*CELL, ("Change", "add")]),
        (rights.CELLS_WRITE, "s", NO_QUEUE),
        CODE_401,
    ),
    "drop cell": (
        asks(OP_DROP_CELL, "s", headers=[*CELL]),
        (rights.CELLS_WRITE, "s", NO_QUEUE),
        CODE_401,
    ),
    "list cells": (
        asks(OP_LIST_CELLS, "s", headers=[]),
        (rights.CELLS_READ, "s", NO_QUEUE),
        CODE_401,
    ),
    "describe cell": (
        asks(OP_DESCRIBE_CELL, "s", headers=[*CELL]),
        (rights.CELLS_READ, "s", NO_QUEUE),
        CODE_401,
    ),
    "browse": (
        asks(OP_BROWSE, "c", headers=QUEUE),
        (rights.BROWSE, "c", 1),
        CODE_401,
    ),
    "remove message": (
        asks(OP_REMOVE_MESSAGE, "c", headers=[*QUEUE, ("Message-Id", "m")]),
        (rights.CLEAR_MESSAGES, "c", 1),
        CODE_401,
    ),
    "cancel message": (
        asks(OP_CANCEL_MESSAGE, "c", headers=[*QUEUE, ("Message-Id", "m")]),
        (rights.CANCEL, "c", 1),
        CODE_401,
    ),
    "add feed": (
        asks(OP_ADD_FEED, "c", headers=FEED),
        (rights.FEED, "c", 1),
        CODE_401,
    ),
    "remove feed": (
        asks(OP_REMOVE_FEED, "c", headers=FEED),
        (rights.FEED, "c", 1),
        CODE_401,
    ),
    "list feeds": (
        asks(OP_LIST_FEEDS, "c"),
        (rights.SEE_CHANNEL, "c", NO_QUEUE),
        CODE_401,
    ),
    "queue information": (
        asks(Operation.QUEUE_INFORMATION, "c", b"\1\0"),
        (rights.SEE_CHANNEL, "c", 1),
        CODE_401,
    ),
    "queue list": (
        asks(Operation.QUEUE_LIST, "c"),
        (rights.SEE_CHANNEL, "c", NO_QUEUE),
        CODE_401,
    ),
    "instance list": (
        asks(Operation.INSTANCE_LIST),
        (rights.SEE_NODES, "", NO_QUEUE),
        CODE_401,
    ),
    "describe server": (
        asks(OP_DESCRIBE_SERVER),
        (rights.SEE_NODES, "", NO_QUEUE),
        CODE_401,
    ),
    "drain": (
        asks(OP_DRAIN, headers=[("Stop", "yes")]),
        (rights.MANAGE_SERVER, "", NO_QUEUE),
        CODE_401,
    ),
    "client list": (
        asks(Operation.CLIENT_LIST, "worker"),
        (rights.SEE_CLIENTS, "", NO_QUEUE),
        CODE_401,
    ),
    "list routers": (
        asks(Operation.LIST_ROUTERS),
        (rights.SEE_ROUTERS, "", NO_QUEUE),
        CODE_401,
    ),
    "create router": (
        asks(Operation.CREATE_ROUTER, "r2"),
        (rights.MANAGE_ROUTERS, "r2", NO_QUEUE),
        CODE_401,
    ),
    "remove router": (
        asks(Operation.REMOVE_ROUTER, "r"),
        (rights.MANAGE_ROUTERS, "r", NO_QUEUE),
        CODE_401,
    ),
    "list bindings": (
        asks(Operation.LIST_BINDINGS, "r"),
        (rights.SEE_ROUTERS, "r", NO_QUEUE),
        CODE_401,
    ),
    "add binding": (
        asks(Operation.ADD_BINDING, "r", BINDING),
        (rights.MANAGE_ROUTERS, "r", NO_QUEUE),
        CODE_401,
    ),
    "remove binding": (
        asks(Operation.REMOVE_BINDING, "r", headers=[("Binding-Name", "b")]),
        (rights.MANAGE_ROUTERS, "r", NO_QUEUE),
        CODE_401,
    ),
    "disable router": (
        asks(OP_SET_ROUTER_ENABLED, "r", headers=[(HEADER_ROUTER_ENABLED, "0")]),
        (rights.MANAGE_ROUTERS, "r", NO_QUEUE),
        CODE_401,
    ),
    "offsets": (asks(OP_OFFSETS, "c*"), (rights.SEE_CHANNEL, "", NO_QUEUE), CODE_401),
    "read range": (asks(OP_READ_RANGE, "c", headers=QUEUE), (rights.PULL, "c", 1), CODE_401),
    "open cursor": (
        asks(OP_COMMIT_CURSOR, "c", headers=[*QUEUE, ("Cursor", "r"), ("Start", "latest")]),
        (rights.PULL, "c", 1),
        CODE_401,
    ),
    "commit cursor": (
        asks(OP_COMMIT_CURSOR, "c", headers=[*QUEUE, ("Cursor", "r"), ("Sequence", "0")]),
        (rights.PULL, "c", 1),
        CODE_401,
    ),
    "list cursors": (
        asks(OP_LIST_CURSORS, "c", headers=QUEUE),
        (rights.SEE_CHANNEL, "c", 1),
        CODE_401,
    ),
    "drop cursor": (
        asks(OP_DROP_CURSOR, "c", headers=[*QUEUE, ("Cursor", "r")]),
        (rights.PULL, "c", 1),
        CODE_401,
    ),
    "read index": (asks(OP_READ_INDEX, "c", headers=QUEUE), (rights.PULL, "c", 1), CODE_401),
    "split range": (asks(OP_SPLIT_RANGE, "c", headers=QUEUE), (rights.PULL, "c", 1), CODE_401),
    "commit group": (
        asks(OP_COMMIT_GROUP, "any", PLACES, headers=[("Cursor", "r")]),
        (rights.PULL, "c", 1),
        CODE_401,
    ),
    "reset group": (
        asks(OP_RESET_GROUP, "any", PLACES, headers=[("Cursor", "r")]),
        (rights.PULL, "c", 1),
        CODE_401,
    ),
    "list groups": (asks(OP_LIST_GROUPS, "c*"), (rights.SEE_CHANNEL, "", NO_QUEUE), CODE_401),
    "push": (push("c", 1, "m"), (rights.PUSH, "c", 1), CODE_401),
    "push with acknowledge": (
        push("c", 1, "m", pending_acknowledge=True),
        (rights.PUSH, "c", 1),
        [*CODE_401, (MessageType.ACKNOWLEDGE, 1, [("Nack-Reason", "unauthorized")])],
    ),
    "open transaction": (
        asks(OP_OPEN_TRANSACTION, "app", headers=[(HEADER_EPOCH, "1")]),
        (rights.TRANSACT, "app", NO_QUEUE),
        CODE_401,
    ),
    "push into transaction": (
        asks(OP_PUSH_TRANSACTION, "app", headers=[(HEADER_TRANSACTION, "1")]),
        (rights.TRANSACT, "app", NO_QUEUE),
        CODE_401,
    ),
    "commit transactions": (
        asks(OP_COMMIT_TRANSACTION, "app", headers=[(HEADER_EPOCH, "1")]),
        (rights.TRANSACT, "app", NO_QUEUE),
        CODE_401,
    ),
    "abort transaction": (
        asks(OP_ABORT_TRANSACTION, "app", headers=[(HEADER_EPOCH, "1")]),
        (rights.TRANSACT, "app", NO_QUEUE),
        CODE_401,
    ),
    "apply batch": (
        asks(OP_APPLY_BATCH, payload=push("c", 1, "m", source="me").raw),
        (rights.PUSH, "c", 1),
        CODE_401,
    ),
    "list transactions": (
        asks(OP_LIST_TRANSACTIONS),
        (rights.TRANSACT, "", NO_QUEUE),
        CODE_401,
    ),
    "pull": (
        frame(MessageType.PULL_REQUEST, "c", 1, headers=[("Count", "1")]),
        (rights.PULL, "c", 1),
        [(MessageType.QUEUE_MESSAGE, 1, [("Request-Id", "m"), ("No-Content", "Unauthorized")])],
    ),
    "direct by id": (
        frame(MessageType.DIRECT_MESSAGE, "other", 7),
        (rights.DIRECT, "other", NO_QUEUE),
        CODE_401,
    ),
    "direct by name": (
        frame(MessageType.DIRECT_MESSAGE, "@name:n", 7, pending_response=True),
        (rights.DIRECT, "@name:n", NO_QUEUE),
        CODE_401,
    ),
    "direct by type with acknowledge": (
        frame(MessageType.DIRECT_MESSAGE, "@type:t", 7, pending_acknowledge=True),
        (rights.DIRECT, "@type:t", NO_QUEUE),
        [*CODE_401, (MessageType.ACKNOWLEDGE, 7, [("Nack-Reason", "unauthorized")])],
    ),
    "direct by name, nobody waits": (
        frame(MessageType.DIRECT_MESSAGE, "@name:n", 7),
        (rights.DIRECT, "@name:n", NO_QUEUE),
        CODE_401,
    ),
    "response": (
        frame(MessageType.RESPONSE, "other", 0),
        (rights.ANSWER, "other", NO_QUEUE),
        [],
    ),
    "acknowledge of a direct message": (
        frame(MessageType.ACKNOWLEDGE, "other", 0, high_priority=True),
        (rights.ANSWER, "other", NO_QUEUE),
        [],
    ),
    "acknowledge without the mark": (
        frame(MessageType.ACKNOWLEDGE, "other", 0),
        (rights.ANSWER, "other", NO_QUEUE),
        [],
    ),
    "publish with acknowledge": (
        frame(MessageType.ROUTER, "r", 1, pending_acknowledge=True),
        (rights.PUBLISH, "r", NO_QUEUE),
        [(MessageType.ACKNOWLEDGE, 1, [("Nack-Reason", "unauthorized")])],
    ),
    "publish with response": (
        frame(MessageType.ROUTER, "r", 1, pending_response=True),
        (rights.PUBLISH, "r", NO_QUEUE),
        CODE_401,
    ),
    "event of the server": (
        event("ChannelCreated"),
        (rights.SUBSCRIBE, "", NO_QUEUE),
        FAILED,
    ),
    "event of a queue": (
        event("MessageProduced", ("Channel-Name", "c"), ("Queue-Id", "1")),
        (rights.SUBSCRIBE, "c", 1),
        FAILED,
    ),
    "custom": (
        frame(0x00, "t", 9, pending_response=True),
        (rights.CUSTOM, "", NO_QUEUE),
        CODE_401,
    ),
    "custom, nobody waits": (frame(0x00, "t", 9), (rights.CUSTOM, "", NO_QUEUE), []),
}


def books(world: GuardedWorld, number: int) -> tuple[object, ...]:
    """What a refused command must not have changed."""
    queues = [repr((q.channel_name, q.queue_id, q.options, q.count)) for q in world.broker.queues()]
    routers: list[str] = []
    for question in (ListRouters(number, "x"), ListBindings(number, "x", "r")):
        routers += [repr(effect) for effect in world.broker.step(question, world.now)]
    return queues, routers, repr(world.broker.statistics())


@pytest.mark.parametrize("what", MATRIX)
def test_each_operation_asks_for_its_right_and_is_refused_in_its_way(what: str) -> None:
    request, need, refusal = MATRIX[what]
    world, me, other = stage()
    before = books(world, me.link.number)
    world.policy = lambda _: NO
    me.say(request)
    (question,) = world.asked
    assert (question.right, question.subject, question.queue_id) == need
    answers = me.take()
    assert [(each.type, each.content_type, each.headers) for each in answers] == refusal
    assert all(each.message_id == "m" for each in answers)
    assert books(world, me.link.number) == before, "nothing has happened"
    assert other.take() == []
    assert me.open, "a refusal closes nothing"
    assert world.hub.gate is not None
    assert world.hub.gate.refused == 1
    assert not world.handed_over


@pytest.mark.parametrize("what", MATRIX)
def test_each_operation_that_is_allowed_does_what_it_does_anyway(what: str) -> None:
    request, need, _ = MATRIX[what]
    guarded, me, _ = stage()
    if what in ("channel list", "offsets", "list groups"):
        guarded.policy = lambda question: Verdict(True, names=frozenset(question.names))
    me.say(request)
    (question, *others) = guarded.asked
    assert len(others) == (what == "add feed")  # which is asked about of its target, too
    assert (question.right, question.subject, question.queue_id) == need
    answers = me.take()
    assert (MessageType.RESPONSE, 401) not in {(a.type, a.content_type) for a in answers}
    free, same, _ = stage()
    free.policy = lambda question: Verdict(True, names=frozenset(question.names))
    same.say(request)
    assert [a.raw for a in answers] == [a.raw for a in same.take()]
    assert len(guarded.handed_over) == ("custom" in what)


@pytest.mark.parametrize("operation", [OP_OPEN_GROUP, OP_RESET_GROUP, OP_DROP_GROUP])
def test_a_group_by_filter_asks_about_each_queue_and_leaves_out_what_is_refused(
    operation: int,
) -> None:
    headers = [("Cursor", "r")] + ([] if operation == OP_DROP_GROUP else [("Start", "latest")])
    world, me, _ = stage()
    for number in ("2", "3"):
        me.say(asks(Operation.CREATE_QUEUE, "c", headers=[("Queue-Id", number)]))
    me.take()
    world.asked.clear()
    world.policy = lambda question: Verdict(question.queue_id != 2, keep_s=1.0)
    me.say(asks(operation, "*", headers=headers))
    assert [(each.right, each.subject, each.queue_id) for each in world.asked] == [
        (rights.PULL, "c", 1),
        (rights.PULL, "c", 2),
        (rights.PULL, "c", 3),
    ]
    (answer,) = me.take()
    assert answer.content_type == 501, "allowed, as far as the gate goes"
    command = world.asked[0].command
    assert isinstance(command, GroupCommand)
    assert command.places is not None
    assert [place.allowed for place in command.places] == [True, False, True]
    # The answers hold for a while.
    world.asked.clear()
    me.say(asks(operation, "*", headers=headers))
    assert world.asked == []


def test_a_feed_needs_the_right_for_both_of_its_queues() -> None:
    world, me, _ = stage()
    world.policy = lambda question: Verdict(question.subject == "c", keep_s=1.0)
    me.say(asks(OP_ADD_FEED, "c", headers=FEED))
    asked = [(each.right, each.subject, each.queue_id) for each in world.asked]
    assert asked == [(rights.FEED, "c", 1), (rights.FEED, "d", 2)]
    assert [each.content_type for each in me.take()] == [401]
    world.asked.clear()
    me.say(asks(OP_ADD_FEED, "c", headers=FEED))
    assert not world.asked, "the answers hold for a while"
    assert [each.content_type for each in me.take()] == [401]


def test_every_right_is_needed_for_something_in_the_matrix() -> None:
    # test_nsq_matrix, admin/test_metrics and admin/test_api_table: TMQP has no such operations
    elsewhere = {
        rights.CONFIGURE,
        rights.MANAGE_CLIENTS,
        rights.SEE_AUDIT,
        rights.SEE_METRICS,
        rights.SEE_SERVER,
    }
    assert {need[0] for _, need, _ in MATRIX.values()} == set(rights.RIGHTS) - elsewhere


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(sorted(MATRIX))), max_size=12),
    st.randoms(use_true_random=False),
)
def test_what_is_allowed_late_is_what_would_have_happened_at_once(
    said: list[tuple[bool, str]], random: Random
) -> None:
    """However long answers take, a client hears the same in the same order."""
    slow = GuardedWorld(lambda _: None)
    free = World()
    late, prompt = Peer(slow, "me"), Peer(free, "me")
    chunk: list[Frame] = []
    for last, name in said:
        chunk.append(MATRIX[name][0])
        if last:
            for peer in (late, prompt):
                peer.say(*chunk)
            chunk.clear()
        if random.random() < 0.3 and slow.held:
            slow.decide(all_seen(slow.held[0]))
    while slow.held:
        slow.decide(all_seen(slow.held[0]))
    assert [each.raw for each in late.take()] == [each.raw for each in prompt.take()]
    assert repr(slow.broker.statistics()) == repr(free.broker.statistics())
    assert not slow.hub.has_more(late.link.number)


def all_seen(question: Question) -> Verdict:
    return Verdict(True, names=frozenset(question.names))
